"""Kernels for bytes of variable length, and for types that are bytes on the wire and text to people."""

from typing import Any

import numpy as np

from penstock.binlog.copying import copy_bytes, copy_next
from penstock.binlog.kernel import BYTES, I32S, I32S_IN, I64, NONE, U8S, kernel, shared

MAX_BYTES = 0x7FFFFFFF  # of all values of an Arrow column together
_HEX = b"0123456789abcdef"


@kernel(I64(I32S_IN, I32S_IN, I64, I32S))
def string_bounds(offsets: Any, lengths: Any, width: int, bounds: Any) -> Any:
    """Write Arrow's offsets of the values; values shorter than `width` count as long. Return the total, or -1 when it
    passes 2 GiB."""
    total = np.int64(0)
    bounds[0] = 0
    for i in range(offsets.size):
        if offsets[i] >= 0:
            total += max(np.int64(lengths[i]), width)
            if total > MAX_BYTES:
                return -1
        bounds[i + 1] = total
    return total


@kernel(NONE(BYTES, I32S_IN, I32S_IN, I64, I32S_IN, U8S))
def copy_values(data: Any, offsets: Any, lengths: Any, width: int, bounds: Any, out: Any) -> None:
    """Copy the values side by side into `out`. With a `width`, `out` is full of zeros and those that fill up a value
    stay."""
    if width:
        for i in range(offsets.size):
            if offsets[i] >= 0:
                copy_bytes(out, np.int64(bounds[i]), data, np.int64(offsets[i]), np.int64(lengths[i]))
    else:
        for i in range(offsets.size):
            if offsets[i] >= 0:
                copy_next(out, np.int64(bounds[i]), data, np.int64(offsets[i]), np.int64(lengths[i]))


@kernel(NONE(U8S, I64, U8S))
def uuid_text(values: Any, count: int, out: Any) -> None:
    """Write UUIDs of sixteen bytes each as 36 characters each."""
    for i in range(count):
        to = 36 * i
        for k in range(16):
            if k in (4, 6, 8, 10):
                out[to] = 45
                to += 1
            byte = values[16 * i + k]
            out[to], out[to + 1] = _HEX[byte >> 4], _HEX[byte & 15]
            to += 2


@shared
def _decimal(value: Any, out: Any, at: Any) -> Any:
    if value >= 100:
        out[at] = 48 + value // 100
        at += 1
    if value >= 10:
        out[at] = 48 + value // 10 % 10
        at += 1
    out[at] = 48 + value % 10
    return at + 1


@shared
def _four_parts(values: Any, first: Any, out: Any, at: Any) -> Any:
    for k in range(4):
        if k:
            out[at] = 46
            at += 1
        at = _decimal(np.int64(values[first + k]), out, at)
    return at


@kernel(I64(U8S, I64, I32S, U8S))
def inet4_text(values: Any, count: int, bounds: Any, out: Any) -> Any:
    """Write IPv4 addresses of four bytes each as text; `out` has 15 bytes per value. Return how many were used."""
    at = 0
    bounds[0] = 0
    for i in range(count):
        at = _four_parts(values, 4 * i, out, at)
        bounds[i + 1] = at
    return at


@kernel(I64(U8S, I64, I32S, U8S))
def inet6_text(values: Any, count: int, bounds: Any, out: Any) -> Any:
    """Write IPv6 addresses of sixteen bytes each as text: the longest run of zero groups, be it one, as `::`, the first
    of equal ones; an IPv4 address at the end with dots, as the server prints it. `out` has 45 bytes per value."""
    at = 0
    bounds[0] = 0
    for i in range(count):
        first = 16 * i
        best, longest, k = -1, 0, 0
        while k < 8:
            run = 0
            while k + run < 8 and values[first + 2 * (k + run)] == 0 and values[first + 2 * (k + run) + 1] == 0:
                run += 1
            if run > longest:
                best, longest = k, run
            k += max(run, 1)
        is_mapped = best == 0 and longest == 5 and values[first + 10] == 0xFF and values[first + 11] == 0xFF
        is_compatible = best == 0 and longest == 6
        k = 0
        while k < 8:
            if k == best:
                out[at], out[at + 1] = 58, 58
                at += 2
                k += longest
                continue
            if k == 6 and (is_mapped or is_compatible):
                at = _four_parts(values, first + 12, out, at)
                break
            group = np.int64(values[first + 2 * k]) << 8 | np.int64(values[first + 2 * k + 1])
            is_begun = False
            for n in range(4):
                digit = group >> (12 - 4 * n) & 15
                if digit or is_begun or n == 3:
                    out[at] = _HEX[digit]
                    at += 1
                    is_begun = True
            k += 1
            if k < 8 and k != best:
                out[at] = 58
                at += 1
        bounds[i + 1] = at
    return at
