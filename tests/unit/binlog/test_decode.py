"""Each decode kernel against its twin: any bytes of the right width, nulls among them."""

import calendar
import ipaddress
import uuid
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.values import numbers, strings, temporal
from penstock.binlog.values.column import decimal_width
from tests.twins import value as twin
from tests.twins.strategy import examples

_CELLS = {1: np.int8, 2: np.int16, 3: np.int32, 4: np.int32, 8: np.int64}
Fields = list[bytes | None]


def fields(width: st.SearchStrategy[int]) -> st.SearchStrategy[Fields]:
    return width.flatmap(
        lambda size: st.lists(st.one_of(st.none(), st.binary(min_size=size, max_size=size)), min_size=1, max_size=9)
    )


def lay_out(values: Fields) -> tuple[Any, Any]:
    """The fields with gaps between them; the last ends with the buffer."""
    data, offsets = bytearray(), list[int]()
    for value in values:
        data += b"\xa5\x5a"
        offsets.append(-1 if value is None else len(data))
        data += value or b""
    return np.frombuffer(bytes(data), np.uint8), np.array(offsets, np.int32)


@examples(150)
@given(st.sampled_from(sorted(_CELLS)).flatmap(lambda size: fields(st.just(size))), st.booleans())
def test_integers(values: Fields, is_signed: bool) -> None:
    width = max((len(value) for value in values if value is not None), default=1)
    out = np.full(len(values), 77, _CELLS[width])
    numbers.decode_integer(*lay_out(values), width, is_signed, out)
    numbers_read = out if is_signed else out.view(f"u{out.itemsize}")
    expected = [0 if value is None else twin.decode_integer(value, is_signed=is_signed) for value in values]
    assert numbers_read.tolist() == expected


@examples(150)
@given(st.integers(1, 65), st.integers(0, 38), st.data())
def test_decimals(precision: int, scale: int, data: st.DataObject) -> None:
    scale = min(scale, precision)
    most = 10**precision - 1
    good = st.integers(-most, most).map(
        lambda number: twin.encode_decimal(twin.decimal_of(number, scale), precision, scale)
    )
    garbage = st.binary(min_size=decimal_width(precision, scale), max_size=decimal_width(precision, scale))
    values = data.draw(st.lists(st.one_of(st.none(), good, good, good, garbage), min_size=1, max_size=9))
    words = 2 if precision <= 38 else 4
    out = np.full((len(values), words), 77, np.int64)
    expected = [0 if value is None else twin.decode_decimal(value, precision, scale) for value in values]
    wrong = numbers.decode_decimal(*lay_out(values), precision, scale, out)
    assert wrong == next((row for row, number in enumerate(expected) if number is None), -1)
    numbers_read = [int.from_bytes(line.tobytes(), "little", signed=True) for line in out]
    assert numbers_read[: wrong if wrong >= 0 else None] == expected[: wrong if wrong >= 0 else None]


@examples(60)
@given(st.integers(1, 8).flatmap(lambda size: fields(st.just(size))))
def test_bits(values: Fields) -> None:
    width = max((len(value) for value in values if value is not None), default=1)
    out = np.full(len(values), 77, np.int64)
    numbers.decode_bits(*lay_out(values), width, out)
    assert out.view(np.uint64).tolist() == [int.from_bytes(value or b"", "big") for value in values]


def _check_dates(values: Fields) -> None:
    out = np.full(len(values), 77, np.int32)
    temporal.decode_date(*lay_out(values), out)
    expected = [0 if value is None else twin.decode_date(value) for value in values]
    assert out.tolist() == [-(1 << 31) if days is None else days for days in expected]


@examples(100)
@given(fields(st.just(3)))
def test_dates(values: Fields) -> None:
    _check_dates(values)


_MOMENTS = [
    (temporal.TIME, twin.decode_time, 3, range(4)),
    (temporal.DATETIME, twin.decode_datetime, 5, range(4)),
    (temporal.TIMESTAMP, twin.decode_timestamp, 4, range(4)),
    (temporal.OLD_TIME, twin.decode_old_time, 3, range(1)),
    (temporal.OLD_DATETIME, twin.decode_old_datetime, 8, range(1)),
    (temporal.OLD_TIMESTAMP, twin.decode_old_timestamp, 4, range(1)),
]


@pytest.mark.parametrize(
    ("form", "decoder", "size", "fraction"),
    [
        (form, decoder, whole + fraction, fraction)
        for form, decoder, whole, fractions in _MOMENTS
        for fraction in fractions
    ],
)
@examples(40)
@given(data=st.data())
def test_times(form: int, decoder: Any, size: int, fraction: int, data: st.DataObject) -> None:
    values = data.draw(fields(st.just(size)))
    out = np.full(len(values), 77, np.int64)
    temporal.decode_moment(*lay_out(values), form, fraction, out)
    expected = [0 if value is None else decoder(value) for value in values]
    assert out.tolist() == [temporal.INVALID if micros is None else micros for micros in expected]


