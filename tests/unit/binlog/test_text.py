"""Texts of every charset against the twin: random bytes, real sequences, cuts, nulls; Arrow always finds them valid."""

import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.values.charset import TABLES, TEXT, UNITS, UTF8, charset_of_collation_id
from penstock.binlog.values.problem import TooLongError
from penstock.binlog.values.text import UnknownCharsetError, decode_text, to_utf8
from penstock.binlog.values.utf8 import copy_utf8
from tests.twins import text as twin
from tests.twins.strategy import examples

Values = list[bytes | None]

# Bytes that begin, continue and end sequences in many charsets, so that random ones often meet.
_TELLING = st.sampled_from(b"\x00A09@\\~\x80\x81\x84\x8e\x8f\x90\xa0\xa1\xbf\xc2\xd8\xdc\xe0\xe3\xed\xf0\xf4\xfe\xff")
_PIECES = st.one_of(
    st.binary(max_size=6),
    st.lists(_TELLING, max_size=6).map(bytes),
    st.text(max_size=6).map(str.encode),
    st.text(max_size=4).map(lambda each: each.encode("utf-16-be")),
    st.text(max_size=3).map(lambda each: each.encode("utf-32-be")),
    st.text(max_size=3).map(lambda each: each.encode("gb18030")),
    st.sampled_from(["漢字かな交じり文", "ﾊﾝｶｸ", "丂丄侓"]).map(lambda each: each.encode("euc_jp", "replace")),
    st.sampled_from(["漢字", "ﾊﾝｶｸ①"]).map(lambda each: each.encode("cp932")),
    st.just(b"\x8f\xb0\xa1"),
)
_VALUE = st.lists(_PIECES, max_size=5).map(b"".join)
_CUT = st.tuples(_VALUE, st.integers(0, 9)).map(lambda each: each[0][: max(0, len(each[0]) - each[1])])
_VALUES = st.lists(st.one_of(st.none(), _VALUE, _CUT), max_size=9)


def lay_out(values: Values, *, by_length: bool = False) -> tuple[Any, Any, Any]:
    """The values with gaps between them that would change them if they were read; the last ends with the buffer."""
    data, offsets, lengths = bytearray(), list[int](), list[int]()
    for value in values:
        data += b"\xbf\xa1\xdc"
        offsets.append(len(data) if value is not None or by_length else -1)
        lengths.append(-1 if value is None and by_length else len(value or b""))
        data += value or b""
    return np.frombuffer(bytes(data), np.uint8), np.array(offsets, np.int32), np.array(lengths, np.int32)


def decoded(charset: str, values: Values, *, by_length: bool = False) -> list[str]:
    bounds, raw = to_utf8(charset, *lay_out(values, by_length=by_length))
    assert (bounds.dtype, raw.dtype) == (np.int32, np.uint8)
    array = pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(bounds), pa.py_buffer(raw)])
    array.validate(full=True)
    return array.to_pylist()


def expected(charset: str, values: Values) -> list[str]:
    return ["" if value is None else twin.decode(charset, value) for value in values]


@pytest.mark.parametrize("charset", sorted(TEXT))
@examples(25)
@given(_VALUES, st.booleans())
def test_garbage_of_every_charset(charset: str, values: Values, by_length: bool) -> None:
    assert decoded(charset, values, by_length=by_length) == expected(charset, values)


@examples(150)
@given(st.lists(st.one_of(st.none(), st.text().map(str.encode)), max_size=9))
def test_utf8_stays_as_it_is(values: Values) -> None:
    bounds, raw = to_utf8("utf8mb4", *lay_out(values))
    assert [raw[a:b].tobytes() for a, b in pairwise(bounds)] == [value or b"" for value in values]


def test_utf8_is_checked_value_by_value_and_block_by_block_with_cut_and_garbage_between() -> None:
    """Two halves of a character are wrong in two values, wherever the blocks of the check begin."""
    for offset in (0, 1, 254, 255, 256, 257, 511, 700):
        values: Values = [b"plain ascii text"] * 701
        values[offset] = "漢".encode()
        assert decoded("utf8mb4", values) == expected("utf8mb4", values)
        values[offset : offset + 2] = ["漢".encode()[:2], "漢".encode()[2:]][: len(values) - offset]
        assert decoded("utf8mb4", values) == expected("utf8mb4", values)
        assert "\ufffd" in decoded("utf8mb4", values)[offset]


def test_the_fast_check_of_utf8_finds_the_same_garbage_as_python() -> None:
    """Each beginning of a character, with what may follow, at changing positions of a text."""
    sequences = [
        bytes([first, second]) + rest
        for first in (0x41, 0x80, *range(0xBF, 256))
        for second in range(256)
        for rest in (b"", b"\x80", b"\x80\xbf")
    ]
    bounds, out, error_at = np.zeros(2, np.int32), np.empty(64, np.uint8), np.zeros(1, np.int32)
    for number, sequence in enumerate(sequences):
        value = b"." * (number % 43) + sequence + b"." * (number % 7)
        bounds[1] = len(value)
        size = np.array([len(value)], np.int32)
        is_good = value.decode("utf-8", "ignore").encode() == value
        assert copy_utf8(np.frombuffer(value, np.uint8), error_at, size, bounds, out) == is_good, value


