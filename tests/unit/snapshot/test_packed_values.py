"""Values of the binary protocol become what the same values are in the log."""

import struct
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.values.column import DecodeOptions
from penstock.errors import SchemaError
from penstock.model import Column, WireType
from penstock.snapshot.columns import RowDecoder

_TEXT = DecodeOptions(dates="text")


def decode(column: Column, values: list[bytes | None], options: DecodeOptions = _TEXT) -> list[Any]:
    """Decode raw fields; a date or time comes with its length byte."""
    data, offsets, lengths = bytearray(), list[int](), list[int]()
    for value in values:
        offsets.append(-1 if value is None else len(data))
        lengths.append(len(value or b""))
        data += value or b""
    batch = RowDecoder((column,), options).decode(
        np.frombuffer(bytes(data) or b"\0", np.uint8), np.array([offsets], np.int32), np.array([lengths], np.int32)
    )
    batch.validate(full=True)
    return batch.column(0).to_pylist()


@st.composite
def decimals(draw: Any) -> tuple[int, int, list[str | None]]:
    precision = draw(st.integers(1, 65))
    scale = draw(st.integers(0, min(precision, 38)))
    whole = st.integers(0, 10 ** (precision - scale) - 1)
    part = st.integers(0, 10**scale - 1)
    text = st.builds(
        lambda sign, left, right: f"{sign}{left}" + (f".{right:0{scale}}" if scale else ""),
        st.sampled_from(["", "-"]), whole, part,
    )  # fmt: skip
    return precision, scale, draw(st.lists(st.one_of(st.none(), text), max_size=5))


@given(decimals())
def test_decimals_of_every_size(case: tuple[int, int, list[str | None]]) -> None:
    precision, scale, texts = case
    column = Column("d", WireType.NEWDECIMAL, precision=precision, scale=scale)
    values = decode(column, [None if text is None else text.encode() for text in texts])
    with localcontext(prec=80):
        assert values == [None if text is None else Decimal(text) for text in texts]


@pytest.mark.parametrize("text", ["", "-", "1e5", "1.234", "12345", "abc", "1..2", " 1"])
def test_what_is_no_decimal_of_its_type_is_refused(text: str) -> None:
    column = Column("d", WireType.NEWDECIMAL, precision=5, scale=2)
    with pytest.raises(SchemaError, match="no DECIMAL"):
        decode(column, [text.encode()])


def test_fewer_fraction_digits_than_the_scale_are_filled_up() -> None:
    column = Column("d", WireType.NEWDECIMAL, precision=10, scale=4)
    assert decode(column, [b"7", b"-7.5", b"0"]) == [Decimal("7.0000"), Decimal("-7.5000"), Decimal("0.0000")]


_YEAR, _MONTH, _DAY = st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31)
_CLOCK = st.tuples(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))


@given(st.integers(0, 6), _YEAR, _MONTH, _DAY, _CLOCK, st.integers(0, 999_999))
def test_datetimes(digits: int, year: int, month: int, day: int, clock: tuple[int, int, int], micros: int) -> None:
    micros -= micros % 10 ** (6 - digits)
    full = struct.pack("<HBBBBBI", year, month, day, *clock, micros)
    # The server leaves out what is zero at the end.
    size = 11 if micros else 7 if any(clock) else 4 if (year, month, day) != (0, 0, 0) else 0
    raw = bytes([size]) + full[:size]
    date = f"{year:04}-{month:02}-{day:02}"
    fraction = f".{micros:06}"[: 1 + digits] if digits else ""
    shown = f"{date} {clock[0]:02}:{clock[1]:02}:{clock[2]:02}{fraction}"
    for kind in (WireType.DATETIME2, WireType.TIMESTAMP2):
        assert decode(Column("t", kind, size=digits), [raw, None]) == [shown, None]
    assert decode(Column("d", WireType.DATE), [bytes([min(size, 4)]) + full[: min(size, 4)]]) == (
        [date] if size else ["0000-00-00"]
    )


@given(st.integers(0, 6), st.booleans(), st.integers(0, 34), _CLOCK, st.integers(0, 999_999))
def test_times(digits: int, is_negative: bool, days: int, clock: tuple[int, int, int], micros: int) -> None:
    micros -= micros % 10 ** (6 - digits)
    size = 12 if micros else 8 if days or any(clock) else 0
    raw = bytes([size]) + struct.pack("<BIBBBI", is_negative, days, *clock, micros)[:size]
    fraction = f".{micros:06}"[: 1 + digits] if digits else ""
    sign = "-" if is_negative and size else ""
    shown = f"{sign}{days * 24 + clock[0]:02}:{clock[1]:02}:{clock[2]:02}{fraction}"
    assert decode(Column("t", WireType.TIME2, size=digits), [None, raw]) == [None, shown]


def test_a_timestamp_has_its_zone_and_a_date_that_no_calendar_has_is_null() -> None:
    column = Column("t", WireType.TIMESTAMP2)
    raw = bytes([4]) + struct.pack("<HBB", 1970, 1, 2)
    decoder = RowDecoder((column, Column("d", WireType.DATE)), DecodeOptions())
    wrong = bytes([4]) + struct.pack("<HBB", 2024, 2, 30)
    data = np.frombuffer(raw + wrong, np.uint8)
    batch = decoder.decode(data, np.array([[0], [5]], np.int32), np.array([[5], [5]], np.int32))
    assert batch.schema.types == [pa.timestamp("us", "UTC"), pa.date32()]
    assert batch.column(0).cast(pa.int64()).to_pylist() == [86_400_000_000]
    assert batch.column(1).to_pylist() == [None]


@pytest.mark.parametrize(("year", "shown"), [(0, 0), (1901, 1901), (2155, 2155)])
def test_years(year: int, shown: int) -> None:
    assert decode(Column("y", WireType.YEAR), [struct.pack("<H", year), None]) == [shown, None]


def test_texts_are_decoded_from_the_charset_of_their_column() -> None:
    column = Column("s", WireType.VARCHAR, size=10, charset="latin1")
    assert decode(column, ["Müller".encode("latin1"), b"", None]) == ["Müller", "", None]
