"""A log asked for by GTIDs: what comes is what a file and an offset give, from each transaction on."""

from collections.abc import Callable

import pytest

from penstock.binlog.events.gtid import render_gtids
from penstock.model import GtidSet, Position
from penstock.source import BinlogStream
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute, source_of

SOURCES = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


def gtids_between(server: DatabaseServer, start: Position, end: Position, *, by_gtids: bool) -> list[str]:
    """Of the transactions, in order."""
    gtids = list[str]()
    with BinlogStream(source_of(server), start, by_gtids=by_gtids) as stream:
        for block in stream:
            if block is not None:
                texts = render_gtids(block.gtids[block.boundaries], block.tags).to_pylist()
                gtids += [text for text in texts if text is not None]
            if (block.end if block is not None else stream.position) >= end:
                return gtids
    raise AssertionError


def boundaries_between(server: DatabaseServer, start: Position, end: Position) -> list[Position]:
    positions = [start]
    with BinlogStream(source_of(server), start) as stream:
        for block in stream:
            if block is not None:
                positions += [block.boundary_after(int(i)) for i in block.boundaries]
                if block.end >= end:
                    return positions
    raise AssertionError


def test_from_each_transaction_on(server: DatabaseServer, database: Callable[[DatabaseServer], str]) -> None:
    name = database(server)
    start = end_of(server)
    assert start.gtids is not None
    execute(server, f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    for number in range(5):
        execute(server, f"INSERT INTO {name}.t VALUES ({number})")
        if number == 2:
            execute(server, "FLUSH BINARY LOGS")
    end = end_of(server)
    positions = boundaries_between(server, start, end)
    whole = gtids_between(server, start, end, by_gtids=False)
    assert len(whole) == 6
    assert positions[-1].gtids == end.gtids
    seen = set[str]()
    for position in positions:
        assert position.gtids is not None
        if position.gtids.text in seen:
            continue  # a rotation ends no transaction
        seen.add(position.gtids.text)
        left = gtids_between(server, position, end, by_gtids=True) if position < end else []
        assert left == whole[len(whole) - len(left) :]
        assert len(left) == sum(not position.gtids.includes(GtidSet.parse(gtid)) for gtid in whole)
    assert len(seen) == 7


@pytest.mark.mysql9
def test_sets_with_tags(private_server: Callable[..., DatabaseServer]) -> None:
    """On a server of its own: tags stay in its set for ever."""
    mysql9, name = private_server("mysql9"), "shop"
    execute(mysql9, f"CREATE DATABASE {name}")
    start = end_of(mysql9)
    execute(
        mysql9,
        f"CREATE TABLE {name}.t (id INT PRIMARY KEY)",
        "SET gtid_next = 'AUTOMATIC:blue'",
        f"INSERT INTO {name}.t VALUES (1)",
        f"INSERT INTO {name}.t VALUES (2)",
        "SET gtid_next = 'AUTOMATIC'",
        f"INSERT INTO {name}.t VALUES (3)",
    )
    end = end_of(mysql9)
    assert end.gtids is not None
    assert any(":blue" in source for source in end.gtids.ranges)
    positions = boundaries_between(mysql9, start, end)
    whole = gtids_between(mysql9, start, end, by_gtids=False)
    assert [gtids_between(mysql9, position, end, by_gtids=True) for position in positions[:-1]] == [
        whole[number:] for number in range(len(whole))
    ]
    assert positions[-1].gtids == end.gtids
