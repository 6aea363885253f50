"""Documents of one table on real servers: built from the log where that says all, and read back where it does not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from penstock.document import DocumentSpec
from penstock.document.image_rules import find_read_back_reasons
from penstock.model import TableName
from penstock.testing import DatabaseServer
from tests.support.capture import execute
from tests.support.document_stream import DocumentStream, open_stream
from tests.support.document_texts import build_from_log, capture_server

SERVERS = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")
NewDatabase = Callable[[DatabaseServer], str]


@pytest.fixture
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


def spec_of(table: str, *fields: str, **root: Any) -> DocumentSpec:
    return DocumentSpec.model_validate({"index": "items", "root": {"table": table, "fields": list(fields)} | root})


def reasons_of(stream: DocumentStream) -> list[str]:
    return find_read_back_reasons(stream.sync.graph)


ZEROS = {
    "TINYINT": ("0", "1"),
    "BIGINT UNSIGNED": ("0", "18446744073709551615"),
    "DECIMAL(20,4)": ("0", "0.0001"),
    "BIT(9)": ("0", "256"),
    "DATE": ("'0000-00-00'", "'2024-00-00'"),
    "DATETIME(6)": ("'0000-00-00 00:00:00'", "'2024-02-30 00:00:00'"),
    "TIMESTAMP(3) NULL": ("'0000-00-00 00:00:00'", "'2024-02-29 00:00:00'"),
    "TIME(2)": ("'00:00:00'", "'-00:00:00.01'"),
}


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_soft_delete_by_any_type_is_judged_as_the_server_does(server: DatabaseServer, database: NewDatabase) -> None:
    name, columns = database(server), {f"c{number}": kind for number, kind in enumerate(ZEROS)}
    declared = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    zeros, others = (", ".join(pair[side] for pair in ZEROS.values()) for side in (0, 1))
    with capture_server(server) as source:
        execute(
            server,
            "SET sql_mode = 'ALLOW_INVALID_DATES'",
            f"CREATE TABLE {name}.item (id INT PRIMARY KEY, {declared})",
            f"INSERT INTO {name}.item VALUES (1, {', '.join(['NULL'] * len(columns))}), (2, {zeros}), (3, {others})",
        )
        graphs = {
            kind: source.load_graph(f"{name}.item", ["id"], soft_delete=column) for column, kind in columns.items()
        }
        changes = source.read_changes([TableName(name, "item")])
        changes = changes.filter(pc.equal(changes.column("_change_type"), "insert"))
        for kind, graph in graphs.items():
            documents, unreadable = build_from_log(graph, changes)
            assert (set(documents), unreadable) == ({"1", "2", "3"}, 0)
            assert {key for key, text in documents.items() if text} == set(source.read_back(graph, ["1", "2", "3"])), (
                kind
            )
            assert documents["3"] is None, kind


@pytest.mark.parametrize("server", ["mariadb", "mysql80"], indirect=True)
def test_a_mapping_of_integers_is_judged_here_and_one_of_texts_by_the_server(
    server: DatabaseServer, database: NewDatabase, tmp_path: Path
) -> None:
    name = database(server)
    execute(
        server,
        f"CREATE TABLE {name}.item (id INT PRIMARY KEY, flag TINYINT, state VARCHAR(9)) CHARACTER SET utf8mb4",
    )
    rows = "(1, 1, 'open'), (2, 0, 'OPEN'), (3, NULL, 'shut'), (4, -5, NULL)"
    for number, (where, expected, is_from_log) in enumerate(
        [
            ({"flag": [True, -5]}, {"1", "4"}, True),
            ({"state": ["open"]}, {"1", "2"}, False),
            ({"flag": [0], "state": ["open"]}, {"2"}, False),
            ({"flag": ["1"]}, {"1"}, False),
        ]
    ):
        execute(server, f"DELETE FROM {name}.item")
        with open_stream(server, spec_of(f"{name}.item", "id", where=where), tmp_path / str(number)) as stream:
            assert (reasons_of(stream) == []) == is_from_log
            execute(server, f"INSERT INTO {name}.item VALUES {rows}")
            assert stream.follow().from_log == (4 if is_from_log else 0)
            assert set(stream.documents()) == expected


@pytest.mark.parametrize("server", ["mariadb", "mariadb11"], indirect=True)
def test_the_history_of_a_table_never_becomes_documents(
    server: DatabaseServer, database: NewDatabase, tmp_path: Path
) -> None:
    """With system versioning a delete is in the log as an update, and an update brings a row of the past with it."""
    name = database(server)
    execute(
        server,
        f"CREATE TABLE {name}.item (id INT, size INT, since TIMESTAMP(6) GENERATED ALWAYS AS ROW START,"
        " until TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (since, until), PRIMARY KEY (id))"
        " WITH SYSTEM VERSIONING",
    )
    with open_stream(server, spec_of(f"{name}.item", "size"), tmp_path) as stream:
        assert reasons_of(stream) == [f"{name}.item has system versioning, and the log has the rows of its history"]
        execute(server, f"INSERT INTO {name}.item (id, size) VALUES (1, 10), (2, 20)")
        execute(server, f"UPDATE {name}.item SET size = size + 1")
        assert stream.follow().from_log == 0
        assert list(stream.documents().values()) == [{"size": 11}, {"size": 21}]
        execute(server, f"DELETE FROM {name}.item WHERE id = 1")
        stream.follow()
        assert list(stream.documents().values()) == [{"size": 21}]


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_an_image_that_lacks_a_column_leads_to_a_read(
    server: DatabaseServer, database: NewDatabase, tmp_path: Path
) -> None:
    name = database(server)
    execute(server, f"CREATE TABLE {name}.item (id INT PRIMARY KEY, size INT, note TEXT)")
    with open_stream(server, spec_of(f"{name}.item", "size", "note"), tmp_path) as stream:
        execute(server, f"INSERT INTO {name}.item VALUES (1, 10, 'long'), (2, 20, 'longer')")
        assert stream.follow().from_log == 2
        execute(server, "SET binlog_row_image = 'NOBLOB'", f"UPDATE {name}.item SET size = 11 WHERE id = 1")
        execute(server, f"UPDATE {name}.item SET size = 21 WHERE id = 2")
        counts = stream.follow()
        assert (counts.from_log, counts.documents.written) == (1, 2)
        assert stream.documents() == {"1": {"size": 11, "note": "long"}, "2": {"size": 21, "note": "longer"}}


@pytest.mark.parametrize("server", ["mysql80", "mysql9"], indirect=True)
@pytest.mark.parametrize("image", ["FULL", "NOBLOB"])
def test_a_json_column_that_was_changed_in_part_is_whole_in_the_document(
    server: DatabaseServer, database: NewDatabase, tmp_path: Path, image: str
) -> None:
    name = database(server)
    execute(server, f"CREATE TABLE {name}.item (id INT PRIMARY KEY, facts JSON)")
    with open_stream(server, spec_of(f"{name}.item", "facts"), tmp_path) as stream:
        execute(server, f"""INSERT INTO {name}.item VALUES (1, '{{"a": "{"x" * 60}", "b": 1.0}}')""")
        assert stream.follow().from_log == 1
        execute(
            server,
            f"SET binlog_row_image = '{image}', binlog_row_value_options = 'PARTIAL_JSON'",
            f"UPDATE {name}.item SET facts = JSON_SET(facts, '$.a', 'y')",
        )
        assert stream.follow().documents.written == 1
        assert stream.documents() == {"1": {"facts": {"a": "y", "b": 1.0}}}


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_altered_columns_are_those_of_the_table_after_the_statement(
    server: DatabaseServer, database: NewDatabase, tmp_path: Path
) -> None:
    """What was logged before the statement is applied after it: the documents end as the table is."""
    name = database(server)
    execute(server, f"CREATE TABLE {name}.item (id INT PRIMARY KEY, size INT, note VARCHAR(20))")
    with open_stream(server, spec_of(f"{name}.item", "size", "note"), tmp_path) as stream:
        execute(server, f"INSERT INTO {name}.item VALUES (1, 10, '5'), (2, 20, '6')")
        before, end = stream.read_changes()
        execute(server, f"ALTER TABLE {name}.item MODIFY note INT, DROP COLUMN size, ADD COLUMN size INT DEFAULT 7")
        stream.sync.reload()
        assert stream.sync.apply_changes(before).from_log == 0, "the image has a text where the column is a number now"
        stream.start = end
        execute(server, f"UPDATE {name}.item SET size = 8 WHERE id = 2")
        stream.follow()
        assert stream.documents() == {"1": {"size": 7, "note": 5}, "2": {"size": 8, "note": 6}}


@pytest.mark.parametrize("server", ["mariadb", "mysql80"], indirect=True)
def test_rows_of_a_prepared_transaction_count_when_it_commits(
    server: DatabaseServer, database: NewDatabase, tmp_path: Path
) -> None:
    name = database(server)
    execute(server, f"CREATE TABLE {name}.item (id INT PRIMARY KEY, size INT)")
    with open_stream(server, spec_of(f"{name}.item", "size"), tmp_path) as stream:
        xid = f"'{name}'"
        execute(
            server,
            f"XA START {xid}",
            f"INSERT INTO {name}.item VALUES (1, 1), (2, 2)",
            f"UPDATE {name}.item SET id = 3, size = 30 WHERE id = 1",
            f"UPDATE {name}.item SET id = 1, size = 20 WHERE id = 2",
            f"UPDATE {name}.item SET size = 31 WHERE id = 3",
            f"XA END {xid}",
            f"XA PREPARE {xid}",
        )
        execute(server, f"INSERT INTO {name}.item VALUES (4, 4)")
        assert stream.follow().from_log == 1
        assert set(stream.documents()) == {"4"}
        execute(server, f"XA COMMIT {xid}")
        assert stream.follow().from_log == 3
        assert stream.documents() == {"1": {"size": 20}, "3": {"size": 31}, "4": {"size": 4}}
