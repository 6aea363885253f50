"""`penstock index build` behind an alias, while the database changes: whatever is killed, readers find every document,
never an older one than before, and the sync job that runs takes over."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.config import InstanceSettings, ServerSettings
from penstock.server import Server
from penstock.testing import free_port
from tests.support.alias_reader import AliasReader, search_folder, search_server
from tests.support.capture import execute, poll, source_of
from tests.support.sync_process import PENSTOCK, SyncProcess, find_workers

SPEC = """
index: product
alias: products
root:
  table: d.product
  fields: [name, stock]
  joins:
    maker: {table: d.maker, on: {maker_id: id}, fields: [name]}
    parts: {table: d.part, many: true, on: {id: product_id}, order: id, fields: [label]}
"""
ROWS = 25_000
STEADY = [str(number) for number in range(1, 21)]  # products that always exist
DIGITS = f"({' UNION '.join(f'SELECT {digit} AS n' for digit in range(10))})"


def create_tables(database: Any, rows: int) -> None:
    numbers = (
        "SELECT 1 + a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n AS n"
        f" FROM {DIGITS} a, {DIGITS} b, {DIGITS} c, {DIGITS} d, {DIGITS} e"
    )
    execute(
        database,
        "CREATE DATABASE d DEFAULT CHARACTER SET utf8mb4",
        "CREATE TABLE d.maker (id INT PRIMARY KEY, name VARCHAR(20))",
        "CREATE TABLE d.product (id INT PRIMARY KEY, name VARCHAR(40), stock INT, maker_id INT, KEY (maker_id))",
        "CREATE TABLE d.part (id INT PRIMARY KEY, product_id INT, label VARCHAR(20), KEY (product_id))",
        "INSERT INTO d.maker VALUES (1, 'large'), (2, 'small')",
        "INSERT INTO d.product SELECT n, CONCAT('product ', n), 0, 1 + (n % 500 = 0)"
        f" FROM ({numbers}) t WHERE n <= {rows}",
        "INSERT INTO d.part SELECT id, id, CONCAT('part ', id) FROM d.product",
    )


class SteadyWriter:
    """Changes products all the time: the stock of some only rises, others come and go."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._write, name="steady-writer")
        self.transactions = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _write(self) -> None:
        with self._database.connect() as connection, connection.cursor() as cursor:
            number = 0
            while not self._stopping.wait(0.005):
                number += 1
                key = 100_000 + number % 500
                cursor.execute(f"UPDATE d.product SET stock = stock + 1 WHERE id = {1 + number % 20}")
                cursor.execute(f"REPLACE INTO d.product VALUES ({key}, 'new {number}', 1, 1)")
                cursor.execute(f"DELETE FROM d.part WHERE product_id = {100 + number % 100}")
                cursor.execute(f"DELETE FROM d.product WHERE id = {100_000 + (number + 250) % 500}")
                if number % 50 == 0:
                    cursor.execute(f"UPDATE d.maker SET name = 'maker {number}' WHERE id = 2")
                connection.commit()
                self.transactions += 1


@dataclass
class BuiltIndex:
    """The processes of a test, and where everything is."""

    folder: Path
    database: Any
    port: int
    index: str
    search: Callable[[list[str]], dict[str, dict[str, Any]]] | None = None

    @property
    def checkpoint(self) -> Path:
        return self.folder / "state" / "checkpoint"

    @property
    def build_state(self) -> dict[str, Any]:
        file = self.folder / "state" / "checkpoint.build.begin.json"
        with suppress(OSError, ValueError):
            return json.loads(file.read_text())
        return {}

    def launch(self, *command: str) -> SyncProcess:
        options = ["--port", str(self.database.port), "--user", self.database.user, "--index", self.index]
        options += ["--server", f"127.0.0.1:{self.port}", "--checkpoint", str(self.checkpoint)]
        environment = {**os.environ, "PENSTOCK_PASSWORD": self.database.password}
        return SyncProcess([PENSTOCK, *command, str(self.folder / "product.yml"), *options], environment)

    def verify(self) -> None:
        """Let `penstock index verify` compare the index that sync follows."""
        verify = self.launch("index", "verify")
        try:
            assert poll(lambda: verify.has_ended, 120), verify.lines
            assert verify.process.returncode == 0, verify.lines
        finally:
            verify.stop()


