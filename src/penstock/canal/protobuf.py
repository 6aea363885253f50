"""The few forms of protobuf that canal's messages are made of: for kernels, and for what is rare enough for Python.

A field is a tag, number << 3 | form, and a varint (form 0) or a length and bytes (form 2). A number that is 0 and a
text that is empty are left out, as proto3 has it; `flag` is for fields that are always written.
"""

from typing import Any

import numpy as np

from penstock.binlog.kernel import inlined
from penstock.canal.schema import number_of

_PAIR_KEY, _PAIR_VALUE = number_of("Pair", "key"), number_of("Pair", "value")
_ONE_BYTE = [bytes([number]) for number in range(0x80)]
_SEVEN, _MORE, _LOW = np.uint64(7), np.uint64(0x80), np.uint64(0x7F)


@inlined
def varint_size(number: Any) -> Any:
    """Return the size of a number as varint; a negative one takes ten bytes."""
    size, rest = 1, np.uint64(number) >> _SEVEN
    while rest:
        size += 1
        rest >>= _SEVEN
    return size


@inlined
def write_varint(number: Any, out: Any, at: Any) -> Any:
    """Write a number as varint into `out`, and return the offset after it."""
    rest, end = np.uint64(number), np.uint64(at)
    while rest >= _MORE:
        out[end] = np.uint8(rest & _LOW | _MORE)
        rest >>= _SEVEN
        end += np.uint64(1)
    out[end] = np.uint8(rest)
    return np.int64(end) + 1


def encode_varint(number: int) -> bytes:
    """Encode a number as varint."""
    if 0 <= number < 0x80:
        return _ONE_BYTE[number]
    number &= (1 << 64) - 1
    raw = bytearray()
    while number >= 0x80:
        raw.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(raw) + bytes([number])


def encode_number_always(field: int, value: int) -> bytes:
    """Encode a number field, also if it is 0."""
    return encode_varint(field << 3) + encode_varint(value)


def encode_number(field: int, value: int) -> bytes:
    """Encode a number field; nothing for 0."""
    return encode_number_always(field, value) if value else b""


def encode_message(field: int, raw: bytes) -> bytes:
    """Encode a nested message field."""
    return encode_varint(field << 3 | 2) + encode_varint(len(raw)) + raw


def encode_text(field: int, value: str | bytes) -> bytes:
    """Encode a text field; nothing for an empty one."""
    raw = value.encode() if isinstance(value, str) else value
    return encode_message(field, raw) if raw else b""


def encode_pair(field: int, key: str, value: str) -> bytes:
    """Encode a field of canal's type Pair, as props are."""
    return encode_message(field, encode_text(_PAIR_KEY, key) + encode_text(_PAIR_VALUE, value))
