"""The few forms of protobuf that canal's messages are made of: for kernels, and for what is rare enough for Python.

A field is a tag, number << 3 | form, and a varint (form 0) or a length and bytes (form 2). A number that is 0 and a
text that is empty are left out, as proto3 has it; `flag` is for fields that are always written.
"""

from typing import Any

import numpy as np

from penstock.binlog.kernel import inlined

_SEVEN, _MORE, _LOW = np.uint64(7), np.uint64(0x80), np.uint64(0x7F)


@inlined
def varint_size(number: Any) -> Any:
    """Bytes of a number; a negative one has ten."""
    size, rest = 1, np.uint64(number) >> _SEVEN
    while rest:
        size += 1
        rest >>= _SEVEN
    return size


@inlined
def put_varint(number: Any, out: Any, at: Any) -> Any:
    """Gives the place after it."""
    rest, place = np.uint64(number), np.uint64(at)
    while rest >= _MORE:
        out[place] = np.uint8(rest & _LOW | _MORE)
        rest >>= _SEVEN
        place += np.uint64(1)
    out[place] = np.uint8(rest)
    return np.int64(place) + 1


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    raw = bytearray()
    while number >= 0x80:
        raw.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(raw) + bytes([number])


def flag(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def number(field: int, value: int) -> bytes:
    return flag(field, value) if value else b""


def message(field: int, raw: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def text(field: int, value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return message(field, raw) if raw else b""


def pair(field: int, key: str, value: str) -> bytes:
    """canal's Pair, as props are."""
    return message(field, text(1, key) + text(2, value))
