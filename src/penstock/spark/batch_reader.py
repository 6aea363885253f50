"""`spark.read.format("penstock")`: the changes between two positions of the log, as an ordinary DataFrame."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyspark.sql.datasource as spark

from penstock.errors import ConfigurationError
from penstock.model import Position, TableName
from penstock.spark.change_log import ChangeLog
from penstock.spark.layout import ChangeLayout, TableLayout
from penstock.spark.options import ReadOptions
from penstock.spark.snapshot_state import Limit, PendingTable
from penstock.spark.worker_heap import freeze_loaded_objects


@dataclass
class LogPart(spark.InputPartition):
    """One part of a range of the log, as the server named it."""

    ticket: bytes
    pending: Mapping[TableName, PendingTable] = field(default_factory=dict[TableName, PendingTable])


@dataclass
class SnapshotChunkPart(spark.InputPartition):
    """One chunk of a table: the rows that it had at a position of the log."""

    table: TableName
    bounds: tuple[Limit, Limit]
    position: Position
    key: str  # what the order of keys depended on when it was planned


class ChangeBatchReader(spark.DataSourceReader):
    """Spark's reader of a range of the log, in parallel parts: it travels to the executors, and what they need is in
    itself or in its partition."""

    def __init__(self, options: ReadOptions, layout: ChangeLayout) -> None:
        self._options, self._layout = options, layout

    def partitions(self) -> list[LogPart]:
        """Return the parts of the range; `latest` is where the source's log ends now, captured or not."""
        if self._options.begins_with_snapshot:
            raise ConfigurationError(
                "startingPosition=snapshot is for a stream; the rows that a table has now are read by"
                ' spark.read.format("penstock_snapshot")'
            )
        log = ChangeLog(self._options)
        start = log.resolve_start(self._options.starting_position or "earliest")
        end = log.resolve(self._options.ending_position or "latest")
        if end < start:
            raise ConfigurationError(f"endingPosition {end} is before startingPosition {start}")
        return [LogPart(ticket) for ticket in log.tickets(start, end)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Return the changes of one part, in the order of the log."""
        return read_part(self._options, self._layout, partition)


def read_part(options: ReadOptions, layout: ChangeLayout, part: spark.InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield the changes of one part on an executor, in the order of the log."""
    if isinstance(part, LogPart):  # else Spark's own partition for a read that has none: the range is empty
        yield from ChangeLog(options).read_rows(part.ticket, layout, part.pending)
    elif isinstance(part, SnapshotChunkPart) and isinstance(layout, TableLayout):
        yield from ChangeLog(options).read_chunk(part.table, part.bounds, part.position, part.key, layout)
    freeze_loaded_objects()
