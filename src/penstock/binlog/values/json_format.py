"""MySQL's binary JSON: the layout, and what can be wrong with it.

    document   type 1 | value; no byte at all (a NOT NULL column that was filled with nothing) is the JSON null
    container  count | size | objects: a key entry each | a value entry each | keys | values
    key entry  offset | length 2
    value entry  type 1 | offset, or the value itself

count, size and offsets have 2 bytes in small containers and 4 in large ones; offsets count from `count`, and `size` is
that of the whole container. Little-endian throughout.

| type      | value                                                                          | in a value entry |
|-----------|--------------------------------------------------------------------------------|------------------|
| 0, 1      | object, small and large; keys are sorted by length, then by bytes              |                  |
| 2, 3      | array, small and large                                                         |                  |
| 4         | literal: 0 null, 1 true, 2 false                                               | always           |
| 5, 6      | int16, uint16                                                                  | always           |
| 7, 8      | int32, uint32                                                                  | of large ones    |
| 9, 10, 11 | int64, uint64, double                                                          |                  |
| 12        | length, utf8mb4 bytes                                                          |                  |
| 15        | column type 1, length, bytes: DECIMAL as precision, scale, digits as in a row; |                  |
|           | DATE, TIME, DATETIME, TIMESTAMP as a packed 64-bit number; others as they are  |                  |

A length has seven bits a byte, lowest first, the top bit says that more follow. Since 8.0 the server updates values in
situ, which leaves gaps after entries, keys and values, but never lets two of them share bytes.
"""

from enum import IntEnum
from typing import Any

import numpy as np

SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY = 0, 1, 2, 3
LITERAL, INT16, UINT16, INT32, UINT32, INT64, UINT64, DOUBLE, STRING, OPAQUE = 4, 5, 6, 7, 8, 9, 10, 11, 12, 15
EMPTY = 256  # no byte: a document without any

# How text is written: bits of the argument `style`.
POINT_ZERO, AS_SQL = 1, 2
"""A double that is an integer keeps its `.0`; values are SQL expressions that make the same value again."""

MAX_DEPTH = 100
"""Containers inside each other; the server refuses to make more."""

ROOM = 256
"""Free bytes of the output before each value: a number or a date, then the brackets that may close after it."""

# What functions of these kernels hand down and back besides their result.
LEFT, WHERE, STATE_SIZE = 0, 1, 2
"""Bytes of the document not visited yet (parts of an honest one never overlap, so that a lying one cannot make more
text than an honest one of its size); the offset of a fault."""


class JsonFault(IntEnum):
    """Kernels answer with these, negated."""

    BROKEN = 1
    TOO_DEEP = 2
    NO_ROOM = 3  # of the output array: the caller passes a larger one and continues
    NO_NODES = 4  # of the node array, the same
    TOO_LARGE = 5
    BROKEN_DIFF = 6
    UNFIT_DIFF = 7
    NO_BEFORE = 8


_REASONS = {
    JsonFault.BROKEN: "the bytes are no binary JSON",
    JsonFault.TOO_DEEP: f"the document has more than {MAX_DEPTH} levels",
    JsonFault.TOO_LARGE: "the column has more than 2 GiB of text in one batch",
    JsonFault.BROKEN_DIFF: "the bytes are no JSON diff",
    JsonFault.UNFIT_DIFF: "the diff does not fit the document before it",
    JsonFault.NO_BEFORE: "the row has a JSON diff, but not the document before it",
}


class JsonError(Exception):
    """A JSON document that cannot be read: `row` is its index in the column, `where` a byte offset in the buffer. The
    caller knows file, table and column."""

    def __init__(self, fault: JsonFault, row: int, where: int) -> None:
        super().__init__(fault, row, where)
        self.fault, self.row, self.where = fault, row, where

    @property
    def reason(self) -> str:
        """Return in words what is wrong with the document."""
        return _REASONS.get(self.fault, self.fault.name)

    def __str__(self) -> str:
        return f"row {self.row}, byte {self.where}: {self.reason}"


def new_state() -> Any:
    """Return the state array with which a JSON kernel begins."""
    return np.zeros(STATE_SIZE, np.int64)
