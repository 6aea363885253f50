"""Keys of MariaDB that its log does not tell from BINARY: documents are found by their texts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.document import DocumentSpec
from penstock.testing import DatabaseServer
from tests.support.capture import execute
from tests.support.document_stream import open_stream

NewDatabase = Callable[[DatabaseServer], str]


def spec_of(table: str, *fields: str, **root: Any) -> DocumentSpec:
    return DocumentSpec.model_validate({"index": "items", "root": {"table": table, "fields": list(fields)} | root})


@pytest.mark.parametrize("source", ["mariadb", "mariadb11"])
@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("UUID", "00112233-4455-6677-8899-aabbccddeeff", "ffffffff-ffff-ffff-ffff-ffffffffff00"),
        ("INET4", "1.2.3.4", "10.0.0.0"),
        ("INET6", "::1", "::ffff:1.2.3.0"),
    ],
)
def test_documents_are_found_by_keys_that_the_log_has_as_bytes(
    request: pytest.FixtureRequest,
    source: str,
    database: NewDatabase,
    tmp_path: Path,
    kind: str,
    first: str,
    second: str,
) -> None:
    server: DatabaseServer = request.getfixturevalue(source)
    name = database(server)
    execute(server, f"CREATE TABLE {name}.item (id {kind} PRIMARY KEY, size INT)")
    for fields in (["size"], ["id", "size"]):
        execute(server, f"DELETE FROM {name}.item", f"INSERT INTO {name}.item VALUES ('{first}', 1)")
        with open_stream(server, spec_of(f"{name}.item", *fields), tmp_path / str(len(fields))) as stream:
            execute(server, f"UPDATE {name}.item SET size = 2", f"INSERT INTO {name}.item VALUES ('{second}', 3)")
            stream.follow()
            documents = stream.documents()
            assert {key: document["size"] for key, document in documents.items()} == {first: 2, second: 3}
            assert {document.get("id", key) for key, document in documents.items()} == {first, second}
            execute(server, f"DELETE FROM {name}.item WHERE size = 2")
            stream.follow()
            assert set(stream.documents()) == {second}


def test_documents_are_found_by_a_joined_row_with_such_a_key(
    mariadb: DatabaseServer, database: NewDatabase, tmp_path: Path
) -> None:
    name, key = database(mariadb), "00112233-4455-6677-8899-aabbccddeeff"
    execute(
        mariadb,
        f"CREATE TABLE {name}.maker (id UUID PRIMARY KEY, name VARCHAR(20))",
        f"CREATE TABLE {name}.item (id INT PRIMARY KEY, maker_id UUID, KEY (maker_id))",
        f"INSERT INTO {name}.maker VALUES ('{key}', 'old')",
        f"INSERT INTO {name}.item VALUES (1, '{key}')",
    )
    joins = {"maker": {"table": f"{name}.maker", "on": {"maker_id": "id"}, "fields": ["name"]}}
    with open_stream(mariadb, spec_of(f"{name}.item", "id", joins=joins), tmp_path) as stream:
        execute(mariadb, f"UPDATE {name}.maker SET name = 'new'")
        stream.follow()
        assert stream.documents() == {"1": {"id": 1, "maker": {"name": "new"}}}
