"""Brings the rows of a chunk to one position of the log.

A chunk is read in a read view that lies somewhere between two positions. A row that no change touches between that view
and a position is the same there. Of a row that one touches, the log has the state at the position: the row after the
last change before the position, or, where all changes come later, the row before the first of them.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.binlog.rows.fields import CHANGE_FIELDS
from penstock.errors import SchemaError
from penstock.model import TableName
from penstock.snapshot.key_order import number_keys
from penstock.snapshot.table import SnapshotTable

_BEGIN = ("insert", "update_postimage")  # a row is there from then on
_END = ("delete", "update_preimage")  # it was there until then

FindInside = Callable[[Sequence[pa.Array]], NDArray[np.bool_]]


def rows_as_of(
    rows: pa.Table,
    changes: tuple[pa.Table, pa.Table],
    table: SnapshotTable,
    find_inside: FindInside,
) -> pa.Table:
    """Return the rows of a chunk as they were at a position, from the rows of its read view.

    `changes` are those of the table before and after the position, in the order of the log, as `decode_changes` makes
    them: all between the position and the read view, or those that `choose_deciding` chooses of them, the last before
    the position and the first after it. `find_inside` says which keys are of the chunk.
    """
    before, after = (select_inside(part, table, find_inside) for part in changes)
    if not before.num_rows and not after.num_rows:
        return rows
    columns = [
        _join([part.column(index) for part in (rows, before, after)]) for index in _indexes(rows, table.identity)
    ]
    if any(column.null_count for column in columns):
        raise SchemaError(
            f"{table.name} has keys with dates that no calendar has: it cannot be read beside its changes"
        )
    numbers = number_keys(columns)
    own, earlier, later = np.split(numbers, [rows.num_rows, rows.num_rows + before.num_rows])
    untouched = ~np.isin(own, numbers[rows.num_rows :])
    _, last_of_reversed = np.unique(earlier[::-1], return_index=True)
    last = earlier.size - 1 - last_of_reversed
    keys, first = np.unique(later, return_index=True)
    first = first[~np.isin(keys, earlier)]
    parts = [rows.filter(pa.array(untouched))]
    for part, chosen, kinds in ((before, last, _BEGIN), (after, first, _END)):
        states = part.take(pa.array(np.sort(chosen)))
        change_type = states.column(rows.num_columns + CHANGE_FIELDS.get_field_index("_change_type"))
        states = states.filter(pc.is_in(change_type, pa.array(kinds)))
        _check_whole(table.name, states, rows.num_columns)
        parts.append(states.select(list(range(rows.num_columns))).cast(rows.schema))
    return pa.concat_tables(parts)


def select_inside(changes: pa.Table, table: SnapshotTable, find_inside: FindInside) -> pa.Table:
    """Return the changes whose key is of the chunk."""
    if not changes.num_rows:
        return changes
    indexes = _indexes(changes, [column.name for column in table.key])
    return changes.filter(pa.array(find_inside([_join([changes.column(index)]) for index in indexes])))


def choose_deciding(changes: pa.Table, table: SnapshotTable, *, keeps_last: bool) -> pa.Table:
    """Return the last change of each row, or the first one, in the order of the log."""
    if changes.num_rows < 2:
        return changes
    numbers = number_keys([_join([changes.column(index)]) for index in _indexes(changes, table.identity)])
    _, chosen = np.unique(numbers[::-1] if keeps_last else numbers, return_index=True)
    if keeps_last:
        chosen = numbers.size - 1 - chosen
    return changes.take(pa.array(np.sort(chosen)))


def _indexes(rows: pa.Table, names: Sequence[str]) -> list[int]:
    """Return where columns of the table are; change columns, which may have the same names, come behind them."""
    return [rows.column_names.index(name) for name in names]


def _join(columns: Sequence[pa.ChunkedArray]) -> pa.Array:
    """Return the values of columns one after the other, in the type of the first."""
    return pa.concat_arrays([part.cast(columns[0].type) for column in columns for part in column.chunks])


def _check_whole(name: TableName, states: pa.Table, first: int) -> None:
    """Raise SchemaError when the log does not have all columns of a row. The change columns begin at the index
    `first`."""
    marks = (states.column(first + CHANGE_FIELDS.get_field_index(mark)) for mark in ("_absent", "_partial"))
    if any(mark.null_count < states.num_rows for mark in marks):
        raise SchemaError(
            f"table {name} cannot be read beside its changes: the log has changes without all columns of their rows; it"
            " needs binlog_row_image=FULL, and no binlog_row_value_options"
        )
