"""A column of binary JSON → the text the server prints, as Arrow string buffers.

One pass with a stack of its own, into an array that is made larger when it does not suffice. Every read is checked
against the end of the container it belongs to; `json_format` has the layout, and what keeps a lying document in bounds.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.copying import copy_bytes
from penstock.binlog.kernel import (
    BYTES,
    I32S,
    I64,
    I64S,
    I64S_2D,
    I64S_IN,
    TRIPLE,
    U8S,
    inlined,
    kernel,
    read_little_endian,
    shared,
)
from penstock.binlog.values.json_format import (
    AS_SQL,
    DOUBLE,
    EMPTY,
    INT16,
    INT32,
    INT64,
    LARGE_ARRAY,
    LARGE_OBJECT,
    LEFT,
    LITERAL,
    MAX_DEPTH,
    OPAQUE,
    POINT_ZERO,
    ROOM,
    STRING,
    UINT16,
    UINT32,
    WHERE,
    JsonError,
    JsonFault,
    new_state,
)
from penstock.binlog.values.json_number import write_decimal, write_double, write_signed, write_unsigned
from penstock.binlog.values.json_sql import write_sql_double, write_sql_opaque, write_sql_string, write_sql_unsigned
from penstock.binlog.values.json_string import write_base64, write_string
from penstock.binlog.values.json_time import write_date, write_time

FRAME = 6  # cells of the stack for each open container: start, end, header, count, next entry, type
MAX_TEXT = 0x7FFFFFFF
_BROKEN, _TOO_DEEP = np.int64(-JsonFault.BROKEN), np.int64(-JsonFault.TOO_DEEP)
_NO_ROOM, _TOO_LARGE = np.int64(-JsonFault.NO_ROOM), np.int64(-JsonFault.TOO_LARGE)
_TIMESTAMP, _DATE, _TIME, _DATETIME, _NEWDECIMAL = 7, 10, 11, 12, 246
_COMMA, _COLON, _SPACE = (np.uint8(ord(c)) for c in ",: ")
_OPENING, _CLOSING = np.frombuffer(b"{{[[", np.uint8), np.frombuffer(b"}}]]", np.uint8)
_LITERALS = np.frombuffer(b"null true false", np.uint8)
_SQL_OPENING = np.frombuffer(b"JSON_OBJECT(JSON_ARRAY(", np.uint8)
_SQL_OBJECT = 12  # bytes of it that open an object
_SQL_CLOSING = np.uint8(ord(")"))


@inlined
def open_container(data: Any, kind: Any, at: Any, end: Any, state: Any) -> Any:
    """Return the number of elements of a container, the bytes before its keys, and its size; the number is negative
    when it is broken."""
    width = 4 if kind & 1 else 2
    state[WHERE] = at
    if end - at < 2 * width:
        return np.int64(-1), np.int64(0), np.int64(0)
    count, size = read_little_endian(data, at, width), read_little_endian(data, at + width, width)
    header = 2 * width + count * (2 * width + 3 if kind <= LARGE_OBJECT else width + 1)
    state[LEFT] -= header
    if size > end - at or header > size or state[LEFT] < 0:
        return np.int64(-1), np.int64(0), np.int64(0)
    return count, header, size


@inlined
def find_key(data: Any, start: Any, end: Any, header: Any, kind: Any, i: Any, state: Any) -> Any:
    """Return position and length of an object's key number `i`; the position is negative when it is broken."""
    width = 4 if kind & 1 else 2
    entry = start + 2 * width + i * (width + 2)
    at, size = start + read_little_endian(data, entry, width), read_little_endian(data, entry + width, 2)
    state[WHERE] = entry
    state[LEFT] -= size
    if at < start + header or size > end - at or state[LEFT] < 0:
        return np.int64(-1), np.int64(0)
    return at, size


@inlined
def find_value(data: Any, start: Any, end: Any, header: Any, kind: Any, rest: Any, state: Any) -> Any:
    """Return type, position and end of the value whose entry is the last but `rest`; the position is negative when it
    is broken."""
    width = 4 if kind & 1 else 2
    entry = start + header - rest * (width + 1)
    inner = np.int64(data[np.uint64(entry)])
    if (LITERAL <= inner <= UINT16) or (kind & 1 and INT32 <= inner <= UINT32):
        return inner, entry + 1, entry + 1 + width
    at = start + read_little_endian(data, entry + 1, width)
    state[WHERE] = entry
    if at < start + header or at >= end:
        return inner, np.int64(-1), end
    return inner, at, end


