"""Documents through a function of the user: values keep their digits, and a failure is of one document."""

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.document.graph import REFERENCES_FIELD
from penstock.document.python_function import PythonFunction
from penstock.document.transform import DocumentTransform
from penstock.errors import TransformError

Hook = Callable[[Any], Any]


class LocalFunction(PythonFunction):
    """A function of this test, instead of one in a file."""

    def load(self) -> Hook:
        return FUNCTIONS[self.name]


FUNCTIONS: dict[str, Hook] = {}


def transform_with(function: Hook) -> DocumentTransform:
    FUNCTIONS["hook"] = function
    return DocumentTransform(LocalFunction("hook.py:hook", __file__, "hook", ""))


def unchanged(text: str) -> str | None:
    return transform_with(lambda document: document).transform_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "35.00",
        "-0.50",
        "0.00000000000000000001",
        "0.000000000000000000000000000000",
        "12345678901234567890123456789012345.123456789012345678901234567890",
        "99999999999999999999999999999999999999999999999999999999999999999",
        "-9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775809",
        "0",
        "1.5",
        '"\\"\\\\ ☃ 日本 😀"',
        "[null,true,false,[],{}]",
        '{"a":{"b":[1.10,2.20]}}',
    ],
)
def test_what_the_function_leaves_alone_keeps_its_text(text: str) -> None:
    assert unchanged(f'{{"a":{text},"b":1}}') == f'{{"a":{text},"b":1}}'


@pytest.mark.parametrize("text", ["1e20", "1E+20", "1.7976931348623157e308", "5e-324", "-2.5e-7", "1e400", "-0.0"])
def test_a_number_with_an_exponent_keeps_its_value(text: str) -> None:
    written = json.loads(unchanged(f'{{"a":{text}}}') or "", parse_float=Decimal)["a"]
    assert written == Decimal(text)
    assert float(written) == float(text)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.decimals(allow_nan=False, allow_infinity=False, places=7, min_value=-(10**20), max_value=10**20)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=12,
)


def to_json(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{','.join(f'{json.dumps(name)}:{to_json(part)}' for name, part in value.items())}}}"
    if isinstance(value, list):
        return f"[{','.join(map(to_json, value))}]"
    return format(value, "f") if isinstance(value, Decimal) else json.dumps(value)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), values))
def test_any_document_that_is_left_alone_is_the_same(document: dict[str, Any]) -> None:
    text = to_json({name: value for name, value in document.items() if name != REFERENCES_FIELD})
    written = unchanged(text)
    assert written is not None
    assert json.loads(written, parse_float=Decimal) == json.loads(text, parse_float=Decimal)


def test_values_have_the_types_that_the_page_says() -> None:
    seen: dict[str, Any] = {}

    def look(document: dict[str, Any]) -> dict[str, Any]:
        seen.update(document)
        return {}

    text = '{"a":7,"b":7.10,"c":"x","d":true,"e":null,"f":{"g":[1]},"h":18446744073709551616,"i":1e3}'
    assert transform_with(look).transform_text(text) == "{}"
    assert seen == {
        "a": 7, "b": Decimal("7.10"), "c": "x", "d": True, "e": None, "f": {"g": [1]}, "h": Decimal(2**64),
        "i": Decimal(1000),
    }  # fmt: skip
    assert [type(value) for value in seen.values()] == [int, Decimal, str, bool, type(None), dict, Decimal, Decimal]
    assert str(seen["b"]) == "7.10"


def test_what_the_function_adds_is_written() -> None:
    at = datetime(2024, 2, 29, 10, 0, tzinfo=UTC)
    added = {"f": 0.5, "d": Decimal("1.10") * 2, "t": at, "day": at.date(), "n": np.float64(1.5), "i": np.int64(7)}
    written = transform_with(lambda document: document | added).transform_text('{"a":1}')
    assert written == ('{"a":1,"f":0.5,"d":2.20,"t":"2024-02-29T10:00:00+00:00","day":"2024-02-29","n":1.5,"i":7}')


def divide(document: dict[str, Any]) -> dict[str, Any]:
    return {"a": 1 / document["a"]}


