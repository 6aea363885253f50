"""Texts whose bytes should be UTF-8 already: copied, checked, and repaired where they are not.

The check reads what was just copied, a block of values at a time and all of its bytes at once: a block is good when its
bytes are UTF-8 and no value begins inside a character. Loops over slices count from zero, which is what lets the
compiler use vector instructions.
"""

from typing import Any

import numpy as np

from penstock.binlog.copying import copy_next
from penstock.binlog.kernel import BYTES, I32S, I32S_IN, I64, U8S, kernel, shared
from penstock.binlog.values.strings import MAX_BYTES

_BLOCK = 256  # values; few enough to be in the fastest cache still


@shared
def _copy(data: Any, offsets: Any, lengths: Any, bounds: Any, out: Any) -> None:
    for i in range(lengths.size):
        if offsets[i] >= 0 and lengths[i] > 0:
            copy_next(out, np.int64(bounds[i]), data, np.int64(offsets[i]), np.int64(lengths[i]))


@shared
def _is_ascii(part: Any) -> Any:
    seen = np.uint8(0)
    for k in range(part.size):
        seen = np.uint8(seen | part[k])
    return seen < 0x80


@shared
def _is_wrong(before3: Any, before2: Any, before1: Any, byte: Any) -> Any:
    """Return whether a byte may not stand after the three before it; a character that ends too early shows one byte
    later."""
    follows = (byte & np.uint8(0xC0)) == np.uint8(0x80)
    wrong = follows != ((before1 >= 0xC0) | (before2 >= 0xE0) | (before3 >= 0xF0))
    wrong |= (byte == 0xC0) | (byte == 0xC1) | (byte >= 0xF5)
    wrong |= (before1 == 0xE0) & (byte < 0xA0)  # longer than needed
    wrong |= (before1 == 0xED) & (byte >= 0xA0)  # half of a surrogate pair
    wrong |= (before1 == 0xF0) & (byte < 0x90)
    wrong |= (before1 == 0xF4) & (byte >= 0x90)  # beyond U+10FFFF
    return np.uint8(wrong)


@shared
def _is_utf8(part: Any) -> Any:
    size = part.size
    before3, before2, before1 = np.uint8(0), np.uint8(0), np.uint8(0)
    wrong = np.uint8(0)
    for k in range(min(size, 3)):
        wrong = np.uint8(wrong | _is_wrong(before3, before2, before1, part[k]))
        before3, before2, before1 = before2, before1, part[k]
    if size > 3:
        third, second, first, last = part[: size - 3], part[1 : size - 2], part[2 : size - 1], part[3:]
        for k in range(last.size):
            wrong = np.uint8(wrong | _is_wrong(third[k], second[k], first[k], last[k]))
        before3, before2, before1 = part[size - 3], part[size - 2], part[size - 1]
    return wrong == 0 and before3 < 0xF0 and before2 < 0xE0 and before1 < 0xC0


@shared
def _begin_whole(bounds: Any, out: Any) -> Any:
    """Return whether no value begins with a byte that continues a character."""
    for i in range(bounds.size - 1):
        if bounds[i] < bounds[i + 1] and out[np.uint64(bounds[i])] & 0xC0 == 0x80:
            return False
    return True


@kernel(I64(BYTES, I32S_IN, I32S_IN, I32S_IN, U8S))
def copy_utf8(data: Any, offsets: Any, lengths: Any, bounds: Any, out: Any) -> Any:
    """Copy the values into `out`; return 1, or 0 when some value is not UTF-8. `bounds` are those of the lengths."""
    for first in range(0, lengths.size, _BLOCK):
        stop = min(first + _BLOCK, lengths.size)
        ends = bounds[first : stop + 1]
        _copy(data, offsets[first:stop], lengths[first:stop], ends, out)
        part = out[ends[0] : ends[ends.size - 1]]
        if not _is_ascii(part) and not (_begin_whole(ends, out) and _is_utf8(part)):
            return 0
    return 1


@shared
def sequence_size(data: Any, at: Any, end: Any) -> Any:
    """Return the length in bytes of the UTF-8 character at data[at]. For one that is invalid, or is cut off by `end`,
    return minus the number of its bytes that are valid, at least 1."""
    lead = np.int64(data[at])
    if lead < 0x80:
        return np.int64(1)
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if lead < 0xC2 or lead > 0xF4:
        return np.int64(-1)
    for k in range(1, size):
        if at + k >= end:
            return np.int64(-k)
        low, high = 0x80, 0xBF
        if k == 1:
            low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
            high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        if data[at + k] < low or data[at + k] > high:
            return np.int64(-k)
    return np.int64(size)


@kernel(I64(BYTES, I32S_IN, I32S_IN, I32S, U8S))
def repair_utf8(data: Any, offsets: Any, lengths: Any, bounds: Any, out: Any) -> Any:
    """Copy the values into `out` with U+FFFD for what is not UTF-8. `out` has room for three bytes per byte; return how
    many were used, or -1 when they pass 2 GiB."""
    to = np.int64(0)
    bounds[0] = 0
    for i in range(lengths.size):
        if offsets[i] >= 0:
            at = np.int64(offsets[i])
            end = at + lengths[i]
            while at < end:
                size = sequence_size(data, at, end)
                if size > 0:
                    for k in range(size):
                        out[to + k] = data[at + k]
                    to += size
                else:
                    out[to], out[to + 1], out[to + 2] = 0xEF, 0xBF, 0xBD
                    to += 3
                at += abs(size)
        if to > MAX_BYTES:
            return -1
        bounds[i + 1] = to
    return to
