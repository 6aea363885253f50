"""A JSON document opened as far as diffs reach into it: nodes in one array, everything else still binary.

A node is a value in its binary form until something inside of it changes; then its children become nodes too. So the
cost of a diff is that of the containers along its path.
"""

from typing import Any

import numpy as np

from penstock.binlog.kernel import shared
from penstock.binlog.values.json_format import (
    LARGE_ARRAY,
    LARGE_OBJECT,
    MAX_DEPTH,
    ROOM,
    WHERE,
    JsonFault,
)
from penstock.binlog.values.json_path import CELL, MEMBER
from penstock.binlog.values.json_string import write_string
from penstock.binlog.values.json_text import find_key, find_value, open_container, write_json

# Cells of a node: type, offset and end of the binary value; first child, next sibling, count of children, whether those
# are still the ones it was opened with, side by side; offset and size of its key.
KIND, AT, END, CHILD, NEXT, COUNT, IS_INTACT, KEY, KEY_SIZE = range(9)
NODE = 9
NONE, BINARY = -1, -2  # in CHILD: an opened container without children, a value that is not opened
ROOT = 0
_BROKEN, _TOO_DEEP = np.int64(-JsonFault.BROKEN), np.int64(-JsonFault.TOO_DEEP)
_NO_ROOM, _NO_NODES = np.int64(-JsonFault.NO_ROOM), np.int64(-JsonFault.NO_NODES)
_COMMA, _COLON, _SPACE = (np.uint8(ord(c)) for c in ",: ")
_OPENING, _CLOSING = np.frombuffer(b"{{[[", np.uint8), np.frombuffer(b"}}]]", np.uint8)


@shared
def set_value(nodes: Any, n: Any, kind: Any, at: Any, end: Any) -> None:
    """Set a node to the binary value of this type that lies at `at` and ends at `end`."""
    nodes[n, KIND], nodes[n, AT], nodes[n, END], nodes[n, CHILD] = kind, at, end, BINARY


@shared
def open_node(data: Any, nodes: Any, used: Any, n: Any, state: Any) -> Any:
    """Add the children of a JSON array or object to the tree of nodes, unless they are there already; return how many
    nodes the tree then has, or the code of a fault."""
    if nodes[n, CHILD] != BINARY:
        return used
    kind, at = nodes[n, KIND], nodes[n, AT]
    count, header, size = open_container(data, kind, at, nodes[n, END], state)
    if count < 0:
        return _BROKEN
    if used + count > nodes.shape[0]:
        return _NO_NODES
    for i in range(count):
        child = used + i
        nodes[child, KEY], nodes[child, KEY_SIZE] = 0, 0
        if kind <= LARGE_OBJECT:
            nodes[child, KEY], nodes[child, KEY_SIZE] = find_key(data, at, at + size, header, kind, i, state)
        inner, value_at, end = find_value(data, at, at + size, header, kind, count - i, state)
        if value_at < 0 or nodes[child, KEY] < 0:
            return _BROKEN
        set_value(nodes, child, inner, value_at, end)
        nodes[child, NEXT] = child + 1 if i + 1 < count else NONE
    nodes[n, CHILD], nodes[n, COUNT], nodes[n, IS_INTACT] = (used if count else NONE), count, 1
    return used + count


@shared
def _compare(data: Any, names: Any, a: Any, a_size: Any, b: Any, b_size: Any) -> Any:
    """Compare two keys by length, then by bytes. Return a number below, equal to or above 0."""
    if a_size != b_size:
        return a_size - b_size
    for k in range(a_size):
        x = np.int64(data[np.uint64(a + k)] if a >= 0 else names[np.uint64(~a + k)])
        y = np.int64(data[np.uint64(b + k)] if b >= 0 else names[np.uint64(~b + k)])
        if x != y:
            return x - y
    return np.int64(0)


