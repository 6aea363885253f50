"""The kernels that turn JSON diffs into operations, and values into SQL, against their twins; broken bytes too."""

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.values.json_format import JsonError
from penstock.binlog.values.json_operations import read_operations
from penstock.binlog.values.json_text import render_json
from tests.twins.json import BrokenJsonError, encode
from tests.twins.json_operations import Operation, operations, sql
from tests.twins.json_strategy import DOCUMENTS, changes
from tests.twins.strategy import broken, examples


def kernel_operations(rows: list[bytes]) -> list[list[Operation]] | None:
    """None when a row cannot be read."""
    data = b"\xa5\x5a" + b"".join(rows)
    lengths = np.array([len(row) or -1 for row in rows], np.int64)
    offsets = 2 + np.cumsum([0, *map(len, rows)])[:-1].astype(np.int64)
    row = where = 0
    operations = None
    try:
        operations = read_operations(np.frombuffer(data, np.uint8), offsets, lengths)
    except JsonError as error:
        row, where = error.row, error.where
    if operations is None:
        assert 0 <= row < len(rows)
        assert 0 <= where <= len(data)
        return None
    columns = [array.to_pylist() for array in (operations.names, operations.paths, operations.values)]
    flat: list[Any] = list(zip(*columns, strict=True))
    return [flat[a:b] for a, b in pairwise(operations.bounds.tolist())]


def twin_operations(rows: list[bytes]) -> list[list[Operation]] | None:
    try:
        return [operations(row) for row in rows]
    except BrokenJsonError:
        return None


@examples(200)
@given(st.lists(changes().map(lambda change: change[1]), max_size=4))
def test_operations_of_rows(rows: list[bytes]) -> None:
    assert kernel_operations(rows) == twin_operations(rows)


@examples(300)
@given(st.data())
def test_broken_operations(data: st.DataObject) -> None:
    _, raw = data.draw(changes())
    mutant = data.draw(broken(raw))
    assert kernel_operations([mutant]) == twin_operations([mutant])


def kernel_sql(value: Any) -> str | None:
    raw = encode(value)
    try:
        bounds, out = render_json(
            np.frombuffer(raw, np.uint8), np.zeros(1, np.int64), np.array([len(raw)], np.int64), as_sql=True
        )
    except JsonError:
        return None
    return out[: bounds[1]].tobytes().decode()


def twin_sql(value: Any) -> str | None:
    try:
        return sql(value)
    except BrokenJsonError:
        return None


@examples(300)
@given(DOCUMENTS)
def test_values_as_sql(value: Any) -> None:
    assert kernel_sql(value) == twin_sql(value)
