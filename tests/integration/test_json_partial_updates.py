"""JSON columns that a server logs as diffs: the whole document after each, against the text the server prints."""

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock.binlog.values.json_format import JsonError, JsonFault
from penstock.binlog.values.json_patch import patch_json
from penstock.testing import DatabaseServer
from tests.support.json_support import new_file, printed
from tests.support.json_updates import random_update, start_document
from tests.twins.json_rows import JSON, LONG, PARTIAL_UPDATE_ROWS, Field, Image, images

NewDatabase = Callable[[DatabaseServer], str]
_PARTS = (LONG, JSON, LONG, JSON, JSON)


def _texts(cursor: Any, number: int) -> list[bytes | None]:
    cursor.execute(
        "SELECT HEX(CAST(a AS CHAR)), HEX(CAST(b AS CHAR)), HEX(CAST(c AS CHAR)) FROM parts WHERE id = %s", (number,)
    )
    return [None if text is None else bytes.fromhex(text) for text in cursor.fetchone()]


def patched(before: Image, after: Image, column: int) -> bytes | None:
    old, new = before.fields[column], after.fields[column]
    base, diff = (old, new) if new.is_diff else (new, Field(0, -1))
    cells = [np.array([cell], np.int64) for cell in (base.at, base.size, diff.at, diff.size)]
    bounds, text = patch_json(np.frombuffer(after.event, np.uint8), *cells)
    assert bounds[1] == text.size
    return None if base.size < 0 else text.tobytes()


@pytest.mark.parametrize("release", ["mysql80", "mysql9"])
def test_partial_updates(release: str, request: pytest.FixtureRequest, database: NewDatabase) -> None:
    server: DatabaseServer = request.getfixturevalue(release)
    chance = random.Random(11)
    file = new_file(server)
    expected: list[tuple[list[bytes | None], list[bytes | None]]] = []
    with server.connect(charset="utf8mb4", database=database(server)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE parts (id INT PRIMARY KEY, a JSON, n INT, b JSON, c JSON)")
        for number in range(12):
            texts = [json.dumps(start_document(chance)) for _ in range(2)]
            cursor.execute("INSERT INTO parts VALUES (%s, %s, -1, %s, NULL)", (number, *texts))
        for count in range(600):
            number = chance.randrange(12)
            before = _texts(cursor, number)
            options = "PARTIAL_JSON" if chance.random() < 0.9 else ""
            cursor.execute("SET binlog_row_value_options = %s", (options,))
            sets, parameters = random_update(chance, before)
            cursor.execute(f"UPDATE parts SET {sets} WHERE id = {number}", [count, *parameters])
            expected.append((before, _texts(cursor, number)))
    rows = list(images(file, "parts", _PARTS))[12:]
    operations = [0, 0, 0]
    for old, new, (before, after) in zip(rows[::2], rows[1::2], expected, strict=True):
        assert new.number(2) > old.number(2)
        assert [patched(old, old, column) for column in (1, 3, 4)] == [printed(server, text) for text in before]
        assert [patched(old, new, column) for column in (1, 3, 4)] == [printed(server, text) for text in after]
        for column in (1, 3, 4):
            if new.fields[column].is_diff and new.fields[column].size:
                operations[new.raw(column)[0]] += 1
    assert min(operations) > 50, operations


@pytest.mark.parametrize("release", ["mysql80", "mysql9"])
def test_partial_updates_in_minimal_images(release: str, request: pytest.FixtureRequest, database: NewDatabase) -> None:
    """Such a log has no document to apply the diffs to."""
    server: DatabaseServer = request.getfixturevalue(release)
    file = new_file(server)
    with server.connect(charset="utf8mb4", database=database(server)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE parts (id INT PRIMARY KEY, a JSON, n INT, b JSON, c JSON)")
        cursor.execute("INSERT INTO parts VALUES (1, '[1, 2, 3]', 0, '[\"long enough for a diff\", 1]', NULL)")
        cursor.execute("SET binlog_row_image = 'MINIMAL', binlog_row_value_options = 'PARTIAL_JSON'")
        cursor.execute("UPDATE parts SET n = 1, b = JSON_SET(b, '$[1]', 2)")
        cursor.execute("UPDATE parts SET a = '{}', b = JSON_REMOVE(b, '$[1]')")
    _, before, after, last_before, last_after = images(file, "parts", _PARTS)
    assert [field.size for field in before.fields] == [4, -2, -2, -2, -2]
    assert [field.is_diff for field in after.fields] == [False, False, False, True, False]
    with pytest.raises(JsonError) as caught:
        patched(before, after, 3)
    assert caught.value.fault is JsonFault.NO_BEFORE
    assert patched(last_before, last_after, 1) == b"{}"
    assert last_after.fields[3].is_diff


@pytest.mark.parametrize("release", ["mysql80", "mysql9"])
def test_one_partial_event_with_many_rows(release: str, request: pytest.FixtureRequest, database: NewDatabase) -> None:
    """Rows have value options each, and a column can be a diff in some of them only."""
    server: DatabaseServer = request.getfixturevalue(release)
    file = new_file(server)
    with server.connect(charset="utf8mb4", database=database(server)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE parts (id INT PRIMARY KEY, a JSON, n INT, b JSON, c JSON)")
        pad = "p" * 50
        for number, value in enumerate(({"k": 1, "pad": pad}, None, [1], [1, [2], {}], [pad])):
            text = None if value is None else json.dumps(value)
            cursor.execute("INSERT INTO parts VALUES (%s, %s, 0, NULL, NULL)", (number, text))
        cursor.execute("SET binlog_row_value_options = 'PARTIAL_JSON'")
        cursor.execute("UPDATE parts SET n = 1, a = JSON_SET(a, '$.k', 'new', '$[0]', 7)")
        after_update = [_texts(cursor, number)[0] for number in range(5)]
    rows = list(images(file, "parts", _PARTS))[5:]
    assert len({id(image.event) for image in rows}) == 1
    assert rows[0].kind == PARTIAL_UPDATE_ROWS
    assert [patched(old, new, 1) for old, new in zip(rows[::2], rows[1::2], strict=True)] == after_update
    assert {image.fields[1].is_diff for image in rows[1::2]} == {True, False}
