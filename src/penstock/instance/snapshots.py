"""Reads tables of an instance's source for queries that begin with a snapshot: chunk by chunk, each as the table was at
a position of the log."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.xa.placement import join_blocks
from penstock.capture.counters import CaptureCounters
from penstock.capture.source_log import SourceLog
from penstock.config import InstanceSettings, SourceSettings
from penstock.coordinate import Tree
from penstock.errors import ConfigurationError, NotCapturedError, NotRunningError, SchemaError
from penstock.instance.components import Components
from penstock.instance.snapshot_changes import ChunkChanges, collect_changes
from penstock.instance.snapshot_control import SnapshotControl
from penstock.instance.snapshot_questions import SnapshotQuestions
from penstock.instance.snapshot_requests import open_request_store
from penstock.model import Position, TableName, TableSchema
from penstock.snapshot.as_of import rows_as_of
from penstock.snapshot.chunks import Chunk, ChunkSize, plan_chunks, split_chunk
from penstock.snapshot.key_column import Key
from penstock.snapshot.key_order import ask_database, find_inside
from penstock.snapshot.pacing import Pacer
from penstock.snapshot.reader import ChunkReader, ChunkRows, ChunkTooLargeError
from penstock.snapshot.server_mark import ServerMark
from penstock.snapshot.table import SnapshotTable, describe_table
from penstock.store import EventStore

log = logging.getLogger(__name__)

_CAPTURE_WAIT_S = 60.0
_PAUSE_S = 0.002
_BATCH_ROWS = 50_000
_CHUNKS_AT_ONCE = 4  # whose rows a last chunk may have, which has no upper limit
_CHANGED_CHUNKS = 16  # chunks whose bytes the changed rows of one chunk may take
_RETRY_S = 60.0
_GONE = "the reader of a snapshot is gone"
_BATCH_S = 2.0  # that a batch of Spark takes, where rows per second are limited


class SnapshotSource(Protocol):
    """What of an instance a snapshot needs: its source, and the changes in its log."""

    settings: InstanceSettings
    counters: CaptureCounters

    @property
    def store(self) -> EventStore:
        """Return the store, which says up to where the log is captured."""
        ...

    @property
    def source_log(self) -> SourceLog:
        """Return the reader of the source's log."""
        ...

    @property
    def components(self) -> Components:
        """Return what the running instance is built of, such as its event store and its capture."""
        ...

    def read(self, start: Position, end: Position) -> Iterator[Block]:
        """Yield the blocks between two positions."""
        ...

    def describe_tables(self, tables: Sequence[TableName]) -> list[TableSchema]:
        """Return the schemas of tables as they are now."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedChunks:
    """The next chunks of a table, and what is known of the table."""

    chunks: list[Chunk]
    key: tuple[str, ...]  # the columns that it is cut by
    key_description: str  # fingerprint of all that the order of keys depends on
    estimated_rows: int


class InstanceSnapshots:
    """Reads tables for queries that begin with a snapshot. It keeps no state of a query: any chunk can be read at any
    position that the log still has, any number of times. Any thread may call it."""

    def __init__(self, instance: SnapshotSource) -> None:
        self._instance = instance
        settings = instance.settings.snapshot
        self._pacer = Pacer(settings.rows_per_s)
        self._connections = threading.BoundedSemaphore(settings.connections)
        requests = open_request_store(instance.settings, self._tree)
        self._control = SnapshotControl(instance.settings.destination, requests)
        self._questions = SnapshotQuestions(self._source)

    # -- for people

    def pause(self) -> None:
        """Plan no more chunks until `resume`; those of the batch that is being read are read to its end, because the
        changes in that batch wait for them."""
        self._control.set_paused(is_paused=True)

    def resume(self) -> None:
        """Continue to read snapshots."""
        self._control.set_paused(is_paused=False)

    def request_resnapshot(self, name: TableName) -> int:
        """Request a new snapshot of a table: every query that began with a snapshot reads it again. Return the number
        of the request."""
        self._instance.describe_tables([name])  # raises for one that is not there
        return self._control.request_resnapshot(name)

    def report(self) -> dict[str, Any]:
        """Return how far snapshots are, as plain data."""
        return self._control.report()

    def progress(self) -> dict[str, Any]:
        """Return how far each table is, as far as this server has read it."""
        return self._control.progress()

    # -- for queries

    def plan(self, name: TableName, after: Key | None, *, rows_before: int, count: int, rows: int) -> PlannedChunks:
        """Return up to `count` chunks of a table behind the key `after`, of up to `rows` rows each; no chunks while
        snapshots are paused. `rows_before` is how many rows earlier chunks had, for the progress."""
        settings = self._instance.settings.snapshot
        with self._questions.cursor() as cursor:
            table = self._describe(cursor, name, None)
            _check_row_image(cursor, name)
            if settings.rows_per_s is not None:  # the changes of a batch wait for its chunks
                rows, count = max(1, min(rows, int(settings.rows_per_s * _BATCH_S))), 1
            size = ChunkSize(min(settings.chunk_rows, rows), settings.chunk_bytes)
            planned = [] if self._control.is_paused else list(islice(plan_chunks(cursor, table, size, after), count))
        names = tuple(column.name for column in table.key)
        self._control.note_plan(name, rows_before, table.estimated_rows, is_first=after is None)
        return PlannedChunks(planned, names, table.key_description, table.estimated_rows)

    def read(
        self,
        name: TableName,
        chunk: Chunk,
        position: Position,
        fields: pa.Schema,
        is_over: Callable[[], bool] = lambda: False,
        key_description: str | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows that a chunk of a table had at a position of the log. `key_description` is that of the key
        that the chunk was planned by."""
        epoch = self._instance.source_log.epoch
        with self._questions.cursor() as cursor:
            table = self._describe(cursor, name, fields.names)
            pieces = self._split_last(cursor, table, chunk)
        if key_description is not None and key_description != table.key_description:
            raise SchemaError(
                f"the key of {name} was changed after a chunk of it was planned ({key_description}; now"
                f" {table.key_description}): start the query with a new checkpoint"
            )
        count = 0
        while pieces:
            piece, captured = pieces.pop(0), self._instance.store.latest
            try:
                rows = self._read_rows(table, piece, captured, is_over)
            except ChunkTooLargeError as error:
                pieces[:0] = error.pieces
                continue
            state = self._bring_to(table, rows, position, fields, is_over)
            self._check_servers(rows.servers, captured)  # what is known of the log's files is more than before
            if self._instance.source_log.epoch != epoch:
                raise NotRunningError("the source was switched while a table was read: read the chunk again")
            count += state.num_rows
            yield from state.to_batches(_BATCH_ROWS)
        shown = self._control.note_chunk(name, count, is_last=chunk.until is None)
        log.info(
            "snapshot chunk read destination=%s table=%s rows=%d rows_read=%d estimated_rows=%d percent=%.1f"
            " position=%s",
            self._instance.settings.destination, name, count, shown["rows_read"], shown["estimated_rows"],
            shown["percent"], position,
        )  # fmt: skip

    def _split_last(self, cursor: Any, table: SnapshotTable, chunk: Chunk) -> list[Chunk]:
        """Return a chunk; the last one of its table is split, because many rows may have been added behind those that
        it was planned for, when its batch is read again much later."""
        if chunk.until is not None:
            return [chunk]
        settings = self._instance.settings.snapshot
        size = ChunkSize(settings.chunk_rows, settings.chunk_bytes)
        return list(split_chunk(cursor, table, chunk, _CHUNKS_AT_ONCE * size.rows_for(table)))

    def find_inside(self, name: TableName, keys: list[list[str]], chunk: Chunk) -> list[bool]:
        """Return which keys, given as texts, lie in the range of a chunk, as the source orders them."""
        table = self._questions.describe(name, partial(self._describe, columns=None))
        with self._questions.cursor() as cursor:
            return ask_database(cursor, table, keys, chunk)

    def _read_rows(
        self, table: SnapshotTable, chunk: Chunk, captured: Position, is_over: Callable[[], bool]
    ) -> ChunkRows:
        """Read a chunk on one of the connections that snapshots may have. The log was captured up to a position
        before."""
        while not self._connections.acquire(timeout=1.0):
            if is_over():
                raise NotRunningError(_GONE)

        def check_reader(_: int) -> None:
            if is_over():
                raise NotRunningError(_GONE)

        try:
            settings = self._instance.settings.snapshot
            source, replica = self._source(), self._replica()

            def check_view(cursor: Any, table: SnapshotTable, servers: Sequence[ServerMark]) -> None:
                self._check_servers(servers, captured)  # first: another server may have another table
                if replica is not None:
                    _check_replica(cursor, table)

            with ChunkReader(
                replica or source,
                pacer=self._pacer,
                max_view_age_s=settings.max_view_age_s,
                retry_timeout_s=_RETRY_S,
                on_rows=check_reader,
                asks_server=True,
                primary=source if replica is not None else None,
                check_view=check_view,
                max_bytes=ChunkSize(settings.chunk_rows, settings.chunk_bytes).most_bytes,
            ) as reader:
                return reader.read(table, chunk)
        finally:
            self._connections.release()

    def _check_servers(self, servers: Sequence[ServerMark], captured: Position) -> None:
        """Raise NotRunningError when a chunk was not read from the server whose log is captured, which was captured up
        to a position before."""
        source_log = self._instance.source_log
        record = source_log.record
        for server in servers:
            if difference := server.difference_from(record.server, record.files, captured):
                raise NotRunningError(
                    f"{source_log.source.address} is another server than the one whose log is captured, or its log was"
                    f" reset: {difference}; the chunk is read again when both are the same"
                )

    def _bring_to(
        self,
        table: SnapshotTable,
        rows: ChunkRows,
        position: Position,
        fields: pa.Schema,
        is_over: Callable[[], bool],
    ) -> pa.Table:
        """Return the rows of a chunk as they were at a position."""
        if rows.watermark is None:
            raise ConfigurationError(f"the source of {table.name} writes no log that its changes could come from")
        with_epoch = self._instance.source_log.resolver.with_current_epoch
        low, high = with_epoch(rows.watermark.low), with_epoch(rows.watermark.high)
        self._wait_captured(high, is_over)
        ask = partial(self.find_inside, table.name)

        def find(columns: Sequence[pa.Array]) -> NDArray[np.bool_]:
            return find_inside(columns, rows.chunk, ask)

        def check_reader() -> None:
            if is_over():
                raise NotRunningError(_GONE)

        limit = _CHANGED_CHUNKS * self._instance.settings.snapshot.chunk_bytes
        parts: list[pa.Table] = []
        for start, end, keeps_last in ((low, position, True), (position, high, False)):
            # A log that was captured while it was written is in the store as one block for each transaction.
            blocks = join_blocks(self._instance.read(start, end)) if start < end else iter(())
            changes = ChunkChanges(table, fields, find, keeps_last, limit)
            parts.append(collect_changes(changes, blocks, check_reader))
        before, after = parts
        own = pa.Table.from_batches(rows.batches, _fields_of(rows, fields))
        return rows_as_of(own, (before, after), table, find)

    def _wait_captured(self, position: Position, is_over: Callable[[], bool]) -> None:
        """Wait until the log is captured up to a position."""
        captured, deadline = -1, 0.0
        while self._instance.store.latest < position:
            if is_over():
                raise NotRunningError(_GONE)
            if captured != self._instance.counters.bytes:  # it makes progress, maybe inside of one transaction
                captured, deadline = self._instance.counters.bytes, time.monotonic() + _CAPTURE_WAIT_S
            if time.monotonic() > deadline:
                raise NotCapturedError(f"the log is not captured up to {position}, where a chunk was read: try again")
            time.sleep(_PAUSE_S)

    def _describe(self, cursor: Any, name: TableName, columns: Sequence[str] | None) -> SnapshotTable:
        """Return a table as a snapshot reads it, in the types of its changes."""
        table = describe_table(cursor, name, columns)  # first: a reader then notices what is altered from here on
        (schema,) = self._instance.describe_tables([name])
        table = table.with_types_of(schema)
        if not table.key:
            raise SchemaError(
                f"table {name} has no primary key, and no unique one, that it can be cut by: its rows cannot be told"
                " from those of its changes; begin without a snapshot, or give it a key"
            )
        missing = [key for key in table.identity if all(key != column.name for column in table.columns)]
        if missing:
            raise ConfigurationError(f"a snapshot of {name} needs the columns of its key: {', '.join(missing)}")
        return table

    def _tree(self) -> Tree:
        """Return the tree of ZooKeeper in which the instance persists its cursors."""
        tree = self._instance.components.meta_stores.tree
        if tree is None:
            raise NotRunningError(f"instance '{self._instance.settings.destination}' has no connection to ZooKeeper")
        return tree

    def _replica(self) -> SourceSettings | None:
        """Return the replica from which rows are read; None without one, and when it has become the source."""
        replica = self._instance.settings.replica
        return None if replica is None or replica.address == self._source().address else replica

    def _source(self) -> SourceSettings:
        """Return the database server."""
        source = self._instance.source_log.source
        if not isinstance(source, SourceSettings):
            raise ConfigurationError("the source is a folder of log files, which has no tables to read")
        return source


