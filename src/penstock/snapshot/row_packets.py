"""Kernels that cut the packets of a result set into rows, and rows into fields.

    packet: length 3 | number 1 | payload           a payload of 2^24-1 bytes continues in the next packet
    row: 0 | null bitmap, its first two bits unused | fields without null
    field: 1, 2, 4 or 8 bytes; or a length and as many bytes, the length in 1 to 9 bytes

This is the binary protocol of prepared statements. Numbers come as the log has them, so that the kernels of the log
decode them; a FLOAT keeps all its bits, which the text protocol would round.
"""

from typing import Any

import numpy as np

from penstock.binlog.kernel import BYTES, I32S, I32S_2D, I32S_IN, I64, TRIPLE, U8S_IN, kernel, read_little_endian, u16

MORE, END, ERROR, LONG = range(4)
"""Why cutting stopped: more bytes are needed, the rows ended, an error came, or a row that has several packets."""

STRING, TEMPORAL = 0, 255
"""Field kinds beside the widths of fixed fields: a length-encoded string, and a date or time with its length."""

_HEADER = 4
_LONGEST_EOF = 9


@kernel(TRIPLE(BYTES, I64, I64, I64, I32S, I32S))
def cut_rows(data: Any, begin: int, end: int, rows: int, starts: Any, ends: Any) -> Any:
    """Write where each whole row in data[begin:end] starts and ends, behind the first `rows` that are known.

    Return (rows, where the next packet begins, why it stopped).
    """
    at = np.int64(begin)
    while at + _HEADER < end and rows < starts.size:
        length = read_little_endian(data, at, 3)
        if length == 0xFFFFFF:
            return rows, at, LONG
        first = at + _HEADER
        if first + length > end:
            break
        if length and data[first] == 0xFF:
            return rows, at, ERROR
        if length and data[first] == 0xFE and length < _LONGEST_EOF:
            return rows, at, END
        starts[rows], ends[rows] = first, first + length
        rows += 1
        at = first + length
    return rows, at, MORE


@kernel(I64(BYTES, I32S_IN, I32S_IN, U8S_IN, I32S_2D, I32S_2D))
def locate_fields(  # noqa: C901, PLR0911, PLR0912 - one loop
    data: Any, starts: Any, ends: Any, kinds: Any, offsets: Any, lengths: Any
) -> Any:
    """Write the offset and the length of each field, by column and row; a null has the offset -1.

    The offset of a date or time is that of its length byte. Return -1, or the first row that its fields do not fill.
    """
    columns = kinds.size
    bitmap = (columns + 9) // 8
    for row in range(starts.size):
        begin, end = np.int64(starts[row]), np.int64(ends[row])
        at = begin + 1 + bitmap
        if at > end or data[begin] != 0:
            return row
        for column in range(columns):
            bit = column + 2
            if data[begin + 1 + (bit >> 3)] >> (bit & 7) & 1:
                offsets[column, row], lengths[column, row] = -1, 0
                continue
            kind = np.int64(kinds[column])
            if kind == STRING:
                if at >= end:
                    return row
                length = np.int64(data[at])
                at += 1
                if length > 250:
                    size = 2 if length == 252 else 3 if length == 253 else 8
                    if at + size > end:
                        return row
                    length = u16(data, at) if size == 2 else read_little_endian(data, at, size)
                    at += size
                if length < 0 or length > end - at:
                    return row
                offsets[column, row], lengths[column, row] = at, length
                at += length
            else:
                if at >= end:
                    return row
                length = 1 + np.int64(data[at]) if kind == TEMPORAL else kind
                if length > end - at:
                    return row
                offsets[column, row], lengths[column, row] = at, length
                at += length
        if at != end:
            return row
    return -1
