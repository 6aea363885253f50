"""`format("penstock_snapshot")`: a table as it is now, read in parallel chunks by the executors."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyspark.sql.datasource as spark
from pyspark.sql.types import StructType

from penstock.snapshot.chunks import Chunk
from penstock.snapshot.columns import RowDecoder
from penstock.snapshot.pacing import Pacer
from penstock.snapshot.reader import ChunkReader, ChunkRows
from penstock.snapshot.table import SnapshotTable
from penstock.snapshot.table_snapshot import SnapshotOptions, TableSnapshot
from penstock.spark.snapshot_options import SNAPSHOT_OPTIONS, SnapshotReadOptions
from penstock.spark.types import cast_for_spark, for_spark, spark_schema
from penstock.spark.worker_heap import freeze_loaded_objects

log = logging.getLogger(__name__)

_DOCUMENTATION = """A MySQL or MariaDB table as it is now, read in parallel and without locks.

    product = (
        spark.read.format("penstock_snapshot")
        .options(host="db1", user="penstock", password=os.environ["DB_PASSWORD"], table="shop.product")
        .load()
    )

It has the table's own columns, in the types and values that the change stream has. The table is cut into chunks by its
key; each is read in a consistent read of its own, whose position in the log is known (`includePosition`).

Options:

"""

POSITION_FIELDS = pa.schema(
    [
        pa.field("_low_file", pa.string()),
        pa.field("_low_offset", pa.int64()),
        pa.field("_high_file", pa.string()),
        pa.field("_high_offset", pa.int64()),
    ]
)


@dataclass
class ChunkPart(spark.InputPartition):
    """The chunks that one task reads, one after the other, on one connection."""

    chunks: list[Chunk]
    tasks: int  # that there are, and share the rows per second


class SnapshotDataSource(spark.DataSource):
    # Spark builds this in several processes: it stays cheap and picklable.

    __doc__ = _DOCUMENTATION + "\n".join(
        f"    {option.name}: {option.meaning}{f' (default {option.default})' if option.default else ''}"
        for option in SNAPSHOT_OPTIONS
    )

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._read = SnapshotReadOptions.of(options)
        self._table: SnapshotTable | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name that `spark.read.format(…)` finds this source by."""
        return "penstock_snapshot"

    def schema(self) -> StructType:
        """Return the columns of the table, as it is now."""
        return spark_schema(_spark_fields(self._read, self._describe()))

    def reader(self, schema: StructType) -> "SnapshotBatchReader":  # noqa: ARG002 - Spark's name
        """Return Spark's reader of the table."""
        return SnapshotBatchReader(self._read, self._describe())

    def _describe(self) -> SnapshotTable:
        """Return the table as it was when it was first asked for."""
        if self._table is None:
            self._table = _open_snapshot(self._read).table
        return self._table


class SnapshotBatchReader(spark.DataSourceReader):
    """Spark's reader of a table, chunk by chunk: it travels to the executors, and what they need is in itself or in its
    partition."""

    def __init__(self, options: SnapshotReadOptions, table: SnapshotTable) -> None:
        self._options, self._table = options, table

    def partitions(self) -> list[ChunkPart]:
        """Return the chunks of the table: a task each, or so many tasks as there may be connections."""
        for warning in self._table.warnings:
            log.warning("table can only be read as a whole table=%s reason=%s", self._table.name, warning)
        chunks = list(_open_snapshot(self._options).plan())
        count = min(len(chunks), self._options.most_connections or len(chunks))
        return [ChunkPart(group, count) for group in _divide(chunks, count)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Return the rows of a partition's chunks."""
        part: ChunkPart = partition
        limit = self._options.max_rows_per_s
        pacer = Pacer(None if limit is None else limit / part.tasks)
        fields = _spark_fields(self._options, self._table)
        options = self._options
        with ChunkReader(
            options.source,
            options=options.decode,
            pacer=pacer,
            max_view_age_s=options.max_view_age_s,
            max_bytes=options.chunk.most_bytes,
        ) as reader:
            for chunk in part.chunks:
                for rows in reader.read_parts(self._table, chunk):
                    yield from self._convert(rows, fields)
        freeze_loaded_objects()

    def _convert(self, rows: ChunkRows, fields: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a chunk in Spark's types, with their position if it was asked for."""
        for batch in rows.batches:
            arrays = [cast_for_spark(column, field.type) for column, field in zip(batch.columns, fields, strict=False)]
            if self._options.includes_position:
                arrays += _repeat_position(rows, batch.num_rows)
            yield pa.RecordBatch.from_arrays(arrays, schema=fields)


def _open_snapshot(options: SnapshotReadOptions) -> TableSnapshot:
    """Return the snapshot that the options describe."""
    chosen = SnapshotOptions(
        connections=options.most_connections or 1,
        chunk=options.chunk,
        rows_per_s=options.max_rows_per_s,
        columns=options.columns,
        decode=options.decode,
        max_view_age_s=options.max_view_age_s,
    )
    return TableSnapshot(options.source, options.table, chosen)


def _spark_fields(options: SnapshotReadOptions, table: SnapshotTable) -> pa.Schema:
    """Return the columns of the DataFrame as Arrow fields."""
    fields = for_spark(RowDecoder(table.columns, options.decode).schema)
    return pa.schema([*fields, *POSITION_FIELDS]) if options.includes_position else fields


def _repeat_position(rows: ChunkRows, count: int) -> list[pa.Array]:
    """Return the columns of the positions that a chunk's read lies between, null where the server writes no log."""
    mark = rows.watermark
    values = (None,) * 4 if mark is None else (mark.low.file, mark.low.offset, mark.high.file, mark.high.offset)
    return [
        pa.repeat(pa.scalar(value, field.type), count) for value, field in zip(values, POSITION_FIELDS, strict=True)
    ]


def _divide(chunks: Sequence[Chunk], count: int) -> list[list[Chunk]]:
    """Divide chunks into so many groups of neighbours."""
    return [list(chunks[len(chunks) * i // count : len(chunks) * (i + 1) // count]) for i in range(count)]
