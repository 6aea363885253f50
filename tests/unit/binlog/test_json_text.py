"""The rendering kernel against its twin, on documents of every kind, on broken ones, and on lying ones.

`tests/unit/binlog/test_bounds_check.py` runs the broken ones once more with every read of the kernels checked.
"""

import json
import struct
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.values import json_text
from penstock.binlog.values.json_format import JsonError, JsonFault
from penstock.binlog.values.json_text import TextBuffers, render_json
from tests.twins import json as twin
from tests.twins.json import Opaque, Unsigned, encode
from tests.twins.json_strategy import DOUBLES, LARGE, Large, deep_values, encoded
from tests.twins.strategy import broken, examples


def lay_out(values: list[bytes | None]) -> tuple[Any, Any, Any]:
    """The values with two bytes before each; the last ends with the buffer."""
    data, offsets, lengths = bytearray(), list[int](), list[int]()
    for value in values:
        data += b"\xa5\x5a"
        offsets.append(0 if value is None else len(data))
        lengths.append(-1 if value is None else len(value))
        data += value or b""
    return np.frombuffer(bytes(data), np.uint8), np.array(offsets, np.int64), np.array(lengths, np.int64)


def rendered(values: list[bytes | None], **style: Any) -> list[bytes]:
    """A null gives an empty text."""
    bounds, text = render_json(*lay_out(values), **style)
    assert bounds.dtype == np.int32
    assert bounds.size == len(values) + 1
    assert bounds[-1] == text.size
    return [text[a:b].tobytes() for a, b in pairwise(bounds)]


def render_one(raw: bytes, **style: Any) -> str:
    (text,) = rendered([raw], **style)
    return text.decode()


def twin_text(raw: bytes) -> str | None:
    """None when the document is broken."""
    try:
        return twin.text(twin.decode(raw))
    except twin.BrokenJsonError:
        return None


def kernel_text(raw: bytes) -> str | None:
    try:
        return render_one(raw)
    except JsonError as error:
        fault, row, where = error.fault, error.row, error.where
    assert fault in {JsonFault.BROKEN, JsonFault.TOO_DEEP}
    assert row == 0
    assert 2 <= where <= 2 + len(raw)  # `lay_out` puts two bytes before it
    return None


@examples(250)
@given(st.lists(st.one_of(st.none(), st.just(b""), encoded()), max_size=5), st.booleans())
def test_every_kind_of_document(values: list[bytes | None], has_point_zero: bool) -> None:
    texts = rendered(values, point_zero=has_point_zero)
    for value, text in zip(values, texts, strict=True):
        expected = "" if value is None else twin.text(twin.decode(value, has_point_zero=has_point_zero))
        assert text.decode() == expected
        if value is not None:
            json.loads(text)


@examples(12)
@given(LARGE)
def test_the_large_format(large: Large) -> None:
    raw = encode(large.value())
    assert large.shape == 2 or raw[0] in {1, 3}
    assert render_one(raw) == twin.text(twin.decode(raw))


@examples(300)
@given(st.lists(DOUBLES, min_size=1, max_size=50))
def test_doubles(values: list[float]) -> None:
    text = render_one(encode(values))
    assert text == "[" + ", ".join(map(twin.double_text, values)) + "]"
    assert [struct.pack("<d", float(number)) for number in text[1:-1].split(", ")] == [
        struct.pack("<d", v) for v in values
    ]


def test_doubles_next_to_powers_of_two_and_ten() -> None:
    powers = [2.0**k for k in range(-1074, 1024)] + [float(f"{d}e{k}") for k in range(-323, 308) for d in (1, 5, 9.5)]
    bits = np.array(powers).view(np.int64)
    values = [*powers, *(bits + 1).view(np.float64).tolist(), *(bits - 1).view(np.float64).tolist()]
    assert render_one(encode(values)) == "[" + ", ".join(map(twin.double_text, values)) + "]"


# As a MySQL 9 printed them; 5.7 leaves out the `.0`.
_PRINTED_DOUBLES = {
    0.0: "0.0", 1.0: "1.0", 100.0: "100.0", 0.1: "0.1", 1e14: "100000000000000.0", 1e15: "1e15",
    1234567890123456.7: "1234567890123456.8", 9007199254740993.0: "9.007199254740992e15",
    123456789012345678.0: "1.2345678901234568e17", 1e-5: "0.00001", 1e-15: "0.000000000000001", 1e-16: "1e-16",
    1.2345678901234567e-15: "0.0000000000000012345678901234568", 1e308: "1e308", 1.5e100: "1.5e100",
    5e-324: "5e-324", 2.2250738585072014e-308: "2.2250738585072014e-308", 12345e10: "123450000000000.0",
    12345e11: "1.2345e15", 18446744073709551616.0: "1.8446744073709552e19",
}  # fmt: skip


