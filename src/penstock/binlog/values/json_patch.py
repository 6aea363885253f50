"""JSON diffs of partial updates → the text of the whole document after them.

With `binlog_row_value_options=PARTIAL_JSON` (MySQL 8.0 and later) an update is logged as a PARTIAL_UPDATE_ROWS event,
and the field of a JSON column in its after image may hold, in place of a document, diffs against the document before:
any number of them, none when the column did not change, applied in order.

  diff  operation 1: 0 replace, 1 insert, 2 remove | length, path | unless removing: length, document
  length  1 byte below 251; 252, 253, 254: it follows in 2, 3, 8 bytes

`json_path` has what paths look like. An inserted cell goes before the one its path names, or to the end, or to the
front when it counts from the end beyond that; an inserted member must be new; what is replaced or removed must be
there.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.kernel import (
    BYTES,
    I32S,
    I64,
    I64S,
    I64S_2D,
    I64S_IN,
    TRIPLE,
    U8S,
    kernel,
    read_little_endian,
    shared,
)
from penstock.binlog.values.json_format import EMPTY, LARGE_OBJECT, LEFT, POINT_ZERO, WHERE, JsonError, JsonFault
from penstock.binlog.values.json_path import BROKEN_LEG, MEMBER, read_leg
from penstock.binlog.values.json_text import MAX_TEXT, TextBuffers, write_json
from penstock.binlog.values.json_tree import (
    KEY,
    KEY_SIZE,
    NODE,
    NONE,
    ROOT,
    find_child,
    insert_child,
    is_container,
    open_node,
    remove_child,
    set_value,
    write_tree,
)

REPLACE, INSERT, REMOVE = 0, 1, 2
DOLLAR = ord("$")
_BROKEN, _UNFIT = np.int64(-JsonFault.BROKEN_DIFF), np.int64(-JsonFault.UNFIT_DIFF)
_NO_BEFORE, _NO_NODES = np.int64(-JsonFault.NO_BEFORE), np.int64(-JsonFault.NO_NODES)
_TOO_LARGE = np.int64(-JsonFault.TOO_LARGE)


@shared
def read_length(data: Any, at: Any, end: Any) -> Any:
    """Return the start and the size of the value whose length is at `at`; the size is negative when it ends too
    early."""
    if at >= end:
        return at, np.int64(-1)
    size = np.int64(data[np.uint64(at)])
    at += 1
    if size > 250:
        width = 2 if size == 252 else 3 if size == 253 else 8
        if size in (251, 255) or width > end - at:
            return at, np.int64(-1)
        size = read_little_endian(data, at, width)
        at += width
    return at, size if size <= end - at else np.int64(-1)


@shared
def _apply(
    data: Any, operation: Any, path: Any, path_end: Any, at: Any, end: Any,
    names: Any, named: Any, nodes: Any, used: Any, state: Any,
) -> Any:  # fmt: skip
    """Apply one diff, whose document is at `at`. Return how much of `nodes` and `names` is used, or a fault and 0."""
    leg, parent, node, before, value, size = MEMBER, np.int64(NONE), np.int64(ROOT), np.int64(NONE), path, path
    while path < path_end:
        if node == NONE or not is_container(nodes, node):
            return _UNFIT, named
        used = open_node(data, nodes, used, node, state)
        if used < 0:
            return used, named
        leg, path, value, size, named = read_leg(data, path, path_end, names, named)
        if leg == BROKEN_LEG:
            return _BROKEN, named
        parent = node
        if (leg == MEMBER) != (nodes[parent, 0] <= LARGE_OBJECT):
            return _UNFIT, named
        node, before = find_child(data, names, nodes, parent, leg, value, size)
    if operation == INSERT:
        if parent == NONE or (leg == MEMBER and node != NONE):
            return _UNFIT, named
        if used == nodes.shape[0]:
            return _NO_NODES, named
        set_value(nodes, used, np.int64(data[np.uint64(at)]), at + 1, end)
        nodes[used, KEY], nodes[used, KEY_SIZE] = (value, size) if leg == MEMBER else (np.int64(0), np.int64(0))
        insert_child(nodes, parent, before, used)
        return used + 1, named
    if node == NONE:
        return _UNFIT, named
    if operation == REPLACE:
        set_value(nodes, node, np.int64(data[np.uint64(at)]), at + 1, end)
    elif parent == NONE:
        return _UNFIT, named
    else:
        remove_child(nodes, parent, before, node)
    return used, named


@shared
def _apply_all(data: Any, at: Any, end: Any, names: Any, nodes: Any, state: Any) -> Any:
    """Apply all diffs of a field to the root. Return 0 or a fault."""
    used, named = np.int64(1), np.int64(0)
    while at < end:
        first = at
        operation = np.int64(data[np.uint64(at)])
        path, size = read_length(data, at + 1, end)
        at = path + size
        value, value_end = at, at
        state[WHERE] = first
        if operation > REMOVE or size < 1 or data[np.uint64(path)] != DOLLAR:
            return _BROKEN
        if operation != REMOVE:
            value, value_size = read_length(data, at, end)
            at = value_end = value + value_size
            if value_size < 1:
                return _BROKEN
        used, named = _apply(data, operation, path + 1, path + size, value, value_end, names, named, nodes, used, state)
        if used < 0:
            if used in (_BROKEN, _UNFIT):
                state[WHERE] = first
            return used
    return np.int64(0)


@shared
def _write_row(
    data: Any, at: Any, size: Any, diff: Any, diff_size: Any, style: Any, out: Any, to: Any,
    names: Any, nodes: Any, stack: Any, state: Any,
) -> Any:  # fmt: skip
    state[WHERE] = diff if diff_size >= 0 else at
    if size < 0:
        return to if diff_size < 0 else _NO_BEFORE
    kind = np.int64(data[np.uint64(at)]) if size else np.int64(EMPTY)
    state[LEFT] = size + max(diff_size, 0)
    if diff_size <= 0:
        return write_json(data, kind, at + 1, at + size, 0, style, out, to, stack, state)
    set_value(nodes, ROOT, kind, at + 1, at + size)
    fault = _apply_all(data, diff, diff + diff_size, names, nodes, state)
    if fault < 0:
        return fault
    return write_tree(data, names, nodes, style, out, to, stack, state)


@kernel(TRIPLE(BYTES, I64S_IN, I64S_IN, I64S_IN, I64S_IN, I64, I64, I32S, U8S, U8S, I64S_2D, I64S_2D, I64S))
def _patch(
    data: Any, offsets: Any, lengths: Any, diff_offsets: Any, diff_lengths: Any, style: Any, row: Any,
    bounds: Any, out: Any, names: Any, nodes: Any, stack: Any, state: Any,
) -> Any:  # fmt: skip
    """Patch documents from `row` on, and write them as text. Return (0, rows, bytes of text) or (fault, row, byte)."""
    to = np.int64(bounds[row])
    while row < lengths.size:
        to = _write_row(
            data, offsets[row], lengths[row], diff_offsets[row], diff_lengths[row], style, out, to,
            names, nodes, stack, state,
        )  # fmt: skip
        if to > MAX_TEXT:
            to = _TOO_LARGE
        if to < 0:
            return -to, row, state[WHERE]
        row += 1
        bounds[row] = to
    return 0, row, to


def patch_json(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    lengths: NDArray[np.int64],
    diff_offsets: NDArray[np.int64],
    diff_lengths: NDArray[np.int64],
    *,
    point_zero: bool = True,
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return the text of documents to which diffs are applied, as `render_json` does without diffs.

    A row without diffs has a negative `diff_length`: it is the document at `offsets`, or none. A row with diffs has the
    document before them there; that there is none (as with `binlog_row_image=MINIMAL`) is an error, unless the caller
    takes the diffs away. So one call handles a column in which whole documents and diffs are mixed.
    """
    expected = lengths.sum(where=lengths > 0) + diff_lengths.sum(where=diff_lengths > 0)
    buffers = TextBuffers(lengths.size, int(expected * 3 // 2))
    names = np.empty(max(0, int(diff_lengths.max(initial=0))), np.uint8)
    nodes = np.empty((1024, NODE), np.int64)
    row, style = 0, POINT_ZERO if point_zero else 0
    while True:
        fault: int
        where: int
        fault, row, where = _patch(
            data, offsets, lengths, diff_offsets, diff_lengths, style, row,
            buffers.bounds, buffers.out, names, nodes, buffers.stack, buffers.state,
        )  # fmt: skip
        if not fault:
            return buffers.result()
        if fault == JsonFault.NO_ROOM:
            buffers.grow(row)
        elif fault == JsonFault.NO_NODES:
            nodes = np.empty((4 * nodes.shape[0], NODE), np.int64)
        else:
            raise JsonError(JsonFault(fault), row, where)
