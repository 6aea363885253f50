"""Follow a log through its files in a folder, as BinlogStream follows it over a connection.

The files follow one another by their numbers. At the end of the last one it waits for more bytes, or for the next
file; when that is there, nothing more is added to the one before. Bytes are read once, into the block reader.
"""

import logging
import threading
import time
import zlib
from collections.abc import Generator, Iterator
from dataclasses import replace
from types import TracebackType
from typing import Self

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.file import check_magic
from penstock.binlog.events.format import parse_format
from penstock.binlog.events.layout import CHECKSUM, END_AT, FLAGS_AT, HEADER, IN_USE, MAGIC, SIZE_AT, TYPE_AT, EventType
from penstock.binlog.events.problem import EventProblemError, event_error
from penstock.binlog.events.reader import BlockReader
from penstock.config import DirectorySettings
from penstock.errors import LogHoleError, PositionLostError, SourceConnectionError
from penstock.model import FileIdentity, Position
from penstock.source.binlog_source import NO_DESTINATION
from penstock.source.file_head import read_bytes, read_file_identity, read_head
from penstock.source.folder import Folder, list_log_files, open_folder

log = logging.getLogger(__name__)

_PIECE_BYTES = 1 << 22  # with less, what is done once per block shows
_LARGEST_FORMAT = 1 << 12


