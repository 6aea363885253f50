r"""Values of binary JSON as SQL expressions of MySQL that make the same value, of the same type, again.

| value                           | expression                                                                     |
|---------------------------------|--------------------------------------------------------------------------------|
| object, array                   | `JSON_OBJECT('key', value, …)`, `JSON_ARRAY(value, …)`                         |
| null, true, false, signed       | as they are                                                                    |
| unsigned                        | `CAST(5 AS UNSIGNED)`                                                          |
| double                          | with an exponent, so that it is not read as a decimal                          |
| string                          | in quotes, with backslash escapes                                              |
| DECIMAL                         | `CAST(1.50 AS DECIMAL(3,2))`                                                   |
| DATE, DATETIME, TIMESTAMP, TIME | `DATE'…'`, `TIMESTAMP'…'`, `TIME'…'`                                           |
| bytes of VARCHAR's type         | `X'…'`, which has that type                                                    |
| bytes of any other type         | no expression makes them: the text that the server prints for them, as a string |

`json_text` walks over documents; here are its leaves.
"""

from typing import Any

import numpy as np

from penstock.binlog.copying import copy_bytes
from penstock.binlog.kernel import read_little_endian, shared
from penstock.binlog.values.json_format import ROOM, JsonFault
from penstock.binlog.values.json_number import write_decimal, write_double, write_unsigned
from penstock.binlog.values.json_string import character_bytes, write_base64
from penstock.binlog.values.json_time import write_date, write_time

_BROKEN, _NO_ROOM = np.int64(-JsonFault.BROKEN), np.int64(-JsonFault.NO_ROOM)
_TIMESTAMP, _DATE, _TIME, _DATETIME, _VARCHAR, _NEWDECIMAL = 7, 10, 11, 12, 15, 246
_QUOTE, _BACKSLASH, _CLOSE, _COMMA, _E, _ZERO, _X = (np.uint8(ord(c)) for c in "'\\),e0X")
_CAST = np.frombuffer(b"CAST(", np.uint8)
_AS_UNSIGNED = np.frombuffer(b" AS UNSIGNED)", np.uint8)
_AS_DECIMAL = np.frombuffer(b" AS DECIMAL(", np.uint8)
_DATE_WORD = np.frombuffer(b"DATE", np.uint8)
_TIME_WORD = np.frombuffer(b"TIME", np.uint8)
_TIMESTAMP_WORD = np.frombuffer(b"TIMESTAMP", np.uint8)
_HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)


def _escapes() -> Any:
    """Return how each byte is escaped. 0: as it is; 2: part of a longer character; else what stands after a
    backslash."""
    table = np.zeros(256, np.uint8)
    table[128:] = 2
    for char, letter in zip(b"'\\\0\n\r\t\x1a", b"'\\0nrtZ", strict=True):
        table[char] = letter
    return table


_ESCAPES = _escapes()


@shared
def write_sql_string(data: Any, at: Any, size: Any, out: Any, to: Any) -> Any:
    """Write the UTF-8 text in quotes; return the offset after it, where ROOM bytes are free again, or a fault."""
    if to + 2 * size + 2 + ROOM > out.size:
        return _NO_ROOM
    out[np.uint64(to)] = _QUOTE
    to += 1
    end = at + size
    while at < end:
        c = data[np.uint64(at)]
        escape = _ESCAPES[c]
        width = np.int64(1)
        if escape == 2:
            width = np.int64(character_bytes(data, at, end - at))
            # Half a surrogate pair is no character, and no expression makes a string of it.
            if width == 0 or (c == 0xED and data[np.uint64(at + 1)] >= 0xA0):
                return _BROKEN
        elif escape:
            out[np.uint64(to)] = _BACKSLASH
            to += 1
            c = escape
        out[np.uint64(to)] = c
        for k in range(1, width):
            out[np.uint64(to + k)] = data[np.uint64(at + k)]
        to += width
        at += width
    out[np.uint64(to)] = _QUOTE
    return to + 1


