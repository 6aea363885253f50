"""Paths of JSON diffs as the server writes them: `$`, then legs.

  .name      a member whose name is an ECMAScript identifier, letters of all alphabets included
  ."any"     any other member; the escapes are those of JSON text
  [3]        a cell
  [last-1]   a cell counted from the end; [last] is [last-0]

A name is kept as its offset and size: an offset >= 0 is in the data, `~offset` in the array of unescaped names.
"""

from typing import Any

import numpy as np

from penstock.binlog.kernel import shared

MEMBER, CELL, CELL_FROM_END, BROKEN_LEG = 0, 1, 2, -1
_QUOTE, _BACKSLASH, _POINT, _OPEN, _CLOSE, _MINUS, _ZERO = (ord(c) for c in '"\\.[]-0')
_LAST = np.frombuffer(b"last", np.uint8)
_LETTERS = np.frombuffer(b'"\\/bfnrt', np.uint8)
_MEANT = np.frombuffer(b'"\\/\b\f\n\r\t', np.uint8)
_U = ord("u")


@shared
def _hex_digit(byte: Any) -> Any:
    if 48 <= byte <= 57:
        return np.int64(byte) - 48
    byte |= 32
    return np.int64(byte) - 87 if 97 <= byte <= 102 else np.int64(-1)


@shared
def _unescape(data: Any, at: Any, end: Any, names: Any, to: Any) -> Any:
    """Copy up to the closing quote; return the offsets after it and in `names`, the former negative when broken."""
    while at < end and data[np.uint64(at)] != _QUOTE:
        byte = data[np.uint64(at)]
        at += 1
        if byte == _BACKSLASH:
            if at >= end:
                return np.int64(-1), to
            letter = data[np.uint64(at)]
            at += 1
            is_known = False
            for k in range(_LETTERS.size):
                if letter == _LETTERS[k]:
                    byte, is_known = _MEANT[k], True
            if letter == _U and end - at >= 4:
                value = np.int64(0)
                for k in range(4):
                    digit = _hex_digit(data[np.uint64(at + k)])
                    value = value << 4 | digit if digit >= 0 else np.int64(1 << 40)
                at += 4
                byte, is_known = np.uint8(value & 127), value < 128  # the server writes nothing else like this
            if not is_known:
                return np.int64(-1), to
        names[np.uint64(to)] = byte
        to += 1
    return (at + 1 if at < end else np.int64(-1)), to


@shared
def _read_member(data: Any, at: Any, end: Any, names: Any, used: Any) -> Any:
    first = at
    if at < end and data[np.uint64(at)] == _QUOTE:
        at += 1
        while at < end and data[np.uint64(at)] not in (_QUOTE, _BACKSLASH):
            at += 1
        if at < end and data[np.uint64(at)] == _QUOTE:
            return MEMBER, at + 1, first + 1, at - first - 1, used
        at, to = _unescape(data, first + 1, end, names, used)
        return (MEMBER if at >= 0 else BROKEN_LEG), at, ~used, to - used, to
    while at < end and data[np.uint64(at)] not in (_POINT, _OPEN):
        at += 1
    return (MEMBER if at > first else BROKEN_LEG), at, first, at - first, used


@shared
def _read_cell(data: Any, at: Any, end: Any, used: Any) -> Any:
    kind, number, digits = CELL, np.int64(0), 0
    if end - at >= 4 and data[np.uint64(at)] == _LAST[0]:
        for k in range(4):
            if data[np.uint64(at + k)] != _LAST[k]:
                return BROKEN_LEG, at, np.int64(0), np.int64(0), used
        kind, at, digits = CELL_FROM_END, at + 4, 1
        if at < end and data[np.uint64(at)] == _MINUS:
            at, digits = at + 1, 0
    while at < end and 48 <= data[np.uint64(at)] <= 57 and number < 1 << 40:
        number = number * 10 + np.int64(data[np.uint64(at)]) - _ZERO
        at, digits = at + 1, digits + 1
    if digits == 0 or at >= end or data[np.uint64(at)] != _CLOSE:
        return BROKEN_LEG, at, np.int64(0), np.int64(0), used
    return kind, at + 1, number, np.int64(0), used


@shared
def read_leg(data: Any, at: Any, end: Any, names: Any, used: Any) -> Any:
    """Read the path leg at `at`. Return its kind, its end, the start and size of its name or its array index and 0, and
    how much of `names` is used.
    """
    start = data[np.uint64(at)]
    if start == _POINT:
        return _read_member(data, at + 1, end, names, used)
    if start == _OPEN:
        return _read_cell(data, at + 1, end, used)
    return BROKEN_LEG, at, np.int64(0), np.int64(0), used
