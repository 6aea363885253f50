"""Random changes of JSON documents that a server can log as diffs."""

import json
import random
from collections.abc import Sequence
from typing import Any

from tests.support.json_support import random_double, random_value

_KEYS = ("a", "b c", "é", "", "1a", "$x_", 'q"q', "back\\slash", "ctl\x01\n\t", "😀", "last", "字", "a.b", "a[0]",
         "x\x7f", "a-b", "null", "k" * 130, "\u200cb", "a\u200cb", "²", "\ufeff", "𝒳", "é字é")  # fmt: skip
Path = list[str | int]


def start_document(chance: random.Random) -> dict[str, Any]:
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


def random_update(chance: random.Random, texts: Sequence[bytes | None]) -> tuple[str, list[Any]]:
    """What to set in a row with these documents."""
    sets, parameters = list[str](), list[Any]()
    for column, text in zip("abc", texts, strict=True):
        if column == "c" and chance.random() < 0.2:
            sets.append("c = JSON_SET(a, '$.c', 1)" if text is None else "c = NULL")
        elif text is not None and chance.random() < 0.6:
            if len(text) < 400 or chance.random() < 0.02:
                expression, arguments = "%s", [json.dumps(start_document(chance))]
            else:
                expression, arguments = _change(chance, json.loads(text))
            sets.append(f"{column} = {expression.format(column)}")
            parameters += arguments
    return ", ".join(["n = %s", *sets]), parameters
