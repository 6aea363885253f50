"""An instance says what it does and why, begins where it is told to, and can be paused."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pymysql
import pytest

from penstock.binlog.events.layout import Entry
from penstock.config import FilterSettings
from penstock.errors import PositionLostError, SchemaError
from penstock.instance import Instance, InstanceState
from penstock.model import GtidSet
from penstock.source import BinlogStream
from penstock.store import BatchSize, Start
from penstock.testing import DatabaseServer
from tests.support.capture import changes_until, end_of, execute, instance_of, poll, source_of

SOURCES = ("mariadb", "mariadb11", "mysql80", "mysql9")


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


@pytest.fixture
def table(server: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = database(server)
    execute(server, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v LONGTEXT)")
    return f"{name}.t"


@contextmanager
def running(server: DatabaseServer, **changes: Any) -> Iterator[Instance]:
    instance = instance_of(server, source=source_of(server, heartbeat_s=0.3), **changes)
    instance.start()
    try:
        yield instance
    finally:
        instance.stop()


def insert(server: DatabaseServer, table: str, *ids: int) -> None:
    for number in ids:
        execute(server, f"INSERT INTO {table} VALUES ({number}, 'v')")


def fill_store(instance: Instance, server: DatabaseServer, table: str) -> None:
    """Write until capture waits: one block may hold all rows of a moment, and an empty store takes any block."""
    numbers = itertools.count()

    def is_blocked_after_a_row() -> bool:
        execute(server, f"INSERT INTO {table} VALUES ({next(numbers)}, REPEAT('x', 10000))")
        return instance.state is InstanceState.BLOCKED

    assert poll(is_blocked_after_a_row, 60), instance.status()


def test_a_full_store_blocks_and_says_for_whom(server: DatabaseServer, table: str) -> None:
    with running(server, store={"memory": 1 << 16}) as instance:
        for client in (1, 2):
            instance.clients.subscribe(client, "", Start.latest())
        fill_store(instance, server, table)
        assert instance.states.current.reason == "the store is full until 1, 2 acks"
        instance.clients.rollback(1)

        def take(client: int) -> bool:
            got = instance.clients.get(client, BatchSize(5), 0.1)
            if got is not None:
                instance.clients.ack(client, got[0])
            return got is not None

        while take(1):
            pass
        assert poll(lambda: instance.states.current.reason == "the store is full until 2 acks")
        assert poll(lambda: not any([take(1), take(2)]) and instance.store.latest >= end_of(server))
        assert poll(lambda: instance.state is InstanceState.FOLLOWING)
        assert instance.counters.blocked_s > 0
        assert instance.states.seconds[InstanceState.BLOCKED] > 0
    assert instance.state is InstanceState.STOPPED
    states = [step.state for step in instance.states.history]
    assert states[1:4] == [InstanceState.STARTING, InstanceState.FOLLOWING, InstanceState.BLOCKED]


def test_a_blocked_one_stops_at_once(server: DatabaseServer, table: str) -> None:
    with running(server, store={"memory": 1 << 16}) as instance:
        instance.clients.subscribe(1, "", Start.latest())
        fill_store(instance, server, table)
        began = time.monotonic()
    assert time.monotonic() - began < 5


def test_paused_it_reads_nothing_and_serves_what_it_has(server: DatabaseServer, table: str) -> None:
    with running(server) as instance:
        start = instance.store.latest
        insert(server, table, 1, 2)
        assert [row["id"] for row in changes_until(instance, table, 2, start)] == [1, 2]
        instance.pause("maintenance of the disks")
        assert poll(lambda: instance.state is InstanceState.PAUSED)
        assert instance.status()["reason"] == "maintenance of the disks"
        before = instance.store.latest
        insert(server, table, 3, 4)
        assert not poll(lambda: instance.store.latest != before, 1)
        assert [row["id"] for row in changes_until(instance, table, 2, start)] == [1, 2]
        instance.resume()
        assert [row["id"] for row in changes_until(instance, table, 2, before)] == [3, 4]
        assert instance.state is InstanceState.FOLLOWING


def test_it_counts_what_goes_through(server: DatabaseServer, table: str) -> None:
    with running(server) as instance:
        start = instance.store.latest
        insert(server, table, *range(10))
        changes_until(instance, table, 10, start)
        assert poll(lambda: instance.counters.signs_of_life > 2)
        status = instance.status()
        counted = status["counters"]
        assert counted["transactions"] >= 10
        assert counted["events"] >= 40
        assert 1000 < counted["bytes"] <= end_of(server).offset - start.offset + 1000
        assert counted["seconds"]["source"] > 0.1 > counted["blocked_s"]
        assert counted["seconds"]["index"] > 0 < counted["seconds"]["store"]
        assert status["state"] == "following"
        assert status["latest"]["file"] == instance.store.latest.file
        assert status["source"] == f"{server.host}:{server.port}"


def begun_at(server: DatabaseServer, table: str, text: str, last: int) -> list[int]:
    """The ids that come, up to the last."""
    with running(server, start=text) as instance:
        start, rows = instance.store.first, list[dict[str, Any]]()

        def has_last() -> bool:
            rows[:] = changes_until(instance, table, len(rows) + 1, start)
            return rows[-1]["id"] == last

        assert poll(has_last)
        return [row["id"] for row in rows]


def test_it_begins_where_it_is_told_to(server: DatabaseServer, table: str) -> None:
    insert(server, table, 1, 2)
    time.sleep(1.1)  # times of the log are in whole seconds on MariaDB
    middle = end_of(server)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    time.sleep(1.1)
    insert(server, table, 3)
    inside = end_of(server)
    insert(server, table, 4)
    gtids = middle.gtids.text if middle.gtids else ""
    for text in (str(middle), gtids, now, f"{inside.file}:{inside.offset - 20}"):
        assert begun_at(server, table, text, 4) == [3, 4], text


@pytest.mark.parametrize("kind", SOURCES)
def test_it_begins_with_the_log(private_server: Callable[..., Any], kind: str) -> None:
    """Of a server of its own: all of that log goes through the store."""
    server: DatabaseServer = private_server(kind)
    execute(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v LONGTEXT)")
    insert(server, "d.t", 1, 2)
    execute(server, "FLUSH BINARY LOGS")
    insert(server, "d.t", 3)
    for text in ("-1h", "earliest"):
        assert begun_at(server, "d.t", text, 3) == [1, 2, 3], text


def test_a_gtid_that_was_never_there(server: DatabaseServer) -> None:
    unknown = "77-1-4711" if "MariaDB" in server.version else "00000000-0000-11f1-8000-000000000000:1-9"
    with pytest.raises(PositionLostError, match=f"never had {unknown}: it has "):
        instance_of(server, start=unknown).start()


def test_inside_of_a_transaction_its_begin_and_its_tables_are_found(server: DatabaseServer, table: str) -> None:
    """Rows without the table map before them could not be read."""
    start = end_of(server)
    values = ", ".join(f"({number}, REPEAT('x', 3000))" for number in range(50))
    execute(server, f"INSERT INTO {table} VALUES {values}")
    rows = list[int]()
    with BinlogStream(source_of(server), start) as stream:
        for block in stream:
            if block is not None:
                rows += block.column("position")[block.column("entry") == Entry.ROWS].tolist()
                if block.boundaries.size:
                    break
    assert len(rows) > 5
    with running(server, start=f"{start.file}:{rows[3]}") as instance:
        assert instance.store.first == start
        assert instance.store.first.gtids == start.gtids
        changes = changes_until(instance, table, 50, instance.store.first)
        assert [row["id"] for row in changes] == list(range(50))


def test_the_gtids_of_a_position_are_found(server: DatabaseServer, table: str) -> None:
    """As for a cursor of canal's, which has none."""
    insert(server, table, *range(5))
    wanted = end_of(server)
    insert(server, table, *range(5, 10))
    with running(server, start=str(wanted)) as instance:
        assert instance.store.first.gtids == wanted.gtids
        assert isinstance(wanted.gtids, GtidSet)


