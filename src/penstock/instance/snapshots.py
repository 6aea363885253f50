"""Reads tables of an instance's source for queries that begin with a snapshot: chunk by chunk, each as the table was at
a position of the log."""

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.rows.changes import decode_changes_at, group_by_table_version
from penstock.binlog.rows.fields import CHANGE_FIELDS, with_declared
from penstock.binlog.values.column import DEFAULT
from penstock.binlog.xa.placement import join_blocks
from penstock.capture.counters import CaptureCounters
from penstock.capture.source_log import SourceLog
from penstock.config import InstanceSettings, SourceSettings
from penstock.errors import ConfigurationError, NotCapturedError, NotRunningError, SchemaError
from penstock.instance.snapshot_control import SnapshotControl
from penstock.model import Position, TableName, TableSchema
from penstock.snapshot.as_of import FindInside, rows_as_of, select_inside
from penstock.snapshot.chunks import Chunk, ChunkSize, plan_chunks
from penstock.snapshot.connection import connect_for_snapshot
from penstock.snapshot.key_column import Key
from penstock.snapshot.key_order import ask_database, find_inside
from penstock.snapshot.pacing import Pacer
from penstock.snapshot.reader import ChunkReader, ChunkRows
from penstock.snapshot.table import SnapshotTable, describe_table
from penstock.source.connection import translate_errors
from penstock.store import EventStore

log = logging.getLogger(__name__)

_CAPTURE_WAIT_S = 60.0
_PAUSE_S = 0.002
_BATCH_ROWS = 50_000
_SELECTED_ROWS = 100_000  # changes of which those of a chunk are selected at once
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
    identity: tuple[str, ...]  # the columns that tell one row from every other
    key_description: str  # what the order of keys depends on
    estimated_rows: int


