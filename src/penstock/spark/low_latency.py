"""The option `lowLatency`: small batches are read in the driver, which saves the start of a task.

Everything passes through the driver, in one task. A batch is kept in memory until the next one is committed, so it has
at most a few MiB of the log.
"""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyspark.sql.datasource as spark

from penstock.model import Position
from penstock.spark.batch_reader import read_part
from penstock.spark.change_log import Offset
from penstock.spark.layout import ChangeLayout
from penstock.spark.options import ReadOptions
from penstock.spark.stream_reader import BatchPlanner

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow  # pyright: ignore[reportAssignmentType]
except ImportError:  # pyspark 4.1 reads one batch with Trigger.AvailableNow

    class SupportsTriggerAvailableNow:
        """Stands for the class of pyspark 4.2."""


_MOST_BYTES = 4 << 20  # of the log, in one batch


class LowLatencyReader(spark.SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark's reader for the option `lowLatency`: it plans and reads micro-batches in the driver-side Python process;
    after a restart an executor reads the last micro-batch again."""

    def __init__(self, options: ReadOptions, layout: ChangeLayout) -> None:
        self._options = replace(options, max_bytes=min(options.max_bytes, _MOST_BYTES))
        self._layout, self._planner = layout, BatchPlanner(self._options)

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's names
        """Return the offset at which a new query begins."""
        return self._planner.initial()

    def read(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, start: Offset
    ) -> tuple[Iterator[pa.RecordBatch], Offset]:
        """Return the changes of the next batch, and the offset at which it ends."""
        end = self._planner.next(start)
        batches = [] if end == start else list(self._batches(start, end))
        return iter(batches), end  # Spark copies the iterator, which a generator does not take

    def readBetweenOffsets(  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        self, start: Offset, end: Offset
    ) -> Iterator[pa.RecordBatch]:
        """Return the changes of a batch that was planned before, once more."""
        return self._batches(start, end)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Let no batch go past the position at which the source's log ends now."""
        self._planner.stop_at_present_end()

    def commit(self, end: Offset) -> None:
        """Tell the server that everything before an offset is done."""
        self._planner.log.ack(Position.from_json(end))

    def _batches(self, start: Offset, end: Offset) -> Iterator[pa.RecordBatch]:
        for part in self._planner.parts(start, end):
            yield from read_part(self._options, self._layout, part)