@shared
def write_sql_unsigned(value: Any, out: Any, to: Any) -> Any:
    """Write an unsigned number as CAST(… AS UNSIGNED); return where it ends."""
    copy_bytes(out, to, _CAST, 0, _CAST.size)
    to = write_unsigned(value, out, to + _CAST.size)
    copy_bytes(out, to, _AS_UNSIGNED, 0, _AS_UNSIGNED.size)
    return to + _AS_UNSIGNED.size


@shared
def write_sql_double(bits: Any, out: Any, to: Any) -> Any:
    """Write a double, with an exponent, so that SQL takes it as one; return where it ends, or a negative number."""
    first = to
    to = write_double(bits, 1, out, to)
    if to < 0:
        return to
    for k in range(first, to):
        if out[np.uint64(k)] == _E:
            return to
    out[np.uint64(to)], out[np.uint64(to + 1)] = _E, _ZERO
    return to + 2


@shared
def _write_moment(packed: Any, kind: Any, out: Any, to: Any) -> Any:
    """Write a DATE, DATETIME, TIMESTAMP or TIME as a literal."""
    if kind == _TIME:
        copy_bytes(out, to, _TIME_WORD, 0, _TIME_WORD.size)
        first = to + _TIME_WORD.size
        to = write_time(packed, out, first)
    elif kind == _DATE:
        copy_bytes(out, to, _DATE_WORD, 0, _DATE_WORD.size)
        first = to + _DATE_WORD.size
        to = write_date(packed, False, out, first)
    else:
        copy_bytes(out, to, _TIMESTAMP_WORD, 0, _TIMESTAMP_WORD.size)
        first = to + _TIMESTAMP_WORD.size
        to = write_date(packed, True, out, first)
    if to < 0:
        return to
    out[np.uint64(first)] = out[np.uint64(to - 1)] = _QUOTE
    return to


@shared
def _write_hex(data: Any, at: Any, size: Any, out: Any, to: Any) -> Any:
    if to + 2 * size + 3 + ROOM > out.size:
        return _NO_ROOM
    out[np.uint64(to)], out[np.uint64(to + 1)] = _X, _QUOTE
    to += 2
    for k in range(at, at + size):
        byte = data[np.uint64(k)]
        out[np.uint64(to)], out[np.uint64(to + 1)] = _HEX[np.uint64(byte >> 4)], _HEX[np.uint64(byte & 15)]
        to += 2
    out[np.uint64(to)] = _QUOTE
    return to + 1


@shared
def write_sql_opaque(data: Any, kind: Any, at: Any, size: Any, out: Any, to: Any) -> Any:
    """Write a value of this column type; return the offset after it, where ROOM bytes are free again, or a fault."""
    if kind == _NEWDECIMAL:
        copy_bytes(out, to, _CAST, 0, _CAST.size)
        to = write_decimal(data, at, size, out, to + _CAST.size)
        if to < 0:
            return to
        copy_bytes(out, to, _AS_DECIMAL, 0, _AS_DECIMAL.size)
        to = write_unsigned(np.uint64(data[np.uint64(at)]), out, to + _AS_DECIMAL.size)
        out[np.uint64(to)] = _COMMA
        to = write_unsigned(np.uint64(data[np.uint64(at + 1)]), out, to + 1)
        out[np.uint64(to)] = out[np.uint64(to + 1)] = _CLOSE
        return to + 2
    if kind in (_DATE, _DATETIME, _TIMESTAMP, _TIME):
        return _write_moment(read_little_endian(data, at, 8), kind, out, to) if size == 8 else _BROKEN
    if kind == _VARCHAR:
        return _write_hex(data, at, size, out, to)
    first = to
    to = write_base64(data, kind, at, size, out, to)
    if to >= 0:
        out[np.uint64(first)] = out[np.uint64(to - 1)] = _QUOTE
    return to
