"""Several `penstock sync` of one pipeline: one runs, and whatever happens to it, the index equals the tables."""

import json
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from penstock.config import InstanceSettings, ServerSettings
from penstock.search.http import HttpIndex
from penstock.server import Server
from penstock.testing import free_port
from tests.services.zookeeper import ZooKeeper
from tests.support.campaign import short_and_long
from tests.support.capture import execute, poll, source_of
from tests.support.scenario.proxy import Network
from tests.support.sync_process import PENSTOCK, SyncProcess

SECONDS = 120.0
SPEC = """
index: {index}
root:
  table: d.product
  fields: [name]
  joins:
    maker: {{table: d.maker, on: {{maker_id: id}}, fields: [name]}}
"""
TABLES = (
    "CREATE DATABASE d DEFAULT CHARACTER SET utf8mb4",
    "CREATE TABLE d.maker (id INT PRIMARY KEY, name VARCHAR(40))",
    "CREATE TABLE d.product (id INT PRIMARY KEY, name VARCHAR(40), maker_id INT, KEY (maker_id))",
    "INSERT INTO d.maker SELECT seq, CONCAT('maker ', seq) FROM d.seq_1_to_5",
    "INSERT INTO d.product SELECT seq, CONCAT('product ', seq), 1 + seq % 6 FROM d.seq_1_to_300",
)


class Writer:
    """Changes rows all the time, in a thread."""

    def __init__(self, database: Any) -> None:
        self._database, self._pick = database, random.Random(5)
        self.changes = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with self._database.connect(autocommit=True) as connection, connection.cursor() as cursor:
            while not self._stopping.wait(0.02):
                for statement in self._choose():
                    cursor.execute(statement)
                self.changes += 1

    def _choose(self) -> list[str]:
        key, maker, number = self._pick.randrange(400), self._pick.randrange(1, 7), self.changes
        match self._pick.randrange(4):
            case 0:
                return [f"REPLACE INTO d.product VALUES ({key}, 'new {number}', {maker})"]
            case 1:
                return [f"UPDATE d.product SET name = 'changed {number}' WHERE id = {key}"]
            case 2:
                return [f"DELETE FROM d.product WHERE id = {key}"]
            case _:
                return [f"UPDATE d.maker SET name = 'maker {number}' WHERE id = {maker}"]

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


class Pipeline:
    """A database, its capture, an index on a search server, and the processes of the pipeline between them."""

    def __init__(self, database: Any, flight: str, search_url: str, zookeeper: ZooKeeper, folder: Path) -> None:
        self.database, self._folder, self._zookeeper = database, folder, zookeeper
        self.name = folder.name.lower()
        self.checkpoint = folder / self.name
        (folder / "spec.yml").write_text(SPEC.format(index=self.name))
        self._command = [PENSTOCK, "sync", folder / "spec.yml", "--port", str(database.port), "--server", flight]
        self._command += ["--index", search_url, "--checkpoint", self.checkpoint, "--zookeeper-session", "3"]
        self.index = HttpIndex.open(search_url, self.name)
        self.processes: list[SyncProcess] = []

    def start(self, *options: str, hosts: str | None = None) -> SyncProcess:
        environment = {**os.environ, "PENSTOCK_PASSWORD": self.database.password}
        command = [*self._command, "--zookeeper", hosts or self._zookeeper.hosts, *options]
        self.processes.append(SyncProcess(command, environment))
        return self.processes[-1]

    def address(self, process: SyncProcess) -> str:
        return f"{os.uname().nodename}:{process.process.pid}"

    def wait(self, process: SyncProcess, text: str, since: int = 0) -> int:
        """Wait until a process says something, after so many lines; return how many it has said by then."""
        said = poll(lambda: any(text in line for line in process.lines[since:]), SECONDS)
        assert said, f"never said {text!r}:\n{self.report()}"
        return len(process.lines)

    def wait_standby(self, process: SyncProcess, runner: SyncProcess, since: int = 0) -> None:
        self.wait(process, f"standing by: {self.address(runner)} runs the pipeline '{self.name}'", since)

    def report(self) -> str:
        return "\n\n".join("".join(process.lines) for process in self.processes)

    def differences(self) -> dict[str, Any]:
        self.index.refresh()
        table = self.index.documents()
        texts = map(json.loads, table.column("document").to_pylist())
        actual = dict(zip(table.column("id").to_pylist(), texts, strict=True))
        with self.database.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT p.id, p.name, m.name FROM d.product p LEFT JOIN d.maker m ON m.id = p.maker_id")
            rows = cursor.fetchall()
        expected = {str(key): {"name": name, "maker": maker and {"name": maker}} for key, name, maker in rows}
        keys = [key for key in expected.keys() | actual.keys() if expected.get(key) != actual.get(key)]
        return {key: (expected.get(key), actual.get(key)) for key in keys}

    def check_equal(self) -> None:
        assert poll(lambda: not self.differences(), SECONDS), f"{self.differences()}\n{self.report()}"

    def check_followed(self) -> None:
        """Check that a change that is made now gets to the index."""
        name = f"marked {len(self.processes)} {random.random()}"
        execute(self.database, f"REPLACE INTO d.product VALUES (1000, '{name}', 1)")
        reached = poll(lambda: (self.index.get("1000") or {}).get("name") == name, SECONDS)
        assert reached, self.report()


@pytest.fixture
def pipeline(
    private_server: Callable[..., Any], opensearch: Any, zookeeper: ZooKeeper, tmp_path: Path
) -> Iterator[Pipeline]:
    database = private_server("mariadb")
    execute(database, *TABLES)
    with ExitStack() as stack:
        server = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(database))))
        stack.callback(server.stop)
        server.start()
        made = Pipeline(database, server.address, opensearch.url, zookeeper, tmp_path)
        stack.callback(made.index.close)
        stack.callback(lambda: [process.kill() for process in made.processes])
        yield made