@shared
def find_child(data: Any, names: Any, nodes: Any, n: Any, leg: Any, value: Any, size: Any) -> Any:
    """Return the child of an opened node that a leg of a path names, or NONE, and the one before it, after which a new
    child goes."""
    before, child = np.int64(NONE), nodes[n, CHILD]
    if leg == MEMBER:
        while child != NONE:
            order = _compare(data, names, nodes[child, KEY], nodes[child, KEY_SIZE], value, size)
            if order == 0:
                return child, before
            if order > 0:
                break
            before, child = child, nodes[child, NEXT]
        return np.int64(NONE), before
    index = value if leg == CELL else nodes[n, COUNT] - 1 - value
    if index < 0 or child == NONE:
        return np.int64(NONE), before
    if nodes[n, IS_INTACT]:
        value_at = min(index, nodes[n, COUNT])
        before = child + value_at - 1 if value_at else np.int64(NONE)
        return (child + value_at if value_at < nodes[n, COUNT] else np.int64(NONE)), before
    while child != NONE and index > 0:
        before, child = child, nodes[child, NEXT]
        index -= 1
    return child, before


@shared
def insert_child(nodes: Any, n: Any, before: Any, child: Any) -> None:
    """Insert a node as a child after `before`."""
    if before == NONE:
        nodes[child, NEXT], nodes[n, CHILD] = nodes[n, CHILD], child
    else:
        nodes[child, NEXT], nodes[before, NEXT] = nodes[before, NEXT], child
    nodes[n, COUNT] += 1
    nodes[n, IS_INTACT] = 0


@shared
def remove_child(nodes: Any, n: Any, before: Any, child: Any) -> None:
    """Remove a child that follows `before`."""
    if before == NONE:
        nodes[n, CHILD] = nodes[child, NEXT]
    else:
        nodes[before, NEXT] = nodes[child, NEXT]
    nodes[n, COUNT] -= 1
    nodes[n, IS_INTACT] = 0


@shared
def write_tree(data: Any, names: Any, nodes: Any, style: Any, out: Any, to: Any, stack: Any, state: Any) -> Any:
    """Write the text of the document's root to out[to]; return as `write_json` does."""
    node, depth = np.int64(ROOT), 0
    while True:
        if to + ROOM > out.size:
            return _NO_ROOM
        if nodes[node, CHILD] == BINARY:
            kind, at, end = nodes[node, KIND], nodes[node, AT], nodes[node, END]
            to = write_json(data, kind, at, end, depth, style, out, to, stack, state)
            if to < 0:
                return to
        else:
            if depth == MAX_DEPTH:
                state[WHERE] = nodes[node, AT]
                return _TOO_DEEP
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = nodes[node, CHILD], nodes[node, KIND], 1
            depth += 1
            out[np.uint64(to)] = _OPENING[nodes[node, KIND]]
            to += 1
        while depth > 0 and stack[depth - 1, 0] == NONE:
            depth -= 1
            out[np.uint64(to)] = _CLOSING[stack[depth, 1]]
            to += 1
        if depth == 0:
            return to
        top = depth - 1
        node = stack[top, 0]
        stack[top, 0] = nodes[node, NEXT]
        if stack[top, 2] == 0:
            out[np.uint64(to)], out[np.uint64(to + 1)] = _COMMA, _SPACE
            to += 2
        stack[top, 2] = 0
        if stack[top, 1] <= LARGE_OBJECT:
            key, size = nodes[node, KEY], nodes[node, KEY_SIZE]
            state[WHERE] = max(key, 0)
            to = write_string(data, key, size, out, to) if key >= 0 else write_string(names, ~key, size, out, to)
            if to < 0:
                return to
            out[np.uint64(to)], out[np.uint64(to + 1)] = _COLON, _SPACE
            to += 2


@shared
def is_container(nodes: Any, n: Any) -> Any:
    """Return whether a node is an object or an array."""
    return nodes[n, KIND] <= LARGE_ARRAY
