"""The source's own log: to be followed, and for what the store does not have."""

import logging
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

from penstock.binlog.events.block import Block
from penstock.binlog.xa.resolver import XaResolver
from penstock.capture.log_identity import LogIdentity
from penstock.capture.position_resolver import PositionResolver
from penstock.capture.prepared import READER_BYTES, PreparedTransactions
from penstock.config import DirectorySettings, InstanceSettings, SourceSettings
from penstock.errors import NotRunningError, PositionLostError, ServerIdTakenError, SourceConnectionError
from penstock.filter import BlockFilter
from penstock.meta import SourceRecord
from penstock.model import Position
from penstock.source import BinlogSource, LogInventory, LogStream, open_source
from penstock.source.binlog_source import FIRST
from penstock.source.stream import random_server_id
from penstock.store import Start

log = logging.getLogger(__name__)

_TRANSLATIONS = 64


class SourceLog:
    """The log of an instance's source, with the instance's filter. Any thread may read from it; `stop` ends all
    reads."""

    def __init__(self, settings: InstanceSettings, identity: LogIdentity) -> None:
        self._settings, self._identity = settings, identity
        self.source = next(
            (source for source in settings.sources if source.address == identity.record.address), settings.source
        )
        self._binlog_sources = {
            source.address: open_source(source, settings.destination) for source in settings.sources
        }
        self._streams: set[LogStream] = set()
        self._stopping = threading.Event()
        self._reached = Position("none.0", 0)  # how far it is known to go
        self._server_id = (
            settings.source.server_id or random_server_id()
        )  # of who follows the log; others draw their own
        self.complete: Callable[[Block], Block] = lambda block: block  # with what is known of its tables
        self.prepared: PreparedTransactions | None = None  # of who follows the log
        self._translated = lru_cache(_TRANSLATIONS)(self._translate_uncached)

    def reload_filter(self, settings: InstanceSettings) -> None:
        """Filter what is read from now on by these settings."""
        self._settings = settings

    @property
    def binlog_source(self) -> BinlogSource:
        """Return the source that the log is read from."""
        return self._binlog_sources[self.source.address]

    def switch_to(self, source: SourceSettings | DirectorySettings) -> None:
        """Read from another server from now on, which has the log."""
        self.source = source
        self.interrupt()

    def stop(self) -> None:
        """End all reads, now and later."""
        self._stopping.set()
        self.interrupt()

    def interrupt(self) -> None:
        """End all reads that are under way."""
        for stream in list(self._streams):
            stream.stop()

    @contextmanager
    def open_for_capture(self, start: Position, *, by_gtids: bool = False) -> Generator[LogStream, None, None]:
        """Open the stream that capture follows: there is one at a time."""
        try:
            with self.open_stream(start, self._server_id, by_gtids=by_gtids, semi_sync=self.source.semi_sync) as stream:
                yield stream
        except ServerIdTakenError:
            if self._settings.source.server_id is None:
                before, self._server_id = self._server_id, random_server_id()
                log.warning(
                    "replica server id changed destination=%s server_id=%d before=%d: another replica of the source"
                    " uses the previous id",
                    self._settings.destination, self._server_id, before,
                )  # fmt: skip
            raise

    @contextmanager
    def open_stream(
        self, start: Position, server_id: int | None = None, *, by_gtids: bool = False, semi_sync: bool = False
    ) -> Generator[LogStream, None, None]:
        """Open a stream that `stop` ends, whichever thread reads from it."""
        options = {"verify": self._settings.verify_checksum, "by_gtids": by_gtids, "semi_sync": semi_sync}
        wants_statements = self.source.annotations and "query" in self._settings.filter.kinds
        stream = self.binlog_source.stream(start, server_id=server_id, annotations=wants_statements, **options)
        self._streams.add(stream)
        try:
            with stream:
                if self._stopping.is_set():
                    stream.stop()
                yield stream
        finally:
            self._streams.discard(stream)

    def read_log(self, start: Position, end: Position) -> Iterator[Block]:
        """Read (start, end] with the instance's filter, XA transactions at their commit, in a stream of its own."""
        epoch = self.epoch
        if {start.epoch, end.epoch} != {epoch}:
            raise SourceConnectionError(f"the source of '{self._settings.destination}' is being switched")
        wanted = BlockFilter(self._settings.filter)
        prepared = PreparedTransactions(
            self, memory_bytes=READER_BYTES, shared=self.prepared, on_lost=self.handle_lost_rows
        )
        prepared.resume(start.boundary)
        resolver = XaResolver(prepared)
        # Rows are understood by what comes before them: a transaction is read from where it begins.
        for block in self.read_raw(start.boundary, end):
            for part in resolver.resolve(block):
                rest = part if start.transaction is None else part.between(start, end)
                if len(rest) and (kept := wanted.apply(self.complete(rest))):
                    yield kept

    def split_at_files(self, start: Position, end: Position, least: int) -> list[Position]:
        """Return the positions inside a range of the log at which its files begin, or none for fewer than `least`."""
        if {start.epoch, end.epoch} != {self.epoch}:
            return []
        source = self.binlog_source
        begins = (Position(name, FIRST, epoch=self.epoch) for name in source.sizes())
        inside = [begin for begin in begins if start < begin < end]
        if len(inside) < least:
            return []
        has_gtids = end.gtids is not None or source.end().gtids is not None
        return [replace(begin, gtids=source.previous_gtids(begin.file) if has_gtids else None) for begin in inside]

    def read_raw(self, begin: Position, end: Position) -> Iterator[Block]:
        """Read (begin, end] as the log has it: rows of XA transactions are where they were prepared."""
        epoch = self.epoch
        with self.open_stream(begin) as stream:
            for block in stream:
                if block is not None and not self._identity.is_known_file(stream.file_identity):
                    raise SourceConnectionError(f"{self.source.address} is another server than it was, or its log is")
                if block is not None and (part := block.between(begin, end)):
                    yield part
                if (block.end if block is not None else stream.position) >= end:
                    return
        if epoch != self.epoch:
            raise SourceConnectionError(f"the source of '{self._settings.destination}' was switched while it was read")
        raise NotRunningError(f"instance '{self._settings.destination}' was stopped")

    def file_identity_at(self, position: Position) -> str:
        """Return the identity of the log file of a position, which tells it from others of its name; an empty text when
        the file is not in this log now."""
        if position.epoch != self.epoch or position.file not in self.binlog_source.sizes():
            return ""
        identity = self.binlog_source.file_identity(position.file)
        return f"{identity.server_id}-{identity.began}"

    def files(self) -> list[str]:
        """Return the names of the log's files, in their order."""
        return [*self.binlog_source.sizes()]

    def handle_lost_rows(self, error: PositionLostError) -> None:
        """Leave out the rows of a prepared transaction that the log no longer has, or raise, by `on_purged`."""
        if self._settings.on_purged != "latest":
            raise error
        log.error(
            "changes skipped destination=%s reason=%s: compare the target with the source",
            *(self._settings.destination, error),
        )

    @property
    def epoch(self) -> int:
        """Return the number of the current epoch."""
        return self._identity.epoch

    @property
    def record(self) -> SourceRecord:
        """Return what is known of the log that is followed: its server and the identities of its files."""
        return self._identity.record

    @property
    def resolver(self) -> PositionResolver:
        """Return a resolver for positions in the log that the source has now."""
        record, window_s = self._identity.record, self._settings.failover.window_s
        return PositionResolver(
            self.binlog_source,
            record.epoch,
            window_s,
            by_gtids=record.by_gtids,
            is_reset=record.is_reset,
            destination=self._settings.destination,
        )

    def find(self, start: Start) -> Position:
        """Return the position of a GTID or a time."""
        return self.resolver.find(start)

    def translate(self, position: Position) -> Position:
        """Return the position of this epoch that corresponds to one of an earlier epoch."""
        if position.epoch == self.epoch:
            return position
        return self._translated(position, self.epoch)

    def _translate_uncached(self, position: Position, _: int) -> Position:
        """Translate a position; the cache of `translate` calls this."""
        return self.resolver.translate(position)

    def inventory(self) -> LogInventory:
        """Return what the source has now: its identity, its log files and the end of its log."""
        return self.binlog_source.inventory()

    def oldest(self) -> Position:
        """Return the position at which the log begins."""
        return self.resolver.with_current_epoch(self.inventory().oldest)

    def end(self) -> Position:
        """Return the position at which the log ends now."""
        return self.resolver.with_current_epoch(self.inventory().end)

    def measure_behind(self, position: Position) -> tuple[Position, int]:
        """Return the position at which the log ends now, and how many bytes of it are behind a position: 0 for one of
        an earlier epoch, whose log had other files."""
        inventory = self.inventory()
        end = self.resolver.with_current_epoch(inventory.end)
        return end, inventory.bytes_between(position, end) if position.epoch == end.epoch else 0

    def end_for_display(self) -> Position:
        """Return the position at which the log ends now, for a display of the lag that asks every second."""
        return self.resolver.with_current_epoch(self.binlog_source.end_for_display())

    def check_reached(self, position: Position, known: Position | None = None, *, whose: str = "") -> None:
        """Raise PositionLostError for a position that the log has not reached: it belongs to another log, and resuming
        there would skip changes."""
        if known is not None:
            self._reached = max(self._reached, known)
        if position <= self._reached:
            return
        self._reached = self.end()
        if position > self._reached:
            raise PositionLostError(
                f"{whose}{position} is ahead of the log of {self.source.address}, which ends at {self._reached}: the"
                " log was restarted, or this is another server; a client is moved with `penstock position set`, a Spark"
                " query starts again with a new checkpoint"
            )
