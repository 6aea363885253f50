"""Logs without names: the history says what their tables were at each position, and what is not known stops alone."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.binlog.events.block import Block
from penstock.capture.schema_import import import_tables, open_tables
from penstock.capture.schema_tracker import SchemaTracker
from penstock.config import FilterSettings, InstanceSettings
from penstock.errors import SchemaError
from penstock.filter import BlockFilter
from penstock.model import Position, TableName
from penstock.schema.history import SchemaHistory
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute, source_of
from tests.support.table_capture import Row, blocks_between, followed, rows_of, selected, tables_in

_SERVERS = {
    "mysql57": {},
    "mysql80": {"binlog_row_metadata": "MINIMAL"},
    "mysql9": {"binlog_row_metadata": "MINIMAL"},
    "mariadb": {"binlog_row_metadata": "NO_LOG"},
    "mariadb11": {"binlog_row_metadata": "NO_LOG"},
}
_STEPS = [
    "CREATE TABLE {t} (id INT UNSIGNED PRIMARY KEY, name VARCHAR(20) CHARACTER SET latin1)",
    "INSERT INTO {t} VALUES (4000000000, 'grün')",
    "ALTER TABLE {t} ADD COLUMN size ENUM('small', 'groß') FIRST, ADD COLUMN at TIMESTAMP NULL",
    "INSERT INTO {t} VALUES ('groß', 2, 'b', '2020-01-02 03:04:05')",
    "ALTER TABLE {t} CHANGE name title VARCHAR(20) CHARACTER SET utf8mb4",
    "INSERT INTO {t} VALUES ('small', 3, '漢字', NULL)",
    "ALTER TABLE {t} DROP COLUMN size, ADD COLUMN size ENUM('tiny', 'huge') FIRST",
    "ALTER TABLE {t} DROP COLUMN at, MODIFY id BIGINT UNSIGNED AFTER size",
    "INSERT INTO {t} VALUES ('huge', 18446744073709551615, 'd')",
    "ALTER TABLE {t} DROP PRIMARY KEY, ADD COLUMN n INT NOT NULL AUTO_INCREMENT PRIMARY KEY",
    "INSERT INTO {t} (size, id, title) VALUES ('tiny', 7, 'e')",
    "CREATE INDEX i ON {t} (title)",
    "INSERT INTO {t} (size, id, title) VALUES ('tiny', 8, 'f')",
]


@pytest.fixture(scope="module", params=sorted(_SERVERS))
def nameless(request: pytest.FixtureRequest, start_shared_server: Callable[..., DatabaseServer]) -> DatabaseServer:
    """A server whose log has no names."""
    return start_shared_server(request.param, options=_SERVERS[request.param])


@pytest.fixture
def name(nameless: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    return database(nameless)


def opened(server: DatabaseServer, start: Position, folder: Path | None = None) -> SchemaTracker:
    return open_tables(InstanceSettings(source=source_of(server), data_dir=folder), source_of(server), start)


def write(server: DatabaseServer, name: str, steps: list[str] = _STEPS) -> list[Row]:
    """Runs them, and gives what a SELECT shows of each row once it is there."""
    shown, before = list[Row](), list[Row]()
    for step in steps:
        execute(server, "SET NAMES utf8mb4", step.format(t=f"{name}.t", db=name))
        if step.startswith("INSERT INTO {t}"):
            after = selected(server, f"SELECT * FROM {name}.t")
            shown += [row for row in after if row not in before]
        before = selected(server, f"SELECT * FROM {name}.t")
    return shown


def comparable(rows: list[Row]) -> list[Row]:
    return [{column: str(value).removesuffix("+00:00") for column, value in row.items()} for row in rows]


def test_rows_have_the_names_and_values_of_their_time(nameless: DatabaseServer, name: str, tmp_path: Path) -> None:
    start = end_of(nameless)
    tables = opened(nameless, start, tmp_path)
    shown = write(nameless, name)
    blocks = followed(tables, nameless, start, end_of(nameless))
    assert comparable(rows_of(blocks, TableName(name, "t"))) == comparable(shown)
    assert tables.stopped_tables == {}
    assert tables.differences == {}
    tables.close()


def test_a_restart_resumes_with_the_folder(nameless: DatabaseServer, name: str, tmp_path: Path) -> None:
    start = end_of(nameless)
    tables = opened(nameless, start, tmp_path)
    shown = write(nameless, name)
    end = end_of(nameless)
    raw = list(blocks_between(nameless, start, end))
    ends = [block.end_of_event(int(i)) for block in raw for i in block.boundaries]
    positions = [start, *ends]
    for block in blocks_between(nameless, start, positions[len(positions) // 2]):
        tables.follow(block)
    tables.close()
    for again in (0, len(positions) // 4, len(positions) // 2):
        tables = opened(nameless, positions[again], tmp_path)
        blocks = followed(tables, nameless, positions[again], end)
        rows = comparable(rows_of(blocks, TableName(name, "t")))
        assert rows == comparable(shown)[len(shown) - len(rows) :]
        complete = [tables.complete(block) for block in raw]
        assert comparable(rows_of(complete, TableName(name, "t"))) == comparable(shown)
        tables.close()
    assert [path.name for path in tmp_path.iterdir()] == ["default"]


def test_without_a_folder_the_history_is_gone_with_the_process(nameless: DatabaseServer, name: str) -> None:
    start = end_of(nameless)
    tables = opened(nameless, start)
    shown = write(nameless, name)
    blocks = followed(tables, nameless, start, end_of(nameless))
    assert comparable(rows_of(blocks, TableName(name, "t"))) == comparable(shown)
    folder = tables._history.folder
    assert folder.is_dir()
    tables.close()
    assert not folder.exists()


def test_names_that_are_swapped(nameless: DatabaseServer, name: str) -> None:
    start = end_of(nameless)
    tables = opened(nameless, start)
    execute(
        nameless,
        f"USE {name}",
        "CREATE TABLE a (x INT)",
        "CREATE TABLE b (y INT)",
        "INSERT INTO a VALUES (1)",
        "INSERT INTO b VALUES (2)",
        "RENAME TABLE a TO c, b TO a, c TO b",
        "INSERT INTO a VALUES (3)",
        "INSERT INTO b VALUES (4)",
        "DROP TABLE b",
        "CREATE TABLE b LIKE a",
        "INSERT INTO b VALUES (5)",
    )
    blocks = followed(tables, nameless, start, end_of(nameless))
    assert rows_of(blocks, TableName(name, "a")) == [{"x": 1}, {"y": 3}]
    assert rows_of(blocks, TableName(name, "b")) == [{"y": 2}, {"x": 4}, {"y": 5}]
    tables.close()


def test_what_is_not_known_stops_alone(
    nameless: DatabaseServer, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    execute(nameless, f"CREATE TABLE {name}.bad (x INT)", f"CREATE TABLE {name}.good (y INT)")
    start = end_of(nameless)
    imported = import_tables(source_of(nameless), start, "shop")
    catalogue = imported.first.without_database(name).apply(f"CREATE DATABASE {name}").catalogue
    catalogue = catalogue.apply("CREATE TABLE good (y INT)", name).catalogue  # and knows of no `bad`
    tables = SchemaTracker(SchemaHistory(tmp_path, lambda: (start, catalogue)))
    execute(nameless, f"INSERT INTO {name}.bad VALUES (1)", f"INSERT INTO {name}.good VALUES (2)")
    execute(nameless, f"ALTER TABLE {name}.bad RENAME TO {name}.worse", f"INSERT INTO {name}.worse VALUES (3)")
    middle = end_of(nameless)
    with caplog.at_level(logging.WARNING):
        blocks = followed(tables, nameless, start, middle)
    assert rows_of(blocks, TableName(name, "good")) == [{"y": 2}]
    assert {str(table) for table in tables.stopped_tables} == {f"{name}.bad", f"{name}.worse"}
    with pytest.raises(SchemaError, match=rf"of table id \d+: there is no table {name}\.bad in the log's DDL"):
        rows_of(blocks, TableName(name, "bad"))
    assert f"there is no table {name}.bad" in caplog.text
    over = [Block.from_description(block.encode_description(), block.data, block.index) for block in blocks]
    with pytest.raises(SchemaError, match=rf"{name}\.worse"):
        rows_of(over, TableName(name, "worse"))
    execute(nameless, f"DROP TABLE {name}.worse", f"CREATE TABLE {name}.worse (z INT)")
    execute(nameless, f"INSERT INTO {name}.worse VALUES (4)")
    blocks = followed(tables, nameless, middle, end_of(nameless))
    assert rows_of(blocks, TableName(name, "worse")) == [{"z": 4}]
    assert {str(table) for table in tables.stopped_tables} == {f"{name}.bad"}
    tables.close()


def test_a_statement_that_is_not_understood_is_in_the_error(nameless: DatabaseServer, name: str) -> None:
    """The server knows it, the history does not: the log has a statement that a later release may bring."""
    execute(nameless, f"CREATE TABLE {name}.t (x INT)", f"CREATE TABLE {name}.u (y INT)")
    start = end_of(nameless)
    tables = opened(nameless, start)
    execute(nameless, f"ALTER TABLE {name}.t ADD COLUMN frobnicate INT", f"INSERT INTO {name}.t VALUES (1, 2)")
    execute(nameless, f"INSERT INTO {name}.u VALUES (3)")
    blocks = list[Block]()
    for block in blocks_between(nameless, start, end_of(nameless)):
        data = block.data.tobytes().replace(b"ADD COLUMN frobnicate", b"ADD FROBNI frobnicate")
        blocks.append(tables.follow(replace(block, data=np.frombuffer(data, np.uint8))))
    assert rows_of(blocks, TableName(name, "u")) == [{"y": 3}]
    with pytest.raises(SchemaError, match=r"is not known since this statement: ALTER TABLE .* ADD FROBNI"):
        rows_of(blocks, TableName(name, "t"))
    assert [*tables.stopped_tables] == [TableName(name, "t")]
    tables.close()


def _array(data: bytes):
    import numpy as np

    return np.frombuffer(data, np.uint8)


def test_tables_that_changed_before_they_were_read_are_not_guessed(nameless: DatabaseServer, name: str) -> None:
    execute(
        nameless,
        f"USE {name}",
        "CREATE TABLE changed (a INT, b INT)",
        "CREATE TABLE same (a INT)",
        "CREATE TABLE twice (a INT)",
    )
    start = end_of(nameless)
    execute(
        nameless,
        f"USE {name}",
        "INSERT INTO changed VALUES (1, 2)",
        "INSERT INTO same VALUES (3)",
        "ALTER TABLE changed CHANGE a x INT, CHANGE b y INT",
        "INSERT INTO changed VALUES (4, 5)",
        "CREATE TABLE new (c INT)",
        "INSERT INTO new VALUES (6)",
        "DROP TABLE twice",
        "CREATE TABLE twice (d INT)",
        "INSERT INTO twice VALUES (7)",
    )
    tables = opened(nameless, start)
    middle = end_of(nameless)
    execute(nameless, f"INSERT INTO {name}.changed VALUES (8, 9)")
    blocks = followed(tables, nameless, start, middle)
    assert rows_of(blocks, TableName(name, "same")) == [{"a": 3}]
    assert rows_of(blocks, TableName(name, "new")) == [{"c": 6}]
    assert rows_of(blocks, TableName(name, "twice")) == [{"d": 7}]
    with pytest.raises(SchemaError, match=r"since this statement: ALTER TABLE changed .* before the tables were read"):
        rows_of(blocks, TableName(name, "changed"))
    assert [*tables.stopped_tables] == [TableName(name, "changed")]
    blocks = followed(tables, nameless, middle, end_of(nameless))
    assert rows_of(blocks, TableName(name, "changed")) == [{"x": 8, "y": 9}]
    assert tables.stopped_tables == {}
    tables.close()


def test_a_crash_before_the_tables_were_reached_forgets_none(
    nameless: DatabaseServer, name: str, tmp_path: Path
) -> None:
    execute(nameless, f"CREATE TABLE {name}.t (a INT)")
    start = end_of(nameless)
    execute(nameless, f"INSERT INTO {name}.t VALUES (1)", f"ALTER TABLE {name}.t ADD COLUMN b INT")
    middle = end_of(nameless)
    opened(nameless, start, tmp_path).close()  # as a crash leaves it: nothing was followed
    execute(nameless, f"INSERT INTO {name}.t VALUES (2, 3)")
    tables = opened(nameless, start, tmp_path)
    with pytest.raises(SchemaError, match="before the tables were read"):
        rows_of(followed(tables, nameless, start, middle), TableName(name, "t"))
    end = end_of(nameless)
    followed(tables, nameless, middle, end)
    execute(nameless, f"INSERT INTO {name}.t VALUES (4, 5)")
    blocks = followed(tables, nameless, end, end_of(nameless))
    assert rows_of(blocks, TableName(name, "t")) == [{"a": 4, "b": 5}]
    tables.close()
    end = end_of(nameless)
    tables = opened(nameless, end, tmp_path)
    execute(nameless, f"INSERT INTO {name}.t VALUES (6, 7)")
    assert rows_of(followed(tables, nameless, end, end_of(nameless)), TableName(name, "t")) == [{"a": 6, "b": 7}]
    tables.close()


@pytest.mark.parametrize("server", ["mariadb", "mariadb11", "mysql9"])
def test_full_metadata_wins_and_a_difference_is_reported(
    server: str,
    request: pytest.FixtureRequest,
    database: Callable[[DatabaseServer], str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    source: DatabaseServer = request.getfixturevalue(server)
    name = database(source)
    execute(source, f"CREATE TABLE {name}.t (a INT, b VARCHAR(9))", f"CREATE TABLE {name}.gone (a INT)")
    start = end_of(source)
    catalogue = import_tables(source_of(source), start, "shop").first
    catalogue = catalogue.apply(f"ALTER TABLE {name}.t CHANGE b c VARCHAR(9)").catalogue
    catalogue = catalogue.without_table(TableName(name, "gone"), "a statement")
    tables = SchemaTracker(SchemaHistory(tmp_path, lambda: (start, catalogue)))
    execute(source, f"INSERT INTO {name}.t VALUES (1, 'x'), (2, 'y')", f"INSERT INTO {name}.gone VALUES (3)")
    execute(source, f"INSERT INTO {name}.t VALUES (3, 'z')")
    raw = list(blocks_between(source, start, end_of(source)))
    with caplog.at_level(logging.WARNING):
        blocks = [tables.follow(block) for block in raw]
    assert blocks == raw
    assert [row["b"] for row in rows_of(blocks, TableName(name, "t"))] == ["x", "y", "z"]
    assert rows_of(blocks, TableName(name, "gone")) == [{"a": 3}]
    assert tables.differences == {TableName(name, "t"): "column c has the name b in the log, c in the history"}
    assert caplog.text.count("schema history differs from binlog") == 1
    assert tables.stopped_tables == {}
    tables.close()


@pytest.mark.parametrize("server", ["mariadb", "mariadb11", "mysql9"])
def test_full_metadata_needs_nothing_of_what_was_before(
    server: str, request: pytest.FixtureRequest, database: Callable[[DatabaseServer], str]
) -> None:
    source: DatabaseServer = request.getfixturevalue(server)
    name, start = database(source), end_of(source)
    shown = write(source, name)
    tables = opened(source, start)
    middle = end_of(source)
    execute(source, f"ALTER TABLE {name}.t ADD COLUMN last INT", f"DELETE FROM {name}.t WHERE id <> 8")
    blocks = followed(tables, source, start, middle)
    assert comparable(rows_of(blocks, TableName(name, "t"))) == comparable(shown)
    later = followed(tables, source, middle, end_of(source))
    assert {"last"} <= {column for row in rows_of(later, TableName(name, "t")) for column in row}
    assert (tables.stopped_tables, tables.differences) == ({}, {})
    tables.close()


GHOST = [
    "CREATE TABLE {db}._t_gho LIKE {db}.t",
    "ALTER TABLE {db}._t_gho ADD COLUMN extra INT NOT NULL DEFAULT 5 AFTER id",
    "CREATE TABLE {db}._t_ghc (id BIGINT AUTO_INCREMENT PRIMARY KEY, hint VARCHAR(64), value VARCHAR(999))",
    "INSERT INTO {db}._t_ghc (hint, value) VALUES ('state', 'Migrated')",
    "INSERT INTO {db}._t_gho (id, name) SELECT id, name FROM {db}.t",
    "UPDATE {db}.t SET name = 'two' WHERE id = 2",
    "REPLACE INTO {db}._t_gho (id, name) VALUES (2, 'two')",
    "RENAME TABLE {db}.t TO {db}._t_del, {db}._t_gho TO {db}.t",
    "INSERT INTO {db}.t VALUES (3, 6, 'three')",
    "DROP TABLE {db}._t_ghc",
    "DROP TABLE {db}._t_del",
    "UPDATE {db}.t SET extra = 7 WHERE id = 1",
]
OSC = [
    "CREATE TABLE {db}._t_new LIKE {db}.t",
    "ALTER TABLE {db}._t_new ADD COLUMN extra INT NOT NULL DEFAULT 5 AFTER id",
    "CREATE TRIGGER {db}.pt_osc_ins AFTER INSERT ON {db}.t FOR EACH ROW REPLACE INTO {db}._t_new (id) VALUES (NEW.id)",
    "CREATE TRIGGER {db}.pt_osc_upd AFTER UPDATE ON {db}.t FOR EACH ROW REPLACE INTO {db}._t_new (id) VALUES (NEW.id)",
    "INSERT IGNORE INTO {db}._t_new (id, name) SELECT id, name FROM {db}.t",
    "UPDATE {db}.t SET name = 'two' WHERE id = 2",
    "RENAME TABLE {db}.t TO {db}._t_old, {db}._t_new TO {db}.t",
    "INSERT INTO {db}.t VALUES (3, 6, 'three')",
    "DROP TABLE IF EXISTS {db}._t_old",
    "DROP TRIGGER IF EXISTS {db}.pt_osc_ins",
    "DROP TRIGGER IF EXISTS {db}.pt_osc_upd",
    "UPDATE {db}.t SET extra = 7 WHERE id = 1",
]


@pytest.mark.parametrize(
    ("steps", "deny"),
    [(GHOST, r".*\._t_(gho|ghc|del)"), (OSC, r".*\._t_(new|old)")],
    ids=["gh-ost", "pt-osc"],
)
def test_a_table_changed_online_is_one_swap(nameless: DatabaseServer, name: str, steps: list[str], deny: str) -> None:
    execute(nameless, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, name VARCHAR(20))")
    start = end_of(nameless)
    tables = opened(nameless, start)
    execute(nameless, f"INSERT INTO {name}.t VALUES (1, 'one'), (2, 'zwei')")
    for step in steps:
        execute(nameless, step.format(db=name))
    chosen = BlockFilter(FilterSettings(deny=(deny,)))
    blocks = [chosen.apply(block) for block in followed(tables, nameless, start, end_of(nameless))]
    blocks = [block for block in blocks if len(block)]
    assert rows_of(blocks, TableName(name, "t")) == [
        {"id": 1, "name": "one"},
        {"id": 2, "name": "zwei"},
        {"id": 2, "name": "two"},
        {"id": 3, "extra": 6, "name": "three"},
        {"id": 1, "extra": 7, "name": "one"},
    ]
    assert tables_in(blocks) == {"t"}
    assert tables.stopped_tables == {}
    tables.close()
