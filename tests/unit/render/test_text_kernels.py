"""Kernels that write text, beside what Python writes."""

import base64
import json
from datetime import datetime, timedelta
from decimal import Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.render import text
from penstock.render.json_lines import JsonValueWriter
from penstock.render.sql_text import SqlValueWriter
from penstock.render.times import write_iso_times, write_utc_times
from penstock.render.weave import ColumnPiece, FormattedColumn, LineLayout, write_lines
from tests.twins.lines import join_texts
from tests.twins.strategy import examples
from tests.twins.text import is_printable

_EPOCH = datetime.fromisoformat("1970-01-01")
SOME = st.lists(st.one_of(st.none(), st.binary(max_size=9)), max_size=20)
SQL_ESCAPES = str.maketrans({"'": "''", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})
TEXTS = st.lists(st.one_of(st.none(), st.text(max_size=12), st.text("\"\\\0\n\t\x1f'ü", max_size=6)), max_size=20)


def shown(array: pa.Array) -> list[str | None]:
    array.validate(full=True)
    return array.to_pylist()


@given(SOME, st.integers(0, 3))
@examples(100)
def test_hex_and_base64(values: list[bytes | None], first: int) -> None:
    array = pa.array(values, pa.binary()).slice(first)
    values = values[first:]
    assert shown(text.write_hex(array)) == [value if value is None else value.hex().upper() for value in values]
    assert shown(text.write_base64(array)) == [
        value if value is None else base64.b64encode(value).decode() for value in values
    ]


PIECES = st.sampled_from(
    [b"plain", "ü€😀".encode(), b"\t\r\n", b"\xc2\x85", b"\x7f", b"\0", b"\xff", b"\xe2\x82", b"\xed\xa0\x80"]
)


@given(
    st.lists(st.one_of(st.none(), st.lists(PIECES, max_size=3).map(b"".join), st.binary(max_size=4))), st.integers(0, 2)
)
@examples(200)
def test_what_is_printable(values: list[bytes | None], first: int) -> None:
    array = pa.array(values, pa.binary()).slice(first)
    assert text.are_printable(array).tolist() == [value is None or is_printable(value) for value in values[first:]]
    for dialect, null, written in (
        (JsonValueWriter(), "null", lambda raw: json.dumps(raw.decode(), ensure_ascii=False)),
        (SqlValueWriter(), "NULL", lambda raw: f"_binary'{raw.decode().translate(SQL_ESCAPES)}'"),
    ):
        lines = shown(write_lines([dialect.write_guessed_texts(array).pick_rows(_every(array))], len(array)))
        others = shown(write_lines([dialect.write_binaries(array).pick_rows(_every(array))], len(array)))
        assert lines == [
            null if value is None else written(value) if is_printable(value) else other
            for value, other in zip(values[first:], others, strict=True)
        ]


@given(TEXTS, st.integers(0, 3))
@examples(100)
def test_json_texts(values: list[str | None], first: int) -> None:
    for kind in (pa.string(), pa.large_string()):
        array = pa.array(values, kind).slice(first)
        written = JsonValueWriter().write_texts(array)
        lines = shown(write_lines([written.pick_rows(_every(array))], len(array)))
        assert [json.loads(line or "") for line in lines] == values[first:]


@given(st.data(), st.integers(1, 65))
@examples(100)
def test_decimals_show_all_their_digits(data: st.DataObject, precision: int) -> None:
    scale = data.draw(st.integers(0, min(precision, 38)))
    most = 10**precision - 1
    whole = data.draw(
        st.lists(
            st.one_of(st.none(), st.integers(-most, most), st.integers(-99, 99).filter(lambda n: abs(n) <= most)),
            max_size=9,
        )
    )
    wide = Context(prec=80)
    values = [None if number is None else Decimal(number).scaleb(-scale, wide) for number in whole]
    kind = (pa.decimal256 if precision > 38 else pa.decimal128)(precision, scale)
    assert shown(text.write_decimals(pa.array(values, kind))) == [
        None if value is None else f"{value:f}" for value in values
    ]


@given(st.data(), st.sampled_from([f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]))
@examples(200)
def test_integers(data: st.DataObject, kind: str) -> None:
    limits = text.np.iinfo(kind)
    edges = [number for exponent in range(20) for number in (10**exponent, 10**exponent - 1, -(10**exponent))]
    integers = st.one_of(
        st.none(),
        st.integers(int(limits.min), int(limits.max)),
        st.sampled_from([number for number in (*edges, limits.min, limits.max) if limits.min <= number <= limits.max]),
    )
    values = [None if value is None else int(value) for value in data.draw(st.lists(integers, max_size=20))]
    first = data.draw(st.integers(0, 3))
    array = pa.array(values, pa.type_for_alias(kind)).slice(first)
    assert shown(text.write_plain(array)) == [None if value is None else str(value) for value in values[first:]]


