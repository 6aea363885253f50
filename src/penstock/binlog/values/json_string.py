r"""Strings in JSON text: escapes as the server writes them, and base64 for what has no text.

`"`, `\` and the control characters below 32 are escaped (\b \t \n \f \r, else \u00xx), nothing above is.

Two things differ from the server, which there prints what is no JSON or no UTF-8. A base64 text has a line break after
each 76 characters; it is written as \n here as in MySQL 9, while older servers print the break itself. And MySQL 5.7
lets half a surrogate pair into a string; it becomes \udxxx.
"""

from typing import Any

import numpy as np

from penstock.binlog.copying import copy_bytes
from penstock.binlog.kernel import shared
from penstock.binlog.values.json_format import ROOM, JsonFault
from penstock.binlog.values.json_number import write_unsigned

_BROKEN, _NO_ROOM = np.int64(-JsonFault.BROKEN), np.int64(-JsonFault.NO_ROOM)
_QUOTE, _BACKSLASH, _U, _N, _EQUALS = (np.uint8(ord(c)) for c in '"\\un=')
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_LINE_BYTES = 57  # make 76 characters
_PREFIX = np.frombuffer(b'"base64:type', np.uint8)


def _escapes() -> Any:
    r"""Return how each byte is escaped. 0: as it is; 1: as \u00xx; 2: part of a longer character; else the letter after
    the backslash."""
    table = np.zeros(256, np.uint8)
    table[:32] = 1
    table[128:] = 2
    for char, letter in zip(b'\b\t\n\f\r"\\', b'btnfr"\\', strict=True):
        table[char] = letter
    return table


_ESCAPES = _escapes()


@shared
def _is_plain(data: Any, at: Any, size: Any) -> Any:
    special = np.uint8(0)
    for k in range(size):
        c = data[np.uint64(at + k)]
        special |= (c < 32) | (c == 34) | (c == 92) | (c > 127)
    return special == 0


@shared
def character_bytes(data: Any, at: Any, size: Any) -> Any:
    """Return how many bytes the character above 127 at `at` has, of at most `size`; 0 when it is not UTF-8."""
    lead = data[np.uint64(at)]
    width = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if lead < 0xC2 or lead > 0xF4 or width > size:
        return 0
    second = data[np.uint64(at + 1)]
    if (lead == 0xE0 and second < 0xA0) or (lead == 0xF0 and second < 0x90) or (lead == 0xF4 and second > 0x8F):
        return 0
    for k in range(1, width):
        if data[np.uint64(at + k)] & 0xC0 != 0x80:
            return 0
    return width


@shared
def _write_hex(value: Any, out: Any, to: Any) -> Any:
    """Write a code unit as \\uxxxx to out[to]; return where it ends."""
    out[np.uint64(to)], out[np.uint64(to + 1)] = _BACKSLASH, _U
    for k in range(4):
        out[np.uint64(to + 2 + k)] = _HEX[np.uint64(value >> 12 - 4 * k & 15)]
    return to + 6


@shared
def _write_escaped(data: Any, at: Any, size: Any, out: Any, to: Any) -> Any:
    end = at + size
    while at < end:
        if to + 8 > out.size:
            return _NO_ROOM
        c = data[np.uint64(at)]
        escape = _ESCAPES[c]
        if escape == 0:
            out[np.uint64(to)] = c
            to += 1
        elif escape == 1:
            to = _write_hex(np.int64(c), out, to)
        elif escape == 2:
            width = character_bytes(data, at, end - at)
            if width == 0:
                return _BROKEN
            if c == 0xED and data[np.uint64(at + 1)] >= 0xA0:
                half = np.int64(data[np.uint64(at + 1)] & 0x3F) << 6 | np.int64(data[np.uint64(at + 2)] & 0x3F)
                to = _write_hex(0xD000 | half, out, to)
            else:
                for k in range(width):
                    out[np.uint64(to + k)] = data[np.uint64(at + k)]
                to += width
            at += width - 1
        else:
            out[np.uint64(to)], out[np.uint64(to + 1)] = _BACKSLASH, escape
            to += 2
        at += 1
    return to


@shared
def write_string(data: Any, at: Any, size: Any, out: Any, to: Any) -> Any:
    """Write a text in quotes, with escapes, to out[to]; return where it ends, where ROOM bytes are free again, or a
    fault."""
    if to + size + 2 + ROOM > out.size:
        return _NO_ROOM
    out[np.uint64(to)] = _QUOTE
    to += 1
    if _is_plain(data, at, size):
        copy_bytes(out, to, data, at, size)
        to += size
    else:
        to = _write_escaped(data, at, size, out, to)
        if to < 0:
            return to
        if to + 1 + ROOM > out.size:
            return _NO_ROOM
    out[np.uint64(to)] = _QUOTE
    return to + 1


@shared
def write_base64(data: Any, kind: Any, at: Any, size: Any, out: Any, to: Any) -> Any:
    """Write a value of this column type as base64 in quotes to out[to]; return where it ends, or a fault."""
    if to + (size + 2) // 3 * 4 + size // _LINE_BYTES * 2 + 2 * ROOM > out.size:
        return _NO_ROOM
    copy_bytes(out, to, _PREFIX, 0, _PREFIX.size)
    to = write_unsigned(np.uint64(kind), out, to + _PREFIX.size)
    out[np.uint64(to)] = np.uint8(58)
    to += 1
    for k in range(0, size, 3):
        if k and k % _LINE_BYTES == 0:
            out[np.uint64(to)], out[np.uint64(to + 1)] = _BACKSLASH, _N
            to += 2
        bits = np.int64(data[np.uint64(at + k)]) << 16
        if k + 1 < size:
            bits |= np.int64(data[np.uint64(at + k + 1)]) << 8
        if k + 2 < size:
            bits |= np.int64(data[np.uint64(at + k + 2)])
        for j in range(4):
            out[np.uint64(to + j)] = _BASE64[np.uint64(bits >> 18 - 6 * j & 63)]
        to += 4
    if size % 3:
        out[np.uint64(to - 1)] = _EQUALS
        if size % 3 == 1:
            out[np.uint64(to - 2)] = _EQUALS
    out[np.uint64(to)] = _QUOTE
    return to + 1
