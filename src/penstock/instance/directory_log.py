"""The log in a folder of files: where it begins and ends, where something is in it, and what lies between two places.

What the first events of each file say finds the file; then that one is looked through.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.bodies import Gtids, parse_body
from penstock.binlog.events.layout import HEADER, MAGIC, EventType
from penstock.config import DirectorySettings
from penstock.errors import ConfigurationError, PositionLostError
from penstock.inspect.file_log import first_with
from penstock.inspect.place import Moment
from penstock.instance.found_place import found_place
from penstock.model import GtidSet, Position
from penstock.source.directory import DirectoryStream
from penstock.source.folder import log_files, open_folder
from penstock.store import Start

_HEADS = (EventType.PREVIOUS_GTIDS, EventType.MARIADB_GTID_LIST)
_NAMED = (EventType.GTID, EventType.GTID_TAGGED)


class DirectoryLog:
    """Any thread may ask it; nothing is kept between two questions."""

    def __init__(self, settings: DirectorySettings, *, epoch: int = 0, verify: bool = True) -> None:
        self.address = settings.address
        self._settings, self._epoch, self._verify = settings, epoch, verify
        self._folder = open_folder(settings.path)

    def opened(self, start: Position, *, follow: bool = True) -> DirectoryStream:
        return DirectoryStream(self._settings, start, verify=self._verify, follow=follow, folder=self._folder)

    def oldest(self) -> Position:
        """Where it begins."""
        return self._beginning(self._files()[0])

    def end(self) -> Position:
        """After the last whole transaction."""
        last = self._beginning(self._files()[-1])
        for block in self._blocks(last):
            if block.boundaries.size:
                last = block.boundary_after(int(block.boundaries[-1]))
        return last

    def find(self, start: Start) -> Position:
        """Between two transactions. Raises PositionLostError for what is not in the files."""
        match start.kind:
            case "first":
                return self.oldest()
            case "latest":
                return self.end()
            case "gtid":
                return self._after_gtid(start)
            case "time":
                return self._at_time(start)
            case "position" | "cursor":
                raise ConfigurationError(f"{start} is a position already: there is nothing to find")

    def read_log(self, start: Position, end: Position) -> Iterator[Block]:
        """Entries of (start, end]; both lie between two transactions."""
        with self.opened(start, follow=False) as stream:
            for block in stream:
                part = block.between(start, end) if block is not None else ()
                if part:
                    yield part
                if (block.end if block is not None else stream.position) >= end:
                    return
            if stream.position < end:
                raise PositionLostError(f"the files in {self.address} end at {stream.position}: {end} is not there")

    def _after_gtid(self, start: Start) -> Position:
        """The last file that does not begin after it has it."""
        files, wanted = self._files(), GtidSet.parse(start.gtid)
        number = bisect_left(files, True, key=lambda file: (self._before(file) or GtidSet({})).includes(wanted))
        if number:
            before = self._beginning(files[number - 1])
            found, _ = found_place(start, self._blocks(before), before)
            if found is not None:
                return found
        raise PositionLostError(f"the files in {self.address} have no transaction {start.gtid}")

    def _at_time(self, start: Start) -> Position:
        files, since = self._files(), Moment(start.time_us)
        number = first_with([self._opened_s(file) for file in files], since, lambda i: self._reaches(files[i], since))
        before = self._beginning(files[number])
        with self.opened(before, follow=False) as stream:
            found, last = found_place(start, (block for block in stream if block is not None), before)
        return found or last

    def _files(self) -> list[str]:
        files = log_files(self._folder, self._settings.base)
        if not files:
            raise PositionLostError(f"there are no log files in {self.address}")
        return files

    def _beginning(self, file: str) -> Position:
        return Position(file, len(MAGIC), epoch=self._epoch, gtids=self._before(file))

    def _blocks(self, start: Position) -> Iterator[Block]:
        """To the end of the file."""
        with self.opened(start, follow=False) as stream:
            for block in stream:
                if block is not None:
                    if block.file != start.file:
                        return
                    yield block

    def _before(self, file: str) -> GtidSet | None:
        """What was committed before a file was opened, as its first events say; None when its log has no GTIDs."""
        block = next(self._blocks(Position(file, len(MAGIC), epoch=self._epoch)), None)
        if block is None:
            return None
        kinds, (data, starts, sizes) = block.column("kind"), block.raw
        heads = np.flatnonzero(np.isin(kinds, _HEADS))
        if not heads.size:
            return None
        head = int(heads[0])
        stop = int(starts[head] + sizes[head]) - int(block.column("checksum")[head])
        body = parse_body(int(kinds[head]), data[int(starts[head]) + HEADER : stop].tobytes())
        found = GtidSet.parse(body.text if isinstance(body, Gtids) else "")
        if kinds[head] == EventType.MARIADB_GTID_LIST:
            return replace(found, is_mariadb=True)
        return found if found.ranges or np.isin(kinds, _NAMED).any() else None

    def _opened_s(self, file: str) -> int | None:
        """The time in the header of a file's first event."""
        head = bytearray(len(MAGIC) + 4)
        if self._folder.read_into(file, 0, memoryview(head)) < len(head):
            return None
        return int.from_bytes(head[len(MAGIC) :], "little")

    def _reaches(self, file: str, since: Moment) -> bool:
        return any(since.is_reached(block) for block in self._blocks(Position(file, len(MAGIC))))
