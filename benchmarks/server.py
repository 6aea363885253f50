"""The server between a real MariaDB and its clients: a million row changes, and single rows as they are committed.

Half of the changes are inserts, half updates, of ten columns of mixed types in transactions of a thousand rows. For
each client a new server begins at the same place of the log. CPU and peak are those of the server's process. Rows per
second count from the client's first batch on; by then the server has filled its store, which holds a part of it.

Latency is from before a row is written to when its client has it, at a hundred commits a second.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

import yaml

from benchmarks._binlog_logs import say
from benchmarks._report import print_figures, print_table
from penstock.testing import DatabaseServer, free_port, poll_until
from tests.services import SERVICES
from tests.services.canal_client import JAVA_CLIENT, Driver

ROWS = 1_000_000
COMMITS, PER_SECOND = 1500, 100
SIZE = 4096  # of a batch, in KiB
_TABLE = (
    "CREATE TABLE shop.t (id INT PRIMARY KEY, name VARCHAR(60), price DECIMAL(10,2), qty INT UNSIGNED, weight DOUBLE,"
    " made DATETIME(3), stamp TIMESTAMP, kind ENUM('a','b','c'), note TEXT, big BIGINT)"
)
_INSERT = (
    "INSERT INTO shop.t SELECT seq, CONCAT('product number ', seq), seq / 7, seq * 3, seq / 3,"
    " '2024-01-01 00:00:00.123' + INTERVAL seq SECOND, FROM_UNIXTIME(1700000000 + seq), 1 + seq % 3,"
    " REPEAT('lorem ', 1 + seq % 5), seq * 1000003 FROM seq_{}_to_{}"
)
_TICKS = 100


@dataclass
class Running:
    """A server's process."""

    pid: int
    canal: int

    @property
    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def peak_mib(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@contextmanager
def scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def prepare(source: DatabaseServer) -> str:
    """Where the changes begin."""
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")
        cursor.execute("USE shop")
        cursor.execute(_TABLE)
        cursor.execute("CREATE TABLE shop.tick (id INT PRIMARY KEY, at BIGINT)")
        cursor.execute("FLUSH LOGS")
        cursor.execute("SHOW MASTER STATUS")
        row: Any = cursor.fetchone()
        half = ROWS // 2
        for first in range(1, half, 1000):
            cursor.execute(_INSERT.format(first, first + 999))
            connection.commit()
        for first in range(1, half, 1000):
            cursor.execute(
                f"UPDATE shop.t SET price = price + 1, qty = qty + 1 WHERE id BETWEEN {first} AND {first + 999}"
            )
            connection.commit()
        return f"{row[0]}:{row[1]}"


@contextmanager
def serving(source: DatabaseServer, start: str | None, folder: Path) -> Iterator[Running]:
    port = free_port()
    about = {"host": source.host, "port": source.port, "user": source.user, "password": source.password}
    instance = {"destination": "shop", "source": about} | ({"start": start} if start else {})
    settings = {"flight": {"port": 0}, "canal": {"port": port}, "admin": {"port": None}, "instances": [instance]}
    path, log = folder / "server.yml", folder / "server.log"
    path.write_text(yaml.safe_dump(settings))
    with log.open("wb") as out:
        command = [sys.executable, "-c", "from penstock.cli import main; main()", "serve", str(path)]
        process = subprocess.Popen(command, stdout=out, stderr=out)  # noqa: S603 - ours
    try:
        if not poll_until(lambda: b"serving" in log.read_bytes() or process.poll() is not None, 60):
            raise RuntimeError(log.read_text())
        yield Running(process.pid, port)
    finally:
        process.terminate()
        process.wait()


@contextmanager
def java(server: Running, client: int) -> Iterator[Any]:  # noqa: ARG001 - it always is number 1001
    with Driver(JAVA_CLIENT.command()) as driver:
        driver.ask("single", "127.0.0.1", server.canal, "shop", "-", "-")
        driver.ask("connect")
        driver.ask("subscribe", "shop\\..*")
        yield lambda what, rows: driver.ask(what, rows, *([SIZE] if what == "consume" else []))


@contextmanager
def python(server: Running, client: int) -> Iterator[Any]:
    command = [sys.executable, "-m", "benchmarks._server_client"]
    with Driver(command) as driver:

        def run(what: str, rows: int) -> Any:
            about = {"port": server.canal, "destination": "shop", "client": client, "filter": "shop\\..*"}
            driver.ask(json.dumps(about | {"what": what, "rows": rows, "size": SIZE}))
            return driver.ask("")

        yield run


def throughput(source: DatabaseServer, start: str, kind: Any) -> dict[str, float]:
    with scratch() as folder, serving(source, start, folder) as server, kind(server, 1001) as client:
        before = server.cpu_s
        done = client("consume", ROWS)
        return {
            "rows_per_s": done["rows"] / done["seconds"],
            "cpu_s": server.cpu_s - before,
            "whole_cpu_s": server.cpu_s,
            "peak_mib": server.peak_mib,
        }


def latency(source: DatabaseServer, kind: Any) -> tuple[float, float]:
    """Milliseconds, p50 and p99."""

    def write() -> None:
        with source.connect(autocommit=True) as connection, connection.cursor() as cursor:
            begun = time.monotonic()
            for number in range(COMMITS):
                time.sleep(max(0.0, begun + number / PER_SECOND - time.monotonic()))
                cursor.execute(f"REPLACE INTO shop.tick VALUES ({number}, {time.time() * 1e6:.0f})")

    with scratch() as folder, serving(source, None, folder) as server, kind(server, 1001) as client:
        writer = threading.Thread(target=write)
        threading.Timer(2, writer.start).start()
        micros = sorted(client("latency", COMMITS)["micros"])
        writer.join()
    several = quantiles(micros, n=100)
    return several[49] / 1000, several[98] / 1000


def main() -> None:
    table, figures = list[list[str]](), dict[str, float]()
    with scratch() as folder:
        source: Any = SERVICES["mariadb"].server(folder / "source", options={"binlog_row_metadata": "FULL"}).start()  # type: ignore[attr-defined]
        try:
            say(f"writing {ROWS:,} row changes")
            start = prepare(source)
            for name, kind in (("java_client", java), ("python_client", python)):
                say(f"{name}: {ROWS:,} row changes")
                found = throughput(source, start, kind)
                p50, p99 = latency(source, kind)
                figures[f"{name}_rows_per_s"] = round(found["rows_per_s"])
                table.append(
                    [name, f"{found['rows_per_s']:,.0f}", f"{found['cpu_s']:.2f}", f"{found['whole_cpu_s']:.2f}",
                     f"{found['peak_mib']:.0f}", f"{p50:.2f}", f"{p99:.2f}"]
                )  # fmt: skip
                if kind is java:
                    figures["server_cpu_s_per_million"] = round(found["cpu_s"] * 1e6 / ROWS, 2)
                    figures["server_peak_mib"] = round(found["peak_mib"])
                else:
                    figures["latency_p50_ms"], figures["latency_p99_ms"] = round(p50, 2), round(p99, 2)
        finally:
            source.kill()
    heads = ["client", "changes/s", "server CPU s", "with start", "peak MiB", "p50 ms", "p99 ms"]
    print_table(f"{ROWS:,} row changes from MariaDB to clients", heads, table)
    print_figures("server", figures)


if __name__ == "__main__":
    main()