@given(st.lists(st.one_of(st.datetimes(_EPOCH), st.integers(-9, -1)), max_size=9), st.booleans())
@examples(100)
def test_moments_are_written_as_python_writes_them(moments: list[datetime | int], is_whole: bool) -> None:
    """A number stands for a time that no calendar has."""
    moments = [
        moment if isinstance(moment, int) or not is_whole else moment.replace(microsecond=0) for moment in moments
    ]
    values = [
        moment if isinstance(moment, int) else (moment - _EPOCH) // timedelta(microseconds=1) for moment in moments
    ]
    has_fraction = any(isinstance(moment, datetime) and moment.microsecond for moment in moments)
    form = "microseconds" if has_fraction else "seconds"
    for function, between, zone in ((write_utc_times, " ", ""), (write_iso_times, "T", "Z")):
        assert shown(function(text.np.array(values, text.np.int64))) == [
            None if isinstance(moment, int) else moment.isoformat(between, form) + zone for moment in moments
        ]


@given(st.data(), st.integers(0, 12))
@examples(200)
def test_lines_of_many_columns(data: st.DataObject, count: int) -> None:
    """Beside lines that Python joins; texts longer and shorter than what is copied at once, and lines in any order."""
    mark = st.sampled_from(["", ",", "'", ',"street":', "x" * 40, "y" * 97, "ü" * 50])
    value = st.one_of(st.none(), st.text(max_size=40), st.sampled_from(["z" * size for size in (31, 32, 33, 96, 97)]))
    line, expected = list[str | ColumnPiece](), [""] * count
    for _ in range(data.draw(st.integers(0, 6))):
        if data.draw(st.booleans()):
            constant = data.draw(mark)
            line.append(constant)
            expected = [text_before + constant for text_before in expected]
            continue
        values = data.draw(st.lists(value, min_size=1, max_size=9))
        before, after, null = data.draw(st.tuples(mark, mark, mark))
        rows = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=count, max_size=count))
        kind = data.draw(st.sampled_from([pa.string(), pa.large_string()]))
        column = FormattedColumn(pa.array(["left out", *values], kind).slice(1), null, before, after)
        line.append(column.pick_rows(text.np.array(rows, text.np.int64)))
        expected = join_texts(expected, values, rows, (before, after, null))
    assert shown(write_lines(line, count)) == expected
    layout, order = LineLayout(line, count), data.draw(st.permutations(range(count)))
    offsets, size = text.np.empty(count, text.np.int64), 0
    for number in order:
        offsets[number] = size
        size += len(expected[number].encode())
    out = text.np.full(size + 3, 0xFF, text.np.uint8)
    layout.write(offsets, out)
    assert out.tobytes() == "".join(expected[number] for number in order).encode() + b"\xff" * 3


def test_a_piece_for_another_number_of_lines_is_refused() -> None:
    column = FormattedColumn(pa.array(["a", "b"], text.TEXT))
    with pytest.raises(ValueError, match="3 lines"):
        write_lines([column.pick_rows(text.np.zeros(2, text.np.int64))], 3)


@given(st.lists(st.one_of(st.none(), st.integers(0, 2**64 - 1)), max_size=9), st.integers(1, 64))
@examples(50)
def test_bits(values: list[int | None], width: int) -> None:
    values = [value if value is None else value % 2**width for value in values]
    assert shown(text.write_bits(pa.array(values, pa.uint64()), width)) == [
        v if v is None else f"{v:0{width}b}" for v in values
    ]


def test_a_line_takes_rows_by_number_and_marks_nulls() -> None:
    column = FormattedColumn(pa.array(["a", None, "", "ccc"], text.TEXT), "NULL", "'", "'")
    rows = _every(pa.nulls(5))[::-1] % 4
    assert shown(write_lines(["<", column.pick_rows(rows.copy()), ">", column.pick_rows(rows.copy()), "\n"], 5)) == [
        "<'a'>'a'\n",
        "<'ccc'>'ccc'\n",
        "<''>''\n",
        "<NULL>NULL\n",
        "<'a'>'a'\n",
    ]
    assert shown(write_lines([], 2)) == ["", ""]
    assert shown(write_lines([column.pick_rows(rows[:0])], 0)) == []


def test_the_date_of_an_iso_text_ends_with_a_t() -> None:
    array = pa.array(["x", "2024-01-02 03:04:05", None, "0000-00-00 00:00:00"]).slice(1)
    assert shown(text.replace_byte(array, 10, "T")) == ["2024-01-02T03:04:05", None, "0000-00-00T00:00:00"]


def _every(array: pa.Array) -> "text.NDArray[text.np.int64]":
    return text.np.arange(len(array))
