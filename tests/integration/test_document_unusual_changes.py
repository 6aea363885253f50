"""Changes that do not say by themselves which documents they touch: generated columns, renamed columns and keys, images
without all columns, cascades that move rows, rows that are exchanged. The index equals the tables after each."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.document import DocumentSpec
from penstock.errors import SchemaError
from penstock.spark.sync_job import LoadedGraphs
from penstock.testing import DatabaseServer
from tests.support.capture import execute, source_of
from tests.support.document_stream import open_stream

Database = Callable[[DatabaseServer], str]
# `{d}` is the database of a test.
ITEM = "CREATE TABLE {d}.t (id INT PRIMARY KEY, a VARCHAR(20), b INT)", "INSERT INTO {d}.t VALUES (1, 'x', 1)"
PARTS = (
    *ITEM,
    "CREATE TABLE {d}.u (id INT PRIMARY KEY, tid INT, b INT, KEY (tid))",
    "INSERT INTO {d}.u VALUES (1, 1, 1)",
)
PARENT = "CREATE TABLE {d}.s (id INT PRIMARY KEY)", "INSERT INTO {d}.s VALUES (5)"


def parts(on: str = "tid", **options: Any) -> dict[str, Any]:
    return {"u": {"table": "{d}.u", "many": True, "on": {"id": on}, "fields": ["b"], **options}}


def generated(storage: str) -> tuple[str, ...]:
    return (
        f"CREATE TABLE {{d}}.t (id INT PRIMARY KEY, a VARCHAR(20), g VARCHAR(30) AS (CONCAT(a, '!')) {storage})",
        "INSERT INTO {d}.t (id, a) VALUES (1, 'x'), (2, 'no')",
    )


@dataclass(frozen=True)
class Case:
    """Tables, the root of a document over `{d}.t`, statements that change rows, and the documents after them; with
    `later`, the root as a person corrects it when sync has stopped at them."""

    tables: tuple[str, ...]
    root: dict[str, Any]
    statements: tuple[str, ...]
    expected: dict[str, Any]
    later: dict[str, Any] | None = None


CASES = {
    "a generated column": Case(
        generated("VIRTUAL"),
        {"fields": ["g"]},
        ("UPDATE {d}.t SET a = 'y' WHERE id = 1",),
        {"1": {"g": "y!"}, "2": {"g": "no!"}},
    ),
    "a condition on a stored generated column": Case(
        generated("STORED"),
        {"fields": ["a"], "where": "g <> 'no!'"},
        ("UPDATE {d}.t SET a = 'y' WHERE id = 2", "UPDATE {d}.t SET a = 'no' WHERE id = 1"),
        {"2": {"a": "y"}},
    ),
    "a generated column of a joined table": Case(
        (
            *ITEM,
            "CREATE TABLE {d}.u (id INT PRIMARY KEY, tid INT, c INT, b INT AS (c + 1) VIRTUAL, KEY (tid))",
            "INSERT INTO {d}.u (id, tid, c) VALUES (1, 1, 1)",
        ),
        {"fields": ["a"], "joins": parts()},
        ("UPDATE {d}.u SET c = 7",),
        {"1": {"a": "x", "u": [{"b": 8}]}},
    ),
    "the key is renamed": Case(
        ITEM,
        {"fields": ["a"]},
        ("UPDATE {d}.t SET a = 'y'", "ALTER TABLE {d}.t CHANGE id pid INT", "UPDATE {d}.t SET a = 'z'"),
        {"1": {"a": "z"}},
    ),
    "the key gets other letters": Case(
        ITEM,
        {"id": "id", "fields": ["a"]},
        ("UPDATE {d}.t SET a = 'y'", "ALTER TABLE {d}.t MODIFY ID INT", "UPDATE {d}.t SET a = 'z'"),
        {"1": {"a": "z"}},
    ),
    "a field is renamed, then the spec is corrected": Case(
        ITEM,
        {"fields": {"f": "a"}},
        ("UPDATE {d}.t SET a = 'y'", "ALTER TABLE {d}.t CHANGE a aa VARCHAR(20)"),
        {"1": {"f": "y"}},
        {"fields": {"f": "aa"}},
    ),
    "a column that joins is renamed, then the spec is corrected": Case(
        PARTS,
        {"fields": ["a"], "joins": parts()},
        ("UPDATE {d}.u SET b = 2", "ALTER TABLE {d}.u CHANGE tid t_id INT"),
        {"1": {"a": "x", "u": [{"b": 2}]}},
        {"fields": ["a"], "joins": parts("t_id")},
    ),
    "images have only what was changed": Case(
        PARTS,
        {"fields": ["a"], "joins": parts()},
        ("SET SESSION binlog_row_image = 'MINIMAL'", "UPDATE {d}.t SET a = 'y'", "UPDATE {d}.u SET b = 2"),
        {"1": {"a": "y", "u": [{"b": 2}]}},
    ),
    "images of one table have only what was changed": Case(
        ITEM,
        {"fields": ["a"]},
        ("SET SESSION binlog_row_image = 'MINIMAL'", "UPDATE {d}.t SET a = 'y'"),
        {"1": {"a": "y"}},
    ),
    "rows are exchanged with a partition of another table": Case(
        (
            *ITEM,
            """CREATE TABLE {d}.o (id INT PRIMARY KEY, a VARCHAR(20), b INT)
               PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10))""",
            "INSERT INTO {d}.o VALUES (2, 'q', 1)",
        ),
        {"fields": ["a"]},
        ("ALTER TABLE {d}.o EXCHANGE PARTITION p0 WITH TABLE {d}.t",),
        {"2": {"a": "q"}},
    ),
    "a cascade changes the key": Case(
        (
            *PARENT,
            """CREATE TABLE {d}.t (sid INT, n INT, a INT, PRIMARY KEY (sid, n),
               FOREIGN KEY (sid) REFERENCES {d}.s (id) ON UPDATE CASCADE)""",
            "INSERT INTO {d}.t VALUES (5, 1, 9)",
        ),
        {"fields": ["a"]},
        ("UPDATE {d}.s SET id = 6",),
        {"6:1": {"a": 9}},
    ),
    "a cascade moves rows to another document": Case(
        (
            *PARENT,
            "CREATE TABLE {d}.t (id INT PRIMARY KEY, sid INT)",
            """CREATE TABLE {d}.u (id INT PRIMARY KEY, tid INT, b INT, KEY (tid),
               FOREIGN KEY (tid) REFERENCES {d}.s (id) ON UPDATE CASCADE)""",
            "INSERT INTO {d}.t VALUES (1, 5), (2, 6)",
            "INSERT INTO {d}.u VALUES (1, 5, 3)",
        ),
        {"fields": ["id"], "joins": {"u": {**parts()["u"], "on": {"sid": "tid"}}}},
        ("UPDATE {d}.s SET id = 6",),
        {"1": {"id": 1, "u": []}, "2": {"id": 2, "u": [{"b": 3}]}},
    ),
    "a cascade makes a row match": Case(
        (
            *PARENT,
            """CREATE TABLE {d}.t (id INT PRIMARY KEY, sid INT,
               FOREIGN KEY (sid) REFERENCES {d}.s (id) ON DELETE SET NULL)""",
            "INSERT INTO {d}.t VALUES (1, 5)",
        ),
        {"fields": ["sid"], "where": "sid IS NULL"},
        ("DELETE FROM {d}.s",),
        {"1": {"sid": None}},
    ),
    "a cascade makes a joined row match": Case(
        (
            *PARENT,
            *ITEM,
            """CREATE TABLE {d}.u (id INT PRIMARY KEY, tid INT, b INT, sid INT, KEY (tid),
               FOREIGN KEY (sid) REFERENCES {d}.s (id) ON DELETE SET NULL)""",
            "INSERT INTO {d}.u VALUES (1, 1, 3, 5)",
        ),
        {"fields": ["a"], "joins": parts(filter="sid IS NULL")},
        ("DELETE FROM {d}.s",),
        {"1": {"a": "x", "u": [{"b": 3}]}},
    ),
}


@pytest.fixture(params=["mariadb", "mariadb11", "mysql80"])
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


def spec_of(database: str, root: dict[str, Any]) -> DocumentSpec:
    def named(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: named(part) for key, part in value.items()}
        return value.replace("{d}", database) if isinstance(value, str) else value

    return DocumentSpec.model_validate({"index": "t", "root": named({"table": "{d}.t", **root})})


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("is_restarted", [False, True], ids=["running", "restarted"])
def test_the_index_equals_the_tables_after_it(
    server: DatabaseServer, database: Database, tmp_path: Path, name: str, is_restarted: bool
) -> None:
    """Also when sync was not there when it happened, and knows only the tables after it."""
    case, schema = CASES[name], database(server)

    def run(statements: tuple[str, ...]) -> None:
        execute(server, *(statement.replace("{d}", schema) for statement in statements))

    run(case.tables)
    with open_stream(server, spec_of(schema, case.root), tmp_path) as stream:
        run(case.statements)
        if case.later is not None:
            with pytest.raises(SchemaError, match="no column"):
                stream.follow()
            stream.sync._load_graph = LoadedGraphs(source_of(server), spec_of(schema, case.later)).load
            stream.sync.reload()
        elif is_restarted:
            stream.sync.reload()
        stream.follow()
        assert stream.documents() == case.expected


def test_documents_that_are_found_by_a_generated_column_are_refused_where_the_log_has_none(
    mariadb11: DatabaseServer, database: Database, tmp_path: Path
) -> None:
    name = database(mariadb11)
    execute(
        mariadb11,
        f"CREATE TABLE {name}.t (id INT PRIMARY KEY, a INT)",
        f"CREATE TABLE {name}.u (id INT PRIMARY KEY, t INT, tid INT AS (t) STORED, b INT, KEY (tid))",
    )
    spec = spec_of(name, {"fields": ["a"], "joins": parts()})
    with (
        pytest.raises(SchemaError, match=rf"found by {name}.u.tid, which is generated, and the log of MariaDB 11"),
        open_stream(mariadb11, spec, tmp_path),
    ):
        pass