@pytest.mark.parametrize("year", [0, 1, 4, 100, 400, 1600, 1899, 1900, 1970, 2000, 2001, 2023, 2024, 2100, 9999])
def test_every_day_of_a_year_and_none_besides(year: int) -> None:
    raw = [(day | month << 5 | year << 9).to_bytes(3, "little") for month in range(16) for day in range(32)]
    _check_dates(list(raw))
    assert sum(twin.decode_date(raw_day) is not None for raw_day in raw) == (366 if calendar.isleap(year) else 365)


_TEXTS = {
    temporal.DATE: (3, range(1)),
    temporal.TIME: (3, range(7)),
    temporal.DATETIME: (5, range(7)),
    temporal.TIMESTAMP: (4, range(7)),
    temporal.OLD_TIME: (3, range(1)),
    temporal.OLD_DATETIME: (8, range(1)),
    temporal.OLD_TIMESTAMP: (4, range(1)),
}


@pytest.mark.parametrize(("form", "digits"), [(form, d) for form, (_, digits) in _TEXTS.items() for d in digits])
@examples(40)
@given(data=st.data())
def test_texts_of_times(form: int, digits: int, data: st.DataObject) -> None:
    """Any bytes stay in their room; what the calendar has is printed as Python prints it."""
    values = data.draw(fields(st.just(_TEXTS[form][0] + (digits + 1) // 2)))
    bounds = np.full(len(values) + 1, -1, np.int32)
    out = np.full(len(values) * temporal.LONGEST_TEXT, 0xEE, np.uint8)
    used = temporal.temporal_text(*lay_out(values), form, digits, bounds, out)
    assert bounds[-1] == used
    cells = [out[a:b].tobytes().decode("ascii") for a, b in pairwise(bounds)]
    assert cells == ["" if value is None else twin.temporal_text(form, value, digits) for value in values]


def lay_out_bytes(values: Fields) -> tuple[Any, Any, Any]:
    data, offsets = lay_out(values)
    return data, offsets, np.array([len(value or b"") for value in values], np.int32)


@examples(100)
@given(st.lists(st.one_of(st.none(), st.binary(max_size=100)), min_size=1, max_size=20), st.sampled_from((0, 16, 101)))
def test_bytes(values: Fields, width: int) -> None:
    data, offsets, lengths = lay_out_bytes(values)
    bounds = np.full(len(values) + 1, -1, np.int32)
    total = strings.string_bounds(offsets, lengths, width, bounds)
    out = np.zeros(total + 4, np.uint8)
    strings.copy_values(data, offsets, lengths, width, bounds, out)
    cells = [out[a:b].tobytes() for a, b in pairwise(bounds)]
    assert cells == [b"" if value is None else value.ljust(width, b"\0") for value in values]


def test_bounds_beyond_2_gib_are_refused() -> None:
    bounds, there = np.empty(4, np.int32), np.array([0, 0, -1], np.int32)
    assert strings.string_bounds(there, np.array([2**30, 2**30 - 1, 5], np.int32), 0, bounds) == 2**31 - 1
    assert strings.string_bounds(there, np.array([2**30, 2**30, 5], np.int32), 0, bounds) == -1


@examples(60)
@given(st.lists(st.integers(-2, 3), max_size=40))
def test_validity(offsets: list[int]) -> None:
    bits = np.full((len(offsets) + 7) // 8, 0xEE, np.uint8)
    numbers.pack_validity(np.array(offsets, np.int32), bits)
    assert [bool(bits[i >> 3] >> (i & 7) & 1) for i in range(8 * bits.size)] == [
        i < len(offsets) and offsets[i] >= 0 for i in range(8 * bits.size)
    ]


@examples(60)
@given(st.lists(st.binary(min_size=16, max_size=16), max_size=9))
def test_uuids(values: list[bytes]) -> None:
    out = np.empty(36 * len(values), np.uint8)
    strings.uuid_text(np.frombuffer(b"".join(values), np.uint8).copy(), len(values), out)
    assert out.tobytes().decode() == "".join(str(uuid.UUID(bytes=value)) for value in values)


def _addresses(kernel: Any, values: list[bytes], longest: int) -> list[str]:
    bounds, out = np.empty(len(values) + 1, np.int32), np.empty(longest * len(values), np.uint8)
    kernel(np.frombuffer(b"".join(values), np.uint8).copy(), len(values), bounds, out)
    return [out[a:b].tobytes().decode() for a, b in pairwise(bounds)]


@examples(60)
@given(st.lists(st.binary(min_size=4, max_size=4), max_size=9))
def test_inet4(values: list[bytes]) -> None:
    assert _addresses(strings.inet4_text, values, 15) == [str(ipaddress.IPv4Address(value)) for value in values]


_GROUPS = st.sampled_from((b"\0\0", b"\0\0", b"\0\1", b"\xff\xff", b"\x0d\xb8"))


@examples(100)
@given(st.lists(st.lists(_GROUPS, min_size=8, max_size=8).map(b"".join), max_size=9))
def test_inet6(values: list[bytes]) -> None:
    texts = _addresses(strings.inet6_text, values, 45)
    assert [ipaddress.IPv6Address(text).packed for text in texts] == values
    # The server writes a single group of zeros as `::` too, and never leaves a longer run.
    assert all("::" in text for text, value in zip(texts, values, strict=True) if b"\0\0" in _groups(value))


def _groups(value: bytes) -> list[bytes]:
    return [value[i : i + 2] for i in range(0, 16, 2)]
