"""A subscription's ack moves its cursor to the last transaction that was delivered, batch by batch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pyarrow.flight as fl
import pytest

import penstock
from penstock.client import ServerConnection
from penstock.config import InstanceSettings, ServerSettings
from penstock.server import Server
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute, poll, source_of

ROWS = 12


@pytest.fixture
def schema(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = database(mariadb)
    execute(mariadb, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v LONGTEXT)", f"CREATE TABLE {name}.other (id INT)")
    return name


@contextmanager
def connected(source: DatabaseServer, **instance: Any) -> Iterator[tuple[ServerConnection, Server]]:
    running = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(source), **instance)))
    running.start()
    try:
        with penstock.connect(f"grpc://{running.address}") as there:
            yield there, running
    finally:
        running.stop()


def write(source: DatabaseServer, running: Server, schema: str) -> None:
    """Each row is a transaction, and a block of its own, since it is captured before the next one is written."""
    store = running.instances["default"].store
    for number in range(ROWS):
        for statement in (f"t VALUES ({number}, REPEAT('x', 100000))", f"other VALUES ({number})"):
            execute(source, f"INSERT INTO {schema}.{statement}")
            end = end_of(source)
            assert poll(lambda end=end: store.latest >= end)


@pytest.mark.parametrize("tables", [["t"], []])
def test_a_reader_that_restarts_after_every_batch_gets_on(
    mariadb: DatabaseServer, schema: str, tables: list[str]
) -> None:
    with connected(mariadb) as (there, running):
        there.subscribe(7, filter=f"{schema}\\..*").close()
        write(mariadb, running, schema)
        ids, cursors = list[int](), list[int]()
        while ROWS - 1 not in ids:
            assert len(cursors) <= 2 * ROWS, ids
            with there.subscribe(7, filter=f"{schema}\\..*", tables=[f"{schema}.{name}" for name in tables]) as changes:
                batch = next(iter(changes))
                changes.ack()
            ids += _ids(batch, schema)
            cursors.append(there.positions()["clients"]["7"]["cursor"]["offset"])
    assert ids == list(range(ROWS))
    assert len(cursors) > 1
    assert all(before < after for before, after in pairwise(cursors))


def test_every_batch_of_events_has_its_number(mariadb: DatabaseServer, schema: str) -> None:
    with connected(mariadb) as (there, running):
        there.subscribe(7, filter=f"{schema}\\..*").close()
        write(mariadb, running, schema)
        with fl.connect(f"grpc://{running.address}") as client:
            stream = client.do_get(fl.Ticket(b'{"client": 7, "form": "raw"}'))
            seen = 0
            while seen < ROWS:
                chunk = stream.read_chunk()
                if chunk.data.num_rows:
                    assert b'"batch"' in chunk.app_metadata.to_pybytes()
                    seen += 1
            stream.cancel()


def test_what_a_reader_sees_nothing_of_is_acked_for_it(mariadb: DatabaseServer, schema: str) -> None:
    with connected(mariadb) as (there, running), there.subscribe(7, tables=[f"{schema}.t"]) as changes:
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'a')")
        batches = iter(changes)
        assert next(batches).column("id").to_pylist() == [1]
        execute(mariadb, f"INSERT INTO {schema}.other VALUES (1)")
        assert poll(lambda: len(there.positions()["clients"]["7"]["outstanding"]) > 1)
        changes.ack()
        store = running.instances["default"].store
        assert poll(lambda: there.positions()["clients"]["7"]["cursor"]["offset"] == store.latest.offset)
        assert there.positions()["clients"]["7"]["outstanding"] == []


def _ids(batch: Any, schema: str) -> list[int]:
    """Of rows of `t`, as columns or as JSON."""
    if "id" in batch.schema.names:
        return batch.column("id").to_pylist()
    rows = batch.to_pylist()
    return [int(row["row"].partition('"id":')[2].partition(",")[0]) for row in rows if row["_table"] == f"{schema}.t"]