@pytest.mark.mariadb
@pytest.mark.timeout(500)
@pytest.mark.parametrize("rounds", short_and_long(1, 4))
def test_whoever_is_killed_or_frozen_another_takes_over(pipeline: Pipeline, zookeeper: ZooKeeper, rounds: int) -> None:
    with Network(free_port(), seed=1) as network:  # ZooKeeper is away at first
        runner = pipeline.start(hosts=f"127.0.0.1:{network.port}")
        pipeline.wait(runner, "there is no session with ZooKeeper at 127.0.0.1")
        network.move_to(zookeeper.port)
        pipeline.wait(runner, f"running the pipeline '{pipeline.name}' as {pipeline.address(runner)}, term 1")
        standby = pipeline.start()
        pipeline.wait(runner, "following changes")
        pipeline.wait_standby(standby, runner)
        writer = Writer(pipeline.database)
        try:
            for _ in range(rounds):
                runner, standby = kill_and_freeze(pipeline, runner, standby)
        finally:
            writer.stop()
        pipeline.check_equal()
        mapping = pipeline.index._requests.request_json("GET", "/_mapping")
        (state,) = mapping.values()
        terms = 1 + 2 * rounds
        assert state["mappings"]["_meta"]["penstock"]["terms"] == {pipeline.name: terms}
        for number in (terms - 1, terms):  # the frozen one and the next have not met in one checkpoint
            assert any((pipeline.checkpoint / f"term-{number}" / "commits").glob("[0-9]*"))
        for process in (standby, runner):
            output = process.stop(signal.SIGINT)
            assert process.process.returncode == 0, output


def kill_and_freeze(pipeline: Pipeline, runner: SyncProcess, standby: SyncProcess) -> tuple[SyncProcess, SyncProcess]:
    """Kill the process that runs, then freeze the one that took over; return who runs then, and who stands by."""
    pipeline.check_followed()
    said = len(standby.lines)
    runner.kill()
    spare = pipeline.start()
    pipeline.wait(standby, "running the pipeline", said)
    pipeline.wait(standby, "following changes", said)
    pipeline.check_followed()
    pipeline.wait_standby(spare, standby)
    frozen, runner, said = standby, spare, len(standby.lines)
    # So many documents are written by Spark's workers, which are not frozen.
    execute(
        pipeline.database,
        "REPLACE INTO d.product SELECT 2000 + seq, CONCAT('many ', UUID_SHORT()), 1 + seq % 6 FROM d.seq_1_to_6000",
    )
    frozen.freeze()
    pipeline.wait(runner, "following changes")
    pipeline.check_followed()
    assert frozen.children
    frozen.thaw()
    pipeline.wait_standby(frozen, runner, said)
    assert not frozen.children, "its Spark has ended"
    pipeline.check_followed()
    return runner, frozen


@pytest.mark.campaign
@pytest.mark.mariadb
@pytest.mark.timeout(500)
def test_a_driver_that_is_cut_off_from_zookeeper_stops_before_another_begins(
    pipeline: Pipeline, zookeeper: ZooKeeper
) -> None:
    with Network(zookeeper.port, seed=1) as network:
        runner = pipeline.start(hosts=f"127.0.0.1:{network.port}")
        pipeline.wait(runner, "following changes")
        standby = pipeline.start()
        pipeline.wait_standby(standby, runner)
        writer = Writer(pipeline.database)
        try:
            said = len(runner.lines)
            network.move_to(free_port())
            pipeline.wait(runner, "there is no session with ZooKeeper", said)
            pipeline.wait(standby, "following changes")
            assert not runner.children
            pipeline.check_followed()
            network.move_to(zookeeper.port)
            pipeline.wait_standby(runner, standby, said)
        finally:
            writer.stop()
        pipeline.check_equal()
        said = len(runner.lines)
        output = standby.stop(signal.SIGINT)
        assert standby.process.returncode == 0, output
        pipeline.wait(runner, "following changes", said)
        pipeline.check_followed()
        pipeline.check_equal()


@pytest.mark.timeout(300)
def test_without_zookeeper_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    (tmp_path / "spec.yml").write_text(SPEC.format(index="product"))
    command = [
        PENSTOCK,
        "sync",
        tmp_path / "spec.yml",
        "--port",
        str(free_port()),
        "--checkpoint",
        tmp_path / "product",
    ]
    command += ["--index", tmp_path / "index", "--output", "json"]
    processes = [SyncProcess(command, dict(os.environ))]
    try:
        assert poll(lambda: processes[0].has_said("waiting for the database"), SECONDS), processes[0].lines
        assert {json.loads(line)["state"] for line in processes[0].lines} == {"running"}
        told = f"product is in use by another `penstock sync`, pid={processes[0].process.pid} "
        for options in ([], ["--zookeeper", f"127.0.0.1:{free_port()}"]):
            processes.append(SyncProcess([*command, *options], dict(os.environ)))
            assert processes[-1].process.wait(SECONDS) == 1
            assert poll(lambda: processes[-1].has_said(told)), processes[-1].lines
        processes[0].kill()
        processes.append(SyncProcess(command, dict(os.environ)))
        assert poll(lambda: processes[-1].has_said("waiting for the database"), SECONDS), processes[-1].lines
        output = processes[-1].stop(signal.SIGINT)
        assert processes[-1].process.returncode == 0, output
    finally:
        for process in processes:
            process.kill()
