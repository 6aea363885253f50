"""A block → the row changes of one table, with the columns that say what, when and in which order."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import numbers, texts
from penstock.binlog.events.block import Block, table_name
from penstock.binlog.events.gtid import render_gtids
from penstock.binlog.events.layout import Entry
from penstock.binlog.rows.decode import Rows, decode_rows
from penstock.binlog.rows.differences import absent_names, changed_names
from penstock.binlog.rows.fields import CHANGE_FIELDS, with_declared
from penstock.binlog.rows.partial import list_operations, refuse_operations
from penstock.binlog.rows.widening import widen
from penstock.binlog.values.column import DEFAULT, Decoding
from penstock.errors import BinlogError, SchemaError
from penstock.model import ChangeKind, TableName, TableSchema
from penstock.model.sequence import EPOCH_SHIFT, FILE_SHIFT, MAX_FILE, MAX_OFFSET

_REMEMBERED_ROWS = 1 << 17
_KIND_TEXTS: list[str] = [kind.text for kind in ChangeKind]
_KINDS = texts(_KIND_TEXTS)
_MOMENT = CHANGE_FIELDS.field("_commit_timestamp").type
_FEW = 64  # rows of a commit, for which Arrow's own functions take longer than to do without


def changes_of(
    block: Block,
    table: TableName,
    fields: pa.Schema,
    choice: Decoding = DEFAULT,
    known: TableSchema | None = None,
) -> Iterator[pa.RecordBatch]:
    """Changes of `table` in log order, as `fields` followed by CHANGE_FIELDS: a batch per table version, or several.

    `known` says of the table what the log does not, such as names where it has none.
    """
    for events, shape in versions_of(block, table, known):
        yield from changes_at(block, events, with_declared(shape, fields), fields, choice)


def versions_of(
    block: Block, table: TableName, known: TableSchema | None = None
) -> Iterator[tuple[NDArray[np.int64], TableSchema]]:
    """Runs of rows events of one version of the table, in log order."""
    entry, table_ids = block.column("entry"), block.column("table_id")
    wanted = [number for number, body in block.tables.items() if table_name(body) == table]
    if not wanted:
        return
    rows_events = np.flatnonzero(entry == Entry.ROWS)
    if len(wanted) < len(block.tables):
        rows_events = rows_events[np.isin(table_ids[rows_events], wanted)]
    if not rows_events.size:
        return
    ids = table_ids[rows_events]
    is_one = bool((ids == ids[0]).all())
    for events in [rows_events] if is_one else np.split(rows_events, np.flatnonzero(np.diff(ids)) + 1):
        schema = block.schema_of(int(table_ids[events[0]]))
        yield events, schema.completed(known) if known else schema


def changes_at(
    block: Block,
    events: NDArray[np.int64],
    schema: TableSchema,
    fields: pa.Schema,
    choice: Decoding,
    whole: pa.Schema | None = None,
) -> Iterator[pa.RecordBatch]:
    """Of the rows events at these indexes of the block, which are all of this version of the table. `whole` is how the
    batches are to look, with names of the change fields that may differ."""
    there = {column.name for column in schema.columns}
    names = [name for name in fields.names if name in there]
    whole = whole or pa.schema([*fields, *CHANGE_FIELDS])
    for rows in decode_rows(block, events, schema, names, choice):
        if choice.partial_json == "error":
            refuse_operations(block, rows, schema)
        yield pa.RecordBatch.from_arrays(_assembled(block, rows, schema, fields), schema=whole)


def _assembled(block: Block, rows: Rows, schema: TableSchema, fields: pa.Schema) -> list[pa.Array]:
    found = rows.located
    arrays: list[pa.Array] = []
    for name, kind in zip(fields.names, fields.types, strict=True):
        array = rows.columns.get(name)
        if array is None:
            array = pa.nulls(found.rows, kind)
        elif array.type != kind:
            widened = widen(array, kind)
            if widened is None:
                where = int(block.column("position")[rows.events[0]])
                raise SchemaError(
                    f"column {schema.name}.{name} is {array.type} at {block.file}:{where}, but the reader was"
                    f" started with {kind}: the table was altered; restart the reader"
                )
            array = widened
        arrays.append(array)
    offset = _offsets(block, rows)
    number = block.start.file_number
    if number > MAX_FILE or (found.rows and offset[-1] > MAX_OFFSET):
        raise BinlogError(
            f"{block.file}:{int(offset[-1]) if found.rows else 0} has no `_seq`: it counts {MAX_FILE} files of"
            f" {(MAX_OFFSET + 1) >> 30} GiB; split the largest transactions, or start a new log with RESET MASTER"
        )
    high = (block.epoch << EPOCH_SHIFT) | (number << FILE_SHIFT)
    event = rows.events[found.event]
    names = [column.name for column in schema.columns if column.name in rows.columns]
    arrays += [
        _kinds(found.kind),
        numbers(high | block.column("transaction")[event]),
        _moments(block.column("commit_us")[event]),
        numbers(high | offset),
        numbers(block.column("ordinal")[event] << 32 | found.number),
        _gtids(block, rows, event),
        _repeated(block.file, found.rows),
        numbers(offset),
        changed_names(block.raw[0], found, [column for column in schema.columns if column.name in rows.columns]),
        absent_names(found, names, [name for name in fields.names if name not in rows.columns]),
        list_operations(found.rows, names, rows.operations),
    ]
    return arrays


def _kinds(kinds: NDArray[np.uint8]) -> pa.Array:
    if kinds.size < _FEW:
        few: list[int] = kinds.tolist()
        return texts([_KIND_TEXTS[kind] for kind in few])
    return _KINDS.take(numbers(kinds))


def _moments(micros: NDArray[np.int64]) -> pa.Array:
    return pa.Array.from_buffers(_MOMENT, micros.size, [None, pa.py_buffer(np.ascontiguousarray(micros))])


def _gtids(block: Block, rows: Rows, event: NDArray[np.int64]) -> pa.Array:
    if event.size < _FEW:
        return render_gtids(block.gtids[event], block.tags)
    return render_gtids(block.gtids[rows.events], block.tags).take(numbers(rows.located.event))


def _repeated(text: str, rows: int) -> pa.Array:
    if rows > _REMEMBERED_ROWS:
        return texts([text]).take(numbers(np.zeros(rows, np.int8)))
    return _many(text).slice(0, rows)


@lru_cache(maxsize=4)
def _many(text: str) -> pa.Array:
    return texts([text]).take(numbers(np.zeros(_REMEMBERED_ROWS, np.int8)))


def _offsets(block: Block, rows: Rows) -> NDArray[np.int64]:
    """File offset of each image. What was compressed has a share of the file, not a place."""
    found = rows.located
    _, starts, sizes = block.raw
    position, span = block.column("position")[rows.events], block.column("span")[rows.events]
    starts, sizes = starts[rows.events], sizes[rows.events]
    if np.array_equal(span, sizes):
        return (position - starts)[found.event] + found.start
    inside = found.start - starts[found.event]
    return position[found.event] + inside * span[found.event] // sizes[found.event]