def _fields_of(rows: ChunkRows, fields: pa.Schema) -> pa.Schema:
    """Return the schema of a chunk's rows."""
    return rows.batches[0].schema if rows.batches else pa.schema([known.remove_metadata() for known in fields])


def _check_replica(cursor: Any, table: SnapshotTable) -> None:
    """Raise SchemaError when a replica, which a cursor asks, has another key of a table than the source, or an engine
    without consistent reads."""
    try:
        there = describe_table(cursor, table.name)
    except SchemaError as error:
        raise SchemaError(f"{table.name} cannot be read from the replica: {error}") from error
    if (there.index, there.key_description) != (table.index, table.key_description):
        raise SchemaError(
            f"{table.name} has another key on the replica ({there.key_description}) than on the source"
            f" ({table.key_description}): it cannot be read there"
        )


def _check_row_image(cursor: Any, name: TableName) -> None:
    """Raise ConfigurationError where the log does not have whole rows."""
    cursor.execute("SELECT @@GLOBAL.binlog_row_image")
    image = str(cursor.fetchone()[0])
    cursor.execute("SHOW GLOBAL VARIABLES LIKE 'binlog_row_value_options'")
    if any("PARTIAL_JSON" in str(value).upper() for _, value in cursor.fetchall()):
        raise ConfigurationError(
            f"{name} cannot be read beside its changes: the source has binlog_row_value_options=PARTIAL_JSON, and"
            " chunks are brought to one position of the log by whole rows; SET GLOBAL binlog_row_value_options = ''"
        )
    if image.upper() != "FULL":
        raise ConfigurationError(
            f"{name} cannot be read beside its changes: the source has binlog_row_image={image}, and chunks are brought"
            " to one position of the log by whole rows; SET GLOBAL binlog_row_image = FULL"
        )