class InstanceSnapshots:
    """Reads tables for queries that begin with a snapshot. It keeps no state of a query: any chunk can be read at any
    position that the log still has, any number of times. Any thread may call it."""

    def __init__(self, instance: SnapshotSource) -> None:
        self._instance = instance
        settings = instance.settings.snapshot
        self._pacer = Pacer(settings.rows_per_s)
        self._connections = threading.BoundedSemaphore(settings.connections)
        self._control = SnapshotControl(instance.settings)

    # -- for people

    def pause(self) -> None:
        """Plan no more chunks until `resume`; those of the batch that is being read are read to its end, because the
        changes in that batch wait for them."""
        self._control.set_paused(is_paused=True)

    def resume(self) -> None:
        """Continue to read snapshots."""
        self._control.set_paused(is_paused=False)

    def request_again(self, name: TableName) -> int:
        """Let every query that begins with a snapshot read a table again; return the number of the request."""
        self._instance.describe_tables([name])  # raises for one that is not there
        return self._control.request_again(name)

    def report(self) -> dict[str, Any]:
        """Return how far snapshots are, as plain data."""
        return self._control.report()

    # -- for queries

    def plan(self, name: TableName, after: Key | None, *, rows_before: int, count: int, rows: int) -> PlannedChunks:
        """Return up to `count` chunks of a table behind a key, of up to so many rows each; none while snapshots are
        paused. `rows_before` were planned before, for the progress."""
        settings = self._instance.settings.snapshot
        with self._cursor() as cursor:
            table = self._describe(cursor, name, None)
            _check_row_image(cursor, name)
            if settings.rows_per_s is not None:  # the changes of a batch wait for its chunks
                rows, count = max(1, min(rows, int(settings.rows_per_s * _BATCH_S))), 1
            size = ChunkSize(min(settings.chunk_rows, rows), settings.chunk_bytes)
            planned = [] if self._control.is_paused else list(islice(plan_chunks(cursor, table, size, after), count))
        names = tuple(column.name for column in table.key)
        self._control.note_plan(name, rows_before, table.estimated_rows, is_first=after is None)
        return PlannedChunks(planned, names, table.identity, table.key_description, table.estimated_rows)

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
        with self._cursor() as cursor:
            table = self._describe(cursor, name, fields.names)
        if key_description is not None and key_description != table.key_description:
            raise SchemaError(
                f"the key of {name} was changed after a chunk of it was planned ({key_description}; now"
                f" {table.key_description}): start the query with a new checkpoint"
            )
        rows = self._read_rows(table, chunk, is_over)
        state = self._bring_to(table, rows, position, fields, is_over)
        if self._instance.source_log.epoch != epoch:
            raise NotRunningError("the source was switched while a table was read: read the chunk again")
        shown = self._control.note_chunk(name, state.num_rows, is_last=chunk.until is None)
        log.info(
            "chunk read destination=%s table=%s rows=%d rows_read=%d estimated_rows=%d percent=%.1f position=%s",
            self._instance.settings.destination, name, state.num_rows, shown["rows_read"], shown["estimated_rows"],
            shown["percent"], position,
        )  # fmt: skip
        yield from state.to_batches(_BATCH_ROWS)

    def find_inside(self, name: TableName, keys: list[list[str]], chunk: Chunk) -> list[bool]:
        """Return which keys, given as texts, lie in the range of a chunk, as the source orders them."""
        with self._cursor() as cursor:
            return ask_database(cursor, self._describe(cursor, name, None), keys, chunk)

    def _read_rows(self, table: SnapshotTable, chunk: Chunk, is_over: Callable[[], bool]) -> ChunkRows:
        """Read a chunk on one of the connections that snapshots may have."""
        while not self._connections.acquire(timeout=1.0):
            if is_over():
                raise NotRunningError(_GONE)

        def check_reader(_: int) -> None:
            if is_over():
                raise NotRunningError(_GONE)

        try:
            age_s = self._instance.settings.snapshot.max_view_age_s
            with ChunkReader(
                self._source(),
                pacer=self._pacer,
                max_view_age_s=age_s,
                retry_timeout_s=_RETRY_S,
                on_rows=check_reader,
            ) as reader:
                return reader.read(table, chunk)
        finally:
            self._connections.release()

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

        spans = (low, position), (position, high)
        before, after = (self._read_changes(table, *span, fields, find, is_over) for span in spans)
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

    def _read_changes(
        self,
        table: SnapshotTable,
        start: Position,
        end: Position,
        fields: pa.Schema,
        find: FindInside,
        is_over: Callable[[], bool],
    ) -> pa.Table:
        """Return the changes of a chunk's rows between two positions; none when they are in the other order."""
        schema = pa.schema([*fields, *CHANGE_FIELDS])
        parts: list[pa.Table] = []
        batches, rows = list[pa.RecordBatch](), 0
        # A log that was captured while it was written is in the store as one block for each transaction.
        for block in join_blocks(self._instance.read(start, end)) if start < end else ():
            if is_over():
                raise NotRunningError(_GONE)
            for batch in _decode_whole(block, table.name, fields):
                batches.append(batch)
                rows += batch.num_rows
            if rows >= _SELECTED_ROWS:
                parts.append(select_inside(pa.Table.from_batches(batches, schema), table, find))
                batches, rows = [], 0
        parts.append(select_inside(pa.Table.from_batches(batches, schema), table, find))
        return pa.concat_tables(parts)

    def _describe(self, cursor: Any, name: TableName, columns: Sequence[str] | None) -> SnapshotTable:
        """Return a table as a snapshot reads it, in the types of its changes."""
        (schema,) = self._instance.describe_tables([name])
        table = describe_table(cursor, name, columns, schema)
        if not table.key:
            raise SchemaError(
                f"table {name} has no primary key, and no unique one, that it can be cut by: its rows cannot be told"
                " from those of its changes; begin without a snapshot, or give it a key"
            )
        missing = [key for key in table.identity if all(key != column.name for column in table.columns)]
        if missing:
            raise ConfigurationError(f"a snapshot of {name} needs the columns of its key: {', '.join(missing)}")
        return table

    @contextmanager
    def _cursor(self) -> Generator[Any]:
        """Open a connection to the source for some questions."""
        source = self._source()
        with closing(connect_for_snapshot(source)) as connection, translate_errors(source):
            yield connection.cursor()

    def _source(self) -> SourceSettings:
        """Return the database server."""
        source = self._instance.source_log.source
        if not isinstance(source, SourceSettings):
            raise ConfigurationError("the source is a folder of log files, which has no tables to read")
        return source


def _decode_whole(block: Block, name: TableName, fields: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the changes of a table in a block. A column that the table did not have then is null, and is not called
    absent."""
    schema = pa.schema([*fields, *CHANGE_FIELDS])
    for events, shape in group_by_table_version(block, name):
        there = {column.name for column in shape.columns}
        own = pa.schema([known for known in fields if known.name in there])
        for batch in decode_changes_at(block, events, with_declared(shape, own), own, DEFAULT):
            columns = dict(zip(own.names, batch.columns, strict=False))
            arrays = [columns.get(known.name, pa.nulls(batch.num_rows, known.type)) for known in fields]
            yield pa.RecordBatch.from_arrays([*arrays, *batch.columns[len(own) :]], schema=schema)


def _fields_of(rows: ChunkRows, fields: pa.Schema) -> pa.Schema:
    """Return the schema of a chunk's rows."""
    return rows.batches[0].schema if rows.batches else pa.schema([known.remove_metadata() for known in fields])


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
