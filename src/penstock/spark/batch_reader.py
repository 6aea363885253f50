"""`spark.read.format("penstock")`: the changes between two positions of the log, as an ordinary DataFrame."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyspark.sql.datasource as spark

from penstock.errors import ConfigurationError
from penstock.spark.change_log import ChangeLog
from penstock.spark.layout import ChangeLayout
from penstock.spark.options import ReadOptions
from penstock.spark.worker_heap import freeze_loaded_objects


@dataclass
class LogPart(spark.InputPartition):
    """One part of a range of the log, as the server named it."""

    ticket: bytes


class ChangeBatchReader(spark.DataSourceReader):
    """Spark's reader of a range of the log, in parallel parts: it travels to the executors, and what they need is in
    itself or in its partition."""

    def __init__(self, options: ReadOptions, layout: ChangeLayout) -> None:
        self._options, self._layout = options, layout

    def partitions(self) -> list[LogPart]:
        """Return the parts of the range; `latest` is where the source's log ends now, captured or not."""
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
        yield from ChangeLog(options).read_rows(part.ticket, layout)
    freeze_loaded_objects()
