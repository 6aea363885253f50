"""Ids of documents: readable, one for each key, and never longer than an index takes."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.document.document_id import MAX_ID_BYTES, document_id, parse_document_id
from penstock.document.sql_text import Key
from penstock.model import Column, WireType
from tests.support.document_shop import integer, text

IDS: list[tuple[Key, str]] = [
    ((7,), "7"),
    ((-7,), "-7"),
    ((2**64 - 1,), "18446744073709551615"),
    ((Decimal("7.50"),), "7.50"),
    ((Decimal("1E+3"),), "1000"),
    (("abc",), "abc"),
    (("a:b%c",), "a:b%c"),
    (("",), "%"),
    (("%",), "%25"),
    (("%25",), "%2525"),
    (("%#",), "%25#"),
    ((b"\x00\xff",), "00ff"),
    ((b"",), "%"),
    (("2024-02-29 10:00:00",), "2024-02-29 10:00:00"),
    (("a:b", 7), "a%3Ab:7"),
    (("a", "b:7"), "a:b%3A7"),
    (("%3A", 7), "%253A:7"),
    (("", ""), ":"),
    (("x" * 512,), "x" * 512),
    (("ö" * 256,), "ö" * 256),
]


@pytest.mark.parametrize(("key", "expected"), IDS, ids=[str(number) for number in range(len(IDS))])
def test_ids_are_the_text_of_the_key(key: Key, expected: str) -> None:
    assert document_id(key) == expected


def test_what_is_longer_than_an_index_takes_becomes_a_hash() -> None:
    for key in (("x" * 513,), ("ö" * 257,), ("x" * 300, "y" * 300), (":" * 200, 1), ("%" + "x" * 511,)):
        assert document_id(key).startswith("%#")
        assert len(document_id(key)) == 66


# Texts of the characters that have a meaning in ids, so that random ones collide if any do.
tricky = st.one_of(
    st.text(alphabet="%:253A#", max_size=6),
    st.text(max_size=8),
    st.integers(505, 520).flatmap(lambda size: st.sampled_from("x%:ö").map(lambda letter: letter * size)),
    st.text(alphabet="%:", min_size=160, max_size=180),
)
widths = st.integers(1, 3)


@given(st.data(), widths)
def test_different_keys_have_different_ids(data: st.DataObject, width: int) -> None:
    keys = data.draw(st.lists(st.tuples(*[tricky] * width), min_size=2, max_size=30, unique=True))
    ids = [document_id(key) for key in keys]
    assert len(set(ids)) == len(ids)
    assert all(1 <= len(name.encode()) <= MAX_ID_BYTES for name in ids)


@given(st.lists(tricky, min_size=2, max_size=2, unique=True))
@example(["%", "%25"])
@example(["", "%"])
@example(["%#", "%25#"])
def test_two_texts_never_share_an_id(texts: list[str]) -> None:
    assert document_id((texts[0],)) != document_id((texts[1],))


@given(st.text())
def test_a_text_cannot_take_the_id_of_a_long_key(start: str) -> None:
    long = document_id((start + "x" * 600,))
    assert document_id((long,)) != long


numbers = st.decimals(allow_nan=False, allow_infinity=False, places=2)


@given(st.lists(st.tuples(st.integers(), st.binary(max_size=20), numbers), max_size=20))
def test_numbers_and_bytes_are_not_mixed_up(keys: list[tuple[int, bytes, Decimal]]) -> None:
    distinct = {(number, raw, format(exact, "f")) for number, raw, exact in keys}
    assert len({document_id(key) for key in keys}) == len(distinct)


@given(st.data(), widths)
def test_an_id_is_read_back_as_its_key(data: st.DataObject, width: int) -> None:
    key = data.draw(st.tuples(*[tricky] * width))
    name = document_id(key)
    assert parse_document_id(name, [text("k")] * width) == (None if name.startswith("%#") else key)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (integer("k"), -7),
        (Column("k", WireType.LONGLONG, unsigned=True), 2**64 - 1),
        (Column("k", WireType.NEWDECIMAL, precision=9, scale=2), Decimal("7.50")),
        (Column("k", WireType.VARCHAR, charset="binary"), b"\x00:%"),
        (Column("k", WireType.VARCHAR, charset="binary"), b""),
        (Column("k", WireType.DATETIME2), "2024-02-29 10:00:00"),
        (text("k"), "7"),
    ],
)
def test_values_of_every_type_are_read_back(column: Column, value: Any) -> None:
    assert parse_document_id(document_id((value,)), [column]) == (value,)
    assert parse_document_id(document_id((value, value)), [column, column]) == (value, value)
