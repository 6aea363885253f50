"""A source with a log to serve, a server as a process, and its clients as processes."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks._scale import scaled
from penstock.testing import DatabaseServer, free_port, poll_until
from tests.services.canal_client import JAVA_CLIENT, Driver

ROWS = scaled(1_000_000, 4000)
SIZE = 4096  # of a batch, in KiB
TABLE = (
    "CREATE TABLE shop.t (id INT PRIMARY KEY, name VARCHAR(60), price DECIMAL(10,2), qty INT UNSIGNED, weight DOUBLE,"
    " made DATETIME(3), stamp TIMESTAMP, kind ENUM('a','b','c'), note TEXT, big BIGINT)"
)
INSERT = (
    "INSERT INTO shop.t SELECT seq, CONCAT('product number ', seq), seq / 7, seq * 3, seq / 3,"
    " '2024-01-01 00:00:00.123' + INTERVAL seq SECOND, FROM_UNIXTIME(1700000000 + seq), 1 + seq % 3,"
    " REPEAT('lorem ', 1 + seq % 5), seq * 1000003 FROM seq_{}_to_{}"
)
_TICKS = 100
_STOP_S = 30


@dataclass
class Running:
    """A server's process."""

    pid: int
    canal: int
    flight: int

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


def end_of(source: DatabaseServer) -> str:
    """Where its log ends."""
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        row: Any = cursor.fetchone()
        return f"{row[0]}:{row[1]}"


def prepare(source: DatabaseServer) -> str:
    """Where the changes begin."""
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")
        cursor.execute("USE shop")
        cursor.execute(TABLE)
        cursor.execute("CREATE TABLE shop.tick (id INT PRIMARY KEY, at BIGINT)")
        cursor.execute("FLUSH LOGS")
        begin = end_of(source)
        half = ROWS // 2
        for first in range(1, half, 1000):
            cursor.execute(INSERT.format(first, first + 999))
            connection.commit()
        for first in range(1, half, 1000):
            cursor.execute(
                f"UPDATE shop.t SET price = price + 1, qty = qty + 1 WHERE id BETWEEN {first} AND {first + 999}"
            )
            connection.commit()
    return begin


def connection_of(source: DatabaseServer) -> dict[str, Any]:
    """Return how a server reaches its source, as its settings have it."""
    return {"host": source.host, "port": source.port, "user": source.user, "password": source.password}


def serving(source: DatabaseServer, start: str | None, folder: Path) -> AbstractContextManager[Running]:
    """Run a server of a source, from a position on."""
    return serving_instance({"source": connection_of(source)} | ({"start": start} if start else {}), folder)


@contextmanager
def serving_instance(instance: dict[str, Any], folder: Path) -> Iterator[Running]:
    """Run a server with one instance, `shop`, of these settings."""
    port, flight = free_port(), free_port()
    instances = [{"destination": "shop", **instance}]
    settings = {"flight": {"port": flight}, "canal": {"port": port}, "admin": {"port": None}, "instances": instances}
    path, log = folder / "server.yml", folder / "server.log"
    path.write_text(yaml.safe_dump(settings))
    with log.open("wb") as out:
        command = [sys.executable, "-c", "from penstock.cli import main; main()", "serve", str(path)]
        process = subprocess.Popen(command, stdout=out, stderr=out)  # noqa: S603 - ours
    try:
        poll_until(lambda: b"serving" in log.read_bytes() or process.poll() is not None, 60)
        if process.poll() is not None or b"serving" not in log.read_bytes():
            raise RuntimeError(f"the server does not serve: {log.read_text()}")
        yield Running(process.pid, port, flight)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def java(server: Running, client: int) -> Iterator[Any]:  # noqa: ARG001 - it always is number 1001
    with Driver(JAVA_CLIENT.command()) as driver:
        driver.ask("single", "127.0.0.1", server.canal, "shop", "-", "-")
        driver.ask("connect")
        driver.ask("subscribe", "shop\\..*")
        yield lambda task, rows, _: driver.ask(task, rows, *([SIZE] if task == "consume" else []))


@contextmanager
def _driven(module: str, connection: dict[str, Any]) -> Iterator[Any]:
    with Driver([sys.executable, "-m", f"benchmarks.{module}"]) as driver:

        def run(task: str, rows: int, end: str) -> Any:
            driver.ask(json.dumps(connection | {"what": task, "rows": rows, "end": end, "size": SIZE}))
            return driver.ask("")

        yield run


def python(server: Running, client: int) -> Any:
    connection = {"port": server.canal, "destination": "shop", "client": client, "filter": "shop\\..*"}
    return _driven("_server_client", connection)


def arrow(server: Running, client: int) -> Any:  # noqa: ARG001 - it has no number
    return _driven("_server_flight", {"port": server.flight, "form": "decoded"})


def arrow_raw(server: Running, client: int) -> Any:  # noqa: ARG001
    return _driven("_server_flight", {"port": server.flight, "form": "raw"})


def capture_alone(source: DatabaseServer, start: str, end: str) -> dict[str, Any]:
    asked = json.dumps({"instance": {"source": connection_of(source), "start": start}, "end": end})
    command = [sys.executable, "-m", "benchmarks._capture_run"]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)
