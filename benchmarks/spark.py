"""Spark over the log of a real MariaDB, on two cores, beside the most that Spark can do with a Python source at all.

The ceiling is a source that yields prepared batches again and again, with the same columns, rows, parts and batch
sizes; both write to Spark's `noop` sink. Half of the changes are inserts, half updates, of ten columns in transactions
of 1,000 rows; an update is two rows of a DataFrame. The same range comes from a server's store, from a folder of log
files, and from the source's own log; `stream` is the last one in batches of 64 MiB, with checkpoints. Reads take turns;
the best of each counts. The server shares the two cores. CPU seconds of all processes are beside the seconds, because
they hardly change when the machine has other things to do. `ratio_spark_ceiling` and `rows_per_s` are those of the
folder.

Latency is of 1,000 rows a second in 100 commits, from before the INSERT was sent to when `foreachBatch` has the row,
after a warm-up. Idle CPU is that of the JVM, of the Python processes of a query, and of the driver, in percent of one
core. Growth is the CPU of all processes per row: of 64 parts against one, and of 100 tables against one.
"""

import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks._binlog_logs import say
from benchmarks._report import print_figures, print_table
from benchmarks._scale import scaled
from benchmarks._server_run import Running, connection_of, scratch, serving_instance
from benchmarks._services import fetch_services
from benchmarks._spark_log import WrittenLog, copy_log, write_changes, write_tables
from benchmarks._spark_reads import TABLE, ReadCost, SparkReads, cut
from benchmarks._spark_streams import StreamRun
from penstock.client import FlightClient
from penstock.spark.sessions import local_session, stop_session
from penstock.testing import DatabaseServer, poll_until
from tests.services import SERVICES

CHANGES = scaled(5_400_000, 4000)
ROUNDS, WARM_UPS = scaled(3, 1), scaled(1, 0)
PARTS = (1, 8, 64)
TABLES = (1, scaled(100, 3))
TABLE_ROWS = scaled(200_000, 400)
_ROOT = Path(__file__).parents[1]
_CATCH_UP_S = 300
_LARGE, _SMALL = "4GiB", "1MiB"  # stores: one that holds the whole log, and one that holds hardly anything


