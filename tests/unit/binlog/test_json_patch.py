"""The patching kernel against its twin: diffs as the server writes them, broken ones, and ones that do not fit.

`tests/unit/binlog/test_bounds_check.py` runs the broken ones once more with every read of the kernels checked.
"""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.values.json_format import JsonError, JsonFault
from penstock.binlog.values.json_patch import patch_json
from tests.twins import json as twin
from tests.twins.json import encode
from tests.twins.json_diff import INSERT, REMOVE, REPLACE, Leg, patch, write_diff
from tests.twins.json_strategy import LARGE, Large, changes, deep_values, diffs, encoded
from tests.twins.strategy import broken, examples

ABSENT = -2
Rows = list[tuple[bytes | None, bytes | None]]
"""Documents and diffs."""


def patched(rows: Rows, **style: Any) -> list[bytes]:
    data = bytearray(b"\xa5\x5a")
    cells: list[list[int]] = []
    for row in rows:
        cells.append([])
        for field in row:
            cells[-1] += [0, ABSENT] if field is None else [len(data), len(field)]
            data += field or b""
    columns = np.array(cells, np.int64).reshape(-1, 4).T.copy()
    bounds, text = patch_json(np.frombuffer(bytes(data), np.uint8), *columns, **style)
    assert bounds.dtype == np.int32
    assert bounds[-1] == text.size
    return [text[a:b].tobytes() for a, b in pairwise(bounds)]


def patch_one(before: bytes, diff: bytes) -> str:
    (text,) = patched([(before, diff)])
    return text.decode()


def kernel_patch(before: bytes, diff: bytes) -> str | None:
    """None when it cannot be done."""
    try:
        return patch_one(before, diff)
    except JsonError as error:
        fault, row, where = error.fault, error.row, error.where
    assert fault in {JsonFault.BROKEN, JsonFault.TOO_DEEP, JsonFault.BROKEN_DIFF, JsonFault.UNFIT_DIFF}
    assert row == 0
    assert 0 <= where <= 2 + len(before) + len(diff)
    return None


def twin_patch(before: bytes, diff: bytes) -> str | None:
    try:
        return patch(before, diff)
    except twin.BrokenJsonError:
        return None


@examples(400)
@given(changes())
def test_diffs_that_fit(change: tuple[bytes, bytes]) -> None:
    text = patch_one(*change)
    assert text == patch(*change)
    json.loads(text)


@examples(100)
@given(st.lists(st.tuples(st.one_of(st.none(), encoded()), st.none()), max_size=4), st.lists(changes(), max_size=3))
def test_rows_with_and_without_diffs(plain: Rows, changed: Rows) -> None:
    rows = [*plain, *changed, *plain]
    expected = [
        "" if before is None else twin.text(twin.decode(before)) if diff is None else patch(before, diff)
        for before, diff in rows
    ]
    assert [text.decode() for text in patched(rows)] == expected


@examples(10)
@given(LARGE, st.data())
def test_large_documents(large: Large, data: st.DataObject) -> None:
    """More children than there are nodes at first."""
    value = large.value()
    legs: list[Leg] = []
    if isinstance(value, dict):
        legs = ["key 21999"] if large.shape else ["big", (data.draw(st.integers(0, 21_999)), data.draw(st.booleans()))]
    else:
        legs = [(0, False)] if large.shape == 2 else [(1, False), (data.draw(st.integers(0, 21_999)), True)]
    change = encode(value), write_diff(REPLACE, legs, encode("new")) + write_diff(REMOVE, legs)
    assert patch_one(*change) == patch(*change)


