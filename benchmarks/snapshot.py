"""Snapshots of a table of MariaDB with ten mixed columns, on two cores, beside Spark's JDBC source and PyMySQL.

`spark` and `jdbc` read with Spark, and write to Parquet or nowhere (`noop`). `jdbc` is tuned (a fetch size, the text
protocol); `jdbc, defaults` has no options. `parquet to parquet` has no source at all: what Spark's own reader and
writer of Parquet take is a limit for every source that is written to Parquet. `command` is `penstock snapshot` with its
start, `pymysql` makes tuples and drops them. The database shares the two cores. Reads take turns; the best of each
counts, of `pymysql` the only one. The source's CPU seconds per million rows are beside the rows per second. Memory is
the peak of `penstock snapshot` for a table and for one that is ten times as large. `rows_per_s` is that of `spark` to
Parquet, and ratios are those of Parquet unless they are named `noop`; `ratio_pymysql` compares the command over one
connection. `source_limit_rows_per_s` is what a reader that costs nothing could reach to `noop`: the database alone
takes so much of the cores for a row.
"""

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks._binlog_logs import say
from benchmarks._report import print_figures, print_table
from benchmarks._scale import scaled
from benchmarks._server_run import INSERT, TABLE, scratch
from benchmarks._services import fetch_services
from benchmarks._snapshot_reads import DRIVER, TableRead, TableReads
from penstock.spark.sessions import local_session, stop_session
from penstock.testing import DatabaseServer, cache_folder
from tests.services import SERVICES, maven

ROWS = scaled(2_000_000, 2000)
LARGE_ROWS = scaled(10_000_000, 20_000)
SMALL_ROWS = LARGE_ROWS // 10
PARTITIONS = 8
ROUNDS, WARM_UPS = scaled(3, 1), scaled(1, 0)
_ROOT = Path(__file__).parents[1]
_INSERT_ROWS = 100_000
_CEILING = "parquet to parquet, no source"


def fill(source: DatabaseServer, table: str, rows: int) -> None:
    """Create a table with so many rows, and let the server count them."""
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS shop")
        cursor.execute("USE shop")
        cursor.execute(TABLE.replace("shop.t ", f"{table} "))
        for first in range(1, rows + 1, _INSERT_ROWS):
            cursor.execute(INSERT.format(first, min(first + _INSERT_ROWS - 1, rows)).replace("shop.t ", f"{table} "))
            connection.commit()
        cursor.execute(f"ANALYZE TABLE {table}")


def measure_speed(reads: TableReads, spark: Any) -> dict[str, TableRead]:
    """Read the table in every way, in turns; return the best read of each."""
    ways: dict[str, Callable[[], TableRead]] = {}
    for target in ("parquet", "noop"):
        ways |= {
            f"spark to {target}": partial(reads.spark_snapshot, spark, PARTITIONS, target),
            f"jdbc, 1 connection, to {target}": partial(reads.jdbc, spark, 1, target),
            f"jdbc, {PARTITIONS} partitions, to {target}": partial(reads.jdbc, spark, PARTITIONS, target),
            f"jdbc, defaults, to {target}": partial(reads.jdbc, spark, 1, target, is_tuned=False),
        }
    ways |= {
        _CEILING: partial(reads.copy_parquet, spark, PARTITIONS),
        "command": lambda: reads.command(ROWS, 2),
        "command, 1 connection": lambda: reads.command(ROWS, 1),
    }
    best: dict[str, TableRead] = {}
    for turn in range(1 - WARM_UPS, ROUNDS + 1):
        for name, read in ways.items():
            say(f"round {turn} of {ROUNDS}: {name}")
            snapshot = read()
            if turn > 0 and (name not in best or snapshot.rows_per_s > best[name].rows_per_s):
                best[name] = snapshot
    say("pymysql, once: it takes as long as all others")
    return best | {"pymysql": reads.pymysql()}


