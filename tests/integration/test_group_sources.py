"""Two MariaDB servers as one: every transaction once, each server's in its order, all by time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from penstock.binlog.events.layout import Entry
from penstock.binlog.rows.decode import decode_rows
from penstock.errors import PenstockError
from penstock.group.group import Group, GroupBatch
from penstock.instance import Instance, InstanceState
from penstock.store import BatchSize
from penstock.testing import DatabaseServer
from tests.support.capture import execute, instance_of, poll, source_of

CLIENT = 7
SIZE = BatchSize(50)


def ids(batch: GroupBatch) -> Iterator[tuple[str, int]]:
    for name, block in zip(batch.members, batch.blocks, strict=True):
        rows = np.flatnonzero(block.column("entry") == Entry.ROWS)
        for number in block.tables:
            own = rows[block.column("table_id")[rows] == number]
            for decoded in decode_rows(block, own, block.schema_of(number), ["id"]):
                yield from ((name, value) for value in decoded.columns["id"].to_pylist())


@pytest.fixture
def servers(private_server: Callable[..., Any]) -> dict[str, DatabaseServer]:
    servers = {name: private_server("mariadb") for name in ("east", "west")}
    for server in servers.values():
        execute(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    return servers


def members(servers: dict[str, DatabaseServer], **changes: Any) -> dict[str, Instance]:
    return {
        name: instance_of(server, source=source_of(server, heartbeat_s=0.5), destination=f"all.{name}", **changes)
        for name, server in servers.items()
    }


@contextmanager
def running(group: Group) -> Iterator[Group]:
    group.start()
    try:
        yield group
    finally:
        group.stop()


def insert(server: DatabaseServer, numbers: range, second: int) -> None:
    """A transaction per second, which is what it says."""
    pairs = [(f"SET timestamp = {second + number}", f"INSERT INTO d.t VALUES ({number})") for number in numbers]
    execute(server, *(statement for pair in pairs for statement in pair))


def taken(group: Group, count: int) -> list[tuple[str, int]]:
    rows = list[tuple[str, int]]()

    def has_all() -> bool:
        got = group.get(CLIENT, SIZE, 0.5)
        if got is not None:
            rows.extend(ids(got[1]))
            group.ack(CLIENT, got[0])
        return len(rows) >= count

    assert poll(has_all), f"{len(rows)} of {count} came"
    return rows


@pytest.mark.mariadb
def test_two_servers_are_one_log(servers: dict[str, DatabaseServer], tmp_path: Any) -> None:
    """East has the even seconds and west the odd ones; after a restart the client resumes where it was, in both."""
    second = 1_800_000_000
    with running(Group("all", members(servers, data_dir=tmp_path))) as group:
        assert group.state is InstanceState.FOLLOWING
        group.subscribe(CLIENT, "d\\.t")
        insert(servers["west"], range(1, 100, 2), second)
        assert group.get(CLIENT, SIZE) is None
        insert(servers["east"], range(0, 100, 2), second)
        rows = taken(group, 100)
        assert [number for _, number in rows] == list(range(100))
        assert all(name == ("west" if number % 2 else "east") for name, number in rows)
        insert(servers["east"], range(100, 110), second)
        got = group.get(CLIENT, SIZE, 5)
        assert got is not None  # and is not acked
    insert(servers["west"], range(110, 120), second)
    with running(Group("all", members(servers, data_dir=tmp_path))) as group:
        assert [number for _, number in taken(group, 20)] == list(range(100, 120))


@pytest.mark.mariadb
def test_a_silent_server_holds_the_other_for_a_moment_only(servers: dict[str, DatabaseServer]) -> None:
    with running(Group("all", members(servers), hold_s=0.5)) as group:
        group.subscribe(CLIENT)
        execute(servers["east"], "INSERT INTO d.t VALUES (1)")
        assert taken(group, 1) == [("east", 1)]
        servers["west"].kill()
        assert poll(lambda: group.state is InstanceState.RECONNECTING)
        execute(servers["east"], "INSERT INTO d.t VALUES (2)")
        assert taken(group, 1) == [("east", 2)]
        servers["west"].start()
        execute(servers["west"], "INSERT INTO d.t VALUES (3)")
        assert taken(group, 1) == [("west", 3)]


@pytest.mark.mariadb
def test_a_member_that_cannot_start_is_named(servers: dict[str, DatabaseServer]) -> None:
    settings = members(servers)
    wrong = source_of(servers["west"]).model_copy(update={"user": "somebody"})
    settings["west"] = instance_of(servers["west"], source=wrong, destination="all.west")
    with pytest.raises(PenstockError, match=r"member 'west' of group 'all': .*somebody"):
        Group("all", settings).start()
    assert settings["east"].state is InstanceState.STOPPED