@inlined
def _write_literal(value: Any, out: Any, to: Any) -> Any:
    first, size = (0, 4) if value == 0 else (5, 4) if value == 1 else (10, 5)
    for k in range(size):
        out[np.uint64(to + k)] = _LITERALS[np.uint64(first + k)]
    return to + size


@shared
def _write_opaque(data: Any, kind: Any, at: Any, size: Any, out: Any, to: Any) -> Any:
    if kind == _NEWDECIMAL:
        return write_decimal(data, at, size, out, to)
    if kind in (_DATE, _DATETIME, _TIMESTAMP, _TIME):
        if size != 8:
            return _BROKEN
        packed = read_little_endian(data, at, 8)
        return write_time(packed, out, to) if kind == _TIME else write_date(packed, kind != _DATE, out, to)
    return write_base64(data, kind, at, size, out, to)


@shared
def _write_long(data: Any, kind: Any, at: Any, end: Any, style: Any, out: Any, to: Any, state: Any) -> Any:
    """Write a string or an opaque value, whose length comes before it; return where it ends, or a fault."""
    first = at
    if kind == OPAQUE:
        at += 1
    size, shift = np.int64(0), 0
    while True:
        if at >= end or shift > 28:
            return _BROKEN
        byte = np.int64(data[np.uint64(at)])
        at += 1
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    state[LEFT] -= size
    if size > end - at or state[LEFT] < 0:
        return _BROKEN
    if kind == STRING:
        return write_sql_string(data, at, size, out, to) if style & AS_SQL else write_string(data, at, size, out, to)
    column_type = np.int64(data[np.uint64(first)])
    if style & AS_SQL:
        return write_sql_opaque(data, column_type, at, size, out, to)
    return _write_opaque(data, column_type, at, size, out, to)


@inlined
def _write_scalar(data: Any, kind: Any, at: Any, end: Any, style: Any, out: Any, to: Any, state: Any) -> Any:
    state[WHERE] = at
    if kind in (STRING, OPAQUE):
        return _write_long(data, kind, at, end, style, out, to, state)
    if kind == LITERAL:
        if at >= end or data[np.uint64(at)] > 2:
            return _BROKEN
        return _write_literal(np.int64(data[np.uint64(at)]), out, to)
    if kind == EMPTY:
        return _write_literal(0, out, to)
    if kind < INT16 or kind > DOUBLE:
        return _BROKEN
    width = 2 if kind <= UINT16 else 4 if kind <= UINT32 else 8
    if end - at < width:
        return _BROKEN
    value = read_little_endian(data, at, width)
    if kind == DOUBLE:
        if style & AS_SQL:
            return write_sql_double(value, out, to)
        return write_double(value, style & POINT_ZERO, out, to)
    if kind in (INT16, INT32, INT64):
        shift = 64 - 8 * width
        return write_signed(value << shift >> shift, out, to)
    if style & AS_SQL:
        return write_sql_unsigned(np.uint64(value), out, to)
    return write_unsigned(np.uint64(value), out, to)


@inlined
def _write_opening(kind: Any, style: Any, out: Any, to: Any) -> Any:
    if not style & AS_SQL:
        out[np.uint64(to)] = _OPENING[np.uint64(kind)]
        return to + 1
    first, size = (0, _SQL_OBJECT) if kind <= LARGE_OBJECT else (_SQL_OBJECT, _SQL_OPENING.size - _SQL_OBJECT)
    copy_bytes(out, to, _SQL_OPENING, first, size)
    return to + size


