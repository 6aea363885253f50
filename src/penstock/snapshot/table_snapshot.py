"""A snapshot of one table: its chunks, read on several connections, in the order of its key."""

import queue
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa

from penstock.binlog.values.column import DEFAULT, DecodeOptions
from penstock.config import SourceSettings
from penstock.model import TableName, TableSchema
from penstock.snapshot.chunks import Chunk, ChunkSize, plan_chunks
from penstock.snapshot.columns import RowDecoder
from penstock.snapshot.connection import connect_for_snapshot
from penstock.snapshot.pacing import Pacer
from penstock.snapshot.reader import MAX_VIEW_AGE_S, ChunkReader, ChunkRows, ChunkTooLargeError
from penstock.snapshot.table import SnapshotTable, describe_table
from penstock.source.connection import translate_errors


@dataclass(frozen=True, slots=True)
class SnapshotOptions:
    """The options of a snapshot: its connections, the size of its chunks, its columns, and its rows per second."""

    connections: int = 2
    chunk: ChunkSize = field(default_factory=ChunkSize)
    rows_per_s: float | None = None
    columns: tuple[str, ...] | None = None  # that are read; None for all
    decode: DecodeOptions = DEFAULT
    max_view_age_s: float = MAX_VIEW_AGE_S

    @property
    def chunk_size(self) -> ChunkSize:
        """Return the size of chunks that can be read within the age of a read view, at the allowed rate."""
        if self.rows_per_s is None:
            return self.chunk
        rows = int(self.rows_per_s * self.max_view_age_s / 2 / self.connections)
        return replace(self.chunk, rows=max(1, min(self.chunk.rows, rows)))


class TableSnapshot:
    """Reads a table chunk by chunk, each in a consistent read of its own; iterating gives the chunks in key order.

    for rows in TableSnapshot(settings, TableName("shop", "product")):
        print(rows.watermark, rows.rows)

    Chunks are planned while others are read. At most one chunk more than there are connections is held in memory. A
    table without a key is one chunk, which comes in parts; so does one that is much larger than the server estimated.
    """

    def __init__(
        self,
        settings: SourceSettings,
        name: TableName,
        options: SnapshotOptions | None = None,
        pacer: Pacer | None = None,
        *,
        schema: TableSchema | None = None,
    ) -> None:
        """With a `schema` of the table from the log, rows have the types that the stream has."""
        self._settings, self._options = settings, options or SnapshotOptions()
        self.pacer = pacer or Pacer(self._options.rows_per_s)
        with closing(connect_for_snapshot(settings)) as connection, translate_errors(settings):
            table = describe_table(connection.cursor(), name, self._options.columns)
        self.table: SnapshotTable = table if schema is None else table.with_types_of(schema)

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema of the rows."""
        return RowDecoder(self.table.columns, self._options.decode).schema

    def plan(self) -> Iterator[Chunk]:
        """Yield the chunks of the table, over a connection of its own."""
        with closing(connect_for_snapshot(self._settings)) as connection, translate_errors(self._settings):
            yield from plan_chunks(connection.cursor(), self.table, self._options.chunk_size)

    def __iter__(self) -> Iterator[ChunkRows]:
        return self.read(self.plan())

    def read(self, chunks: Iterable[Chunk]) -> Iterator[ChunkRows]:
        """Yield the rows of these chunks in their order, while the next ones are read."""
        if self.table.key:
            yield from self._read_ahead(chunks)
            return
        with self._create_reader() as reader:
            for chunk in chunks:
                yield from reader.read_parts(self.table, chunk)

    def _read_ahead(self, chunks: Iterable[Chunk]) -> Iterator[ChunkRows]:
        """Yield the rows of these chunks in their order, while the next ones are read on other connections."""
        count = self._options.connections
        made = [self._create_reader() for _ in range(count)]
        readers = _Readers(self.table, made)
        window: deque[tuple[Chunk, Future[ChunkRows]]] = deque()
        pool = ThreadPoolExecutor(count, "snapshot")
        try:
            for chunk in chunks:
                window.append((chunk, pool.submit(readers.read, chunk)))
                if len(window) > count:
                    yield from readers.read_parts(*window.popleft())
            while window:
                yield from readers.read_parts(*window.popleft())
        finally:
            for _, future in window:
                future.cancel()
            for reader in made:
                reader.interrupt()
            self.pacer.resume()  # who waits there is to notice
            pool.shutdown(wait=True, cancel_futures=True)
            for reader in made:
                reader.close()

    def _create_reader(self) -> ChunkReader:
        """Return a reader for one connection."""
        options = self._options
        return ChunkReader(
            self._settings,
            options=options.decode,
            pacer=self.pacer,
            max_view_age_s=options.max_view_age_s,
            max_bytes=options.chunk.most_bytes,
        )


class _Readers:
    """Reads chunks of a table with readers that are free. Any thread may call it."""

    def __init__(self, table: SnapshotTable, readers: Iterable[ChunkReader]) -> None:
        self._table = table
        self._free: queue.SimpleQueue[ChunkReader] = queue.SimpleQueue()
        for reader in readers:
            self._free.put(reader)

    @contextmanager
    def _lend(self) -> Generator[ChunkReader]:
        """Wait for a reader that is free, and lend it."""
        reader = self._free.get()
        try:
            yield reader
        finally:
            self._free.put(reader)

    def read(self, chunk: Chunk) -> ChunkRows:
        """Return the rows of a chunk; raise ChunkTooLargeError when they cannot be held together."""
        with self._lend() as reader:
            return reader.read(self._table, chunk)

    def read_parts(self, chunk: Chunk, future: Future[ChunkRows]) -> Iterator[ChunkRows]:
        """Yield the rows of a chunk that was read in another thread; when they cannot be held together, read its pieces
        one after the other."""
        try:
            yield future.result()
        except ChunkTooLargeError as error:
            with self._lend() as reader:
                for piece in error.pieces:
                    for rows in reader.read_parts(self._table, piece):
                        yield replace(rows, chunk=chunk)
