"""The source's own log, for what the store does not have."""

import logging
import threading
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from penstock.binlog.events.block import Block
from penstock.config import InstanceSettings
from penstock.errors import PositionLostError, ServerIdTakenError, SourceConnectionError
from penstock.inspect.live_server import LiveServer
from penstock.inspect.place import Moment
from penstock.inspect.server_log import ServerLog
from penstock.model import GtidSet, Position
from penstock.source import BinlogStream, connect, current_position, oldest_position
from penstock.source.stream import draw_server_id
from penstock.store import Start
from penstock.store.client import Place
from penstock.store.held import Entries, Held
from penstock.store.start import place_of

log = logging.getLogger(__name__)


class SourceLog:
    """Any thread may read from it; `stop` ends all that is read."""

    def __init__(self, settings: InstanceSettings) -> None:
        self._settings = settings
        self._streams: set[BinlogStream] = set()
        self._stopping = threading.Event()
        self._reached = Position("none.0", 0)  # how far it is known to go
        self._epoch = settings.epoch
        self._server_id = settings.source.server_id or draw_server_id()  # of who follows the log; others draw their own

    def stop(self) -> None:
        self._stopping.set()
        for stream in list(self._streams):
            stream.stop()

    @contextmanager
    def followed(self, start: Position) -> Generator[BinlogStream, None, None]:
        """The stream of capture: there is one at a time."""
        try:
            with self.opened(start, self._server_id) as stream:
                yield stream
        except ServerIdTakenError:
            if self._settings.source.server_id is None:
                before, self._server_id = self._server_id, draw_server_id()
                log.warning("server id %d is another's now: going on with %d", before, self._server_id)
            raise

    @contextmanager
    def opened(self, start: Position, server_id: int | None = None) -> Generator[BinlogStream, None, None]:
        """A stream that `stop` ends, whoever reads from it."""
        source, verify = self._settings.source, self._settings.verify_checksum
        stream = BinlogStream(source, start, verify=verify, server_id=server_id)
        self._streams.add(stream)
        try:
            with stream:
                if self._stopping.is_set():
                    stream.stop()
                yield stream
        finally:
            self._streams.discard(stream)

    def read_log(self, start: Position, end: Position) -> Iterator[Block]:
        with self.opened(start) as stream:
            for block in stream:
                part = block.between(start, end) if block is not None else ()
                if part:
                    yield part
                if (block.end if block is not None else stream.position) >= end:
                    return
        raise SourceConnectionError(f"instance '{self._settings.destination}' was stopped")

    def find(self, start: Start) -> Position:
        """The file by its first events, then the transaction in it."""
        server = LiveServer(self._settings.source, verify=self._settings.verify_checksum)
        since = GtidSet.parse(start.gtid) if start.kind == "gtid" else Moment(start.time_us)
        searched = ServerLog(server, since, no_warning, follow=False)
        last = searched.start  # between two transactions
        for block in searched:
            entries = Entries.of(block)
            if not len(entries):
                continue
            found = _found(start, entries, last)
            if found is not None:
                return self._placed(found)
            ends = block.boundaries
            last = block.end_of(int(ends[-1])) if ends.size else last
        if start.kind == "gtid":
            raise PositionLostError(f"the log of {self._settings.source.address} has no transaction {start.gtid}")
        return self._placed(last)

    def oldest(self) -> Position:
        """Where it begins."""
        with closing(connect(self._settings.source)) as connection:
            return self._placed(oldest_position(connection, self._settings.source))

    def end(self) -> Position:
        """Where it ends now."""
        with closing(connect(self._settings.source)) as connection:
            return self._placed(current_position(connection, self._settings.source))

    def _placed(self, position: Position) -> Position:
        """As the server gives it, and in our order."""
        return replace(position, epoch=self._epoch)

    def check_reached(self, position: Position, known: Position | None = None, *, whose: str = "") -> None:
        """A position that the log has not reached is of another log: to go on from it would skip changes."""
        if known is not None:
            self._reached = max(self._reached, known)
        if position <= self._reached:
            return
        self._reached = self.end()
        if position > self._reached:
            raise PositionLostError(
                f"{whose}{position} is ahead of the log of {self._settings.source.address}, which ends at"
                f" {self._reached}: the log was restarted, or this is another server; a client is moved with `penstock"
                " position set`, a Spark query begins anew with a new checkpoint"
            )


def no_warning(text: str) -> None:
    log.info("%s", text)


def _found(start: Start, entries: Entries, last: Position) -> Position | None:
    """Where the start is, if that is known from this block."""
    held = Held.of(entries, 0, 0)
    before, missing = Place(-1, last, 0), Place(-1, last, 0)
    try:
        place = place_of(start, [held], lambda _: entries, before, missing)
    except PositionLostError:
        return None
    return None if place is missing else place.position
