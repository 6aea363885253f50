"""`format("penstock")`: changes of tables for Spark, as a stream or between two positions of the log."""

from contextlib import closing

import pyspark.sql.datasource as spark
from pyspark.errors import PySparkNotImplementedError
from pyspark.sql.types import StructType

from penstock.client import FlightClient
from penstock.spark.batch_reader import ChangeBatchReader
from penstock.spark.layout import ChangeLayout, layout_of
from penstock.spark.low_latency import LowLatencyReader
from penstock.spark.options import OPTIONS, ReadOptions, check_mode
from penstock.spark.stream_reader import stream_reader
from penstock.spark.types import spark_schema

_DOCUMENTATION = """Changes of MySQL and MariaDB tables, as a stream or between two positions of the log.

    orders = (
        spark.readStream.format("penstock")
        .option("server", "127.0.0.1:11115")
        .option("table", "shop.orders")
        .load()
    )

One `table` has its own columns, then `_change_type` (insert, update_preimage, update_postimage, delete),
`_commit_version`, `_commit_timestamp`, `_seq`, `_row`, `_gtid`, `_file`, `_offset`, `_changed`, `_absent`, `_partial`.
Several `tables` have `_table` and one struct each before these. A `filter` has one row per change, with `_table`, the
key as a map, and `before` and `after` as JSON text.

Options:

"""


class PenstockDataSource(spark.DataSource):
    # Spark builds this in several processes: it stays cheap and picklable.

    __doc__ = _DOCUMENTATION + "\n".join(
        f"    {option.name}: {option.meaning} ({option.modes}{f'; default {option.default}' if option.default else ''})"
        for option in OPTIONS
    )

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._read = ReadOptions.of(options)
        self._planned_layout: ChangeLayout | None = (
            None  # the columns that Spark has planned with, whatever becomes of the table
        )

    @classmethod
    def name(cls) -> str:
        """Return the name that `spark.read.format(…)` finds this source by."""
        return "penstock"

    def schema(self) -> StructType:
        """Return the columns of the query, as the server has the tables now."""
        return spark_schema(self._layout().schema)

    def reader(self, schema: StructType) -> ChangeBatchReader:  # noqa: ARG002 - Spark's name
        """Return Spark's reader of a range of the log, for an ordinary DataFrame."""
        check_mode(self.options, "batch")
        return ChangeBatchReader(self._read, self._layout())

    def streamReader(self, schema: StructType) -> spark.DataSourceStreamReader:  # noqa: N802, ARG002
        """Return Spark's reader of a stream, which plans batches in the driver and reads them on the executors."""
        if self._read.is_low_latency:
            raise PySparkNotImplementedError(
                errorClass="NOT_IMPLEMENTED", messageParameters={"feature": "streamReader with lowLatency"}
            )
        check_mode(self.options, "stream")
        return stream_reader(self._read, self._layout())

    def simpleStreamReader(self, schema: StructType) -> LowLatencyReader:  # noqa: N802, ARG002
        """Return Spark's reader of small batches in the driver; Spark asks for it when there is no `streamReader`."""
        check_mode(self.options, "stream")
        return LowLatencyReader(self._read, self._layout())

    def _layout(self) -> ChangeLayout:
        if self._planned_layout is None:
            address, wait_s = self._read.server, self._read.wait_s
            with closing(FlightClient(address, self._read.destination, retry_timeout_s=wait_s)) as client:
                self._planned_layout = layout_of(self._read, client)
        return self._planned_layout
