"""The rows of a chunk at a position, from its read view and the changes around it, beside a table kept by hand."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.rows.fields import CHANGE_FIELDS
from penstock.binlog.values.column import Family
from penstock.errors import SchemaError
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.snapshot.as_of import choose_deciding, rows_as_of
from penstock.snapshot.chunks import Chunk
from penstock.snapshot.key_column import KeyColumn
from penstock.snapshot.key_order import find_inside
from penstock.snapshot.table import SnapshotTable

_FIELDS = pa.schema([pa.field("id", pa.int32()), pa.field("part", pa.string()), pa.field("n", pa.int64())])
_SCHEMA = TableSchema(TableName("a", "t"), tuple(Column(name, WireType.LONG) for name in _FIELDS.names))
_TABLE = SnapshotTable(
    _SCHEMA, _SCHEMA, _SCHEMA.columns, (KeyColumn("id", Family.INTEGER, ""),), "PRIMARY", ("id", "part"), 10, 100
)
Row = tuple[int, str, int]
Changes = list[tuple[str, Row]]
_KEYS = st.tuples(st.integers(0, 5), st.sampled_from("xy"))


@st.composite
def _histories(draw: st.DrawFn) -> list[tuple[dict[tuple[int, str], int], Changes]]:
    """Return the states of a table, each with the changes that lead to the next one."""
    table = {key: draw(st.integers(0, 9)) for key in draw(st.lists(_KEYS, max_size=8))}
    history: list[tuple[dict[tuple[int, str], int], Changes]] = []
    for number in range(draw(st.integers(1, 12))):
        before, key, other = dict(table), draw(_KEYS), draw(_KEYS)
        changes: Changes = []
        if key not in table:
            table[key] = 100 + number
            changes.append(("insert", (*key, table[key])))
        elif draw(st.booleans()):
            changes.append(("delete", (*key, table.pop(key))))
        elif other == key or other not in table:
            changes.append(("update_preimage", (*key, table.pop(key))))
            table[other] = 100 + number
            changes.append(("update_postimage", (*other, table[other])))
        history.append((before, changes))
    return [*history, (dict(table), [])]


def _rows(table: dict[tuple[int, str], int], chunk: Chunk) -> pa.Table:
    inside = [(*key, n) for key, n in table.items() if _is_inside(key[0], chunk)]
    return pa.Table.from_pylist([dict(zip(_FIELDS.names, row, strict=True)) for row in inside], _FIELDS)


def _is_inside(number: int, chunk: Chunk) -> bool:
    return (chunk.after is None or number > int(chunk.after[0])) and (
        chunk.until is None or number <= int(chunk.until[0])
    )


def _changes(changes: Changes, absent: list[str] | None = None) -> pa.Table:
    rows = [
        dict(zip(_FIELDS.names, row, strict=True)) | {"_change_type": kind, "_absent": absent} for kind, row in changes
    ]
    return pa.Table.from_pylist(rows, pa.schema([*_FIELDS, *CHANGE_FIELDS]))


def _never(keys: Any, chunk: Chunk) -> list[bool]:
    raise AssertionError("integers are compared here")


@given(
    history=_histories(),
    bounds=st.tuples(st.none() | st.integers(-1, 6), st.none() | st.integers(-1, 6)),
    offsets=st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12), st.integers(0, 12)),
)
def test_rows_at_a_position_are_those_of_the_table_then(
    history: list[tuple[dict[tuple[int, str], int], Changes]],
    bounds: tuple[int | None, int | None],
    offsets: tuple[int, int, int, int],
) -> None:
    low, view, high = sorted(min(offset, len(history) - 1) for offset in offsets[:3])
    position = min(offsets[3], len(history) - 1)
    chunk = Chunk(*((str(limit),) if limit is not None else None for limit in bounds))
    before_it = [change for _, changes in history[low:position] for change in changes]
    after_it = [change for _, changes in history[position:high] for change in changes]
    wanted = _rows(history[position][0], chunk)
    order = [("id", "ascending"), ("part", "ascending")]
    every = _changes(before_it), _changes(after_it)
    deciding = tuple(
        choose_deciding(part, _TABLE, keeps_last=last) for part, last in zip(every, (True, False), strict=True)
    )
    assert all(len({(row["id"], row["part"]) for row in part.to_pylist()}) == part.num_rows for part in deciding)
    for before, after in (every, deciding):
        state = rows_as_of(
            _rows(history[view][0], chunk), (before, after), _TABLE, lambda keys: find_inside(keys, chunk, _never)
        )
        assert state.sort_by(order).to_pylist() == wanted.sort_by(order).to_pylist()


def test_a_row_that_the_log_does_not_have_whole_is_refused() -> None:
    rows, changes = _rows({(1, "x"): 1}, Chunk(None, None)), _changes([("update_postimage", (1, "x", 2))], ["n"])
    with pytest.raises(SchemaError, match="binlog_row_image=FULL"):
        rows_as_of(rows, (changes, _changes([])), _TABLE, lambda columns: np.ones(len(columns[0]), np.bool_))


def test_limits_that_the_type_of_the_key_does_not_hold() -> None:
    numbers = pa.array([0, 2**64 - 1], pa.uint64())
    assert find_inside([numbers], Chunk(("-1",), None), _never).tolist() == [True, True]
    assert find_inside([numbers], Chunk(None, ("-1",)), _never).tolist() == [False, False]
    assert find_inside([numbers], Chunk((str(2**64 - 2),), (str(2**70),)), _never).tolist() == [False, True]
