"""Leaves out the changes of rows that a snapshot has not delivered yet."""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from penstock.binlog.rows.fields import CHANGE_FIELDS
from penstock.model import TableName
from penstock.snapshot.chunks import Chunk
from penstock.snapshot.key_order import find_inside
from penstock.spark.snapshot_state import PendingTable

AskAboutKeys = Callable[[TableName, list[list[str]], tuple[None, tuple[str, ...]]], list[bool]]


class DeliveredRows:
    """While a snapshot is incomplete: selects the changes of rows that it has delivered already. An update that moves a
    row into the delivered key range, or out of it, becomes an insert or a delete."""

    def __init__(self, pending: Mapping[TableName, PendingTable], ask: AskAboutKeys) -> None:
        self._pending, self._ask = pending, ask

    def select(self, table: TableName, changes: pa.RecordBatch) -> pa.RecordBatch:
        """Return those changes of a batch, which has the fields of the table and then CHANGE_FIELDS, that are of
        delivered rows."""
        pending = self._pending.get(table)
        if pending is None or not changes.num_rows:
            return changes
        if pending.done is None:
            return changes.slice(0, 0)
        limit = pending.done

        def ask(keys: list[list[str]], _: Chunk) -> list[bool]:
            return self._ask(table, keys, (None, limit))

        names = changes.schema.names  # change columns, which may have the same names, come last
        columns = [changes.column(names.index(name)) for name in pending.key]
        inside = find_inside(columns, Chunk(None, limit), ask)
        return changes if inside.all() else _select(changes, inside)


def _select(changes: pa.RecordBatch, inside: np.ndarray) -> pa.RecordBatch:
    """Return the changes that are inside, with the kinds that they have without those that are not."""
    first = changes.num_columns - len(CHANGE_FIELDS)
    kinds = changes.column(first).to_numpy(zero_copy_only=False).astype(object)
    crossed = np.zeros(inside.size, np.bool_)
    pairs = np.flatnonzero(kinds[:-1] == "update_preimage")  # its other image is the next row
    for row, other, kind in ((pairs, pairs + 1, "delete"), (pairs + 1, pairs, "insert")):
        alone = row[inside[row] & ~inside[other]]
        kinds[alone] = kind
        crossed[alone] = True
    arrays = list(changes.columns)
    arrays[first] = pa.array(kinds, CHANGE_FIELDS.field("_change_type").type)
    changed = first + CHANGE_FIELDS.get_field_index("_changed")
    arrays[changed] = _without(arrays[changed], crossed)
    return pa.RecordBatch.from_arrays(arrays, schema=changes.schema).filter(pa.array(inside))


def _without(lists: pa.Array, is_null: np.ndarray) -> pa.Array:
    """Return lists with null at some places."""
    rows = np.arange(len(lists))
    return lists.take(pa.array(rows, mask=is_null))
