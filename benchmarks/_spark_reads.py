"""What Spark takes to read a range of the log, with time and CPU of Spark and of the server that it reads from."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks._server_run import Running
from benchmarks._spark_ceiling import CeilingSource
from benchmarks._spark_log import WrittenLog
from benchmarks._spark_processes import CpuMeter
from penstock.spark.change_log import ChangeLog
from penstock.spark.layout import layout_of
from penstock.spark.options import ReadOptions

TABLE = {"table": "shop.t"}


@dataclass(frozen=True, slots=True)
class ReadCost:
    """One read: how many rows a DataFrame got, and what that took."""

    rows: int
    seconds: float
    spark_s: float  # CPU
    server_s: float  # CPU

    @property
    def rows_per_s(self) -> float:
        return self.rows / self.seconds

    @property
    def cpu_us_per_row(self) -> float:
        """The CPU of all processes together."""
        return (self.spark_s + self.server_s) * 1e6 / self.rows


def options_of(server: Running, log: WrittenLog, tables: dict[str, str]) -> dict[str, str]:
    """Return the options of a read of the whole log."""
    where = {"server": f"127.0.0.1:{server.flight}", "destination": "shop"}
    return {**where, **tables, "startingPosition": log.start, "endingPosition": log.end}


def cut(server: Running, log: WrittenLog, parts: int) -> tuple[int, WrittenLog]:
    """Return the beginning of a log that is so many parts, or all that it has; its rows are counted by what is read."""
    options = ReadOptions.of(options_of(server, log, TABLE))
    reader = ChangeLog(options)
    tickets = reader.tickets(reader.resolve(log.start), reader.resolve(log.end))[:parts]
    layout = layout_of(options, reader.client)
    blocks = (block for ticket in tickets for block in reader.read(ticket))
    rows = sum(batch.num_rows for block in blocks for batch in layout.batches(block))
    return len(tickets), WrittenLog(log.start, json.dumps(json.loads(tickets[-1])["end"]), rows)


class SparkReads:
    """Reads into Spark's `noop` sink, which takes every row and does nothing with it.

    reads = SparkReads(spark, jvm)
    reads.ceiling(path, parts, rows).rows_per_s
    """

    def __init__(self, spark: SparkSession, jvm: int) -> None:
        self._spark, self._jvm = spark, jvm
        spark.dataSource.register(CeilingSource)

    def save_sample(self, server: Running, log: WrittenLog, path: Path) -> int:
        """Keep the batches of one part in the middle of a log for the ceiling; return how many parts the log is."""
        options = ReadOptions.of(options_of(server, log, TABLE))
        reader = ChangeLog(options)
        tickets = reader.tickets(reader.resolve(log.start), reader.resolve(log.end))
        layout = layout_of(options, reader.client)
        batches = [batch for block in reader.read(tickets[len(tickets) // 2]) for batch in layout.batches(block)]
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, layout.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return len(tickets)

    def ceiling(self, path: Path, parts: int, rows: int) -> ReadCost:
        """Read prepared batches."""
        frame = self._spark.read.format("ceiling").options(path=str(path), parts=str(parts), rows=str(rows))
        return self._measure(rows, None, lambda: frame.load().write.format("noop").mode("overwrite").save())

    def batch(self, server: Running, log: WrittenLog, tables: dict[str, str]) -> ReadCost:
        """Read a range with `spark.read`."""
        frame = self._spark.read.format("penstock").options(**options_of(server, log, tables))
        return self._measure(log.rows, server, lambda: frame.load().write.format("noop").mode("overwrite").save())

    def stream(self, server: Running, log: WrittenLog, checkpoint: Path) -> ReadCost:
        """Read to the end of the log with a stream and `Trigger.AvailableNow`, with Spark's limits as they are."""
        options = options_of(server, log, TABLE)
        del options["endingPosition"]
        frame = self._spark.readStream.format("penstock").options(**options)

        def run() -> None:
            writer = frame.load().writeStream.format("noop").trigger(availableNow=True)
            writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination()

        return self._measure(log.rows, server, run)

    def _measure(self, rows: int, server: Running | None, read: Callable[[], None]) -> ReadCost:
        meter, server_s, began = CpuMeter(self._jvm), server.cpu_s if server else 0.0, time.perf_counter()
        read()
        seconds = time.perf_counter() - began
        return ReadCost(rows, seconds, meter.used_s, server.cpu_s - server_s if server else 0.0)
