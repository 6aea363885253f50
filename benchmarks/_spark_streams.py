"""Streams of Spark over a table that is written to at a steady pace: how late its rows are, and what an idle one costs.

Latency is from before the INSERT was sent, so with the time that the source takes to commit, to when the callback of
`foreachBatch` has the rows in an Arrow table.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks._scale import scaled
from benchmarks._server_run import Running, connection_of
from benchmarks._spark_processes import CpuMeter
from benchmarks._spark_writer import ROWS_PER_S
from penstock.testing import DatabaseServer, poll_until

WARM_S, MEASURED_S = scaled(25, 1), scaled(25, 1)
IDLE_AFTER_S, IDLE_S = scaled(10, 0), scaled(30, 1)
_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds, and CPU of the whole query while rows came, in percent of a core."""

    p50_ms: float
    p99_ms: float
    batches: int
    cpu_percent: float
    server_cpu_percent: float


class Arrivals:
    """A target of `foreachBatch` that notes when each row came."""

    def __init__(self) -> None:
        self.rows = 0
        self._batches: list[tuple[int, pa.ChunkedArray]] = []  # the microsecond they were there, when each was written

    def __call__(self, batch: DataFrame, number: int) -> None:  # noqa: ARG002 - Spark's
        written = batch.select("at").toArrow().column("at")
        self._batches.append((time.time_ns() // 1000, written))
        self.rows += len(written)

    def after(self, moment_us: int) -> list[list[float]]:
        """Return the milliseconds of the rows that were written after a moment, for each batch that has some."""
        latencies = [
            [(now - at) / 1000 for at in written.to_pylist() if at >= moment_us] for now, written in self._batches
        ]
        return [batch for batch in latencies if batch]


class StreamRun:
    """Streams of `shop.tick`, one after the other.

    with StreamRun(spark, jvm, source, server, folder).stream(lowLatency="true") as arrivals: ...
    """

    def __init__(self, spark: SparkSession, jvm: int, source: DatabaseServer, server: Running, folder: Path) -> None:
        self._spark, self._jvm, self._source, self._server, self._folder = spark, jvm, source, server, folder
        self._written = self._streams = 0
        with source.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE IF NOT EXISTS shop")
            cursor.execute("CREATE TABLE shop.tick (id INT PRIMARY KEY, at BIGINT)")

    @contextmanager
    def stream(self, **options: str) -> Iterator[Arrivals]:
        """Run a stream from now on."""
        self._streams += 1
        arrivals = Arrivals()
        frame = self._spark.readStream.format("penstock").option("server", f"127.0.0.1:{self._server.flight}")
        frame = frame.options(destination="shop", table="shop.tick", **options).load()
        writer = frame.writeStream.foreachBatch(arrivals).trigger(processingTime="0 seconds")
        query: Any = writer.option("checkpointLocation", str(self._folder / f"checkpoint{self._streams}")).start()
        try:
            self._wait(lambda: query.lastProgress or query.exception())  # the first batch fixes where it begins
            yield arrivals
            if query.exception():
                raise query.exception()
        finally:
            query.stop()

    def latency(self, arrivals: Arrivals) -> Latency:
        """Write rows, and see when they come; those of the first seconds do not count."""
        rows = round((WARM_S + MEASURED_S) * ROWS_PER_S)
        asked = {"connection": connection_of(self._source), "seconds": WARM_S + MEASURED_S, "first": self._written}
        command = [sys.executable, "-m", "benchmarks._spark_writer"]
        with subprocess.Popen([*command, json.dumps(asked)]) as writer:  # noqa: S603 - ours
            try:
                time.sleep(WARM_S)
                measured_from, meter, server_s = time.time_ns() // 1000, CpuMeter(self._jvm), self._server.cpu_s
                if writer.wait(_TIMEOUT_S):
                    raise RuntimeError("rows could not be written")
            finally:
                writer.kill()
        took = time.time_ns() / 1e9 - measured_from / 1e6
        shares = [100 * used / took for used in (meter.used_s, self._server.cpu_s - server_s)]
        self._written += rows
        self._wait(lambda: arrivals.rows >= rows)
        batches = arrivals.after(measured_from)
        percentiles = quantiles([latency for batch in batches for latency in batch], n=100)
        return Latency(percentiles[49], percentiles[98], len(batches), *shares)

    def idle(self) -> tuple[float, float]:
        """Return the CPU of a stream to which nothing comes, in percent of a core: all of Spark, and the server."""
        time.sleep(IDLE_AFTER_S)
        meter, server_s, own_s, began = CpuMeter(self._jvm), self._server.cpu_s, time.process_time(), time.monotonic()
        time.sleep(IDLE_S)
        took = time.monotonic() - began
        spark_s = meter.used_s + time.process_time() - own_s
        return 100 * spark_s / took, 100 * (self._server.cpu_s - server_s) / took

    def _wait(self, condition: Any) -> None:
        if not poll_until(condition, _TIMEOUT_S):
            raise RuntimeError(f"the stream has not got what was written within {_TIMEOUT_S} s")
