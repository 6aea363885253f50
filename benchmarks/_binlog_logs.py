"""Logs of real servers for `benchmarks/binlog.py`, made once and kept in the cache beside the servers.

Invariant: a log in the cache is whole; a change of what is in them needs another `_EDITION`.
"""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pymysql.cursors import Cursor

from benchmarks._binlog_shapes import MARIADB, SHAPES, Shape
from benchmarks._scale import is_tiny
from penstock.testing import DatabaseServer, MariaDB, OptionValue, build_once, cache_folder
from tests.services import SERVICES
from tests.services.mysql import MySQL
from tests.services.service import ServerService
from tests.support.server_folders import VARIABLE, fill_data_folder

_EDITION = 1
_DATABASE = "bench"
# A crash loses the data, which is thrown away anyway.
_OPTIONS: dict[str, OptionValue] = {
    "sync_binlog": 0,
    "innodb_flush_log_at_trx_commit": 0,
    "innodb_doublewrite": 0,
    "innodb_buffer_pool_size": "512M",
}
_REDO = {MARIADB: "innodb_log_file_size"}


@dataclass(frozen=True, slots=True)
class Log:
    """One log file and what is in it."""

    shape: Shape
    server: str
    version: str
    path: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size


def say(line: str) -> None:
    print(f"  {line}", flush=True)


def logs_of(server: str, shapes: Sequence[Shape] = SHAPES) -> list[Log]:
    """The logs of these shapes that this server wrote, made now if they are not there."""
    logs: list[Log] = []
    for shape in shapes:
        if server in shape.servers:
            size = "-tiny" if is_tiny() else ""
            target = cache_folder() / f"bench-binlog-{_EDITION}-{server}-{shape.name}{size}"
            build_once(target, lambda folder, shape=shape: _make(folder, server, shape), say)
            version = json.loads((target / "about.json").read_text(encoding="utf-8"))["version"]
            logs.append(Log(shape, server, version, target / "binlog.000001"))
    return logs


def tool_of(server: str) -> list[str]:
    """How to run this server's own reader of logs."""
    with tempfile.TemporaryDirectory() as folder:
        private = _service(server).server(Path(folder))
    if isinstance(private, MariaDB):
        return private.installation.tool_command("mariadb-binlog")
    if not isinstance(private, MySQL):
        raise TypeError(f"{server} has no reader of logs")
    return private.tool("mysqlbinlog")


@contextmanager
def written(server: str, shape: Shape, rows: int) -> Iterator[tuple[DatabaseServer, str]]:
    """A running server whose newest log file, named, holds the changes of this many rows and is closed."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder, _started(server, Path(folder)) as running:
        yield running, _write(running, shape, rows)


@contextmanager
def served(log: Log, copies: int = 1) -> Iterator[tuple[DatabaseServer, list[str]]]:
    """A running server that has this log as its first files, so many times; and their names."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        names = [f"binlog.{number:06}" for number in range(1, copies + 1)]
        with _started(log.server, Path(folder), lambda data: _plant(log, names, data)) as running:
            yield running, names


def _plant(log: Log, names: Sequence[str], data: Path) -> None:
    """Replaces all that the server has written."""
    for path in data.glob("binlog.*"):
        path.unlink()
    for name in names:
        shutil.copyfile(log.path, data / name)
    (data / "binlog.index").write_text("".join(f"./{name}\n" for name in names), encoding="utf-8")


def _make(folder: Path, server: str, shape: Shape) -> None:
    say(f"{server}: making a log of {shape.images():,} row images, {shape.label}")
    with written(server, shape, shape.rows) as (running, file):
        shutil.copyfile(running.data / file, folder / "binlog.000001")
        (folder / "about.json").write_text(json.dumps({"version": running.version}), encoding="utf-8")
    say(f"{server}: {(folder / 'binlog.000001').stat().st_size / 1e6:,.0f} MB")


def _service(server: str) -> ServerService:
    service = SERVICES[server]
    service.fetch(cache_folder(), say)
    if not isinstance(service, ServerService):
        raise TypeError(f"{server} is no server")
    return service


@contextmanager
def _started(server: str, folder: Path, prepare: Callable[[Path], None] | None = None) -> Iterator[DatabaseServer]:
    """A server with new data, which `prepare` may change before it starts."""
    options = _OPTIONS | {_REDO.get(server, "innodb_redo_log_capacity"): "512M"}
    running = _service(server).server(folder, options=options)
    if not isinstance(running, DatabaseServer):
        raise TypeError(f"{server} has no binary log")
    _make_data(running, server)
    if prepare is not None:
        prepare(running.data)
    running.start()
    try:
        yield running
    finally:
        running.kill()  # its data goes with it


def _make_data(running: DatabaseServer, server: str) -> None:
    run = os.environ.get(VARIABLE)
    if run is not None:  # inside of a test run, which has such data already
        fill_data_folder(running, server, Path(run))
        return
    (running.folder / "tmp").mkdir(parents=True, exist_ok=True)
    running.data.mkdir()
    running.initialise(running.data)


def _write(server: DatabaseServer, shape: Shape, rows: int) -> str:
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"CREATE DATABASE {_DATABASE}")
        cursor.execute(f"USE {_DATABASE}")
        _number(cursor, rows)
        for statement in shape.setup():
            cursor.execute(statement)
        cursor.execute("SET SESSION sql_log_bin = 1")
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        file = str(cursor.fetchall()[-1][0])
        done, total, next_report = 0, rows + min(shape.updated, rows), time.monotonic() + 5
        for count, statement in shape.statements(rows):
            cursor.execute(statement)
            done += count
            if time.monotonic() > next_report:
                say(f"{server.name}: {done / total:.0%}")
                next_report += 5
        cursor.execute("FLUSH BINARY LOGS")
    return file


def _number(cursor: Cursor, count: int) -> None:
    """A table of the numbers from 1 on."""
    cursor.execute("CREATE TABLE numbers (n INT PRIMARY KEY)")
    cursor.execute("INSERT INTO numbers VALUES (1)")
    have = 1
    while have < count:
        cursor.execute(f"INSERT INTO numbers SELECT n + {have} FROM numbers WHERE n + {have} <= {count}")
        have *= 2
