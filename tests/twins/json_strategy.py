"""Hypothesis strategies: JSON documents of every shape and type, and diffs for them."""

import copy
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from tests.twins.json import Opaque, Unsigned, encode
from tests.twins.json_diff import INSERT, REMOVE, REPLACE, Leg, write_diff
from tests.twins.value import decimal_of

_CHARACTERS = st.one_of(
    st.characters(exclude_categories=[]),
    st.sampled_from('\x00\x1f\x7f"\\/\b\t\n\f\r\u2028é字😀\ud800\udfff'),
    st.sampled_from("abc"),
)
TEXTS = st.one_of(st.text(_CHARACTERS, max_size=20), st.text(st.sampled_from("abc xyz"), max_size=200))
_MAX_TIME = timedelta(hours=1023, minutes=59, seconds=59, microseconds=999_999)


def _around(*powers: int) -> st.SearchStrategy[int]:
    return st.sampled_from(powers).flatmap(lambda power: st.integers((1 << power) - 2, (1 << power) + 2))


@st.composite
def decimals(draw: st.DrawFn) -> Any:
    precision = draw(st.integers(1, 65))
    scale = draw(st.integers(0, min(30, precision)))
    return decimal_of(draw(st.integers(-(10**precision) + 1, 10**precision - 1)), scale)


INTEGERS = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    _around(7, 8, 15, 16, 31, 32).flatmap(lambda number: st.sampled_from((number, -number))),
    st.sampled_from((0, -1, 1, -(1 << 63), (1 << 63) - 1)),
)
UNSIGNED = st.one_of(st.integers(0, (1 << 64) - 1), _around(8, 15, 16, 31, 32, 63), st.just((1 << 64) - 1)).map(
    Unsigned
)
DOUBLES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(10**17), 10**17).map(float),
    st.tuples(st.integers(-99_999, 99_999), st.integers(-20, 20)).map(lambda pair: float(f"{pair[0]}e{pair[1]}")),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    INTEGERS,
    UNSIGNED,
    DOUBLES,
    TEXTS,
    decimals(),
    st.dates(),
    st.datetimes(),
    st.timedeltas(-_MAX_TIME, _MAX_TIME),
    st.builds(Opaque, st.sampled_from((0, 1, 13, 15, 16, 242, 249, 252, 253, 254, 255)), st.binary(max_size=200)),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=6), st.dictionaries(TEXTS, inner, max_size=6)),
    max_leaves=25,
)


@st.composite
def deep_values(draw: st.DrawFn, least: int = 1, most: int = 100) -> Any:
    """Containers inside of each other."""
    value: Any = draw(SCALARS)
    for _ in range(draw(st.integers(least, most))):
        nesting = draw(st.integers(0, 3))
        value = (
            {"k": value}
            if nesting == 0
            else [value]
            if nesting == 1
            else [1, value]
            if nesting == 2
            else {"a": value, "bb": 2}
        )
    return value


@dataclass(frozen=True, slots=True)
class Large:
    """How to make a document of more than 64 KiB, which needs the large format, as a whole or in parts."""

    shape: int
    count: int
    filling: Any
    other: Any

    def value(self) -> Any:
        values: list[Any] = [self.filling] * self.count
        match self.shape:
            case 0:
                return {"big": values, "small": self.other}
            case 1:
                return {f"key {i}": value for i, value in enumerate(values)}
            case 2:
                return [self.other, "x" * (self.count + 43_000), self.filling]
            case _:
                return [[self.other], values]


LARGE = st.builds(Large, st.integers(0, 3), st.integers(22_000, 30_000), SCALARS, VALUES)
DOCUMENTS = st.one_of(VALUES, deep_values())
"""Of modest size."""


def encoded(values: st.SearchStrategy[Any] = DOCUMENTS) -> st.SearchStrategy[bytes]:
    return st.builds(lambda value, is_large: encode(value, is_large=is_large), values, st.booleans())


@st.composite
def diffs(draw: st.DrawFn, value: Any) -> bytes:
    """Some that fit the document, one after the other."""
    root = [copy.deepcopy(value)]
    raw = bytearray()
    for _ in range(draw(st.integers(0, 5))):
        raw += draw(_diff(root))
    return bytes(raw)


@st.composite
def _diff(draw: st.DrawFn, root: list[Any]) -> bytes:
    """Change the document and say how."""
    legs, parent, step = list[Leg](), root, 0
    while draw(st.integers(0, 3)) and isinstance(parent[step], list | dict) and parent[step]:
        parent = parent[step]
        step = draw(st.sampled_from(sorted(parent)) if isinstance(parent, dict) else st.integers(0, len(parent) - 1))
        legs.append(_leg(draw, parent, step))
    new = draw(st.one_of(SCALARS, VALUES))
    operation = draw(st.sampled_from((REPLACE, INSERT, REMOVE)))
    inside = parent[step]
    if operation == INSERT and isinstance(inside, list):
        index = draw(st.integers(0, len(inside) + 2))
        inside.insert(index, new)
        return write_diff(INSERT, [*legs, (index, False)], encode(new))
    if operation == INSERT and isinstance(inside, dict):
        key = draw(TEXTS.filter(lambda key: key not in inside))
        inside[key] = new
        return write_diff(INSERT, [*legs, key], encode(new))
    if operation == REMOVE and legs:
        del parent[step]
        return write_diff(REMOVE, legs)
    parent[step] = new
    return write_diff(REPLACE, legs, encode(new))


def _leg(draw: st.DrawFn, parent: Any, step: Any) -> Leg:
    if isinstance(parent, dict):
        return step
    return (len(parent) - 1 - step, True) if draw(st.booleans()) else (step, False)


@st.composite
def changes(draw: st.DrawFn, values: st.SearchStrategy[Any] = DOCUMENTS) -> tuple[bytes, bytes]:
    """A document and diffs for it."""
    value = draw(values)
    return encode(value, is_large=draw(st.booleans())), draw(diffs(value))
