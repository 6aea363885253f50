"""The log of a real server through a filter, and through the filter's twin event by event."""

import re
from collections.abc import Callable, Iterator

import pytest

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry, EventType, event_name
from penstock.binlog.events.query import parse_query_at
from penstock.binlog.events.table_map import table_name
from penstock.client import FlightClient
from penstock.config import ColumnSettings, FilterSettings, InstanceSettings, ServerSettings
from penstock.errors import ConfigurationError
from penstock.filter import BlockFilter
from penstock.model import Position, TableName
from penstock.server import Server
from penstock.source import BinlogStream
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute, source_of
from tests.twins import filter as twin

_ROWS = {"WRITE": "insert", "UPDATE": "update", "DELETE": "delete"}
_STATEMENT = re.compile(r"(?:CREATE|ALTER|DROP|RENAME|TRUNCATE) TABLE (.*)", re.DOTALL)


@pytest.fixture(params=("mariadb", "mariadb11", "mysql80", "mysql9"))
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


def blocks_between(server: DatabaseServer, start: Position, end: Position) -> Iterator[Block]:
    with BinlogStream(source_of(server), start) as stream:
        for block in stream:
            if block is not None:
                yield block.between(start, end)
            if (block.end if block is not None else stream.position) >= end:
                return


def events_of(block: Block, database: str, number: int) -> list[twin.Event]:
    """`number` counts events: inside of a compressed transaction positions are not apart."""
    events = list[twin.Event]()
    for i in range(len(block)):
        role, tables = _role(block, i, database)
        transaction = int(block.column("transaction")[i])
        events.append(twin.Event(number + i, role, transaction, tables, bool(block.column("boundary")[i])))
    return events


def _role(block: Block, i: int, database: str) -> tuple[str, tuple[str, ...]]:
    entry, kind = block.column("entry")[i], int(block.column("kind")[i])
    if entry == Entry.ROWS:
        name = table_name(block.tables[int(block.column("table_id")[i])])
        return _ROWS[event_name(kind).partition("_")[0]], (str(name),)
    if kind == EventType.TABLE_MAP:
        raw = block.event_array[i].as_py()
        return "map", (str(table_name(raw[19:])),)
    if kind in (EventType.ROWS_QUERY, EventType.MARIADB_ANNOTATE_ROWS):
        return "note", ()
    if kind == EventType.QUERY and entry in (Entry.DDL, Entry.OTHER):
        query = parse_query_at(block, i)
        statement = _STATEMENT.match(query.text)
        if statement is None:
            return ("frame" if query.text.startswith(("SAVEPOINT", "ROLLBACK")) else "ddl"), ()
        names = re.findall(r"\b(?:a|b|big|_a_gho|_a_del)\b", statement[1].partition("(")[0])
        return "ddl", tuple(f"{database}.{name}" for name in names)
    return ("mark" if entry in (Entry.BEGIN, Entry.END) else "frame"), ()


