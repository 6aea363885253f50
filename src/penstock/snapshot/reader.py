"""Reads the chunks of a table, each in a consistent read of its own, on one connection."""

import logging
import math
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from penstock.backoff import Backoff, RetryTimer
from penstock.binlog.values.column import DEFAULT, DecodeOptions
from penstock.config import SourceSettings
from penstock.errors import SchemaError, SourceConnectionError
from penstock.snapshot.chunks import Chunk, split_chunk
from penstock.snapshot.columns import RowDecoder
from penstock.snapshot.connection import connect_for_snapshot
from penstock.snapshot.pacing import Pacer
from penstock.snapshot.result_set import ResultSet
from penstock.snapshot.server_mark import ServerMark
from penstock.snapshot.table import SnapshotTable
from penstock.source.connection import connect, translate_errors
from penstock.source.consistent_read import ConsistentRead, Watermark
from penstock.source.replica_read import ReplicaRead

log = logging.getLogger(__name__)

_BACKOFF = Backoff(0.1, 5.0, spread=0.5)
RETRY_TIMEOUT_S = 300.0
MAX_VIEW_AGE_S = 60.0

CheckView = Callable[[Any, SnapshotTable, Sequence[ServerMark]], None]
"""Checks a read view by a cursor in it, the table that is read, and the server that it is of, where that was asked."""


class ChunkTooLargeError(Exception):
    """The rows of a chunk take more memory than they may: read these pieces of it one after the other."""

    def __init__(self, pieces: list[Chunk]) -> None:
        super().__init__()
        self.pieces = pieces


class _MustSplitError(Exception):
    """A chunk was not read before its read view became too old, or its rows take too much memory."""

    def __init__(self, rows: int, *, is_too_large: bool) -> None:
        super().__init__()
        self.rows = rows  # that were read until then
        self.is_too_large = is_too_large


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """The rows of a chunk, or a part of them, and the binlog positions that its read lies between; None where the
    server writes no binlog."""

    chunk: Chunk
    batches: list[pa.RecordBatch]
    watermark: Watermark | None
    servers: list[ServerMark] = field(default_factory=list[ServerMark])  # that it was read from, where it was asked

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return sum(batch.num_rows for batch in self.batches)

    @property
    def bytes(self) -> int:
        """Return the size of the rows in memory."""
        return sum(batch.nbytes for batch in self.batches)


