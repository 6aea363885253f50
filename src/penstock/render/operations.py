"""Operations on JSON documents that the log does not have, as text: calls of SQL functions, and lists.

Each function writes all rows of a column at once; a row without operations has a text that nobody takes.
"""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import compute as pc
from penstock.binlog.arrays import to_arrow_numbers
from penstock.render import text

if TYPE_CHECKING:
    from penstock.binlog.values.json_operations import JsonOperations

_FUNCTIONS = ("", "JSON_REPLACE(", "JSON_INSERT(", "JSON_REMOVE(", "JSON_ARRAY_INSERT(")
_EMPTY = text.make_scalar("")


def write_function_calls(operations: "JsonOperations", column: str, paths: pa.Array, values: pa.Array) -> pa.Array:
    """Write SQL function calls around `column` that apply the operations in their order: the innermost is applied
    first.

    Neighbours of one kind share a call, since a function applies its paths one after the other, from left to right:
    JSON_REMOVE(JSON_REPLACE(`j`, '$.a', 1, '$.b', 2), '$.c').
    """
    codes, bounds = operations.codes, operations.bounds
    row = np.repeat(np.arange(operations.counts.size), operations.counts)
    begins = np.concatenate([np.ones(min(1, codes.size), np.bool_), (np.diff(codes) != 0) | (np.diff(row) != 0)])
    ends = np.concatenate([begins[1:], np.ones(min(1, codes.size), np.bool_)])
    outermost_first = bounds[row] + bounds[row + 1] - 1 - np.arange(codes.size)
    heads = text.texts_from_list(_FUNCTIONS).take(to_arrow_numbers(np.where(begins, codes + 1, 0)[outermost_first]))
    given = pc.coalesce(text.join_columns(", ", text.write_plain(values)), _EMPTY)
    closing = text.texts_from_list(["", ")"]).take(to_arrow_numbers(ends.astype(np.int64)))
    tails = text.join_columns(", '", text.write_plain(paths), "'", given, closing)
    return text.join_columns(_join_texts(heads, bounds, ""), column, _join_texts(tails, bounds, ""))


def write_operation_objects(operations: "JsonOperations", paths: pa.Array, before: str = "") -> pa.Array:
    """Write the operations of each row as JSON objects with commas between them; `paths` are escaped.

    `before` is put in front of the members of each.
    """
    value = pc.coalesce(text.join_columns(',"value":', text.write_plain(operations.values)), _EMPTY)
    names = text.write_plain(operations.names)
    each = text.join_columns(f'{{{before}"op":"', names, '","path":"', text.write_plain(paths), '"', value, "}")
    return _join_texts(each, operations.bounds, ",")


def describe_operations(operations: "JsonOperations", paths: pa.Array, values: pa.Array) -> pa.Array:
    """Describe the partial JSON update of each row in words, such as `replace $.a 4, remove $.b`."""
    value = pc.coalesce(text.join_columns(" ", values), _EMPTY)
    each = text.join_columns(text.write_plain(operations.names), " ", paths, value)
    return _join_texts(each, operations.bounds, ", ")


def _join_texts(texts: pa.Array, bounds: NDArray[np.int64], between: str) -> pa.Array:
    """Join the texts of each row with a separator."""
    return pc.binary_join(pa.LargeListArray.from_arrays(to_arrow_numbers(bounds), texts), text.make_scalar(between))
