"""JSON columns that a server logs as diffs: the whole document after each, against the text the server prints."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from penstock.binlog.values.json_format import JsonError, JsonFault
from penstock.binlog.values.json_patch import patch_json
from penstock.testing import DatabaseServer
from tests.integration.json_support import new_file, printed, random_double, random_value
from tests.twins.json_rows import JSON, LONG, PARTIAL_UPDATE_ROWS, Field, Image, images

NewDatabase = Callable[[DatabaseServer], str]
_KEYS = ("a", "b c", "é", "", "1a", "$x_", 'q"q', "back\\slash", "ctl\x01\n\t", "😀", "last", "字", "a.b", "a[0]",
         "x\x7f", "a-b", "null", "k" * 130, "\u200cb", "a\u200cb", "²", "\ufeff", "𝒳", "é字é")  # fmt: skip
_PARTS = (LONG, JSON, LONG, JSON, JSON)
Path = list[str | int]


def _start_document(chance: random.Random) -> dict[str, Any]:
    """Long enough that diffs are shorter than the whole."""
    document: dict[str, Any] = {
        key: chance.choice((1, "some text", None, 1.5, 70000)) for key in chance.sample(_KEYS, 8)
    }
    document["pad"] = "p" * 400
    document["arr"] = [1, "two", {"three": [3, 3.5, None]}, [[4], 5], "6" * 50]
    document["obj"] = {key: {"in": key, "list": [1, 2, 3]} for key in chance.sample(_KEYS, 6)}
    return document


def _random_path(chance: random.Random, document: Any) -> Path:
    """To something that is there."""
    path: Path = []
    while isinstance(document, dict | list) and document and (not path or chance.random() < 0.7):
        step = chance.choice(list(document)) if isinstance(document, dict) else chance.randrange(len(document))
        path.append(step)
        document = document[step]
    return path


def _inside(document: Any, path: Path) -> Any:
    for step in path:
        document = document[step]
    return document


def _sql_path(chance: random.Random, document: Any, path: Path) -> str:
    """Some cells counted from the end."""
    shown = "$"
    for i, step in enumerate(path):
        if isinstance(step, str):
            shown += "." + json.dumps(step, ensure_ascii=chance.random() < 0.5)
        elif chance.random() < 0.4:
            back = len(_inside(document, path[:i])) - 1 - step
            shown += f"[last-{back}]" if back else "[last]"
        else:
            shown += f"[{step}]"
    return shown


def _new_value(chance: random.Random) -> tuple[str, list[Any]]:
    """An expression and its parameters."""
    match chance.randrange(6):
        case 0:
            return "%s", [chance.choice(("", "x", "y" * 60, '"\\\n'))]
        case 1:
            return "%s", [chance.randrange(-(1 << 33), 1 << 33)]
        case 2:
            return "CAST(%s AS JSON)", [json.dumps(random_value(chance, 4))]
        case 3:
            return "CAST(%s AS DECIMAL(20,5))", [str(round(chance.uniform(-1e9, 1e9), 4))]
        case 4:
            times = "TIMESTAMP('2020-01-02 03:04:05')", "CAST('-1:2:3' AS TIME)"
            return chance.choice((*times, "x'00ff'", "NULL", "TRUE")), []
        case _:
            return "%s", [random_double(chance)]


def _change(chance: random.Random, document: Any) -> tuple[str, list[Any]]:
    """An expression over `{0}`, the column, and its parameters."""
    value, new = _new_value(chance)
    path = _random_path(chance, document)
    shown = _sql_path(chance, document, path)
    match chance.randrange(8):
        case 0:
            return "JSON_REMOVE({0}, %s)", [shown]
        case 1:
            return f"JSON_REPLACE({{0}}, %s, {value})", [shown, *new]
        case 2:
            return f"JSON_SET({{0}}, %s, {value})", [f"{shown}[0][0]", *new]  # a value counts as the array of it
        case 3:
            other = _sql_path(chance, document, _random_path(chance, document))
            return f"JSON_REMOVE(JSON_SET({{0}}, %s, {value}), %s)", [shown, *new, other]
        case 4:
            return f"JSON_SET({{0}}, %s, {value})", [shown, *new]
        case _:
            return _insertion(chance, document, path)


def _insertion(chance: random.Random, document: Any, path: Path) -> tuple[str, list[Any]]:
    while not isinstance(_inside(document, path), dict | list):
        path = path[:-1]
    inside, shown = _inside(document, path), _sql_path(chance, document, path)
    if isinstance(inside, dict):
        legs = [f".{json.dumps(key)}" for key in chance.sample(_KEYS, 2)]
    else:
        size = len(inside)
        cells = f"[{size}]", f"[{size + 7}]", f"[last-{size + 2}]", "[last]", "[0]"
        legs = chance.sample(cells, 2)
    value, new = _new_value(chance)
    return f"JSON_SET({{0}}, %s, {value}, %s, {value})", [shown + legs[0], *new, shown + legs[1], *new]


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


def _update(chance: random.Random, texts: Sequence[bytes | None]) -> tuple[str, list[Any]]:
    """What to set in a row with these documents."""
    sets, parameters = list[str](), list[Any]()
    for column, text in zip("abc", texts, strict=True):
        if column == "c" and chance.random() < 0.2:
            sets.append("c = JSON_SET(a, '$.c', 1)" if text is None else "c = NULL")
        elif text is not None and chance.random() < 0.6:
            if len(text) < 400 or chance.random() < 0.02:
                expression, more = "%s", [json.dumps(_start_document(chance))]
            else:
                expression, more = _change(chance, json.loads(text))
            sets.append(f"{column} = {expression.format(column)}")
            parameters += more
    return ", ".join(["n = %s", *sets]), parameters


@pytest.mark.parametrize("release", ["mysql80", "mysql9"])
def test_partial_updates(release: str, request: pytest.FixtureRequest, database: NewDatabase) -> None:
    server: DatabaseServer = request.getfixturevalue(release)
    chance = random.Random(11)
    file = new_file(server)
    expected: list[tuple[list[bytes | None], list[bytes | None]]] = []
    with server.connect(charset="utf8mb4", database=database(server)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE parts (id INT PRIMARY KEY, a JSON, n INT, b JSON, c JSON)")
        for number in range(12):
            texts = [json.dumps(_start_document(chance)) for _ in range(2)]
            cursor.execute("INSERT INTO parts VALUES (%s, %s, -1, %s, NULL)", (number, *texts))
        for count in range(600):
            number = chance.randrange(12)
            before = _texts(cursor, number)
            options = "PARTIAL_JSON" if chance.random() < 0.9 else ""
            cursor.execute("SET binlog_row_value_options = %s", (options,))
            sets, parameters = _update(chance, before)
            cursor.execute(f"UPDATE parts SET {sets} WHERE id = {number}", [count, *parameters])
            expected.append((before, _texts(cursor, number)))
    found = list(images(file, "parts", _PARTS))[12:]
    operations = [0, 0, 0]
    for old, new, (before, after) in zip(found[::2], found[1::2], expected, strict=True):
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
    found = list(images(file, "parts", _PARTS))[5:]
    assert len({id(image.event) for image in found}) == 1
    assert found[0].kind == PARTIAL_UPDATE_ROWS
    assert [patched(old, new, 1) for old, new in zip(found[::2], found[1::2], strict=True)] == after_update
    assert {image.fields[1].is_diff for image in found[1::2]} == {True, False}