def test_a_failure_with_half_a_character_in_its_text_can_be_stored() -> None:
    def fail(_: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("half \ud800")

    done = transform_with(fail).transform_documents(pa.array(['{"a":1}'], pa.large_string()))
    assert done.failures[0].encode().endswith(b"ValueError: half \\ud800")


def test_none_is_no_document_and_a_failure_is_of_one() -> None:
    def choose(document: dict[str, Any]) -> dict[str, Any] | None:
        return None if document["a"] < 0 else divide(document)

    texts = pa.array(['{"a":1}', '{"a":-1}', '{"a":0}', '{"b":1}', '{"a":2}'], pa.large_string())
    done = transform_with(choose).transform_documents(texts)
    assert done.texts.to_pylist() == ['{"a":1.0}', None, None, None, '{"a":0.5}']
    line = divide.__code__.co_firstlineno + 1
    assert done.failures[2] == f"transform hook.py:hook, line {line}: ZeroDivisionError: division by zero"
    assert "KeyError: 'a'" in done.failures[3]
    assert set(done.failures) == {2, 3}


class Unprintable(Exception):  # noqa: N818 - no error of ours
    def __str__(self) -> str:
        raise ValueError


def leave(_: Any) -> Any:
    raise SystemExit(3)


def fail(_: Any) -> Any:
    raise Unprintable


CYCLE: dict[str, Any] = {}
CYCLE["a"] = CYCLE


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda _: [1], "returned a value of the type list; return a dict, or None"),
        (lambda _: "{}", "returned a value of the type str"),
        (lambda _: False, "returned a value of the type bool"),
        (lambda _: {"a": object()}, "cannot be written as JSON: Type is not JSON serializable: object"),
        (lambda _: {"a": {1, 2}}, "Type is not JSON serializable: set"),
        (lambda _: {"a": b"x"}, "Type is not JSON serializable: bytes"),
        (lambda _: {1: "a"}, "Dict key must be str"),
        (lambda _: {"a": [{"b": math.nan}]}, "cannot be written as JSON: a number is nan"),
        (lambda _: {"a": -math.inf}, "a number is -inf"),
        (lambda _: {"a": (Decimal("NaN"),)}, "a number is NaN"),
        (lambda _: {"a": 2**64}, "exceeds 64-bit"),
        (lambda _: {"a": "\ud800"}, "surrogates not allowed"),
        (lambda _: CYCLE, "Recursion limit"),
        (leave, "SystemExit: 3"),
        (fail, "Unprintable: <exception str() failed>"),
        (lambda document: document.b, "AttributeError: 'dict' object has no attribute 'b'"),
    ],
)  # fmt: skip
def test_what_is_no_document_is_told(function: Hook, reason: str) -> None:
    with pytest.raises(TransformError) as raised:
        transform_with(function).transform_text('{"a":1}')
    assert reason in str(raised.value)
    assert str(raised.value).startswith("transform hook.py:hook")


def test_a_reason_is_of_bounded_length() -> None:
    def shout(_: Any) -> Any:
        raise ValueError("x" * 10_000)

    with pytest.raises(TransformError) as raised:
        transform_with(shout).transform_text("{}")
    assert len(str(raised.value)) <= 1001


def test_the_rows_that_a_document_depends_on_are_not_the_functions_business() -> None:
    text = f'{{"a":1,"{REFERENCES_FIELD}":["shop.store:1"]}}'
    seen: list[Any] = []
    assert transform_with(lambda document: seen.append(dict(document)) or {"b": 2}).transform_text(text) == (
        f'{{"b":2,"{REFERENCES_FIELD}":["shop.store:1"]}}'
    )
    assert seen == [{"a": 1}]
    kept = {"c": 3}
    transform_with(lambda _: kept).transform_text(text)
    assert kept == {"c": 3}, "what the function returned is left as it is"


def test_a_file_is_the_function_of_a_transform(tmp_path: Path) -> None:
    (tmp_path / "hook.py").write_text("def enrich(document):\n    return document | {'b': document['a'] * 2}\n")
    transform = DocumentTransform(PythonFunction.find("hook.py:enrich", tmp_path))
    assert transform.transform_text('{"a":1.05}') == '{"a":1.05,"b":2.10}'
    with pytest.raises(TransformError, match=r"^transform hook.py:enrich, line 2: KeyError: 'a'$"):
        transform.transform_text("{}")
