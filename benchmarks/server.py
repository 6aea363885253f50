"""The server between a real MariaDB and its clients: a million row changes, and single rows as they are committed.

Half of the changes are inserts, half updates, of ten columns of mixed types in transactions of a thousand rows. For
each client a new server begins at the same position. CPU and peak are those of the server's process. Rows per
second count from the client's first batch on; by then the server has filled its store, which holds a part of it.
`from start` counts from the start of the server's process until the client has everything, with the whole log still to
be read, and with the start of both processes.
`capture` is the same log into a store, and out of it again, in one process: nobody can be faster.

Latency is from when the writer has its commit to when the client has the row, at a hundred commits a second; `whole` is
from before the statement, with the time that the source takes to commit. The last figure is how
long a client of a destination waits when its server is killed, with a session of six seconds.
"""

import threading
import time
from statistics import quantiles
from typing import Any

from benchmarks._binlog_logs import say
from benchmarks._report import print_figures, print_table
from benchmarks._scale import scaled
from benchmarks._server_failover import failover
from benchmarks._server_run import (
    ROWS,
    arrow,
    arrow_raw,
    capture_alone,
    end_of,
    java,
    prepare,
    python,
    scratch,
    serving,
)
from benchmarks._services import fetch_services
from penstock.testing import DatabaseServer
from tests.services import SERVICES

COMMITS, PER_SECOND = scaled(1500, 50), 100
CLIENTS = {"java_client": java, "python_client": python, "flight": arrow, "flight_raw": arrow_raw}


def throughput(source: DatabaseServer, start: str, end: str, kind: Any) -> dict[str, float]:
    began = time.perf_counter()
    with scratch() as folder, serving(source, start, folder) as server, kind(server, 1001) as client:
        before = server.cpu_s
        done = client("consume", ROWS, end)
        return {
            "rows_per_s": done["rows"] / done["seconds"],
            "from_start_rows_per_s": done["rows"] / (time.perf_counter() - began),
            "cpu_s": server.cpu_s - before,
            "whole_cpu_s": server.cpu_s,
            "peak_mib": server.peak_mib,
        }


def latency(source: DatabaseServer, kind: Any) -> tuple[float, ...]:
    """Milliseconds, p50 and p99: since the source said that it is committed, and since it was asked to."""
    asked, done = list[int](), list[float]()

    def write() -> None:
        with source.connect(autocommit=True) as connection, connection.cursor() as cursor:
            begun = time.monotonic()
            for number in range(COMMITS):
                time.sleep(max(0.0, begun + number / PER_SECOND - time.monotonic()))
                asked.append(round(time.time() * 1e6))
                cursor.execute(f"REPLACE INTO shop.tick VALUES ({number}, {asked[-1]})")
                done.append(time.time() * 1e6)

    with scratch() as folder, serving(source, None, folder) as server, kind(server, 1001) as client:
        writer = threading.Thread(target=write)
        threading.Timer(2, writer.start).start()
        whole = client("latency", COMMITS, "")["micros"]
        writer.join()
    after = [max(0.0, micros + first - last) for micros, first, last in zip(whole, asked, done, strict=True)]
    percentiles = [quantiles(latencies, n=100) for latencies in (after, whole)]
    return tuple(latencies[at] / 1000 for latencies in percentiles for at in (49, 98))


def main() -> None:
    table, figures = list[list[str]](), dict[str, float]()
    fetch_services("mariadb", "canal_java", "zookeeper")
    with scratch() as folder:
        source: Any = SERVICES["mariadb"].server(folder / "source", options={"binlog_row_metadata": "FULL"}).start()  # type: ignore[attr-defined]
        try:
            say(f"writing {ROWS:,} row changes")
            start = prepare(source)
            end = end_of(source)
            alone = ROWS / capture_alone(source, start, end)["seconds"]
            table.append(["capture", f"{alone:,.0f}", *[""] * 8])
            figures["capture_rows_per_s"] = round(alone)
            for name, kind in CLIENTS.items():
                say(f"{name}: {ROWS:,} row changes")
                measured = throughput(source, start, end, kind)
                figures[f"{name}_rows_per_s"] = round(measured["rows_per_s"])
                figures[f"{name}_from_start_rows_per_s"] = round(measured["from_start_rows_per_s"])
                speeds = [f"{measured[key]:,.0f}" for key in ("rows_per_s", "from_start_rows_per_s")]
                line = [name, *speeds, f"{measured['cpu_s']:.2f}", f"{measured['whole_cpu_s']:.2f}"]
                p50, p99, *whole = latency(source, kind)
                table.append([*line, f"{measured['peak_mib']:.0f}", *(f"{value:.2f}" for value in (p50, p99, *whole))])
                before = "" if kind is python else f"{name}_"
                figures[f"{before}latency_p50_ms"], figures[f"{before}latency_p99_ms"] = round(p50, 2), round(p99, 2)
                if kind is java:
                    figures["server_cpu_s_per_million"] = round(measured["cpu_s"] * 1e6 / ROWS, 2)
                figures["server_peak_mib"] = max(round(measured["peak_mib"]), figures.get("server_peak_mib", 0))
            say("a server is killed")
            figures["failover_kill_s"] = round(failover(source, folder / "servers"), 2)
        finally:
            source.kill()
    heads = [
        "client",
        "changes/s",
        "from start",
        "CPU s",
        "with start",
        "peak MiB",
        "p50 ms",
        "p99 ms",
        "p50 whole",
        "p99 whole",
    ]
    print_table(f"{ROWS:,} row changes from MariaDB to clients", heads, table)
    print_figures("server", figures)


if __name__ == "__main__":
    main()
