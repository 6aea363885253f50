"""Members of JSON objects as slices of their text, beside Python's own reader."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.render.json_members import JsonMember, find_json_members
from penstock.render.weave import write_lines
from tests.twins.json_members import members_of
from tests.twins.strategy import examples

NAMES = ["id", "name", "", "ünï", 'quo"te', "back\\slash", "nested", "{", "a:b,c"]
TEXTS = st.one_of(st.text(max_size=8), st.text('"\\{}[],: \nü', max_size=6))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6)
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:  ")])


def find(texts: list[str], *names: str) -> list[list[str]]:
    array = pa.array(texts, pa.large_string())
    return [member.to_texts().to_pylist() for member in find_json_members(array, np.arange(len(texts)), names)]


@given(st.lists(OBJECTS, max_size=6), st.lists(st.sampled_from(NAMES), max_size=5), SEPARATORS, st.integers(0, 3))
@examples(300)
def test_members_are_the_slices_that_pythons_reader_finds(
    objects: list[dict[str, Any]], names: list[str], separators: tuple[str, str], first: int
) -> None:
    texts = [json.dumps(value, ensure_ascii=False, separators=separators) for value in objects]
    array = pa.array(texts, pa.large_string()).slice(first)
    members = find_json_members(array, np.arange(len(array)), names)
    for name, member in zip(names, members, strict=True):
        expected = [members_of(text).get(name, "") for text in texts[first:]]
        assert member.to_texts().to_pylist() == expected
        assert member.is_there.tolist() == [bool(text) for text in expected]
        assert member.first_bytes.tolist() == [text.encode()[0] if text else 0 for text in expected]
        assert [member.slice_value(i).decode() for i in range(len(member))] == expected
        assert [json.loads(text) for text in expected if text] == [
            value[name] for value in objects[first:] if name in value
        ]
        trimmed = [text[1:-1] if text[:1] == '"' else text for text in expected]
        assert member.without_quotes().to_texts().to_pylist() == trimmed


@given(OBJECTS, st.data())
@examples(300)
def test_what_is_cut_off_or_broken_is_never_read_beyond_its_end(value: dict[str, Any], data: st.DataObject) -> None:
    """The bytes after an object are those of the next one; what they hold is never a part of it."""
    raw = bytearray(json.dumps(value, ensure_ascii=False).encode())
    for _ in range(data.draw(st.integers(0, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.sampled_from(b'"\\{}[]:, n1'))
    cut = data.draw(st.integers(0, len(raw)))
    bounds = np.array([0, cut, len(raw)], np.int64)
    array = pa.Array.from_buffers(pa.large_string(), 2, [None, pa.py_buffer(bounds), pa.py_buffer(bytes(raw))])
    for member in find_json_members(array, np.arange(2), NAMES):
        starts, ends = member.bounds[::2], member.bounds[1::2]
        assert (bounds[:-1] <= starts).all()
        assert (starts <= ends).all()
        assert (ends <= bounds[1:]).all()


@pytest.mark.parametrize("text", ["", " ", "null", "[]", "7", '"id"', "{", '{"id"', '{"id":', "{}", "{id:1}", "}"])
def test_what_is_no_object_with_the_member_has_none(text: str) -> None:
    assert find([text], "id") == [[""]]


def test_rows_are_chosen_and_a_name_may_be_asked_for_twice() -> None:
    array = pa.array(['{"a":1,"b":"x"}', None, '{"b":"y"}', '{"b":null,"a":[2]}'], pa.large_string())
    a, b, again = find_json_members(array, np.array([0, 3]), ["a", "b", "a"])
    assert (a.to_texts().to_pylist(), b.to_texts().to_pylist()) == (["1", "[2]"], ['"x"', "null"])
    assert again.to_texts().to_pylist() == ["1", "[2]"]


def test_lines_show_slices_and_nulls() -> None:
    array = pa.array(['{"a":"x"}', '{"a":"yy"}', '{"a":"zzz"}'], pa.large_string())
    member: JsonMember = find_json_members(array, np.arange(3), ["a"])[0]
    rows = np.array([2, 0, 1])
    lines = write_lines(["<", member.pick_rows(rows, np.array([True, False, False])), ">"], 3)
    assert lines.to_pylist() == ['<"zzz">', "<null>", '<"yy">']
    assert find([], "a") == [[]]
