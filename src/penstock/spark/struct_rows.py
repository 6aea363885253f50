"""Changes of several tables in one order: one struct column per table, null in the rows of the other tables.

Every row has room for the columns of every table: with 100 tables of ten columns it takes 7 KB. So a block of the log
is several batches where there are many tables, and each has a bounded size.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import distinct, to_arrow_numbers, to_arrow_strings, to_numpy
from penstock.binlog.events.block import Block, table_name
from penstock.binlog.events.layout import Entry
from penstock.binlog.rows.changes import decode_changes_at
from penstock.binlog.rows.fields import CHANGE_FIELDS, with_declared
from penstock.binlog.values.column import DecodeOptions
from penstock.model import TableName
from penstock.spark.types import cast_for_spark

if TYPE_CHECKING:
    from penstock.spark.delivered_rows import DeliveredRows

_BATCH_BYTES = 16 << 20
_SAMPLE_ROWS = 64


class StructRows:
    """Puts the changes of several tables into one order: `_table`, a struct for each table, CHANGE_FIELDS.

    rows = StructRows(fields, schema, DecodeOptions())
    batches = rows.batches(block)

    What takes time for each table, with or without changes in a batch, is done once and not for each batch.
    """

    def __init__(self, fields: Mapping[TableName, pa.Schema], schema: pa.Schema, decoding: DecodeOptions) -> None:
        self._fields, self._schema, self._decoding = fields, schema, decoding
        self._step = rows_per_batch(schema)
        self._absent = [pa.nulls(self._step, kind) for kind in schema.types[1 : 1 + len(fields)]]
        self._names = to_arrow_strings([str(table) for table in fields])

    def batches(self, block: Block, delivered: "DeliveredRows | None" = None) -> Iterator[pa.RecordBatch]:
        """Yield the changes of these tables in a block in the order of the log, or those of rows that were
        delivered."""
        changes = list(_changes_by_table(block, self._fields, self._decoding))
        if delivered is not None:
            names = list(self._fields)
            selected = ((number, delivered.select(names[number], batch)) for number, batch in changes)
            changes = [(number, batch) for number, batch in selected if batch.num_rows]
        if not changes:
            return
        change_columns = _change_columns(changes, self._schema)
        order = _order(change_columns)
        numbers, counts = zip(*((number, batch.num_rows) for number, batch in changes), strict=True)
        owners = np.repeat(np.array(numbers, np.int32), counts)
        structs = _structs(changes, self._fields, self._schema)
        for first in range(0, order.size, self._step):
            chosen = order[first : first + self._step]
            names = self._names.take(to_arrow_numbers(owners[chosen]))
            columns = self._struct_columns(structs, chosen, owners[chosen])
            rest = _take(change_columns, chosen)
            yield pa.RecordBatch.from_arrays([names, *columns, *rest], schema=self._schema)

    def _struct_columns(
        self, structs: Mapping[int, tuple[int, pa.Array]], chosen: NDArray[np.int64], owners: NDArray[np.int32]
    ) -> list[pa.Array]:
        """Return the structs of all tables for the chosen changes, of which each belongs to one table."""
        columns = [nothing.slice(0, chosen.size) for nothing in self._absent]
        by_table = np.argsort(owners, kind="stable")
        present, begins = np.unique(owners[by_table], return_index=True)
        for number, rows in zip(present.tolist(), np.split(by_table, begins[1:]), strict=True):
            begin, values = structs[number]
            columns[number] = _spread(values, chosen[rows] - begin, rows, columns[number])
        return columns


def _changes_by_table(
    block: Block, fields: Mapping[TableName, pa.Schema], decoding: DecodeOptions
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the number of a table among all, and changes of it; those of one table follow one another."""
    tables, numbers_of = list(fields.values()), {table: number for number, table in enumerate(fields)}
    wanted = {table_id: numbers_of.get(table_name(body)) for table_id, body in block.tables.items()}
    events = np.flatnonzero(block.column("entry") == Entry.ROWS)
    ids = block.column("table_id")[events]
    present = [(number, table_id) for table_id in distinct(ids) if (number := wanted.get(table_id)) is not None]
    by_id = events[np.argsort(ids, kind="stable")]
    ids = np.sort(ids)
    for number, table_id in sorted(present):
        first, stop = (int(np.searchsorted(ids, table_id, side)) for side in ("left", "right"))
        table_fields = tables[number]
        shape = with_declared(block.schema_of(table_id), table_fields)
        for batch in decode_changes_at(block, by_id[first:stop], shape, table_fields, decoding):
            yield number, batch


