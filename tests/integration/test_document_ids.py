"""Ids of documents that are not a plain number: labels of ENUM and SET, and unique keys beside the primary key."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import penstock.document.sync
from penstock.document import DOCUMENT_DECODING, DocumentSpec
from penstock.document.queries import NodeQueries
from penstock.document.root_range import key_from_json, key_to_json, plan_ranges
from penstock.errors import SchemaError
from penstock.snapshot.source_rows import SourceRows
from penstock.spark.sync_job import LoadedGraphs
from penstock.testing import DatabaseServer
from tests.support.capture import execute, source_of
from tests.support.document_stream import open_stream

Database = Callable[[DatabaseServer], str]


@pytest.fixture(params=["mariadb", "mariadb11", "mysql57", "mysql80", "mysql9"])
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


@pytest.fixture
def name(server: DatabaseServer, database: Database, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a new database; a load reads its documents two by two."""
    monkeypatch.setattr(penstock.document.sync, "DOCUMENTS_PER_PAGE", 2)
    return database(server)


def spec_of(table: str, **root: Any) -> DocumentSpec:
    return DocumentSpec.model_validate({"index": "t", "root": {"table": table, "fields": ["v"], **root}})


def test_labels_in_an_id(server: DatabaseServer, name: str, tmp_path: Path) -> None:
    """The numbers of the labels are not in the order of their texts, and one looks like a number of another."""
    execute(
        server,
        f"""CREATE TABLE {name}.t (kind ENUM('z', '1', 'a:b') NOT NULL, marks SET('y', 'b', '2') NOT NULL, id INT,
            v INT, PRIMARY KEY (kind, marks, id))""",
        f"""INSERT INTO {name}.t VALUES ('z', 'y', 1, 1), ('z', 'y,b', 1, 2), ('z', '2', 1, 3), ('1', '', 1, 4),
            ('1', 'b,2', 2, 5), ('a:b', 'y,b,2', 1, 6), ('a:b', 'y,b,2', 2, 7)""",
    )
    expected = {"z:y:1": 1, "z:y,b:1": 2, "z:2:1": 3, "1::1": 4, "1:b,2:2": 5, "a%3Ab:y,b,2:1": 6, "a%3Ab:y,b,2:2": 7}
    with open_stream(server, spec_of(f"{name}.t"), tmp_path) as stream:
        stream.index.refresh()
        assert {key: document["v"] for key, document in stream.documents().items()} == expected
        execute(
            server,
            f"UPDATE {name}.t SET v = 50 WHERE kind = '1' AND marks = 'b,2'",
            f"UPDATE {name}.t SET kind = 'z' WHERE v = 4",
            f"DELETE FROM {name}.t WHERE v = 6",
        )
        stream.follow()
        del expected["1::1"], expected["a%3Ab:y,b,2:1"]
        expected |= {"1:b,2:2": 50, "z::1": 4}
        assert {key: document["v"] for key, document in stream.documents().items()} == expected


@pytest.mark.parametrize("key", ["kind, id", "shop, kind, id"])
def test_a_page_of_documents_with_labels_in_their_id_reads_no_more_than_the_page(
    server: DatabaseServer, name: str, key: str
) -> None:
    rows = 6_000
    execute(
        server,
        f"""CREATE TABLE {name}.t (shop INT, kind ENUM('z', 'm', 'a') NOT NULL, id INT, v INT, PRIMARY KEY ({key}))""",
        f"INSERT INTO {name}.t VALUES "
        + ", ".join(f"(7, '{'zma'[number * 3 // rows]}', {number}, {number})" for number in range(rows)),
        f"ANALYZE TABLE {name}.t",
    )
    graph = LoadedGraphs(source_of(server), spec_of(f"{name}.t")).load().graph
    queries, condition, seen = NodeQueries(graph, graph.root), "", list[int]()
    with server.connect() as connection, connection.cursor() as cursor:
        while True:
            cursor.execute("FLUSH STATUS")
            cursor.execute(queries.select_page(condition, 500).sql)
            page = cursor.fetchall()
            cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
            assert sum(int(count) for _, count in cursor.fetchall()) < 520
            if not page:
                break
            seen += [row[-1] for row in page]
            condition = queries.after_key(tuple(page[-1][: len(graph.root.key)]))
    assert seen == list(range(rows))


