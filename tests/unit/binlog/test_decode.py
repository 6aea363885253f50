"""Each decode kernel against its twin: any bytes of the right width, nulls among them."""

import calendar
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.values import kernels
from penstock.binlog.values.column import decimal_width
from tests.twins import value as twin
from tests.twins.strategy import examples

_CELLS = {1: np.int8, 2: np.int16, 3: np.int32, 4: np.int32, 8: np.int64}
Fields = list[bytes | None]


def fields(width: st.SearchStrategy[int]) -> st.SearchStrategy[Fields]:
    return width.flatmap(
        lambda size: st.lists(st.one_of(st.none(), st.binary(min_size=size, max_size=size)), min_size=1, max_size=9)
    )


def lay_out(values: Fields) -> tuple[Any, Any, Any]:
    """The fields with gaps between them; the last ends with the buffer."""
    data, offsets, lengths = bytearray(), list[int](), list[int]()
    for value in values:
        data += b"\xa5\x5a"
        offsets.append(0 if value is None else len(data))
        lengths.append(-1 if value is None else len(value))
        data += value or b""
    return np.frombuffer(bytes(data), np.uint8), np.array(offsets, np.int64), np.array(lengths, np.int64)


@examples(150)
@given(st.sampled_from(sorted(_CELLS)).flatmap(lambda size: fields(st.just(size))), st.booleans())
def test_integers(values: Fields, is_signed: bool) -> None:
    width = max((len(value) for value in values if value is not None), default=1)
    out = np.full(len(values), 77, _CELLS[width])
    kernels.decode_integer(*lay_out(values), width, is_signed, out)
    found = out if is_signed else out.view(f"u{out.itemsize}")
    expected = [0 if value is None else twin.decode_integer(value, is_signed=is_signed) for value in values]
    assert found.tolist() == expected


@examples(150)
@given(st.integers(1, 65), st.integers(0, 38), st.data())
def test_decimals(precision: int, scale: int, data: st.DataObject) -> None:
    scale = min(scale, precision)
    values = data.draw(fields(st.just(decimal_width(precision, scale))))
    words = 2 if precision <= 38 else 4
    out = np.full((len(values), words), 77, np.int64)
    kernels.decode_decimal(*lay_out(values), precision, scale, out)
    # Groups of garbage can hold more than their digits: cells then keep the lowest bits.
    modulus = 1 << (64 if precision <= 18 else 64 * words)
    for line, value in zip(out, values, strict=True):
        found = int.from_bytes(line.tobytes(), "little", signed=True)
        expected = 0 if value is None else twin.decode_decimal(value, precision, scale)
        assert (found - expected) % modulus == 0
        if abs(expected) < 10**precision:
            assert found == expected


def _check(kernel: Callable[..., None], one: Callable[[bytes], int | None], values: Fields, *more: int) -> None:
    out = np.full(len(values), 77, np.int64)
    kernel(*lay_out(values), *more, out)
    for found, value in zip(out.tolist(), values, strict=True):
        expected = 0 if value is None else one(value)
        assert found == (kernels.INVALID if expected is None else expected)


@examples(100)
@given(fields(st.just(3)))
def test_dates(values: Fields) -> None:
    _check(kernels.decode_date, twin.decode_date, values)


@pytest.mark.parametrize(
    ("kernel", "one", "whole"),
    [
        (kernels.decode_time, twin.decode_time, 3),
        (kernels.decode_datetime, twin.decode_datetime, 5),
        (kernels.decode_timestamp, twin.decode_timestamp, 4),
    ],
)
@pytest.mark.parametrize("fraction", range(4))
@examples(40)
@given(data=st.data())
def test_times(kernel: Any, one: Any, whole: int, fraction: int, data: st.DataObject) -> None:
    _check(kernel, one, data.draw(fields(st.just(whole + fraction))), fraction)


@pytest.mark.parametrize("year", [0, 1, 4, 100, 400, 1600, 1899, 1900, 1970, 2000, 2001, 2023, 2024, 2100, 9999])
def test_every_day_of_a_year_and_none_besides(year: int) -> None:
    raw = [(day | month << 5 | year << 9).to_bytes(3, "little") for month in range(16) for day in range(32)]
    _check(kernels.decode_date, twin.decode_date, list(raw))
    assert sum(twin.decode_date(one) is not None for one in raw) == (366 if calendar.isleap(year) else 365)


@examples(100)
@given(st.lists(st.one_of(st.none(), st.binary(max_size=100)), min_size=1, max_size=20))
def test_bytes(values: Fields) -> None:
    data, offsets, lengths = lay_out(values)
    bounds = np.full(len(values) + 1, -1, np.int32)
    total = kernels.string_bounds(lengths, bounds)
    out = np.full(total + 4, 0xEE, np.uint8)
    kernels.decode_bytes(data, offsets, lengths, bounds, out)
    cells = [out[a:b].tobytes() for a, b in pairwise(bounds)]
    assert cells == [value or b"" for value in values]
    assert out[total:].tobytes() == b"\xee" * 4


def test_bounds_beyond_2_gib_are_refused() -> None:
    bounds = np.empty(4, np.int32)
    assert kernels.string_bounds(np.array([2**30, 2**30 - 1, -1], np.int64), bounds) == 2**31 - 1
    assert kernels.string_bounds(np.array([2**30, 2**30, -1], np.int64), bounds) == -1


@examples(60)
@given(st.lists(st.integers(-2, 3), max_size=40))
def test_validity(lengths: list[int]) -> None:
    bits = np.zeros((len(lengths) + 7) // 8, np.uint8)
    assert kernels.pack_validity(np.array(lengths, np.int64), bits) == sum(length < 0 for length in lengths)
    assert [bool(bits[i >> 3] >> (i & 7) & 1) for i in range(len(lengths))] == [length >= 0 for length in lengths]