def _change_columns(changes: list[tuple[int, pa.RecordBatch]], schema: pa.Schema) -> list[pa.Array]:
    """Return the columns that say what, when and in which order, of all changes one after the other."""
    count = len(CHANGE_FIELDS)
    columns = zip(*(batch.columns[-count:] for _, batch in changes), strict=True)
    types = schema.types[-count:]
    return [cast_for_spark(pa.concat_arrays(list(arrays)), kind) for arrays, kind in zip(columns, types, strict=True)]


def _order(change_columns: list[pa.Array]) -> NDArray[np.int64]:
    """Return the indexes of all changes in the order of the log."""
    sequence, row = (to_numpy(change_columns[CHANGE_FIELDS.get_field_index(name)]) for name in ("_seq", "_row"))
    return np.lexsort((row, sequence))


def _structs(
    changes: list[tuple[int, pa.RecordBatch]], fields: Mapping[TableName, pa.Schema], schema: pa.Schema
) -> dict[int, tuple[int, pa.Array]]:
    """Return by a table's number where its changes begin among all, and the rows of these changes as structs."""
    structs, begin = dict[int, tuple[int, list[pa.Array]]](), 0
    columns = [len(table_fields) for table_fields in fields.values()]
    for number, batch in changes:
        kinds = schema.field(1 + number).type
        targets = [kinds.field(at) for at in range(kinds.num_fields)]
        arrays = [
            cast_for_spark(array, field.type)
            for array, field in zip(batch.columns[: columns[number]], targets, strict=True)
        ]
        structs.setdefault(number, (begin, []))[1].append(pa.StructArray.from_arrays(arrays, fields=targets))
        begin += batch.num_rows
    return {number: (first, pa.concat_arrays(parts)) for number, (first, parts) in structs.items()}


def _spread(values: pa.Array, indexes: NDArray[np.int64], rows: NDArray[np.int64], nulls: pa.Array) -> pa.Array:
    """Return `nulls` with the values at these indexes in these rows, which ascend.

    Rows of one table mostly follow one another, and so do their values: whole runs are copied. (`take` with nulls looks
    at every value of every column.)
    """
    cuts = np.flatnonzero((np.diff(rows) != 1) | (np.diff(indexes) != 1)) + 1
    begins, stops = np.concatenate([[0], cuts]), np.concatenate([cuts, [rows.size]])
    pieces, done = list[pa.Array](), 0
    for row, value, count in zip(
        rows[begins].tolist(), indexes[begins].tolist(), (stops - begins).tolist(), strict=True
    ):
        if row > done:
            pieces.append(nulls.slice(0, row - done))
        pieces.append(values.slice(value, count))
        done = row + count
    if done < len(nulls):
        pieces.append(nulls.slice(0, len(nulls) - done))
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)


def _take(columns: list[pa.Array], indexes: NDArray[np.int64]) -> list[pa.Array]:
    """Return the values of columns at these indexes; without a copy where these are all from one to another."""
    first = int(indexes[0])
    if int(indexes[-1]) - first == indexes.size - 1 and bool((np.diff(indexes) == 1).all()):
        return [column.slice(first, indexes.size) for column in columns]
    which = to_arrow_numbers(indexes)
    return [column.take(which) for column in columns]


@lru_cache(maxsize=16)
def rows_per_batch(schema: pa.Schema) -> int:
    """Return how many rows make a batch, by the room that they take without their texts."""
    row_bytes = sum(pa.nulls(_SAMPLE_ROWS, field.type).nbytes for field in schema) / _SAMPLE_ROWS
    return max(_SAMPLE_ROWS, int(_BATCH_BYTES / row_bytes))
