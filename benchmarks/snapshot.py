"""Snapshots of a table of MariaDB with ten mixed columns, on two cores, beside Spark's JDBC source and PyMySQL.

`spark` and `jdbc` write Parquet with Spark, `command` is `penstock snapshot` with its start, `pymysql` makes tuples and
drops them. The database shares the two cores. Reads take turns; the best of each counts. The source's CPU seconds per
million rows are beside the rows per second. Memory is the peak of `penstock snapshot` for a table and for one that is
ten times as large. `rows_per_s` is that of `spark`; `ratio_pymysql` compares the command over one connection.
"""

import os
from contextlib import ExitStack
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
    ways = {
        "spark": lambda: reads.spark_snapshot(spark, PARTITIONS),
        "jdbc, 1 connection": lambda: reads.jdbc(spark, 1),
        "jdbc, partitions": lambda: reads.jdbc(spark, PARTITIONS),
        "command": lambda: reads.command(ROWS, 2),
        "command, 1 connection": lambda: reads.command(ROWS, 1),
        "pymysql": reads.pymysql,
    }
    best: dict[str, TableRead] = {}
    for turn in range(1 - WARM_UPS, ROUNDS + 1):
        for name, read in ways.items():
            say(f"round {turn} of {ROUNDS}: {name}")
            found = read()
            if turn > 0 and (name not in best or found.rows_per_s > best[name].rows_per_s):
                best[name] = found
    return best


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
        rate = {name: read.rows_per_s for name, read in best.items()}
        figures = {
            "rows_per_s": round(rate["spark"]),
            "command_rows_per_s": round(rate["command"]),
            "ratio_jdbc_1": round(rate["spark"] / rate["jdbc, 1 connection"], 2),
            "ratio_jdbc_n": round(rate["spark"] / rate["jdbc, partitions"], 2),
            "ratio_pymysql": round(rate["command, 1 connection"] / rate["pymysql"], 2),
            "source_cpu_per_million": round(best["spark"].source_cpu_per_million, 2),
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
