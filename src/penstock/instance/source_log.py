"""The source's own log: to be followed, and for what the store does not have."""

import logging
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache

from penstock.binlog.events.block import Block
from penstock.binlog.xa.resolver import XaResolver
from penstock.config import DirectorySettings, InstanceSettings, SourceSettings
from penstock.errors import PositionLostError, ServerIdTakenError, SourceConnectionError
from penstock.filter import BlockFilter
from penstock.instance.lineage import Lineage
from penstock.instance.place import Places
from penstock.instance.prepared import READER_BYTES, PreparedTransactions
from penstock.model import Position
from penstock.source import LogStream, Origin, Seen, origin_of
from penstock.source.stream import draw_server_id
from penstock.store import Start

log = logging.getLogger(__name__)

_TRANSLATIONS = 64


class SourceLog:
    """Any thread may read from it; `stop` ends all that is read."""

    def __init__(self, settings: InstanceSettings, lineage: Lineage) -> None:
        self._settings, self._lineage = settings, lineage
        self.source = next((one for one in settings.sources if one.address == lineage.record.address), settings.source)
        self._origins = {one.address: origin_of(one) for one in settings.sources}
        self._streams: set[LogStream] = set()
        self._stopping = threading.Event()
        self._reached = Position("none.0", 0)  # how far it is known to go
        self._server_id = settings.source.server_id or draw_server_id()  # of who follows the log; others draw their own
        self.complete: Callable[[Block], Block] = lambda block: block  # with what is known of its tables
        self.prepared: PreparedTransactions | None = None  # of who follows the log
        self._translated = lru_cache(_TRANSLATIONS)(self._translate)

    def refilter(self, settings: InstanceSettings) -> None:
        """What is read from now on is filtered by these."""
        self._settings = settings

    @property
    def origin(self) -> Origin:
        """Where the log is read from."""
        return self._origins[self.source.address]

    def switch_to(self, source: SourceSettings | DirectorySettings) -> None:
        """Another server has the log."""
        self.source = source
        self.interrupt()

    def stop(self) -> None:
        self._stopping.set()
        self.interrupt()

    def interrupt(self) -> None:
        """End all that is read now."""
        for stream in list(self._streams):
            stream.stop()

    @contextmanager
    def followed(self, start: Position, *, by_gtids: bool = False) -> Generator[LogStream, None, None]:
        """The stream of capture: there is one at a time."""
        try:
            with self.opened(start, self._server_id, by_gtids=by_gtids, semi_sync=self.source.semi_sync) as stream:
                yield stream
        except ServerIdTakenError:
            if self._settings.source.server_id is None:
                before, self._server_id = self._server_id, draw_server_id()
                log.warning("server id %d is another's now: going on with %d", before, self._server_id)
            raise

    @contextmanager
    def opened(
        self, start: Position, server_id: int | None = None, *, by_gtids: bool = False, semi_sync: bool = False
    ) -> Generator[LogStream, None, None]:
        """A stream that `stop` ends, whoever reads from it."""
        how = {"verify": self._settings.verify_checksum, "by_gtids": by_gtids, "semi_sync": semi_sync}
        wants_statements = self.source.annotations and "query" in self._settings.filter.kinds
        stream = self.origin.stream(start, server_id=server_id, annotations=wants_statements, **how)
        self._streams.add(stream)
        try:
            with stream:
                if self._stopping.is_set():
                    stream.stop()
                yield stream
        finally:
            self._streams.discard(stream)

    def read_log(self, start: Position, end: Position) -> Iterator[Block]:
        epoch = self.epoch
        if {start.epoch, end.epoch} != {epoch}:
            raise SourceConnectionError(f"the source of '{self._settings.destination}' is being switched")
        wanted = BlockFilter(self._settings.filter)
        prepared = PreparedTransactions(
            self, memory_bytes=READER_BYTES, shared=self.prepared, on_lost=self.leave_out_lost
        )
        prepared.resume(start)
        resolver = XaResolver(prepared)
        for block in self.read_raw(start, end):
            for part in resolver.resolve(block):
                if kept := wanted.apply(self.complete(part)):
                    yield kept

    def read_raw(self, begin: Position, end: Position) -> Iterator[Block]:
        """Read (begin, end] as the log has it: rows of XA transactions are where they were prepared."""
        epoch = self.epoch
        with self.opened(begin) as stream:
            for block in stream:
                if block is not None and not self._lineage.is_known(stream.mark):
                    raise SourceConnectionError(f"{self.source.address} is another server than it was, or its log is")
                if block is not None and (part := block.between(begin, end)):
                    yield part
                if (block.end if block is not None else stream.position) >= end:
                    return
        if epoch != self.epoch:
            raise SourceConnectionError(f"the source of '{self._settings.destination}' was switched while it was read")
        raise SourceConnectionError(f"instance '{self._settings.destination}' was stopped")

    def files(self) -> list[str]:
        """Return the names of the log's files, in their order."""
        return [*self.origin.sizes()]

    def leave_out_lost(self, error: PositionLostError) -> None:
        """Leave out the rows of a prepared transaction that the log no longer has, or raise, by `on_purged`."""
        if self._settings.on_purged != "latest":
            raise error
        log.error("changes are skipped destination=%s: %s", self._settings.destination, error)

    @property
    def epoch(self) -> int:
        return self._lineage.epoch

    @property
    def places(self) -> Places:
        record, window_s = self._lineage.record, self._settings.failover.window_s
        return Places(self.origin, record.epoch, window_s, by_gtids=record.by_gtids, is_anew=record.is_anew)

    def find(self, start: Start) -> Position:
        return self.places.find(start)

    def translated(self, position: Position) -> Position:
        """A place of an earlier epoch, in this one."""
        if position.epoch == self.epoch:
            return position
        return self._translated(position, self.epoch)

    def _translate(self, position: Position, _: int) -> Position:
        return self.places.translated(position)

    def look(self) -> Seen:
        return self.origin.look()

    def oldest(self) -> Position:
        """Where it begins."""
        return self.places.placed(self.look().oldest)

    def end(self) -> Position:
        """Where it ends now."""
        return self.places.placed(self.look().end)

    def check_reached(self, position: Position, known: Position | None = None, *, whose: str = "") -> None:
        """A position that the log has not reached is of another log: to go on from it would skip changes."""
        if known is not None:
            self._reached = max(self._reached, known)
        if position <= self._reached:
            return
        self._reached = self.end()
        if position > self._reached:
            raise PositionLostError(
                f"{whose}{position} is ahead of the log of {self.source.address}, which ends at {self._reached}: the"
                " log was restarted, or this is another server; a client is moved with `penstock position set`, a Spark"
                " query begins anew with a new checkpoint"
            )
