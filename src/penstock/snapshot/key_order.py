"""Which keys lie in a range, as the server orders them.

Integers are compared here. Texts are ordered by their collation, which the server knows best: it is asked once for
each key that differs, over whatever way there is to it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import to_numpy
from penstock.errors import SchemaError
from penstock.snapshot.chunks import Chunk
from penstock.snapshot.key_column import value_text
from penstock.snapshot.table import SnapshotTable

_PAGE = 500  # keys in one statement

AskServer = Callable[[list[list[str]], Chunk], list[bool]]
"""Returns which of the keys, given as texts, lie in the range of a chunk."""


def find_inside(columns: Sequence[pa.Array], chunk: Chunk, ask: AskServer) -> NDArray[np.bool_]:
    """Return which keys lie in the range of a chunk; `columns` are those of the key, in its order."""
    for column in columns:
        if column.null_count:
            raise SchemaError("a key has a date that no calendar has: a table cannot be read beside its changes by it")
    if chunk.after is None and chunk.until is None:
        return np.ones(len(columns[0]), np.bool_)
    if pa.types.is_integer(columns[0].type) and all(len(limit or "1") == 1 for limit in (chunk.after, chunk.until)):
        return _find_integers(columns[0], chunk)
    groups = number_keys(columns)
    _, first = np.unique(groups, return_index=True)
    texts = _key_texts([column.take(pa.array(first)) for column in columns])
    return np.array(ask(texts, chunk), np.bool_)[groups]


def _find_integers(column: pa.Array, chunk: Chunk) -> NDArray[np.bool_]:
    """Return which integers lie in the range of a chunk."""
    values = to_numpy(column)
    inside = np.ones(values.size, np.bool_)
    for limit, is_after in ((chunk.after, True), (chunk.until, False)):
        if limit is None:
            continue
        bound, info = int(limit[0]), np.iinfo(values.dtype)
        if bound < info.min or bound > info.max:  # numpy would compare as floats
            inside &= (bound < info.min) == is_after
        else:
            typed = values.dtype.type(bound)
            inside &= values > typed if is_after else values <= typed
    return inside


def number_keys(columns: Sequence[pa.Array]) -> NDArray[np.int64]:
    """Return a number for each key, from 0 on: equal for keys that are equal in their bytes."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        codes = to_numpy(column.dictionary_encode(null_encoding="encode").indices).astype(np.int64)
        combined = numbers * (int(codes.max(initial=0)) + 1) + codes
        numbers = np.unique(combined, return_inverse=True)[1].astype(np.int64).reshape(-1)
    return numbers


def _key_texts(columns: Sequence[pa.Array]) -> list[list[str]]:
    """Return keys as texts."""
    return [list(map(value_text, key)) for key in zip(*(column.to_pylist() for column in columns), strict=True)]


def ask_database(cursor: Any, table: SnapshotTable, keys: Sequence[Sequence[str]], chunk: Chunk) -> list[bool]:
    """Return which keys lie in the range of a chunk, as the database server compares them. Raises SchemaError for keys
    of other columns than the table is cut by."""
    if any(len(key) != len(table.key) for key in keys):
        raise SchemaError(f"a key of {table.name} has the columns {', '.join(column.name for column in table.key)}")
    inside: list[bool] = []
    for begin in range(0, len(keys), _PAGE):
        conditions = [
            chunk.condition(table, [column.typed_value(text) for column, text in zip(table.key, key, strict=True)])
            for key in keys[begin : begin + _PAGE]
        ]
        cursor.execute(f"SELECT {', '.join(conditions)}")
        inside += [bool(answer) for answer in cursor.fetchone()]
    return inside