@contextmanager
def running(process: SyncProcess) -> Iterator[SyncProcess]:
    try:
        yield process
    finally:
        process.stop()


def tell(*processes: SyncProcess) -> str:
    """Return the last lines of processes, for messages."""
    return "\n---\n".join("".join(process.lines[-20:]) for process in processes)


def finish(process: SyncProcess, others: SyncProcess) -> None:
    """Wait until a build has ended by itself."""
    assert poll(lambda: process.has_ended or others.has_ended, 180), tell(process, others)
    assert not others.has_ended, tell(process, others)
    assert process.process.returncode == 0, tell(process, others)


def kill_workers(process: SyncProcess) -> None:
    """Kill the Python workers of Spark."""
    for worker in find_workers(process.process.pid):
        with suppress(OSError):
            os.kill(worker, signal.SIGKILL)


def roll_back(built: BuiltIndex, sync: SyncProcess) -> None:
    """Let the alias lead to the index before, which then has all that happened since."""
    back = built.launch("index", "rollback")
    with running(back):
        finish(back, sync)
    assert sync.has_said("alias 'products' leads to 'product' now"), sync.lines
    built.verify()


def wait_for_more(writer: SteadyWriter, reader: AliasReader) -> None:
    """Wait until there are more changes and searches."""
    before = writer.transactions
    assert poll(lambda: writer.transactions > before + 20 and reader.searches > 10)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("source", "product", "rows"),
    [
        pytest.param("mariadb", "folder", 800, marks=pytest.mark.mariadb, id="short"),
        pytest.param("mariadb", "opensearch", ROWS, marks=[pytest.mark.mariadb, pytest.mark.campaign], id="opensearch"),
        pytest.param("mysql80", "elasticsearch", ROWS, marks=[pytest.mark.mysql80, pytest.mark.campaign], id="elastic"),
        pytest.param("mariadb", "folder", ROWS, marks=[pytest.mark.mariadb, pytest.mark.campaign], id="folder"),
    ],
)
def test_an_index_is_built_behind_its_alias_and_rolled_back(
    source: str,
    product: str,
    rows: int,
    private_server: Callable[..., Any],
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    database = private_server(source)
    create_tables(database, rows)
    (tmp_path / "product.yml").write_text(SPEC)
    port = free_port()
    server = None if product == "folder" else private_server(product)
    address = str(tmp_path / "indexes" / "product") if server is None else server.url
    built = BuiltIndex(tmp_path, database, port, address)
    with ExitStack() as opened:
        flight = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(database)), port=port))
        flight.start()
        opened.callback(flight.stop)
        sync = opened.enter_context(running(built.launch("sync")))
        assert poll(lambda: sync.has_said("following changes") or sync.has_ended, 180)
        assert not sync.has_ended, "".join(sync.lines)
        search = (
            search_folder(tmp_path / "indexes" / "products") if server is None else search_server(address, "products")
        )
        writer = SteadyWriter(database)
        writer.start()
        opened.callback(writer.stop)
        reader = opened.enter_context(AliasReader(search, STEADY))

        if rows == ROWS:
            first = built.launch("index", "build")
            with running(first):
                assert poll(lambda: "loaded_until" in built.build_state or first.has_ended, 120), first.lines
                first.kill()
            generation = built.build_state["generations"]["product"]
        second = built.launch("index", "build")
        with running(second):
            if rows == ROWS:
                assert poll(lambda: find_workers(second.process.pid) or second.has_ended, 120), tell(second, sync)
                kill_workers(second)
            else:
                assert poll(lambda: "generations" in built.build_state or second.has_ended, 120), tell(second, sync)
                generation = built.build_state["generations"]["product"]
            finish(second, sync)
        assert second.has_said("equal to the database"), second.lines
        assert sync.has_said(f"following generation {generation}"), sync.lines
        assert sync.has_said(f"alias 'products' leads to 'product-{generation}' now"), sync.lines
        assert not built.build_state, "the build has left nothing"
        wait_for_more(writer, reader)
        built.verify()

        if rows == ROWS:
            roll_back(built, sync)
        assert reader.complaints == []
        assert reader.searches > 50
        writer.stop()
        sync.stop()
