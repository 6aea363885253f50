"""Spark's own ceiling: a Python data source that costs nothing, because it yields the same prepared batches again.

The batches are real ones, which the `penstock` source has read, in an Arrow file; so the JVM has the same columns, the
same values and the same batch sizes to turn into rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyspark.sql.datasource as spark
from pyspark.sql.types import StructType

from penstock.spark.types import spark_schema


@lru_cache(maxsize=4)
def load_batches(path: str) -> list[pa.RecordBatch]:
    """Return the prepared batches, once per process."""
    with pa.memory_map(path) as file:
        return pa.ipc.open_file(pa.py_buffer(file.read())).read_all().to_batches()


@dataclass
class Share(spark.InputPartition):
    """How many rows one task yields."""

    rows: int


class CeilingSource(spark.DataSource):
    """Options: `path` of the Arrow file, `parts` and `rows` of all parts together."""

    @classmethod
    def name(cls) -> str:
        """Return what stands in `format(…)`."""
        return "ceiling"

    def schema(self) -> StructType:
        """Return the columns of the prepared batches."""
        return spark_schema(load_batches(self.options["path"])[0].schema)

    def reader(self, schema: StructType) -> "CeilingReader":  # noqa: ARG002 - Spark's name
        """Return what yields the batches."""
        return CeilingReader(self.options["path"], int(self.options["parts"]), int(self.options["rows"]))


class CeilingReader(spark.DataSourceReader):
    def __init__(self, path: str, parts: int, rows: int) -> None:
        self._path, self._parts, self._rows = path, parts, rows

    def partitions(self) -> list[Share]:
        """Return equal shares of the rows."""
        each, rest = divmod(self._rows, self._parts)
        return [Share(each + (part < rest)) for part in range(self._parts)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the prepared batches over and over, until the rows of the share are through."""
        left = partition.rows
        while left:
            for batch in load_batches(self._path):
                yield batch.slice(0, left) if left < batch.num_rows else batch
                left -= min(left, batch.num_rows)
                if not left:
                    return
