"""The same rows over one table and over thousands: what a table costs by itself, in the server and for its clients.

A hundred thousand transactions of one row each, of ten columns of mixed types, spread over 1, 100, 1,000 and 10,000
tables of a real MariaDB. For each a new server begins where the rows begin; canal's Java client reads them, and a
client of Arrow Flight reads them as JSON rows. Rows per second count from the client's first batch on; CPU is that of
the server's process from when it serves on, per million changes. Ratios are to one table, of the same run.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks._binlog_logs import say
from benchmarks._report import print_figures, print_table
from benchmarks._scale import is_tiny, scaled
from benchmarks._server_run import SIZE, Running, end_of, scratch, serving
from penstock.testing import DatabaseServer, cache_folder
from tests.services import SERVICES
from tests.services.canal_client import JAVA_CLIENT, Driver

ROWS = scaled(100_000, 400)
TABLES = (1, 3) if is_tiny() else (1, 100, 1_000, 10_000)
_COLUMNS = (
    "id INT PRIMARY KEY, name VARCHAR(60), price DECIMAL(10,2), qty INT UNSIGNED, weight DOUBLE, made DATETIME(3),"
    " stamp TIMESTAMP, kind ENUM('a','b','c'), note TEXT, big BIGINT"
)
_STEP = 7919  # a prime: rows that follow each other are of different tables
_MAX_S = 900.0  # that a client may take
_STATEMENTS = 500  # that go to the source at once


def prepare(source: DatabaseServer, tables: int, rows: int) -> str:
    """Write the rows into as many tables; gives where they begin in the log."""
    database = f"shop{tables}"
    with source.connect(autocommit=True, client_flag=1 << 16) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database}")
        for number in range(tables):
            cursor.execute(f"CREATE TABLE {database}.t{number} ({_COLUMNS})")
        cursor.execute("FLUSH LOGS")
        begin = end_of(source)
        for first in range(0, rows, _STATEMENTS):
            cursor.execute(";".join(_insert(database, tables, n) for n in range(first, min(first + _STATEMENTS, rows))))
            while cursor.nextset():
                pass
    return begin


def _insert(database: str, tables: int, n: int) -> str:
    values = (
        f"{n},'product number {n}',{n / 7:.2f},{n * 3},{n / 3!r},'2024-01-01 00:00:00.123' + INTERVAL {n} SECOND,"
        f"FROM_UNIXTIME({1_700_000_000 + n}),{1 + n % 3},'{'lorem ' * (1 + n % 5)}',{n * 1_000_003}"
    )
    return f"INSERT INTO {database}.t{n * _STEP % tables} VALUES ({values})"


def fetch() -> None:
    """The programs that it needs, where they are not there yet."""
    for service in (SERVICES["mariadb"], JAVA_CLIENT):
        if service.find(cache_folder()) is None:
            service.fetch(cache_folder(), say)


@contextmanager
def _bounded(command: list[str]) -> Iterator[Driver]:
    """A client that is ended when it takes too long; who waits for its answer then gets an error."""
    with Driver(command) as driver:
        timer = threading.Timer(_MAX_S, os.kill, (driver.pid, signal.SIGKILL))
        timer.start()
        try:
            yield driver
        finally:
            timer.cancel()


@contextmanager
def _java() -> Iterator[Any]:
    with _bounded(JAVA_CLIENT.command()) as driver:

        def consume(server: Running, rows: int) -> Any:
            driver.ask("single", "127.0.0.1", server.canal, "shop", "-", "-")
            driver.ask("connect")
            driver.ask("subscribe", "shop[0-9]*\\..*")
            return driver.ask("consume", rows, SIZE)

        yield consume


@contextmanager
def _flight() -> Iterator[Any]:
    with _bounded([sys.executable, "-m", "benchmarks._tables_client"]) as driver:
        yield lambda server, rows: driver.ask(json.dumps({"port": server.flight, "rows": rows}))


CLIENTS = {"java_client": _java, "flight_json": _flight}


def throughput(source: DatabaseServer, start: str, rows: int, kind: Any) -> dict[str, float]:
    with kind() as consume, scratch() as folder, serving(source, start, folder) as server:
        before = server.cpu_s
        done = consume(server, rows)
        return {
            "rows_per_s": done["rows"] / done["seconds"],
            "cpu_s_per_million": (server.cpu_s - before) * 1e6 / rows,
            "peak_mib": server.peak_mib,
        }


def main(tables: tuple[int, ...] = TABLES, rows: int = ROWS) -> None:
    fetch()
    lines, results = list[list[str]](), dict[tuple[str, int], dict[str, float]]()
    with scratch() as folder:
        options = {"binlog_row_metadata": "FULL", "innodb_file_per_table": "OFF"}
        source: Any = SERVICES["mariadb"].server(folder / "source", options=options).start()  # type: ignore[attr-defined]
        try:
            for count in tables:
                say(f"writing {rows:,} transactions into {count:,} tables")
                start = prepare(source, count, rows)
                for name, kind in CLIENTS.items():
                    result = results[name, count] = throughput(source, start, rows, kind)
                    ratio = result["rows_per_s"] / results[name, tables[0]]["rows_per_s"]
                    line = [f"{name}, {count:,} tables", f"{result['rows_per_s']:,.0f}", f"{ratio:.2f}"]
                    lines.append([*line, f"{result['cpu_s_per_million']:.1f}", f"{result['peak_mib']:.0f}"])
        finally:
            source.kill()
    heads = ["client", "rows/s", "of one table", "CPU s per million", "peak MiB"]
    print_table(f"{rows:,} transactions of one row over many tables", heads, lines)
    print_figures("tables", _figures(results, tables))


def _figures(results: dict[tuple[str, int], dict[str, float]], tables: tuple[int, ...]) -> dict[str, float]:
    def ratio(client: str, figure: str, count: int) -> float:
        return round(results[client, count][figure] / results[client, tables[0]][figure], 2)

    figures = {f"ratio_{count}_tables": ratio("java_client", "rows_per_s", count) for count in tables[1:]}
    figures |= {f"flight_ratio_{count}_tables": ratio("flight_json", "rows_per_s", count) for count in tables[1:]}
    figures |= {f"cpu_ratio_{count}_tables": ratio("java_client", "cpu_s_per_million", count) for count in tables[1:]}
    for count in tables:
        figures[f"rows_per_s_{count}_tables"] = round(results["java_client", count]["rows_per_s"])
        figures[f"flight_rows_per_s_{count}_tables"] = round(results["flight_json", count]["rows_per_s"])
    return figures


if __name__ == "__main__":
    main()