def write(server: DatabaseServer, name: str) -> None:
    is_mysql, has_payloads = "MariaDB" not in server.version, server.version.startswith("9")
    execute(
        server,
        f"USE {name}",
        *(["SET binlog_rows_query_log_events = ON"] if is_mysql else []),
        *[f"CREATE TABLE {table} (id INT PRIMARY KEY, t VARCHAR(2000))" for table in ("a", "b", "big", "_a_gho")],
        *["BEGIN", "INSERT INTO a VALUES (1, 'x')", "SAVEPOINT s", "INSERT INTO b VALUES (1, 'y')", "COMMIT"],
        "INSERT INTO b VALUES (2, 'y')",
        "UPDATE a, b SET a.t = 'z', b.t = 'z' WHERE a.id = b.id",
        *["BEGIN", "INSERT INTO b VALUES (3, 'y')", "DELETE FROM b WHERE id = 3", "COMMIT"],
        "ALTER TABLE b ADD COLUMN c INT",
        "INSERT INTO big SELECT s.n + 10 * t.n + 100 * u.n, REPEAT('x', 2000) FROM"
        + ", ".join(f"({' UNION '.join(f'SELECT {n} n' for n in range(10))}) {alias}" for alias in "stu"),
        *["BEGIN", "DELETE FROM big", "INSERT INTO a VALUES (2, 'x')", "COMMIT"],
        "INSERT INTO _a_gho SELECT * FROM a",
        *(["SET binlog_transaction_compression = ON"] if has_payloads else []),
        *[
            "BEGIN",
            "INSERT INTO b VALUES (5, 'y', 1)",
            "INSERT INTO a VALUES (5, 'y')",
            "UPDATE a SET t = 'q'",
            "COMMIT",
        ],
        *["BEGIN", "INSERT INTO b VALUES (6, 'y', 1)", "COMMIT"],
        "RENAME TABLE a TO _a_del, _a_gho TO a",
        "DROP TABLE _a_del",
        "INSERT INTO a VALUES (9, 'new')",
        "TRUNCATE TABLE b",
        "FLUSH BINARY LOGS",
        "INSERT INTO b VALUES (7, 'last', 1)",
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"allow": r".*\.a"},
        {"deny": r".*\.b,.*\.big"},
        {"deny": r".*\._a_gho"},
        {"allow": r".*\.b", "kinds": ["insert", "delete"]},
        {"allow": r".*\.big", "kinds": ["delete", "query"]},
        {"kinds": ["ddl"]},
        {"allow": "nobody.x"},
        {},
    ],
)
def test_what_stays_is_what_the_twin_keeps(
    server: DatabaseServer, database: Callable[[DatabaseServer], str], settings: dict[str, object]
) -> None:
    name, start = database(server), end_of(server)
    write(server, name)
    end = end_of(server)
    chosen = FilterSettings.model_validate(settings)
    ours = BlockFilter(chosen)

    def passes(table: str) -> bool:
        is_allowed = not chosen.allow or any(re.fullmatch(rule, table) for rule in chosen.allow[0].split(","))
        return is_allowed and not any(re.fullmatch(rule, table) for rule in chosen.deny[0].split(","))

    plain, written, count = twin.Filter(passes, {*chosen.kinds}), list[bytes](), 0
    for block in blocks_between(server, start, end):
        if not len(block):
            continue
        written += block.event_array.to_pylist()
        expected = plain.apply(events_of(block, name, count))
        filtered = ours.apply(block)
        assert filtered.event_array.to_pylist() == [written[number] for number in expected.positions]
        if filtered.boundaries.size:
            last = int(filtered.boundaries[-1])
            assert filtered.boundary_after(last).gtids == block.boundary_after(int(block.boundaries[-1])).gtids
            assert filtered.end_of_event(last) == block.end_of_event(int(block.boundaries[-1]))
        count += len(block)
    assert count > 50


def test_columns_that_are_left_out_are_not_described(
    mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]
) -> None:
    name = database(mariadb)
    execute(mariadb, f"CREATE TABLE {name}.a (id INT PRIMARY KEY, name TEXT, secret TEXT)")
    execute(mariadb, f"CREATE TABLE {name}.b (id INT PRIMARY KEY, name TEXT)")
    chosen = FilterSettings(
        columns=(ColumnSettings(table=r".*\.a", drop=("secret",)), ColumnSettings(table=r".*\.b", keep=("name",)))
    )
    instance = InstanceSettings(source=source_of(mariadb), filter=chosen)
    server = Server(ServerSettings.with_flight_only(instance))
    server.start()
    client = FlightClient(server.address)
    try:
        (fields,) = client.describe_tables([TableName(name, "a")])
        assert fields.names == ["id", "name"]
        with pytest.raises(ConfigurationError, match=rf"leaves out id of the key of {name}\.b"):
            client.describe_tables([TableName(name, "b")])
    finally:
        client.close()
        server.stop()
