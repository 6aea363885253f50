"""Reads tables of an instance's source for queries that begin with a snapshot: chunk by chunk, each as the table was at
a position of the log."""

import json
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from penstock.binlog.events.block import Block
from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import CHANGE_FIELDS
from penstock.binlog.xa.placement import join_blocks
from penstock.capture.source_log import SourceLog
from penstock.config import InstanceSettings, SourceSettings
from penstock.disk import replace_file
from penstock.errors import ConfigurationError, NotCapturedError, NotRunningError, SchemaError
from penstock.model import Position, TableName, TableSchema
from penstock.snapshot.as_of import rows_as_of
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

_FILE = "snapshots.json"
_CAPTURE_WAIT_S = 60.0
_PAUSE_S = 0.002
_BATCH_ROWS = 50_000
_BATCH_S = 2.0  # that a batch of Spark takes, where rows per second are limited


class SnapshotSource(Protocol):
    """What of an instance a snapshot needs: its source, and the changes in its log."""

    settings: InstanceSettings

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
    estimated_rows: int


@dataclass(slots=True)
class _TableProgress:
    """Counts the rows of a table that its snapshot has read."""

    rows: int = 0  # that were planned, by estimate
    estimated_rows: int = 0
    rows_read: int = 0  # since this server runs
    chunks_read: int = 0
    is_complete: bool = False
    since: float = field(default_factory=time.time)
    last: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return it as `penstock snapshot status` shows it."""
        percent = 100.0 if self.is_complete else min(99.0, 100 * self.rows / max(1, self.estimated_rows))
        return {
            "state": "complete" if self.is_complete else "running",
            "percent": round(percent, 1),
            "rows_read": self.rows_read,
            "estimated_rows": self.estimated_rows,
            "chunks_read": self.chunks_read,
            "since": self.since,
            "last": self.last,
        }


class InstanceSnapshots:
    """Reads tables for queries that begin with a snapshot. It keeps no state of a query: any chunk can be read at any
    position that the log still has, any number of times. Any thread may call it."""

    def __init__(self, instance: SnapshotSource) -> None:
        self._instance = instance
        settings = instance.settings.snapshot
        self._pacer = Pacer(settings.rows_per_s)
        self._connections = threading.BoundedSemaphore(settings.connections)
        self._lock = threading.Lock()  # of all below
        self._progress: dict[TableName, _TableProgress] = {}
        state = self._load()
        self._is_paused: bool = state.get("paused", False)
        self._requests: dict[str, int] = state.get("again", {})

    # -- for people

    def pause(self) -> None:
        """Plan no more chunks until `resume`; those of the batch that is being read are read to its end, because the
        changes in that batch wait for them."""
        self._set_paused(is_paused=True)

    def resume(self) -> None:
        """Continue to read snapshots."""
        self._set_paused(is_paused=False)

    def _set_paused(self, *, is_paused: bool) -> None:
        with self._lock:
            self._is_paused = is_paused
            self._save()
        action = "paused" if is_paused else "resumed"
        log.info("snapshots %s destination=%s", action, self._instance.settings.destination)

    def request_again(self, name: TableName) -> int:
        """Let every query that begins with a snapshot read a table again; return the number of the request."""
        self._instance.describe_tables([name])  # raises for one that is not there
        with self._lock:
            number = max(time.time_ns() // 1_000_000, max(self._requests.values(), default=0) + 1)
            self._requests[str(name)] = number
            self._save()
        log.info("snapshot requested again destination=%s table=%s", self._instance.settings.destination, name)
        return number

    def report(self) -> dict[str, Any]:
        """Return how far snapshots are, as plain data."""
        with self._lock:
            tables = {str(name): progress.to_json() for name, progress in self._progress.items()}
            return {"paused": self._is_paused, "tables": tables, "again": dict(self._requests)}

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
            planned = [] if self._is_paused else list(islice(plan_chunks(cursor, table, size, after), count))
        names = tuple(column.name for column in table.key)
        with self._lock:
            progress = self._progress.setdefault(name, _TableProgress())
            if after is None:
                self._progress[name] = progress = _TableProgress()
            progress.rows = rows_before
            progress.estimated_rows = max(table.estimated_rows, rows_before)
        return PlannedChunks(planned, names, table.identity, table.estimated_rows)

    def read(
        self, name: TableName, chunk: Chunk, position: Position, fields: pa.Schema, is_over: Callable[[], bool]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows that a chunk of a table had at a position of the log."""
        epoch = self._instance.source_log.epoch
        with self._cursor() as cursor:
            table = self._describe(cursor, name, fields.names)
        rows = self._read_rows(table, chunk, is_over)
        if self._instance.source_log.epoch != epoch:
            raise NotRunningError("the source was switched while a table was read: read the chunk again")
        state = self._bring_to(table, rows, position, fields, is_over)
        with self._lock:
            progress = self._progress.setdefault(name, _TableProgress())
            progress.rows_read += state.num_rows
            progress.chunks_read += 1
            progress.is_complete = progress.is_complete or chunk.until is None
            progress.last = time.time()
            shown = progress.to_json()
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
                raise NotRunningError("the reader of a snapshot is gone")
        try:
            settings = self._instance.settings.snapshot
            with ChunkReader(self._source(), pacer=self._pacer, max_view_age_s=settings.max_view_age_s) as reader:
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
        before = self._read_changes(table.name, low, position, fields)
        after = self._read_changes(table.name, position, high, fields)
        ask = partial(self.find_inside, table.name)
        own = pa.Table.from_batches(rows.batches, _fields_of(rows, fields))
        return rows_as_of(own, (before, after), table, lambda columns: find_inside(columns, rows.chunk, ask))

    def _wait_captured(self, position: Position, is_over: Callable[[], bool]) -> None:
        """Wait until the log is captured up to a position."""
        deadline = time.monotonic() + _CAPTURE_WAIT_S
        while self._instance.store.latest < position:
            if is_over():
                raise NotRunningError("the reader of a snapshot is gone")
            if time.monotonic() > deadline:
                raise NotCapturedError(f"the log is not captured up to {position}, where a chunk was read: try again")
            time.sleep(_PAUSE_S)

    def _read_changes(self, name: TableName, start: Position, end: Position, fields: pa.Schema) -> pa.Table:
        """Return the changes of a table between two positions; none when they are in the other order."""
        batches: list[pa.RecordBatch] = []
        if start < end:
            # A log that was captured while it was written is in the store as one block for each transaction.
            for block in join_blocks(self._instance.read(start, end)):
                batches += decode_changes(block, name, fields)
        return pa.Table.from_batches(batches, pa.schema([*fields, *CHANGE_FIELDS]))

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

    # -- what stays

    @property
    def _path(self) -> Path | None:
        settings = self._instance.settings
        return None if settings.data_dir is None else settings.data_dir / settings.destination / _FILE

    def _load(self) -> dict[str, Any]:
        """Return what was saved; nothing when nothing was."""
        path = self._path
        return json.loads(path.read_bytes()) if path is not None and path.exists() else {}

    def _save(self) -> None:
        """Save what people have asked for."""
        if self._path is not None:
            replace_file(self._path, json.dumps({"paused": self._is_paused, "again": self._requests}).encode())


def _fields_of(rows: ChunkRows, fields: pa.Schema) -> pa.Schema:
    """Return the schema of a chunk's rows."""
    return rows.batches[0].schema if rows.batches else pa.schema([known.remove_metadata() for known in fields])


def _check_row_image(cursor: Any, name: TableName) -> None:
    """Raise ConfigurationError where the log does not have whole rows."""
    cursor.execute("SELECT @@GLOBAL.binlog_row_image")
    image = str(cursor.fetchone()[0])
    if image.upper() != "FULL":
        raise ConfigurationError(
            f"{name} cannot be read beside its changes: the source has binlog_row_image={image}, and chunks are brought"
            " to one position of the log by whole rows; SET GLOBAL binlog_row_image = FULL"
        )