_BEFORE = {"a": 1, "b c": [1, 2, [3, {"x": None}]], "é": "v", "": {}, 'q"\\\n': [], "arr": [10, 20, 30]}


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("$.a", {"a": 9}),
        ('$."a"', {"a": 9}),
        ('$."b c"[2][1].x', {"b c": [1, 2, [3, {"x": 9}]]}),
        ("$.é", {"é": 9}),
        ('$.""', {"": 9}),
        ('$."q\\"\\\\\\n"', {'q"\\\n': 9}),
        ('$."q\\u0022\\u005C\\u000a"', {'q"\\\n': 9}),
        ("$.arr[last]", {"arr": [10, 20, 9]}),
        ("$.arr[last-2]", {"arr": [9, 20, 30]}),
        ("$.arr[1]", {"arr": [10, 9, 30]}),
    ],
)
def test_paths(path: str, shown: dict[str, Any]) -> None:
    raw = bytes([REPLACE, len(path.encode())]) + path.encode() + b"\x03" + encode(9)
    assert json.loads(patch_one(encode(_BEFORE), raw)) == _BEFORE | shown


@pytest.mark.parametrize(
    ("legs", "shown"),
    [
        ([(0, False)], [9, 1, 2, 3]),
        ([(1, False)], [1, 9, 2, 3]),
        ([(3, False)], [1, 2, 3, 9]),
        ([(10, False)], [1, 2, 3, 9]),
        ([(0, True)], [1, 2, 9, 3]),
        ([(2, True)], [9, 1, 2, 3]),
        ([(5, True)], [9, 1, 2, 3]),
    ],
)
def test_where_an_inserted_cell_goes(legs: list[Leg], shown: list[int]) -> None:
    assert json.loads(patch_one(encode([1, 2, 3]), write_diff(INSERT, legs, encode(9)))) == shown
    assert json.loads(patch_one(encode([]), write_diff(INSERT, legs, encode(9)))) == [9]


def test_members_stay_in_order_of_length_and_bytes() -> None:
    diff = b"".join(write_diff(INSERT, [key], encode(9)) for key in ("b", "", "aa", "é", "zz", "y", "\x01", "ccc"))
    assert patch_one(encode({"c": 1, "bb": 2}), diff) == (
        '{"": 9, "\\u0001": 9, "b": 9, "c": 1, "y": 9, "aa": 9, "bb": 2, "zz": 9, "é": 9, "ccc": 9}'
    )


def test_diffs_are_applied_in_order_and_to_each_other() -> None:
    diff = b"".join(
        (
            write_diff(REPLACE, ["a"], encode({"x": [1]})),
            write_diff(INSERT, ["a", "x", (0, False)], encode("first")),
            write_diff(REMOVE, ["a", "x", (0, True)]),
            write_diff(INSERT, ["a", "new key"], encode([])),
            write_diff(INSERT, ["a", "new key", (7, False)], encode(True)),
            write_diff(REMOVE, ["b"]),
        )
    )
    assert patch_one(encode({"a": 1, "b": 2}), diff) == '{"a": {"x": ["first"], "new key": [true]}}'


def test_no_diffs_and_a_new_root() -> None:
    assert patched([(encode([1]), b""), (b"", b""), (None, None), (b"", None)]) == [b"[1]", b"null", b"", b"null"]
    assert patch_one(encode([1]), write_diff(REPLACE, [], encode({"a": 1.0}))) == '{"a": 1.0}'
    assert patch_one(b"", write_diff(REPLACE, [], encode("x"))) == '"x"'
    assert patched([(encode(1.0), write_diff(REPLACE, [], encode([2.0])))], point_zero=False) == [b"[2]"]


@pytest.mark.parametrize(
    "diff",
    [
        write_diff(REPLACE, ["missing"], encode(1)),
        write_diff(REMOVE, ["missing"]),
        write_diff(INSERT, ["a"], encode(1)),
        write_diff(INSERT, ["missing", "x"], encode(1)),
        write_diff(REPLACE, ["a", (0, False)], encode(1)),
        write_diff(REPLACE, ["arr", (3, False)], encode(1)),
        write_diff(REPLACE, ["arr", (3, True)], encode(1)),
        write_diff(REMOVE, ["arr", (99, False)]),
        write_diff(REPLACE, ["arr", "x"], encode(1)),
        write_diff(REPLACE, [(0, False)], encode(1)),
        write_diff(INSERT, [], encode(1)),
        write_diff(REMOVE, []),
    ],
)
def test_a_diff_that_does_not_fit(diff: bytes) -> None:
    good = write_diff(REPLACE, ["a"], encode(5))
    with pytest.raises(JsonError, match="does not fit") as caught:
        patched([(encode(1), None), (encode(_BEFORE), good + diff)])
    assert caught.value.fault is JsonFault.UNFIT_DIFF
    assert caught.value.row == 1
    assert caught.value.where == 2 + len(encode(1)) + len(encode(_BEFORE)) + len(good)
    assert twin_patch(encode(_BEFORE), diff) is None