@pytest.mark.parametrize("charset", ["latin1", "swe7", "gbk", "gb18030", "utf8mb4"])
def test_ascii_of_every_length_cut_by_other_bytes_anywhere(charset: str) -> None:
    plain = [b"0123456789ABCDEFGHIJKLMNOP"[:size] for size in range(27)]
    values: Values = [*plain, *(text[:at] + b"\xc4" + text[at + 1 :] for text in plain for at in range(len(text)))]
    assert decoded(charset, values) == expected(charset, values)
    for value in values:  # at the end of the buffer
        assert decoded(charset, [value]) == expected(charset, [value])


@pytest.mark.parametrize("charset", sorted(TABLES))
def test_every_sequence_of_a_table_cut_and_whole(charset: str) -> None:
    whole = [bytes([byte]) for byte in range(256)]
    if TABLES[charset] > 1:
        whole += [bytes([first, second]) for first in range(0x80, 256) for second in range(256)]
    assert decoded(charset, list(whole)) == expected(charset, list(whole))


def test_four_bytes_of_gb18030_at_the_edges_of_garbage() -> None:
    edges = (0, 1, 39_418, 39_419, 39_420, 188_999, 189_000, 189_000 + 0xFFFFF, 189_000 + 0x100000, 126 * 12_600 - 1)
    values = [_four_bytes(number) for number in edges]
    texts = decoded("gb18030", list(values))
    assert texts == expected("gb18030", list(values))
    assert texts[:2] + texts[6:8] == ["\x80", "\x81", "\U00010000", "\U0010ffff"]
    assert {*texts[4:6], *texts[8:]} == {"\ufffd"}
    cut = [value[:size] for value in values for size in (1, 2, 3)]
    assert decoded("gb18030", list(cut)) == expected("gb18030", list(cut))


def _four_bytes(number: int) -> bytes:
    number, last = divmod(number, 10)
    number, third = divmod(number, 126)
    return bytes([0x81 + number // 10, 0x30 + number % 10, 0x81 + third, 0x30 + last])


@pytest.mark.parametrize(
    ("charset", "raw", "text"),
    [
        ("latin1", b"\x80 \x81 \xe9", "€ \x81 é"),
        ("cp1251", b"\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"),
        ("swe7", b"}{|", "åäö"),
        ("gbk", "漢字中文".encode("gbk"), "漢字中文"),
        ("sjis", b"\xb1\x83\x5c", "ｱソ"),
        ("ujis", b"\x8f\xb0\xa1\x8e\xb1", "丂ｱ"),
        ("ucs2", b"\x00a\xd8\x3d\xde\x00", "a\ufffd\ufffd"),
        ("utf16", b"\x00a\xd8\x3d\xde\x00", "a😀"),
        ("utf16le", b"a\x00\x3d\xd8\x00\xde", "a😀"),
        ("utf32", b"\x00\x01\xf6\x00\x00\x11\x00\x00", "😀\ufffd"),
        ("utf8mb4", "日本😀".encode(), "日本😀"),
        ("utf8", b"a\xff", "a\ufffd"),
        ("", "ä".encode(), "ä"),
        ("binary", b"a\xff", "a\ufffd"),
        ("of collation 9999", "aä".encode(), "a\ufffd\ufffd"),
    ],
)
def test_single_values(charset: str, raw: bytes, text: str) -> None:
    assert decode_text(charset, raw) == text


def test_named_collations() -> None:
    names = {
        1: "big5", 8: "latin1", 33: "utf8mb3", 45: "utf8mb4", 56: "utf16le", 63: "binary", 76: "utf8mb3", 95: "cp932",
        249: "gb18030", 255: "utf8mb4", 323: "utf8mb4", 608: "utf8mb4", 611: "utf8mb4", 1071: "latin1", 1270: "utf8mb4",
        2048: "utf8mb3", 2304: "utf8mb4", 2600: "ucs2", 3271: "utf32",
    }  # fmt: skip
    assert {number: charset_of_collation_id(number) for number in names} == names
    assert charset_of_collation_id(9999) == "of collation 9999"
    assert {charset_of_collation_id(number) for number in range(4096)} - {
        f"of collation {number}" for number in range(4096)
    } == (TEXT | {"binary"}) - {"utf8"}


def test_a_charset_that_is_not_known_is_named() -> None:
    with pytest.raises(UnknownCharsetError, match="has charset of collation 9999"):
        to_utf8("of collation 9999", *lay_out([b"a"]))


def test_more_than_arrow_can_count_is_an_error() -> None:
    # The same million bytes again and again.
    data, offsets = np.zeros(1 << 20, np.uint8), np.zeros(2048, np.int32)
    with pytest.raises(TooLongError):
        to_utf8("utf8mb4", data, offsets, np.full(2048, 1 << 20, np.int32))


def test_wide_positions_are_taken_too() -> None:
    data, offsets, lengths = lay_out([b"ab", None, b"c"])
    bounds, raw = to_utf8("utf8mb4", data, offsets.astype(np.int64), lengths.astype(np.int64))
    assert (bounds.tolist(), raw.tobytes()) == ([0, 2, 2, 3], b"abc")


def test_utf8_loads_neither_tables_nor_their_kernels() -> None:
    code = (
        "import sys, numpy as np\n"
        "from penstock.binlog.values.text import to_utf8\n"
        "to_utf8('utf8mb4', np.frombuffer(b'abc', np.uint8), np.zeros(1, np.int32), np.ones(1, np.int32))\n"
        "print(*(name for name in ('penstock.binlog.values.transcode', 'pandas') if name in sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_every_charset_has_one_way() -> None:
    assert len(TEXT) == len(UTF8) + len(UNITS) + len(TABLES)
