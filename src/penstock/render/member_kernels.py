"""Where the members of JSON objects are: the kernel reads each object once, and copies nothing.

It knows as much of JSON as it needs to find the end of a value. What is no object in this sense has no members from
there on; it is never read beyond its end.
"""

from typing import Any

import numpy as np

from penstock.binlog.kernel import BYTES, I64S_2D, I64S_IN, NONE, kernel, shared

_QUOTE, _COMMA, _COLON, _BACKSLASH, _BLANK = 34, 44, 58, 92, 32
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = 91, 93, 123, 125
_2 = np.uint64(2)


@shared
def _skip_blanks(data: Any, at: Any, end: Any) -> Any:
    """Return where the blanks at `at` end."""
    while at < end and data[np.uint64(at)] <= _BLANK:
        at += 1
    return at


@shared
def _skip_string(data: Any, at: Any, end: Any) -> Any:
    """Return where the string that begins at `at` ends, after its quote."""
    at += 1
    while at < end and data[np.uint64(at)] != _QUOTE:
        at += 2 if data[np.uint64(at)] == _BACKSLASH else 1
    return min(at + 1, end)


@shared
def _skip_value(data: Any, at: Any, end: Any) -> Any:
    """Return where the value that begins at `at` ends."""
    depth = 0
    while at < end:
        byte = data[np.uint64(at)]
        if byte == _QUOTE:
            at = _skip_string(data, at, end)
            if depth == 0:
                return at
            continue
        if byte in (_OPEN_LIST, _OPEN_OBJECT):
            depth += 1
        elif byte in (_CLOSE_LIST, _CLOSE_OBJECT):
            depth -= 1
            if depth <= 0:
                return at + 1 if depth == 0 else at
        elif depth == 0 and (byte == _COMMA or byte <= _BLANK):
            return at
        at += 1
    return at


@shared
def _find_name(data: Any, at: Any, size: Any, names: Any, name_bounds: Any, guess: Any) -> Any:
    """Return the number of the name at data[at], the guessed one first; -1 when it is none of them."""
    count = name_bounds.size - 1
    for k in range(count):
        number = (guess + k) % count
        first = name_bounds[number]
        if name_bounds[number + 1] - first != size:
            continue
        is_same = True
        for j in range(size):
            if data[np.uint64(at + j)] != names[np.uint64(first + j)]:
                is_same = False
                break
        if is_same:
            return number
    return -1


@kernel(NONE(BYTES, I64S_IN, I64S_IN, BYTES, I64S_IN, I64S_2D))
def find_members(data: Any, bounds: Any, rows: Any, names: Any, name_bounds: Any, spans: Any) -> None:
    """Find members of JSON objects by their names, which are given as JSON has them, in quotes.

    Object i is data[bounds[rows[i]]:bounds[rows[i] + 1]]. The value of its member m is data[spans[m, 2 * i]:
    spans[m, 2 * i + 1]]; that is empty where the object has no such member.
    """
    count = name_bounds.size - 1
    for i in range(rows.size):
        at, end = bounds[rows[i]], bounds[rows[i] + 1]
        for m in range(count):
            spans[m, 2 * i] = at
            spans[m, 2 * i + 1] = at
        at = _skip_blanks(data, at, end)
        if at >= end or data[np.uint64(at)] != _OPEN_OBJECT:
            continue
        at += 1
        guess, members = 0, 0
        while members < count:
            at = _skip_blanks(data, at, end)
            if at >= end or data[np.uint64(at)] != _QUOTE:
                break
            name = at
            at = _skip_string(data, at, end)
            number = _find_name(data, name, at - name, names, name_bounds, guess)
            at = _skip_blanks(data, at, end)
            if at >= end or data[np.uint64(at)] != _COLON:
                break
            first = _skip_blanks(data, at + 1, end)
            at = _skip_value(data, first, end)
            if number >= 0:
                spans[number, 2 * i] = first
                spans[number, 2 * i + 1] = at
                guess, members = number + 1, members + 1
            at = _skip_blanks(data, at, end)
            if at >= end or data[np.uint64(at)] != _COMMA:
                break
            at += 1
