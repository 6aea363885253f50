"""A block → the row changes of one table, with the columns that say what, when and in which order."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import to_arrow_numbers, to_arrow_strings
from penstock.binlog.events.block import Block, table_name
from penstock.binlog.events.gtid import render_gtids
from penstock.binlog.events.layout import Entry
from penstock.binlog.rows.decode import Rows, decode_rows
from penstock.binlog.rows.differences import list_absent_columns, list_changed_columns
from penstock.binlog.rows.fields import CHANGE_FIELDS, with_declared
from penstock.binlog.rows.partial import list_json_operations, refuse_partial_json
from penstock.binlog.rows.widening import widen
from penstock.binlog.values.column import DEFAULT, DecodeOptions
from penstock.errors import BinlogError, IncompatibleColumnError
from penstock.model import ChangeKind, Position, TableName, TableSchema
from penstock.model.sequence import EPOCH_SHIFT, FILE_SHIFT, MAX_FILE, MAX_OFFSET

_REMEMBERED_ROWS = 1 << 17
_KIND_TEXTS: list[str] = [kind.text for kind in ChangeKind]
_KINDS = to_arrow_strings(_KIND_TEXTS)
_MOMENT = CHANGE_FIELDS.field("_commit_timestamp").type
_FEW = 64  # rows of a commit, for which Arrow's own functions take longer than to do without


def decode_changes(
    block: Block,
    table: TableName,
    fields: pa.Schema,
    choice: DecodeOptions = DEFAULT,
    known: TableSchema | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the changes of a table in the order of the log, as record batches of `fields` followed by CHANGE_FIELDS:
    one or more for each version of the table.

    `known` says of the table what the log does not, such as names where it has none.
    """
    for events, shape in group_by_table_version(block, table, known):
        yield from decode_changes_at(block, events, with_declared(shape, fields), fields, choice)


def group_by_table_version(
    block: Block, table: TableName, known: TableSchema | None = None
) -> Iterator[tuple[NDArray[np.int64], TableSchema]]:
    """Yield runs of rows events of one version of the table, in the order of the log."""
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
        yield events, schema.merged_with(known) if known else schema


def decode_changes_at(
    block: Block,
    events: NDArray[np.int64],
    schema: TableSchema,
    fields: pa.Schema,
    choice: DecodeOptions,
    whole: pa.Schema | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the changes of the rows events at these indexes of the block, which are all of this version of the table.
    `whole` is the schema of the batches, in which names of the change fields may differ."""
    there = {column.name for column in schema.columns}
    names = [name for name in fields.names if name in there]
    whole = whole or pa.schema([*fields, *CHANGE_FIELDS])
    for rows in decode_rows(block, events, schema, names, choice):
        if choice.partial_json == "error":
            refuse_partial_json(block, rows, schema)
        yield pa.RecordBatch.from_arrays(_assembled(block, rows, schema, fields), schema=whole)


def _assembled(block: Block, rows: Rows, schema: TableSchema, fields: pa.Schema) -> list[pa.Array]:
    located = rows.located
    arrays: list[pa.Array] = []
    for name, kind in zip(fields.names, fields.types, strict=True):
        array = rows.columns.get(name)
        if array is None:
            array = pa.nulls(located.rows, kind)
        elif array.type != kind:
            widened = widen(array, kind)
            if widened is None:
                where = int(block.column("position")[rows.events[0]])
                error = IncompatibleColumnError(
                    f"column {schema.name}.{name} is {array.type} at {block.file}:{where}, but the reader was"
                    f" started with {kind}: the table was altered; restart the reader"
                )
                error.table, error.column = str(schema.name), name
                error.position = Position(block.file, where, epoch=block.epoch)
                raise error
            array = widened
        arrays.append(array)
    names = [column.name for column in schema.columns if column.name in rows.columns]
    images = ImageLocations(rows.events, located.event, located.start, located.kind, located.number)
    changed = list_changed_columns(
        block.raw[0], located, [column for column in schema.columns if column.name in rows.columns]
    )
    absent = list_absent_columns(located, names, [name for name in fields.names if name not in rows.columns])
    operations = list_json_operations(located.rows, names, rows.operations)
    return [*arrays, *build_change_columns(block, images), changed, absent, operations]


@dataclass(frozen=True, slots=True, eq=False)
class ImageLocations:
    """Row images: `events` are indexes of rows events in the block; each image is one of event `event[i]` of these,
    begins at byte `start[i]` of the block's data, and is number `number[i]` of its event."""

    events: NDArray[np.int64]
    event: NDArray[Any]
    start: NDArray[np.int32]
    kind: NDArray[np.uint8]  # ChangeKind
    number: NDArray[np.int64]


def build_change_columns(block: Block, images: ImageLocations) -> list[pa.Array]:
    """Return the columns of CHANGE_FIELDS, except the lists at their end."""
    offset, rows = _offsets(block, images), images.event.size
    number = block.start.file_number
    if number > MAX_FILE or (rows and offset[-1] > MAX_OFFSET):
        raise BinlogError(
            f"{block.file}:{int(offset[-1]) if rows else 0} has no `_seq`: it counts {MAX_FILE} files of"
            f" {(MAX_OFFSET + 1) >> 30} GiB; split the largest transactions, or start a new log with RESET MASTER"
        )
    high = (block.epoch << EPOCH_SHIFT) | (number << FILE_SHIFT)
    event = images.events[images.event]
    return [
        _kinds(images.kind),
        to_arrow_numbers(high | block.column("transaction")[event]),
        _moments(block.column("commit_us")[event]),
        to_arrow_numbers(high | offset),
        to_arrow_numbers(block.column("ordinal")[event] << 32 | images.number),
        _gtids(block, images, event),
        _repeated(block.file, rows),
        to_arrow_numbers(offset),
    ]


def _kinds(kinds: NDArray[np.uint8]) -> pa.Array:
    if kinds.size < _FEW:
        few: list[int] = kinds.tolist()
        return to_arrow_strings([_KIND_TEXTS[kind] for kind in few])
    return _KINDS.take(to_arrow_numbers(kinds))


def _moments(micros: NDArray[np.int64]) -> pa.Array:
    return pa.Array.from_buffers(_MOMENT, micros.size, [None, pa.py_buffer(np.ascontiguousarray(micros))])


def _gtids(block: Block, images: ImageLocations, event: NDArray[np.int64]) -> pa.Array:
    if event.size < _FEW:
        return render_gtids(block.gtids[event], block.tags)
    return render_gtids(block.gtids[images.events], block.tags).take(to_arrow_numbers(images.event))


def _repeated(text: str, rows: int) -> pa.Array:
    if rows > _REMEMBERED_ROWS:
        return to_arrow_strings([text]).take(to_arrow_numbers(np.zeros(rows, np.int8)))
    return _many(text).slice(0, rows)


@lru_cache(maxsize=4)
def _many(text: str) -> pa.Array:
    return to_arrow_strings([text]).take(to_arrow_numbers(np.zeros(_REMEMBERED_ROWS, np.int8)))


def _offsets(block: Block, images: ImageLocations) -> NDArray[np.int64]:
    """Return the file offset of each image. Images that were compressed have a share of the file instead."""
    _, starts, sizes = block.raw
    position, span = block.column("position")[images.events], block.column("span")[images.events]
    starts, sizes = starts[images.events], sizes[images.events]
    if np.array_equal(span, sizes):
        return (position - starts)[images.event] + images.start
    inside = images.start - starts[images.event]
    return position[images.event] + inside * span[images.event] // sizes[images.event]