@pytest.mark.mysql80
@pytest.mark.mariadb
@pytest.mark.parametrize("kind", ["mariadb", "mysql80"])
def test_how_long_the_log_is_kept_is_watched(
    private_server: Callable[..., Any], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = private_server(kind, options={"binlog_expire_logs_seconds": 36000})
    execute(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v TEXT)")
    with running(server, retention_warning_h=9.9999) as instance:
        instance.clients.subscribe(1, "", Start.latest())
        watchdog: Any = instance.components.watchdog
        assert watchdog.check_retention() == pytest.approx(10, abs=0.01), "of the file that is written"
        insert(server, "d.t", 1)
        execute(server, "FLUSH BINARY LOGS")
        insert(server, "d.t", 2)
        assert poll(lambda: watchdog.check_retention() < 9.9999), "from the end of a file on its time runs"
        event = "source will soon purge binlog that is still needed"
        assert f"{event} destination={instance.settings.destination} hours=10.0 position=" in caplog.text
        assert instance.status()["retention_hours_left"] < 10


def test_a_filter_is_changed_while_it_runs(
    server: DatabaseServer, table: str, database: Callable[[DatabaseServer], str]
) -> None:
    other = f"{database(server)}.other"
    execute(server, f"CREATE TABLE {other} (id INT PRIMARY KEY)")
    with running(server, filter={"allow": [table.replace(".", "\\.")]}) as instance:
        start = instance.store.latest
        execute(server, f"INSERT INTO {other} VALUES (1)")
        insert(server, table, 1)
        assert [row["id"] for row in changes_until(instance, table, 1, start)] == [1]
        instance.reload_filter(FilterSettings(allow=(other,), deny=(table,)))
        between = instance.store.latest
        insert(server, table, 2)
        execute(server, f"INSERT INTO {other} VALUES (2)")
        assert [row["id"] for row in changes_until(instance, other, 1, start)] == [2], "the first was not wanted then"
        assert instance.settings.filter.deny == (table,)
        names = {
            str(block.schema_of(number).name)
            for block in instance.read(between, instance.store.latest)
            for number in block.tables
        }
        assert names == {other}


@pytest.mark.mysql80
def test_one_bad_table_stops_alone(private_server: Callable[..., Any]) -> None:
    """Its log does not say what it looks like, and neither does a statement that is understood."""
    server: DatabaseServer = private_server("mysql80", options={"binlog_row_metadata": "MINIMAL"})
    execute(
        server,
        "CREATE DATABASE d",
        "CREATE TABLE d.good (id INT PRIMARY KEY, v TEXT)",
        "CREATE TABLE d.bad (id INT PRIMARY KEY)",
        "INSERT INTO d.bad VALUES (0)",
    )
    early = end_of(server)
    execute(server, "INSERT INTO d.bad VALUES (1)", "ALTER TABLE d.bad ADD x INT", "INSERT INTO d.good VALUES (1, 'v')")
    with running(server, start=str(early)) as instance:
        assert [row["id"] for row in changes_until(instance, "d.good", 1, early)] == [1]
        assert poll(lambda: "d.bad" in instance.status()["stopped_tables"])
        why = instance.status()["stopped_tables"]["d.bad"]
        assert "ALTER TABLE d.bad ADD x INT" in why
        with pytest.raises(SchemaError, match=r"ALTER TABLE d\.bad ADD x INT"):
            changes_until(instance, "d.bad", 1, early)
        insert(server, "d.good", 2)
        assert [row["id"] for row in changes_until(instance, "d.good", 2, early)] == [1, 2]
        execute(server, "INSERT INTO d.bad VALUES (3, 3)")
        assert poll(lambda: "d.bad" not in instance.status()["stopped_tables"]), "from here on it is known again"


def test_a_pause_at_any_moment_is_a_pause(server: DatabaseServer, table: str) -> None:
    with running(server) as instance:
        for round_ in range(10):
            instance.pause()
            instance.resume()
            time.sleep(round_ / 500)
            instance.pause(f"round {round_}")
            assert poll(lambda: instance.state is InstanceState.PAUSED, 5), round_
            before = instance.store.latest
            insert(server, table, round_)
            assert not poll(lambda before=before: instance.store.latest != before, 0.15)
            instance.resume()
            assert poll(lambda before=before: instance.store.latest > before)


def test_it_can_be_started_again(server: DatabaseServer, table: str) -> None:
    instance = instance_of(server)
    for round_ in range(3):
        instance.start()
        start = instance.store.latest
        insert(server, table, round_)
        assert [row["id"] for row in changes_until(instance, table, 1, start)] == [round_]
        names = {thread.name for thread in threading.enumerate()}
        assert {"penstock-capture-default", "penstock-position-default"} <= names
        instance.stop()
        assert instance.state is InstanceState.STOPPED


def test_a_change_that_comes_as_a_statement_is_reported(
    server: DatabaseServer, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    with running(server) as instance:
        execute(server, "SET SESSION binlog_format = 'STATEMENT'", f"INSERT INTO {table} VALUES (1, 'unseen')")
        assert poll(lambda: instance.status()["changes_as_statements"]["count"] == 1)
        assert "unseen" in instance.status()["changes_as_statements"]["last"]
        assert "a session has binlog_format other than ROW; compare the target with the source" in caplog.text


@pytest.mark.mariadb
def test_an_alter_in_two_phases_counts_once(private_server: Callable[..., Any]) -> None:
    server: DatabaseServer = private_server("mariadb", options={"binlog_row_metadata": "NO_LOG"})
    execute(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a INT, b INT)")
    execute(server, "SET GLOBAL binlog_alter_two_phase = ON")
    with running(server) as instance:
        start = instance.store.latest
        execute(
            server,
            "INSERT INTO d.t VALUES (1, 10, 20)",
            "ALTER TABLE d.t CHANGE a b INT, CHANGE b a INT",
            "INSERT INTO d.t (id, a, b) VALUES (2, 10, 20)",
            "ALTER TABLE d.t ADD COLUMN c INT",
            "INSERT INTO d.t (id, a, b, c) VALUES (3, 10, 20, 30)",
        )
        with pytest.raises(pymysql.err.MySQLError):
            execute(server, "ALTER TABLE d.t ADD UNIQUE (a)")
        execute(server, "INSERT INTO d.t (id, a, b, c) VALUES (4, 10, 20, 30)")

        def maps() -> list[dict[str, int]]:
            mappings = list[dict[str, int]]()
            for block in instance.read(start, instance.store.latest):
                for number in block.tables:
                    mappings.append({column.name: 0 for column in block.schema_of(number).columns})
            return mappings

        assert poll(lambda: len(maps()) >= 3 and "c" in maps()[-1])
        assert instance.status()["stopped_tables"] == {}
        names = [list(mapping) for mapping in maps()]
        assert names[0] == ["id", "a", "b"]
        assert names[-1] == ["id", "b", "a", "c"]