class Benchmark:
    """One run: a source, its servers, and a Spark session."""

    def __init__(self, stack: ExitStack, source: DatabaseServer, folder: Path) -> None:
        self._stack, self._source, self._folder = stack, source, folder
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        self.spark = local_session("benchmark", {"spark.driver.memory": "2g"}, log_file=folder / "spark.log")
        stack.callback(stop_session, self.spark)
        gateway: Any = self.spark.sparkContext._gateway  # noqa: SLF001 - the JVM has no public handle
        self.jvm = gateway.proc.pid
        self.reads = SparkReads(self.spark, self.jvm)
        self.figures = dict[str, float]()

    def serve(self, instance: dict[str, Any], end: str = "") -> Running:
        """Start a server; with an end, return when it has captured that far."""
        folder = self._folder / f"server{time.monotonic_ns()}"
        folder.mkdir()
        server = self._stack.enter_context(serving_instance(instance, folder))
        if end:
            client = FlightClient(f"127.0.0.1:{server.flight}", "shop", retry_timeout_s=30)
            last = client.resolve_position(end)
            if not poll_until(lambda: client.store_bounds()["latest"] >= last, _CATCH_UP_S):
                raise RuntimeError(f"the server has not captured the log within {_CATCH_UP_S} s")
        return server

    # -- how fast

    def throughput(self, log: WrittenLog) -> None:
        """Read the log in every way, in turns."""
        files = {"path": str(copy_log(self._source, self._folder / "logs"))}
        live = {"source": connection_of(self._source), "start": log.start}
        store = self.serve({**live, "store": {"memory": _LARGE}}, log.end)
        source = self.serve({**live, "store": {"memory": _SMALL}}, log.start)
        # From the same start: without a client, a small store is full before what the latency runs have written ends.
        folder = self.serve({"source": files, "start": log.start, "store": {"memory": _SMALL}}, log.start)
        sample = self._folder / "sample.arrow"
        parts = self.reads.save_sample(store, log, sample)
        ways = {
            "ceiling": lambda _: self.reads.ceiling(sample, parts, log.rows),
            "folder": lambda _: self.reads.batch(folder, log, TABLE),
            "store": lambda _: self.reads.batch(store, log, TABLE),
            "source": lambda _: self.reads.batch(source, log, TABLE),
            "stream": lambda turn: self.reads.stream(source, log, self._folder / f"checkpoint-{turn}"),
        }
        costs: dict[str, list[ReadCost]] = {name: [] for name in ways}
        for turn in range(1 - WARM_UPS, ROUNDS + 1):  # round 0 only warms up
            for name, read in ways.items():
                say(f"round {turn} of {ROUNDS}: {name}")
                costs[name].append(read(turn))
        self._report_throughput(log, parts, {name: reads[WARM_UPS:] for name, reads in costs.items()})
        self._report_parts(folder, log)

    def _report_throughput(self, log: WrittenLog, parts: int, costs: dict[str, list[ReadCost]]) -> None:
        best = {name: max(reads, key=lambda cost: cost.rows_per_s) for name, reads in costs.items()}
        cpu = {name: min(cost.cpu_us_per_row for cost in reads) for name, reads in costs.items()}
        lines = list[list[str]]()
        for name, cost in best.items():
            ratio, cpu_ratio = cost.rows_per_s / best["ceiling"].rows_per_s, cpu["ceiling"] / cpu[name]
            speeds = [f"{cost.rows_per_s:,.0f}", f"{cost.rows_per_s * 2 / 3:,.0f}", f"{ratio:.2f}"]
            lines.append([name, *speeds, f"{cpu[name]:.2f}", f"{cpu_ratio:.2f}", f"{cost.server_s:.2f}"])
            if name != "ceiling":
                prefix = "" if name == "folder" else f"{name}_"
                self.figures[f"{prefix}ratio_spark_ceiling"] = round(ratio, 2)
                self.figures[f"{prefix}ratio_spark_ceiling_cpu"] = round(cpu_ratio, 2)
            self.figures["cpu_us_per_row" if name == "folder" else f"{name}_cpu_us_per_row"] = round(cpu[name], 2)
            self.figures["rows_per_s" if name == "folder" else f"{name}_rows_per_s"] = round(cost.rows_per_s)
        heads = ["read", "rows/s", "changes/s", "of ceiling", "CPU µs per row", "of ceiling", "server CPU s"]
        print_table(
            f"{log.rows:,} rows of the log in {parts} parts, local[2], load {os.getloadavg()[0]:.1f}", heads, lines
        )

    def _report_parts(self, server: Running, log: WrittenLog) -> None:
        lines, costs = list[list[str]](), dict[int, float]()
        for wanted in PARTS:
            parts, part = cut(server, log, wanted)
            reads = [self.reads.batch(server, part, TABLE) for _ in range(ROUNDS)]
            costs[wanted] = min(cost.cpu_us_per_row for cost in reads)
            seconds = min(cost.seconds for cost in reads)
            lines.append([f"{parts}", f"{part.rows:,}", f"{seconds:.2f}", f"{costs[wanted]:.2f}"])
        print_table(
            "growth with the parts of a range, from the folder", ["parts", "rows", "s", "CPU µs per row"], lines
        )
        self.figures["cpu_ratio_64_parts"] = round(costs[PARTS[-1]] / costs[PARTS[0]], 2)

    def tables(self) -> None:
        """Read the same rows of one table and of many, in both shapes of many tables."""
        lines, costs = list[list[str]](), dict[tuple[str, int], float]()
        for count in TABLES:
            say(f"writing {TABLE_ROWS:,} rows into {count} tables")
            log = write_tables(self._source, count, TABLE_ROWS)
            server = self.serve({"source": connection_of(self._source), "start": log.start}, log.end)
            names = [f"shop{count}.t{number}" for number in range(count)]
            for shape, selection in {"filter": rf"shop{count}\..*", "tables": ",".join(names)}.items():
                reads = [self.reads.batch(server, log, {shape: selection}) for _ in range(ROUNDS + WARM_UPS)]
                costs[shape, count] = min(cost.cpu_us_per_row for cost in reads)
                seconds = min(cost.seconds for cost in reads)
                lines.append([f"`{shape}` of {count}", f"{log.rows:,}", f"{seconds:.2f}", f"{costs[shape, count]:.2f}"])
        for shape in ("filter", "tables"):
            ratio = costs[shape, TABLES[1]] / costs[shape, TABLES[0]]
            self.figures["cpu_ratio_100_tables" if shape == "filter" else "cpu_ratio_100_structs"] = round(ratio, 2)
        print_table("growth with the tables of a log", ["option", "rows", "s", "CPU µs per row"], lines)

    # -- how soon

    def latency(self) -> None:
        """Follow rows as they are committed, then nothing."""
        server = self.serve({"source": connection_of(self._source)})
        streams = StreamRun(self.spark, self.jvm, self._source, server, self._folder)
        lines = list[list[str]]()
        for _ in range(WARM_UPS):
            say("a stream that does not count: whichever is measured first, the JVM has compiled what both need")
            with streams.stream() as arrivals:
                streams.latency(arrivals)
        for name, options in {"low_latency_": {"lowLatency": "true"}, "": dict[str, str]()}.items():
            say(f"a stream of 1,000 rows a second{' with lowLatency' if name else ''}")
            with streams.stream(**options) as arrivals:
                measured = streams.latency(arrivals)
                idle, server_idle = streams.idle()
            self.figures[f"{name}latency_p50_ms" if not name else "low_latency_p50_ms"] = round(measured.p50_ms, 1)
            self.figures[f"{name}latency_p99_ms" if not name else "low_latency_p99_ms"] = round(measured.p99_ms, 1)
            self.figures[f"{name}idle_cpu_percent"] = round(idle, 2)
            times = [f"{measured.p50_ms:.0f}", f"{measured.p99_ms:.0f}", f"{measured.batches}"]
            shares = [
                f"{share:.1f}" for share in (measured.cpu_percent, measured.server_cpu_percent, idle, server_idle)
            ]
            lines.append(["lowLatency" if name else "default", *times, *shares])
        heads = ["stream", "p50 ms", "p99 ms", "batches", "CPU %", "server CPU %", "idle CPU %", "idle server CPU %"]
        print_table(f"1,000 rows a second, then none; load {os.getloadavg()[0]:.1f}", heads, lines)


def main() -> None:
    fetch_services("mariadb")
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        options = {"binlog_row_metadata": "FULL"}
        source: Any = SERVICES["mariadb"].server(folder / "source", options=options).start()  # type: ignore[attr-defined]
        stack.callback(source.kill)
        run = Benchmark(stack, source, folder)
        run.latency()
        say(f"writing {CHANGES:,} row changes")
        run.throughput(write_changes(source, CHANGES))
        run.tables()
        print_figures("spark", {**run.figures, "load": round(os.getloadavg()[0], 1)})


if __name__ == "__main__":
    main()