def compare(best: dict[str, TableRead]) -> dict[str, float]:
    """Return the figures of the reads: rows per second, and ratios of our own to others."""
    rate = {name: read.rows_per_s for name, read in best.items()}
    figures: dict[str, float] = {
        "rows_per_s": round(rate["spark to parquet"]),
        "noop_rows_per_s": round(rate["spark to noop"]),
        "command_rows_per_s": round(rate["command"]),
        "ceiling_rows_per_s": round(rate[_CEILING]),
        "ratio_ceiling": round(rate["spark to parquet"] / rate[_CEILING], 2),
    }
    others = {"1": "1 connection", "n": f"{PARTITIONS} partitions", "default": "defaults"}
    for target, prefix in (("parquet", "ratio_jdbc"), ("noop", "noop_ratio_jdbc")):
        for suffix, way in others.items():
            figures[f"{prefix}_{suffix}"] = round(rate[f"spark to {target}"] / rate[f"jdbc, {way}, to {target}"], 2)
    figures["ceiling_ratio_jdbc_1"] = round(rate[_CEILING] / rate["jdbc, 1 connection, to parquet"], 2)
    figures["ratio_pymysql"] = round(rate["command, 1 connection"] / rate["pymysql"], 2)
    cores, source_cpu = os.cpu_count() or 1, best["spark to noop"].source_cpu_per_million
    figures["source_limit_rows_per_s"] = round(cores / max(source_cpu, 0.01) * 1e6)
    figures["source_cpu_per_million"] = round(best["spark to parquet"].source_cpu_per_million, 2)
    return figures


def main() -> None:
    fetch_services("mariadb")
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        (jar,) = maven.fetch([DRIVER], folder / "jars", cache=cache_folder(), report=say)
        source: Any = SERVICES["mariadb"].server(folder / "source", options={"innodb_buffer_pool_size": "2G"}).start()  # type: ignore[attr-defined]
        stack.callback(source.kill)
        say(f"writing {ROWS:,} rows")
        fill(source, "shop.t", ROWS)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        settings = {"spark.driver.memory": "2g", "spark.jars": str(jar)}
        spark = local_session("benchmark", settings, log_file=folder / "spark.log")
        reads = TableReads(source, folder, "shop.t", ROWS)
        try:
            best = measure_speed(reads, spark)
        finally:
            stop_session(spark)
        lines = [
            [name, f"{read.rows_per_s:,.0f}", f"{read.seconds:.2f}", f"{read.source_cpu_per_million:.2f}"]
            for name, read in best.items()
        ]
        heads = ["read", "rows/s", "s", "source CPU s per million rows"]
        print_table(f"{ROWS:,} rows of 10 columns, load {os.getloadavg()[0]:.1f}", heads, lines)
        peaks = measure_memory(source, folder)
        figures = compare(best) | {
            "peak_mib": round(peaks[1]),
            "peak_ratio_10_times_rows": round(peaks[1] / peaks[0], 2),
            "load": round(os.getloadavg()[0], 1),
        }
        print_figures("snapshot", figures)


def measure_memory(source: DatabaseServer, folder: Path) -> tuple[float, float]:
    """Return the peak memory of `penstock snapshot` for a table, and for one that is ten times as large."""
    peaks: list[float] = []
    lines: list[list[str]] = []
    for rows in (SMALL_ROWS, LARGE_ROWS):
        say(f"writing {rows:,} rows")
        fill(source, f"shop.t{rows}", rows)
        read = TableReads(source, folder, "shop.t", ROWS).command(rows, 2, f"shop.t{rows}")
        peaks.append(read.peak_mib)
        lines.append([f"{rows:,}", f"{read.rows_per_s:,.0f}", f"{read.peak_mib:.0f}"])
    print_table("memory of `penstock snapshot`", ["rows", "rows/s", "peak MiB"], lines)
    return peaks[0], peaks[1]


if __name__ == "__main__":
    main()