@shared
def write_json(
    data: Any, kind: Any, at: Any, end: Any, depth: Any, style: Any, out: Any, to: Any, stack: Any, state: Any
) -> Any:
    """Write the value of this type that lies at `at`, before `end`, inside of `depth` containers already written;
    return where it ends, or a fault.

    Return the offset after its text, or a fault, whose offset is in `state`.
    """
    floor = depth
    start, stop, header, count, i, holder = at, end, np.int64(0), np.int64(0), np.int64(0), kind
    while True:
        if to + ROOM > out.size:
            return _NO_ROOM
        if kind <= LARGE_ARRAY:
            if depth == MAX_DEPTH:
                state[WHERE] = at
                return _TOO_DEEP
            if depth > floor:
                stack[depth - 1, 4] = i
            count, header, size = open_container(data, kind, at, end, state)
            if count < 0:
                return _BROKEN
            start, stop, i, holder = at, at + size, 0, kind
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = start, stop, header
            stack[depth, 3], stack[depth, 5] = count, holder
            depth += 1
            to = _write_opening(kind, style, out, to)
        else:
            to = _write_scalar(data, kind, at, end, style, out, to, state)
            if to < 0:
                return to
        while depth > floor and i == count:
            out[np.uint64(to)] = _SQL_CLOSING if style & AS_SQL else _CLOSING[np.uint64(holder)]
            to += 1
            depth -= 1
            if depth > floor:
                d = depth - 1
                start, stop, header = stack[d, 0], stack[d, 1], stack[d, 2]
                count, i, holder = stack[d, 3], stack[d, 4], stack[d, 5]
        if depth == floor:
            return to
        if i:
            out[np.uint64(to)], out[np.uint64(to + 1)] = _COMMA, _SPACE
            to += 2
        if holder <= LARGE_OBJECT:
            key, size = find_key(data, start, stop, header, holder, i, state)
            if key < 0:
                return _BROKEN
            if style & AS_SQL:
                to = write_sql_string(data, key, size, out, to)
            else:
                to = write_string(data, key, size, out, to)
            if to < 0:
                state[WHERE] = key
                return to
            out[np.uint64(to)], out[np.uint64(to + 1)] = _COMMA if style & AS_SQL else _COLON, _SPACE
            to += 2
        kind, at, end = find_value(data, start, stop, header, holder, count - i, state)
        if at < 0:
            return _BROKEN
        i += 1


@kernel(TRIPLE(BYTES, I64S_IN, I64S_IN, I64, I64, I32S, U8S, I64S_2D, I64S))
def _render(
    data: Any, offsets: Any, lengths: Any, style: Any, row: Any, bounds: Any, out: Any, stack: Any, state: Any
) -> Any:
    """Render the documents from `row` on as text; return (0, rows, bytes of text) or (fault, row, byte)."""
    to = np.int64(bounds[row])
    while row < lengths.size:
        size, at = lengths[row], offsets[row]
        if size >= 0:
            kind = np.int64(data[np.uint64(at)]) if size else EMPTY
            state[LEFT] = size
            to = write_json(data, kind, at + 1, at + size, 0, style, out, to, stack, state)
            if to > MAX_TEXT:
                to = _TOO_LARGE
            if to < 0:
                return -to, row, state[WHERE]
        row += 1
        bounds[row] = to
    return 0, row, to


class TextBuffers:
    """The buffers that kernels write text to: `bounds` and `out`, the latter grown on demand."""

    def __init__(self, rows: int, expected_bytes: int) -> None:
        self.bounds = np.zeros(rows + 1, np.int32)
        self.out = np.empty(expected_bytes + 4 * ROOM, np.uint8)
        self.stack = np.empty((MAX_DEPTH, FRAME), np.int64)
        self.state = new_state()

    def grow(self, row: int) -> None:
        """Grow the buffers, and keep what was written before this row."""
        written = int(self.bounds[row])
        if self.out.size > MAX_TEXT + ROOM:
            raise JsonError(JsonFault.TOO_LARGE, row, 0)
        larger = np.empty(min(2 * self.out.size, MAX_TEXT + 2 * ROOM), np.uint8)
        larger[:written] = self.out[:written]
        self.out = larger

    def result(self) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Return Arrow's offsets and the bytes that were written."""
        return self.bounds, self.out[: self.bounds[-1]]


def render_json(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    lengths: NDArray[np.int64],
    *,
    point_zero: bool = True,
    as_sql: bool = False,
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return Arrow's offsets and bytes of the texts of binary JSON documents; a negative length (no value) gives an
    empty one.

    Without `point_zero` a double that is an integer is printed as one, as MySQL 5.7 does; later servers write 1.0.
    With `as_sql` the texts are SQL expressions that make the same values (see `json_sql`).
    """
    style = (POINT_ZERO if point_zero else 0) | (AS_SQL if as_sql else 0)
    buffers = TextBuffers(lengths.size, int(lengths.sum(where=lengths > 0) * 3 // 2))
    row = 0
    while True:
        fault: int
        where: int
        fault, row, where = _render(
            data, offsets, lengths, style, row, buffers.bounds, buffers.out, buffers.stack, buffers.state
        )
        if not fault:
            return buffers.result()
        if fault != JsonFault.NO_ROOM:
            raise JsonError(JsonFault(fault), row, where)
        buffers.grow(row)
