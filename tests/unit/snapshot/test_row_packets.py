"""Rows of the binary protocol, cut and located wherever reads end."""

import struct
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.snapshot.row_packets import END, ERROR, LONG, MORE, STRING, TEMPORAL, cut_rows, locate_fields

_KINDS = (1, 2, 4, 8, STRING, TEMPORAL)
_EOF = b"\x05\0\0\x09\xfe\0\0\x22\0"


def encode_length(size: int) -> bytes:
    if size < 251:
        return bytes([size])
    if size < 1 << 16:
        return b"\xfc" + struct.pack("<H", size)
    return b"\xfd" + size.to_bytes(3, "little")


def encode_row(kinds: tuple[int, ...], values: tuple[bytes | None, ...]) -> bytes:
    bits = sum(1 << (i + 2) for i, value in enumerate(values) if value is None)
    payload = b"\0" + bits.to_bytes((len(kinds) + 9) // 8, "little")
    for kind, value in zip(kinds, values, strict=True):
        if value is not None:
            payload += (encode_length(len(value)) if kind in (STRING, TEMPORAL) else b"") + value
    return len(payload).to_bytes(3, "little") + b"\x07" + payload


def _value(kind: int) -> st.SearchStrategy[bytes | None]:
    if kind == STRING:
        size = st.one_of(st.integers(0, 20), st.sampled_from([250, 251, 300, 70_000]))
        return st.one_of(st.none(), size.map(lambda size: b"x" * size))
    if kind == TEMPORAL:
        return st.one_of(st.none(), st.sampled_from([0, 4, 7, 11, 12]).map(bytes))
    return st.one_of(st.none(), st.binary(min_size=kind, max_size=kind))


@st.composite
def tables(draw: Any) -> tuple[tuple[int, ...], list[tuple[bytes | None, ...]]]:
    kinds = tuple(draw(st.lists(st.sampled_from(_KINDS), min_size=1, max_size=12)))
    rows = draw(st.lists(st.tuples(*map(_value, kinds)), max_size=8))
    return kinds, rows


def _locate(data: Any, starts: Any, ends: Any, kinds: tuple[int, ...]) -> tuple[int, Any, Any]:
    offsets, lengths = (np.empty((len(kinds), len(starts)), np.int32) for _ in range(2))
    wrong = locate_fields(data, starts, ends, np.array(kinds, np.uint8), offsets, lengths)
    return wrong, offsets, lengths


@given(tables(), st.data())
def test_rows_are_the_same_wherever_a_read_ends(
    table: tuple[tuple[int, ...], list[tuple[bytes | None, ...]]], data: st.DataObject
) -> None:
    kinds, rows = table
    raw = b"".join(encode_row(kinds, row) for row in rows) + _EOF
    buffer = np.frombuffer(raw, np.uint8)
    starts, ends = (np.empty(100, np.int32) for _ in range(2))
    at, count, reason = 0, 0, MORE
    for end in (*sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=5))), len(raw)):
        count, at, reason = cut_rows(buffer, at, end, count, starts, ends)
    assert (count, reason) == (len(rows), END)
    assert at == len(raw) - len(_EOF)
    wrong, offsets, lengths = _locate(buffer, starts[:count], ends[:count], kinds)
    assert wrong == -1
    for number, row in enumerate(rows):
        for column, (kind, value) in enumerate(zip(kinds, row, strict=True)):
            at, size = int(offsets[column, number]), int(lengths[column, number])
            if value is None:
                assert at == -1
            elif kind == TEMPORAL:
                assert raw[at : at + size] == bytes([len(value)]) + value
            else:
                assert raw[at : at + size] == value


@given(tables(), st.data())
def test_damaged_rows_are_found_and_never_read_beyond(
    table: tuple[tuple[int, ...], list[tuple[bytes | None, ...]]], data: st.DataObject
) -> None:
    kinds, rows = table
    raw = bytearray(b"".join(encode_row(kinds, row) for row in rows) + _EOF)
    for offset in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=4)):
        raw[offset] = data.draw(st.integers(0, 255))
    buffer = np.frombuffer(bytes(raw), np.uint8)
    starts, ends = (np.empty(100, np.int32) for _ in range(2))
    count, at, reason = cut_rows(buffer, 0, len(raw), 0, starts, ends)
    assert reason in {MORE, END, ERROR, LONG}
    assert 0 <= at <= len(raw)
    wrong, offsets, lengths = _locate(buffer, starts[:count], ends[:count], kinds)
    good = count if wrong < 0 else wrong
    inside = offsets[:, :good] >= 0
    assert (offsets[:, :good][inside] + lengths[:, :good][inside] <= len(raw)).all()


def test_an_error_and_a_long_row_stop_the_cutting() -> None:
    starts, ends = (np.empty(10, np.int32) for _ in range(2))
    row = encode_row((STRING,), (b"a",))
    error = b"\x09\0\0\x03\xff\x15\x04#HY000"
    for last, reason in ((error, ERROR), (b"\xff\xff\xff\x04" + bytes(100), LONG)):
        raw = np.frombuffer(row + last, np.uint8)
        assert cut_rows(raw, 0, raw.size, 0, starts, ends) == (1, len(row), reason)


def test_no_more_rows_are_cut_than_there_is_room_for() -> None:
    raw = np.frombuffer(encode_row((1,), (b"\1",)) * 5, np.uint8)
    starts, ends = (np.empty(3, np.int32) for _ in range(2))
    count, at, reason = cut_rows(raw, 0, raw.size, 0, starts, ends)
    assert (count, at, reason) == (3, raw.size * 3 // 5, MORE)