@pytest.mark.parametrize("size", [1, 3])
def test_ranges_of_keys_have_every_row_once(server: DatabaseServer, name: str, size: int) -> None:
    """Also rows that come between the planning of the ranges and their reading, and labels that no row should have."""
    execute(
        server,
        "SET sql_mode = ''",
        f"""CREATE TABLE {name}.t (kind ENUM('z', '1', 'a:b') NOT NULL, marks SET('y', 'b', '2') NOT NULL,
            code VARCHAR(9) COLLATE utf8mb4_general_ci, v INT, PRIMARY KEY (kind, marks, code)) CHARSET utf8mb4""",
        f"""INSERT INTO {name}.t VALUES ('z', 'y', 'B', 1), ('z', 'y,b', 'a', 2), ('z', '2', 'É', 3), ('1', '', 'e', 4),
            ('1', 'b,2', 'F', 5), ('a:b', 'y,b,2', 'x', 6), ('a:b', 'y,b,2', 'Y', 7), ('', 'y', 'q', 8)""",
    )
    graph = LoadedGraphs(source_of(server), spec_of(f"{name}.t")).load().graph
    with closing(SourceRows(source_of(server), DOCUMENT_DECODING)) as rows:
        ranges = list(plan_ranges(rows, graph, size))
        assert (ranges[0].after, ranges[-1].until) == (None, None)
        begin = key_from_json(graph, key_to_json(graph, ranges[0].until or ()))
        assert list(plan_ranges(rows, graph, size, begin)) == ranges[1:]
    execute(
        server,
        f"INSERT INTO {name}.t VALUES ('z', '', 'first', 9), ('1', 'b,2', 'e', 10), ('a:b', 'y,b,2', 'z', 11)",
        f"DELETE FROM {name}.t WHERE v = 6",
    )
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        seen: list[int] = []
        for part in ranges:
            cursor.execute(f"SELECT v FROM {name}.t c WHERE {part.condition(graph) or 'TRUE'}")
            seen += [value for (value,) in cursor.fetchall()]
    assert sorted(seen) == [1, 2, 3, 4, 5, 7, 8, 9, 10, 11]


def test_a_unique_key_as_the_id(server: DatabaseServer, name: str, tmp_path: Path) -> None:
    execute(
        server,
        f"""CREATE TABLE {name}.t (id INT AUTO_INCREMENT PRIMARY KEY, shop INT NOT NULL, code VARCHAR(20) NOT NULL,
            v INT, maybe INT NULL, UNIQUE KEY (shop, code), UNIQUE KEY (maybe)) DEFAULT CHARSET utf8mb4""",
        f"CREATE TABLE {name}.part (id INT PRIMARY KEY, t_id INT, label VARCHAR(20), KEY (t_id))",
        f"""INSERT INTO {name}.t (shop, code, v) VALUES (1, 'a', 1), (1, 'b:c', 2), (2, 'a', 3), (2, 'b', 4),
            (3, 'a', 5)""",
        f"INSERT INTO {name}.part VALUES (1, 2, 'lid'), (2, 5, 'cup')",
    )
    parts = {"table": f"{name}.part", "many": True, "on": {"id": "t_id"}, "fields": ["label"]}
    spec = spec_of(f"{name}.t", id=["shop", "code"], joins={"parts": parts})
    expected: dict[str, Any] = {"1:a": (1, []), "1:b%3Ac": (2, ["lid"]), "2:a": (3, []), "2:b": (4, [])}
    expected["3:a"] = (5, ["cup"])

    def documents() -> dict[str, Any]:
        return {
            key: (document["v"], [part["label"] for part in document["parts"]])
            for key, document in stream.documents().items()
        }

    with open_stream(server, spec, tmp_path) as stream:
        stream.index.refresh()
        assert documents() == expected
        execute(
            server,
            f"UPDATE {name}.t SET code = 'moved' WHERE id = 2",
            f"UPDATE {name}.part SET label = 'mug', t_id = 1 WHERE id = 2",
            f"DELETE FROM {name}.t WHERE id = 4",
        )
        stream.follow()
        del expected["1:b%3Ac"], expected["2:b"]
        expected |= {"1:moved": (2, ["lid"]), "1:a": (1, ["mug"]), "3:a": (5, [])}
        assert documents() == expected
    with (
        pytest.raises(SchemaError, match="which may be NULL"),
        open_stream(server, spec_of(f"{name}.t", id="maybe"), tmp_path / "other"),
    ):
        pass