class ChunkReader:
    """Reads chunks of tables on one connection, which is opened when it is needed and again when it breaks.

    with ChunkReader(settings) as reader:
        rows = reader.read(table, Chunk(None, None))
    """

    def __init__(
        self,
        settings: SourceSettings,
        *,
        options: DecodeOptions = DEFAULT,
        retry_timeout_s: float = RETRY_TIMEOUT_S,
        pacer: Pacer | None = None,
        max_view_age_s: float = MAX_VIEW_AGE_S,
        on_rows: Callable[[int], None] | None = None,
        asks_server: bool = False,
        primary: SourceSettings | None = None,
        check_view: CheckView | None = None,
        max_bytes: float = math.inf,
    ) -> None:
        """A read view is open for `max_view_age_s` at most: the rest of a chunk that takes longer is split. `on_rows`
        is called with the number of rows of each batch as it comes. With `asks_server` the rows say which server they
        are from; the user then needs REPLICATION SLAVE. With a `primary` the rows are read from a replica of it, and
        their positions, and the server that is asked for, are those of the primary. `check_view` is called in
        each read view, before rows are read, and may raise. The rows of a chunk take `max_bytes` of memory at
        most, unless they all have one key."""
        self._settings, self._options, self._retry_timeout_s = settings, options, retry_timeout_s
        self._pacer, self._max_view_age_s, self._on_rows = pacer or Pacer(), max_view_age_s, on_rows
        self._asks_server, self._primary, self._check_view = asks_server, primary, check_view
        self._max_bytes = max_bytes
        self._connection: Any = None
        self._primary_connection: Any = None
        self._reading: ConsistentRead | ReplicaRead | None = None  # on these connections
        self._is_interrupted = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next read opens another one."""
        for connection in (self._connection, self._primary_connection):
            if connection is not None:
                connection._force_close()  # noqa: SLF001 - a polite QUIT can hang on a broken connection
        self._connection = self._primary_connection = self._reading = None

    def interrupt(self) -> None:
        """End the read that is under way with an error; any thread may call it."""
        self._is_interrupted = True
        connection = self._connection
        if connection is not None and connection._sock is not None:  # noqa: SLF001
            with suppress(OSError):
                connection._sock.shutdown(socket.SHUT_RDWR)  # noqa: SLF001

    def read(self, table: SnapshotTable, chunk: Chunk) -> ChunkRows:
        """Return the rows of a chunk. A connection that breaks, or is killed, is opened again and the chunk read
        again: nothing of it was given before all of it was there. Raises ChunkTooLargeError with the pieces to read
        instead when the rows take too much memory."""
        timer, piece_rows = RetryTimer(_BACKOFF), 0
        is_too_large, max_bytes = False, self._max_bytes
        while True:
            self._pacer.wait_until_resumed()  # before a read view is opened
            try:
                if not piece_rows:
                    return self._read(table, chunk, max_bytes)
                pieces = self._split(table, chunk, piece_rows)
            except _MustSplitError as error:
                self.close()
                is_too_large, piece_rows = error.is_too_large, max(1, error.rows // 2)
                log.info(
                    "snapshot chunk split source=%s table=%s rows=%d reason=%s",
                    self._settings.address, table.name, error.rows,
                    "too many bytes" if is_too_large else f"read view open for {self._max_view_age_s:g} s",
                )  # fmt: skip
            except SourceConnectionError as error:
                self._wait_for_retry(timer, table, error)
            except BaseException:
                self.close()  # it may be in the middle of the rows
                raise
            else:
                if not is_too_large:
                    return self._read_pieces(table, chunk, pieces)
                if pieces[0].until != chunk.until:
                    raise ChunkTooLargeError(pieces)
                piece_rows, max_bytes = 0, math.inf  # its rows all have one key, by which no limit can be set

    def _read_pieces(self, table: SnapshotTable, chunk: Chunk, pieces: list[Chunk]) -> ChunkRows:
        """Return the rows of a chunk from its pieces, of which each is read in a read view of its own."""
        parts: list[ChunkRows] = []
        for number, piece in enumerate(pieces):
            try:
                parts.append(self.read(table, piece))
            except ChunkTooLargeError as error:
                raise ChunkTooLargeError([*pieces[:number], *error.pieces, *pieces[number + 1 :]]) from None
            if number and sum(part.bytes for part in parts) > self._max_bytes:
                raise ChunkTooLargeError(pieces)
        return _join_parts(chunk, parts)

    def read_parts(self, table: SnapshotTable, chunk: Chunk) -> Iterator[ChunkRows]:
        """Yield the rows of a chunk in parts, each with its watermark. A chunk of a table with a key is one part, or
        several where its rows take too much memory together. A table without one may have any size, so its rows are
        given as they come; it cannot be read again when the connection breaks behind the first of them, because the
        others could not be told from those."""
        if table.key:
            yield from self._read_keyed_parts(table, chunk)
            return
        timer, rows = RetryTimer(_BACKOFF), 0
        while True:
            self._pacer.wait_until_resumed()
            try:
                for part in self._stream(table, chunk):
                    rows += part.rows
                    yield part
            except SourceConnectionError as error:
                if rows:
                    self.close()
                    raise SourceConnectionError(
                        f"{error}; {rows:,} rows of {table.name} were read until then. The table has no key by which"
                        " the others could be told from them: read it again from the start, or give it a key"
                    ) from error
                self._wait_for_retry(timer, table, error)
            except BaseException:
                self.close()  # it may be in the middle of the rows
                raise
            else:
                return

    def _read_keyed_parts(self, table: SnapshotTable, chunk: Chunk) -> Iterator[ChunkRows]:
        """Yield the rows of a chunk of a table with a key: at once, or in the pieces that it must be split into."""
        pending = [chunk]
        while pending:
            piece = pending.pop(0)
            try:
                rows = self.read(table, piece)
            except ChunkTooLargeError as error:
                pending[:0] = error.pieces
            else:
                yield replace(rows, chunk=chunk)

    def _wait_for_retry(self, timer: RetryTimer, table: SnapshotTable, error: SourceConnectionError) -> None:
        """Close the connection and wait for a while; raise the error when it was retried for long enough."""
        self.close()
        delay_s = timer.next_delay_s(self._retry_timeout_s)
        if delay_s is None or self._is_interrupted:
            raise error
        log.warning(
            "read of a table chunk failed, retry scheduled source=%s table=%s delay_s=%.2f reason=%s",
            self._settings.address, table.name, delay_s, error,
        )  # fmt: skip
        time.sleep(delay_s)

    def _split(self, table: SnapshotTable, chunk: Chunk, rows: int) -> list[Chunk]:
        """Return chunks of at most so many rows, of which each is read in a read view of its own."""
        with closing(connect_for_snapshot(self._settings)) as connection, translate_errors(self._settings):
            return list(split_chunk(connection.cursor(), table, chunk, rows))

    def _read(self, table: SnapshotTable, chunk: Chunk, max_bytes: float) -> ChunkRows:
        """Read a chunk once."""
        reading, watermark, servers = self._open_view(table)
        # A table without a key is one chunk, which cannot be read in pieces.
        deadline = time.monotonic() + self._max_view_age_s if table.key else math.inf
        batches: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in self._read_batches(table, chunk, deadline):
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if size > max_bytes and rows > 1 and table.key:
                raise _MustSplitError(rows, is_too_large=True)
            batches.append(batch)
        reading.close()
        self._check_unchanged(table)
        return ChunkRows(chunk, batches, watermark, servers)

    def _stream(self, table: SnapshotTable, chunk: Chunk) -> Iterator[ChunkRows]:
        """Yield the rows of a chunk as they come, at least one part; the read view is open until the last."""
        reading, watermark, servers = self._open_view(table)
        is_empty = True
        for batch in self._read_batches(table, chunk, math.inf):
            is_empty = False
            yield ChunkRows(chunk, [batch], watermark, servers)
        reading.close()
        self._check_unchanged(table)
        if is_empty:
            yield ChunkRows(chunk, [], watermark, servers)

    def _check_unchanged(self, table: SnapshotTable) -> None:
        """Raise SchemaError when the table is not what it was when it was described. Asked when the read view is
        closed: a catalogue that is stored in tables would show in it what there was when it was opened."""
        with translate_errors(self._settings), self._connection.cursor() as cursor:
            table.check_unchanged(cursor)

    def _open_view(
        self, table: SnapshotTable
    ) -> tuple[ConsistentRead | ReplicaRead, Watermark | None, list[ServerMark]]:
        """Open a read view for rows of a table, on the connection that is there or on a new one; return its positions
        and its server."""
        reading = self._reading or self._connect()
        if isinstance(reading, ReplicaRead):
            watermark, ask = reading.open_between(), reading.ask_primary
        else:
            watermark, ask = reading.open(), reading.query
        servers = [ServerMark.read(ask, watermark.high)] if self._asks_server and watermark is not None else []
        if self._check_view is not None:
            with translate_errors(self._settings), self._connection.cursor() as cursor:
                self._check_view(cursor, table, servers)
        return reading, watermark, servers

    def _connect(self) -> ConsistentRead | ReplicaRead:
        """Open the connection, and with a replica that to its primary; return what opens read views."""
        self._connection = connect_for_snapshot(self._settings)
        if self._primary is None:
            self._reading = ConsistentRead(self._connection, self._settings)
        else:
            self._primary_connection = connect(self._primary)
            self._reading = ReplicaRead(self._connection, self._settings, self._primary_connection, self._primary)
        return self._reading

    def _read_batches(self, table: SnapshotTable, chunk: Chunk, deadline: float) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a chunk from the open read view, which may be open until a deadline."""
        decoder, rows = RowDecoder(table.columns, self._options), 0
        sql = f"SELECT {', '.join(decoder.expressions)} FROM {table.source} WHERE {chunk.condition(table)}"
        try:
            for batch in ResultSet(self._connection, self._settings, decoder, sql):
                rows += batch.num_rows
                if self._on_rows is not None:
                    self._on_rows(batch.num_rows)
                if not self._pacer.wait_for(batch.num_rows, deadline):
                    raise _MustSplitError(rows, is_too_large=False)
                yield batch
        except SchemaError as error:
            raise SchemaError(f"table {table.name}: {error}") from error


def _join_parts(chunk: Chunk, parts: list[ChunkRows]) -> ChunkRows:
    """Return the rows of a chunk that was read in parts, in the order of its key; its read lies between the first and
    the last of their positions."""
    marks = [part.watermark for part in parts if part.watermark is not None]
    watermark = Watermark(min(mark.low for mark in marks), max(mark.high for mark in marks)) if marks else None
    servers = [mark for part in parts for mark in part.servers]
    return ChunkRows(chunk, [batch for part in parts for batch in part.batches], watermark, servers)