@pytest.mark.parametrize(("value", "text"), _PRINTED_DOUBLES.items())
def test_doubles_look_as_the_server_prints_them(value: float, text: str) -> None:
    assert render_one(encode(value)) == text
    assert render_one(encode(-value)) == f"-{text}"
    assert render_one(encode(value), point_zero=False) == text.removesuffix(".0")


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_a_double_that_is_no_number_is_broken(value: float) -> None:
    assert kernel_text(encode(value)) is None


def test_escapes() -> None:
    text = "".join(map(chr, range(33))) + '"/\\\x7f\x80\u2028é字😀'
    shown = r"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f" + "".join(
        f"\\u{c:04x}" for c in range(16, 32)
    )
    assert render_one(encode({text: text})) == '{{"{0}": "{0}"}}'.format(shown + ' \\"/\\\\\x7f\x80\u2028é字😀')


def test_half_a_surrogate_pair_is_escaped() -> None:
    """MySQL 5.7 lets such bytes in, but Arrow's text is UTF-8."""
    assert render_one(encode("a\ud800b\udfffc")) == r'"a\ud800b\udfffc"'


@pytest.mark.parametrize("size", [0, 1, 2, 3, 56, 57, 58, 114, 115, 500])
def test_base64_has_line_breaks(size: int) -> None:
    raw = bytes(i * 7 & 255 for i in range(size))
    text = render_one(encode([Opaque(twin.BLOB, raw)]))
    assert text == f"[{twin.opaque_text(twin.BLOB, raw)}]"
    assert text.count(r"\n") == max(0, (size - 1) // 57)


def test_a_document_without_bytes_is_the_json_null() -> None:
    """The server writes one for a NOT NULL column that was given no value, and prints it so."""
    assert rendered([b"", None, encode({})]) == [b"null", b"", b"{}"]


def test_no_rows() -> None:
    assert rendered([]) == []


def test_a_document_that_was_updated_in_place() -> None:
    """Bytes of a MySQL 8.0 after JSON_SET on a long text and JSON_REMOVE: both leave gaps."""
    raw = bytes.fromhex(
        "00 03 00 36 00 20 00 01 00 22 00 02 00 24 00 03 00 05 01 00 05 08 00 02 29 00 00 05 08 00 02 29 00 61 6b 7a 7a"
        "62 20 63 01 77 03 00 0d 00 05 01 00 05 07 00 05 03 00"
    )
    assert render_one(raw) == '{"a": 1, "zz": 8, "b c": [1, 7, 3]}'


@pytest.mark.parametrize("is_large", [False, True])
def test_a_hundred_levels_and_no_more(is_large: bool) -> None:
    value: Any = 1
    for _ in range(100):
        value = [value]
    assert render_one(encode(value, is_large=is_large)) == "[" * 100 + "1" + "]" * 100
    with pytest.raises(JsonError) as caught:
        render_one(encode([value], is_large=is_large))
    assert caught.value.fault is JsonFault.TOO_DEEP
    assert "100 levels" in str(caught.value)


def test_an_error_names_row_and_byte() -> None:
    values = [encode([1]), None, encode(["x", "\x01" * 4000]), encode(["good", "y"])]
    data, offsets, lengths = lay_out(values)
    spoilt = data.copy()
    spoilt[offsets[3] + 5] = 77  # the type of the first value
    with pytest.raises(JsonError, match="no binary JSON") as caught:
        render_json(spoilt, offsets, lengths)
    assert caught.value.row == 3
    assert caught.value.where == offsets[3] + 11
    assert caught.value.fault is JsonFault.BROKEN


@examples(20)
@given(st.lists(st.sampled_from((0, 1, 900, 5000)), max_size=20))
def test_text_much_longer_than_its_binary(sizes: list[int]) -> None:
    """Six characters for one: the first guess of the text's size does not suffice."""
    values = [encode("\x01" * size) for size in sizes]
    assert rendered([*values]) == [b'"' + rb"\u0001" * size + b'"' for size in sizes]


def test_more_text_than_a_column_may_have_is_refused() -> None:
    buffers = TextBuffers(1, 0)
    buffers.out = np.empty(json_text.MAX_TEXT + 1000, np.uint8)  # never touched
    with pytest.raises(JsonError) as caught:
        buffers.grow(0)
    assert caught.value.fault is JsonFault.TOO_LARGE


@examples(600)
@given(encoded().flatmap(broken))
def test_broken_documents(raw: bytes) -> None:
    assert kernel_text(raw) == twin_text(raw)


@examples(10)
@given(LARGE, st.lists(st.tuples(st.one_of(st.integers(0, 80), st.integers(0, 300_000)), st.integers(0, 255))))
def test_broken_large_documents(large: Large, changes: list[tuple[int, int]]) -> None:
    raw = bytearray(encode(large.value()))
    for at, byte in changes:
        raw[at % len(raw)] = byte
    assert kernel_text(bytes(raw)) == twin_text(bytes(raw))


@examples(600)
@given(st.sampled_from((0, 1, 2, 3, 11, 12, 15)), st.binary(max_size=40))
def test_garbage(kind: int, raw: bytes) -> None:
    document = bytes([kind]) + raw
    assert kernel_text(document) == twin_text(document)


_SMALL = st.integers(0, 12)


@examples(600)
@given(st.lists(_SMALL, min_size=4, max_size=60))
def test_garbage_with_small_offsets(raw: list[int]) -> None:
    document = bytes(raw)
    assert kernel_text(document) == twin_text(document)


@pytest.mark.parametrize("kind", [*range(4), 4, 5, 7, 9, 11, 12, 13, 14, 15, *range(16, 256, 13), 255])
def test_broken_types_and_cut_values(kind: int) -> None:
    assert kernel_text(bytes([kind])) is None
    assert kernel_text(b"\x02" + struct.pack("<HHBH", 1, 7, kind, 7)) == twin_text(
        b"\x02" + struct.pack("<HHBH", 1, 7, kind, 7)
    )


def test_broken_decimals() -> None:
    for raw in (b"", b"\x05", b"\x05\x02", b"\x00\x00\x80", b"\x02\x03\x80\x00", b"\x52\x00" + b"\x80" * 40,
                b"\x02\x00\x80\x00", b"\x02\x00\xe4", b"\x09\x09\xbb\x9a\xca\x00"):  # fmt: skip
        assert kernel_text(encode(Opaque(twin.NEWDECIMAL, raw))) is None
    assert kernel_text(encode(Opaque(twin.NEWDECIMAL, b"\x02\x00\xe3"))) == "99"


def test_broken_dates() -> None:
    for kind in (twin.DATE, twin.TIME, twin.DATETIME, twin.TIMESTAMP):
        for number in (130_000 << 46, -(1 << 63), 1_000_000, (1 << 63) - 1, -1_000_000):
            assert kernel_text(encode(Opaque(kind, struct.pack("<q", number)))) is None
        assert kernel_text(encode(Opaque(kind, b"1234567"))) is None
    assert kernel_text(encode(Opaque(twin.TIMESTAMP, bytes(8)))) == '"0000-00-00 00:00:00.000000"'
    assert kernel_text(encode(Opaque(twin.DATE, bytes(8)))) == '"0000-00-00"'
    assert kernel_text(encode(Opaque(twin.TIME, bytes(8)))) == '"00:00:00.000000"'


def _shared_children(levels: int, count: int) -> bytes:
    """Arrays whose entries all point at the one array that follows: count ** levels values from a few bytes."""
    inner = b"\x00\x00\x04\x00"
    for _ in range(levels):
        header = 4 + 3 * count
        inner = struct.pack("<HH", count, header + len(inner)) + struct.pack("<BH", 2, header) * count + inner
    return b"\x02" + inner


def test_shared_children_do_not_multiply() -> None:
    assert render_one(_shared_children(5, 1)) == "[" * 6 + "]" * 6
    for levels, count in ((2, 50), (20, 2), (60, 20)):
        assert kernel_text(_shared_children(levels, count)) is None


def test_a_string_that_many_entries_share_is_refused() -> None:
    count = 1000
    text = b"\xe8\x07" + b"x" * 1000
    header = 4 + 3 * count
    entries = struct.pack("<BH", 12, header) * count
    assert kernel_text(b"\x02" + struct.pack("<HH", count, header + len(text)) + entries + text) is None


def test_a_container_that_holds_itself_is_refused() -> None:
    for offset in (0, 1, 4, 6):
        assert kernel_text(b"\x02" + struct.pack("<HHBH", 1, 7, 2, offset)) is None
        assert kernel_text(b"\x02" + struct.pack("<HHBH", 1, 9, 2, offset) + b"\x00\x00") is None


def test_broken_offsets_that_point_into_the_header() -> None:
    string = struct.pack("<HHBHB", 1, 8, 12, 7, 0)
    member = struct.pack("<HHHHBH", 1, 12, 11, 1, 4, 0) + b"k"
    assert (kernel_text(b"\x02" + string), kernel_text(b"\x00" + member)) == ('[""]', '{"k": null}')
    assert kernel_text(b"\x02" + string.replace(b"\x0c\x07", b"\x0c\x03")) is None
    assert kernel_text(b"\x00" + member.replace(b"\x0b\x00\x01", b"\x0a\x00\x01")) is None


def test_integers_keep_their_types() -> None:
    edges = [0, 255, 256, 32767, 32768, 65535, 65536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1]
    signed = [*edges, *(-edge - 1 for edge in edges)]
    unsigned = [Unsigned(edge) for edge in [*edges, 1 << 63, (1 << 64) - 1]]
    for is_large in (False, True):
        text = render_one(encode([signed, unsigned], is_large=is_large))
        assert json.loads(text) == [signed, unsigned]


@examples(40)
@given(deep_values(80, 120))
def test_broken_depth(value: Any) -> None:
    raw = encode(value)
    assert kernel_text(raw) == twin_text(raw)