def test_a_diff_without_the_document_before() -> None:
    with pytest.raises(JsonError, match="not the document before") as caught:
        patched([(None, None), (None, write_diff(REMOVE, ["a"]))])
    assert caught.value.row == 1
    assert caught.value.fault is JsonFault.NO_BEFORE


def test_depth_counts_where_a_value_is_put() -> None:
    deep: Any = 1
    for _ in range(99):
        deep = [deep]
    assert patch_one(encode([0]), write_diff(REPLACE, [(0, False)], encode(deep))) == "[" * 100 + "1" + "]" * 100
    assert kernel_patch(encode([[0]]), write_diff(REPLACE, [(0, False), (0, False)], encode(deep))) is None


_BROKEN_PATHS = [
    b"", b"a", b"$a", b"$.", b"$..a", b'$."a', b'$."a\\', b'$."\\x"', b'$."\\u00"', b'$."\\u00zz"', b'$."\\u0100"',
    b"$[", b"$[]", b"$[-1]", b"$[1", b"$[la]", b"$[last", b"$[last-]", b"$[last+1]", b"$[1x]", b"$[last-x]", b"$]",
    b"$[99999999999999999999999]",
]  # fmt: skip


@pytest.mark.parametrize("path", _BROKEN_PATHS)
def test_broken_paths(path: bytes) -> None:
    raw = bytes([REPLACE, len(path)]) + path + b"\x03" + encode(9)
    for before in (encode({"a": 1}), encode([1])):
        assert kernel_patch(before, raw) is None
        assert twin_patch(before, raw) is None


def agree(before: bytes, diff: bytes) -> None:
    """The twin reads all of the document, the kernel only what is left of it."""
    patched, expected = kernel_patch(before, diff), twin_patch(before, diff)
    assert expected is None or patched == expected
    if patched is not None:
        patched.encode()


@examples(400)
@given(changes().flatmap(lambda change: st.tuples(st.just(change[0]), broken(change[1]))))
def test_broken_diffs(change: tuple[bytes, bytes]) -> None:
    agree(*change)


@examples(400)
@given(changes().flatmap(lambda change: st.tuples(broken(change[0]), st.just(change[1]))))
def test_broken_documents_with_diffs(change: tuple[bytes, bytes]) -> None:
    agree(*change)


@examples(300)
@given(encoded(), st.binary(max_size=30), st.sampled_from((b"", b"\x00\x04$[0]", b"\x01\x02$.", b"\x02\x01$")))
def test_garbage_diffs(before: bytes, raw: bytes, start: bytes) -> None:
    agree(before, start + raw)


@examples(40)
@given(deep_values(90, 110).flatmap(lambda value: st.tuples(st.just(encode(value)), diffs(value))))
def test_broken_depth(change: tuple[bytes, bytes]) -> None:
    agree(*change)


def test_lying_documents_do_not_multiply() -> None:
    """A hundred entries that point at one array, all of them opened by diffs."""
    inner = encode([1] * 50)[1:]
    header = 4 + 3 * 100
    before = b"\x02" + (100).to_bytes(2, "little") + (header + len(inner)).to_bytes(2, "little")
    before += (b"\x02" + header.to_bytes(2, "little")) * 100 + inner
    diff = b"".join(write_diff(REPLACE, [(i, False), (0, False)], encode(2)) for i in range(100))
    assert kernel_patch(before, diff) is None