class DirectoryStream:
    """Reads a log from the files in a folder. Iterating gives blocks, and None when there was nothing new; `position`
    may have moved.

    `stop()` from another thread ends the iteration. Without `follow` it ends where the files end now.

        with DirectoryStream(DirectorySettings(path="/logs"), Position("binlog.000007", 4)) as stream:
            block = next(iter(stream))
    """

    def __init__(
        self,
        settings: DirectorySettings,
        start: Position,
        *,
        verify: bool = True,
        follow: bool = True,
        lenient: bool = False,
        folder: Folder | None = None,
        destination: str = NO_DESTINATION,
    ) -> None:
        self._destination = destination
        self._settings, self._start, self._base = settings, start, start.file.rpartition(".")[0]
        self._verify, self._follow, self._lenient = verify, follow, lenient
        self._folder = folder or open_folder(settings.path)
        self._stopping = threading.Event()
        self._last: Block | None = None
        self._is_flowing = False
        self._hole_since: float | None = None
        self.waited_s = 0.0  # for bytes to come
        self._start_file(start)

    def _start_file(self, position: Position) -> None:
        """Begin to read a file, at its beginning or inside."""
        self._file, self._offset = position, position.offset
        self._reader = BlockReader(position, verify=self._verify, lenient=self._lenient)
        self._is_open = False

    @property
    def is_flowing(self) -> bool:
        """Return whether the position was found and can be read."""
        return self._is_flowing

    @property
    def position(self) -> Position:
        """Return the position up to which the log was read."""
        return self._reader.position

    @property
    def file_identity(self) -> FileIdentity | None:
        """Return the identity of the file that is being read."""
        return self._reader.file_identity

    @property
    def is_continued(self) -> bool:
        """Return True: files follow one another by their numbers."""
        return True

    @property
    def semi_sync(self) -> bool:
        """Return False: no server waits for a reader of files."""
        return False

    @property
    def wants_ack(self) -> bool:
        """Return False: no server waits for a reader of files."""
        return False

    def acknowledge(self, kept: Position) -> None:
        """Do nothing: acknowledgements are for semi-synchronous replication, in which a server waits for its replicas,
        and files have no server."""

    def __enter__(self) -> Self:
        names = list_log_files(self._folder, self._base)
        if self._start.file not in names:
            there = f"{names[0]} to {names[-1]}" if names else "no log files"
            raise PositionLostError(f"{self._settings.address} has no {self._start.file}: it has {there}")
        log.info(
            "following binlog files destination=%s folder=%s position=%s",
            *(self._destination, self._settings.address, self._start),
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the stream soon; any thread may call it."""
        self._stopping.set()

    def __iter__(self) -> Iterator[Block | None]:
        while (following := (yield from self._read_to_end())) is not None:
            gtids = self._last.executed_before(len(self._last)) if self._last is not None else self._file.gtids
            self._start_file(replace(self._file, file=following, offset=len(MAGIC), gtids=gtids))

    def _read_to_end(self) -> Generator[Block | None, None, str | None]:
        """Yield the blocks of the present file; return the name of the next one, or None when there is none or the
        stream stops."""
        following: str | None = None
        while not self._stopping.is_set():
            if size := self._read_bytes():
                yield from self._take_blocks(size)
                continue
            yield from self._take_blocks(0, flush=True)
            if following is not None:
                yield from self._take_blocks(0, flush=True, hold_trailing=False)
                self._check_complete(following)
                return following
            following = self._find_next_file()
            if following is not None:
                continue  # something may have been added before that one was there
            if not self._follow:
                return None
            yield None
            began = time.perf_counter()
            is_over = self._stopping.wait(self._settings.poll_s)
            self.waited_s += time.perf_counter() - began
            if not is_over:
                self._check_not_replaced()
        return None

    def _take_blocks(self, size: int, *, flush: bool = False, hold_trailing: bool = True) -> Iterator[Block]:
        """Pass `size` new bytes to the reader and yield the blocks that are complete."""
        self._reader.advance(size)
        for block in self._reader.blocks(flush=flush, hold_trailing=hold_trailing):
            self._last = block
            yield block
        self._is_flowing = self._is_flowing or self._reader.server_version != ""

    def _read_bytes(self) -> int:
        """Read more bytes into the reader and return how many; 0 when there are no more."""
        if not self._is_open:
            self._is_open = self._open_file()
            if not self._is_open:
                return 0
        began, room = time.perf_counter(), self._reader.room(_PIECE_BYTES)[:_PIECE_BYTES].data
        size = self._folder.read_into(self._file.file, self._offset, room)
        self.waited_s += time.perf_counter() - began
        self._offset += size
        return size

    def _check_not_replaced(self) -> None:
        """Check that the file is still the same: a file that is being written grows, but another one may have taken its
        name."""
        identity, file = self._reader.file_identity, self._file.file
        if identity is None or (size := self._folder.size(file)) == self._offset:
            return
        if size < self._offset or read_file_identity(self._folder, file) != identity:
            raise SourceConnectionError(
                f"{self._settings.address}/{file} is another file of that name than before, or was cut off"
            )

    def _open_file(self) -> bool:
        """Open the present file and return whether its head is there. A reader that begins inside a file gets the
        format event first."""
        head = read_bytes(self._folder, self._file.file, 0, len(MAGIC) + HEADER)
        if len(head) >= len(MAGIC):
            check_magic(head[: len(MAGIC)], f"{self._settings.address}/{self._file.file}")
        if len(head) < len(MAGIC) + HEADER:
            return False
        size = int.from_bytes(head[len(MAGIC) + SIZE_AT : len(MAGIC) + SIZE_AT + 4], "little")
        if self._offset < len(MAGIC) + size:
            self._offset = len(MAGIC)
            return True
        if self._offset > self._folder.size(self._file.file):
            raise PositionLostError(
                f"{self._file} is after the end of its file in {self._settings.address}: it was cut off, or is another"
            )
        event = read_bytes(self._folder, self._file.file, len(MAGIC), min(size, _LARGEST_FORMAT))
        try:
            made_up = _make_artificial(event)
        except EventProblemError as problem:
            raise event_error(
                event[TYPE_AT], problem.what, event, position=Position(self._file.file, len(MAGIC))
            ) from None
        self._reader.room(len(made_up))[: len(made_up)].data[:] = made_up
        self._reader.advance(len(made_up))
        return True

    def _find_next_file(self) -> str | None:
        """Return the name of the next log file; None when there is none yet. Raises PositionLostError when a file in
        between stays missing."""
        number = self._file.file_number
        later = [name for name in list_log_files(self._folder, self._base) if Position(name, 0).file_number > number]
        if not later:
            return None
        if Position(later[0], 0).file_number != number + 1:
            if self._hole_since is None:
                self._hole_since = time.monotonic()
                log.warning(
                    "gap in binlog files destination=%s folder=%s previous=%s next=%s timeout_s=%g: capture waits for"
                    " the missing files, then fails",
                    *(self._destination, self._settings.address, self._file.file, later[0]),
                    self._settings.missing_file_timeout_s,
                )
            if self._follow and time.monotonic() - self._hole_since < self._settings.missing_file_timeout_s:
                return None  # others may have come first
            digits = len(self._file.file) - len(self._base) - 1
            missing = f"{self._base}.{number + 1:0{digits}}"
            raise LogHoleError(
                f"{self._settings.address} has no {missing}, and {later[0]} after it: without it changes would be left"
                " out; bring it back, or choose a later start"
            )
        self._hole_since = None
        is_begun = len(later) > 1 or read_head(self._folder, later[0]) is not None
        return later[0] if is_begun else None

    def _check_complete(self, following: str) -> None:
        """Check that a file without a closing event is complete: a killed server left it, or its copy is not finished.
        GTIDs tell, where there are any."""
        name = f"{self._settings.address}/{self._file.file}"
        if not self._is_open or self._reader.rest:
            raise SourceConnectionError(
                f"{name} ends inside an event: the {self._reader.rest} bytes after {self.position.offset} are no whole"
                f" event, and {following} is there already; copy the file again"
            )
        last = self._last
        is_own = last is not None and last.file == self._file.file
        is_stopped = last is not None and is_own and last.column("kind")[-1] == EventType.STOP
        if self.position.file != self._file.file or is_stopped:
            return
        before = last.executed_before(len(last)) if last is not None else self._file.gtids
        head = read_head(self._folder, following)
        told = head.gtids if head is not None else None
        is_complete = told is not None and (told.is_mariadb or (last is None or ends_with_gtid(last, before=True)))
        if told is not None and before is not None and before.ranges and is_complete:
            lacking = told.minus(before)
            if lacking.ranges:
                raise SourceConnectionError(
                    f"{name} is not all there: it ends at {self.position.offset}, and {following} begins after"
                    f" {lacking.text}; copy the file again"
                )
        elif not self._settings.trust_ends:
            raise SourceConnectionError(
                f"{name} has no end: it was not copied as a whole, or its server was killed at {self.position.offset};"
                " copy the file again, or say `trust_ends: true` if that is all of it"
            )


def ends_with_gtid(block: Block, *, before: bool) -> bool:
    """Return whether the last transaction of the block, which may have begun before it, has a GTID."""
    entries = np.flatnonzero(block.column("entry"))
    return bool(block.gtids[entries[-1], 0]) if entries.size else before


def _make_artificial(event: bytes) -> bytes:
    """Return a format event without a position, as servers send it to a reader that begins inside a file."""
    plain = bytearray(event)
    plain[FLAGS_AT] &= ~IN_USE
    plain[END_AT : END_AT + 4] = bytes(4)
    if parse_format(memoryview(event)).checksum:
        plain[-CHECKSUM:] = zlib.crc32(plain[:-CHECKSUM]).to_bytes(CHECKSUM, "little")
    return bytes(plain)
