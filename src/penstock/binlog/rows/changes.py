"""A block → the row changes of one table, with the columns that say what, when and in which order."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import flags, numbers, texts
from penstock.binlog.events.block import Block, table_name
from penstock.binlog.events.gtid import render_gtids
from penstock.binlog.events.layout import Entry
from penstock.binlog.kernel import BYTES, I32S, I32S_2D_IN, I64, I64S_2D_IN, U8S_IN, kernel
from penstock.binlog.rows.decode import Rows, decode_rows
from penstock.binlog.rows.fields import CHANGE_FIELDS, with_declared
from penstock.binlog.rows.located import ABSENT
from penstock.binlog.values.column import DEFAULT, Decoding, wire_of
from penstock.errors import BinlogError, SchemaError
from penstock.model import ChangeKind, TableName, TableSchema
from penstock.model.sequence import EPOCH_SHIFT, FILE_SHIFT, MAX_FILE, MAX_OFFSET

_KINDS = texts([kind.text for kind in ChangeKind])


def changes_of(
    block: Block,
    table: TableName,
    fields: pa.Schema,
    epoch: int,
    choice: Decoding = DEFAULT,
    known: TableSchema | None = None,
) -> Iterator[pa.RecordBatch]:
    """Changes of `table` in log order, as `fields` followed by CHANGE_FIELDS; one batch per table version.

    `known` says of the table what the log does not, such as names where it has none.
    """
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
    for events in np.split(rows_events, np.flatnonzero(np.diff(ids)) + 1):
        schema = block.schema_of(int(table_ids[events[0]]))
        schema = with_declared(schema.completed(known) if known else schema, fields)
        there = {column.name for column in schema.columns}
        names = [name for name in fields.names if name in there]
        rows = decode_rows(block, events, schema, names, choice)
        yield _assemble(block, rows, schema, fields, epoch)


def _assemble(block: Block, rows: Rows, schema: TableSchema, fields: pa.Schema, epoch: int) -> pa.RecordBatch:
    found = rows.located
    arrays: list[pa.Array] = []
    for field in fields:
        array = rows.columns.get(field.name)
        if array is None:
            array = pa.nulls(found.rows, field.type)
        elif array.type != field.type:
            where = int(block.column("position")[rows.events[0]])
            raise SchemaError(
                f"column {schema.name}.{field.name} is {array.type} at {block.file}:{where}, but the reader was started"
                f" with {field.type}: the table was altered; restart the reader"
            )
        arrays.append(array)
    offset = _offsets(block, rows)
    number = block.start.file_number
    if number > MAX_FILE or (found.rows and offset[-1] > MAX_OFFSET):
        raise BinlogError(
            f"{block.file}:{int(offset[-1]) if found.rows else 0} has no `_seq`: it counts {MAX_FILE} files of"
            f" {(MAX_OFFSET + 1) >> 30} GiB; split the largest transactions, or start a new log with RESET MASTER"
        )
    high = (epoch << EPOCH_SHIFT) | (number << FILE_SHIFT)
    event = rows.events[found.event]
    names = [column.name for column in schema.columns if column.name in rows.columns]
    arrays += [
        _KINDS.take(numbers(found.kind)),
        numbers(high | block.column("transaction")[event]),
        numbers(block.column("commit_us")[event]).cast(pa.timestamp("us", "UTC")),
        numbers(high | offset),
        numbers(block.column("ordinal")[event] << 32 | found.number),
        render_gtids(block.gtids[rows.events], block.tags).take(numbers(found.event)),
        texts([block.file]).take(numbers(np.zeros(found.rows, np.int8))),
        numbers(offset),
        _changed(block, rows, schema, names),
        _absent(rows, names),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*fields, *CHANGE_FIELDS]))


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


@kernel(I64(BYTES, I32S_2D_IN, I32S_2D_IN, I64S_2D_IN, U8S_IN, I32S, I32S))
def _differences(data: Any, offsets: Any, lengths: Any, wires: Any, kinds: Any, bounds: Any, which: Any) -> Any:
    """Lines in which a postimage differs from the preimage just before it: those of row i end at bounds[i + 1].

    What a postimage does not carry has not changed; what is UNKNOWN has. `wires` has the width of each line and its
    line in `lengths`. Gives the number of all lines found.
    """
    count = 0
    bounds[0] = 0
    for row in range(kinds.size):
        if kinds[row] == 2:
            for line in range(offsets.shape[0]):
                a, b = np.int64(offsets[line, row - 1]), np.int64(offsets[line, row])
                if b == ABSENT:
                    continue
                is_other = a < 0 or b < 0
                if is_other:
                    is_other = a != b
                else:
                    size, sized = wires[line, 0], wires[line, 1]
                    if sized >= 0:
                        size = np.int64(lengths[sized, row])
                        is_other = size != np.int64(lengths[sized, row - 1])
                    k = np.int64(0)
                    while not is_other and k < size:
                        is_other = data[a + k] != data[b + k]
                        k += 1
                if is_other:
                    which[count] = line
                    count += 1
        bounds[row + 1] = count
    return count


def _changed(block: Block, rows: Rows, schema: TableSchema, names: list[str]) -> pa.Array:
    found = rows.located
    is_post = found.kind == ChangeKind.UPDATE_POSTIMAGE
    posts = int(np.count_nonzero(is_post))
    if not posts:
        return pa.nulls(found.rows, pa.list_(pa.string()))
    data, _, _ = block.raw
    widths = [wire_of(column).width for column in schema.columns if column.name in rows.columns]
    offsets = np.stack([found.offsets(line) for line in range(len(names))])
    are_sized = np.array(widths, np.int64) == 0
    lengths = (
        np.stack([found.lengths(int(line)) for line in np.flatnonzero(are_sized)]) if any(are_sized) else offsets[:0]
    )
    lines = np.where(are_sized, np.cumsum(are_sized) - 1, -1)
    wires = np.stack([np.array(widths, np.int64), lines], axis=1)
    bounds, which = np.empty(found.rows + 1, np.int32), np.empty(posts * len(names), np.int32)
    count = _differences(data, offsets, lengths, wires, found.kind, bounds, which)
    values = texts(names).take(numbers(which[:count]))
    mask = flags(~is_post) if posts < found.rows else None
    return pa.ListArray.from_arrays(numbers(bounds), values, mask=mask)


def _absent(rows: Rows, names: list[str]) -> pa.Array:
    found = rows.located
    if found.is_whole:
        return pa.nulls(found.rows, pa.list_(pa.string()))
    absent = np.stack([found.offsets(line) for line in range(len(names))]) <= ABSENT
    counts = np.count_nonzero(absent, axis=0)
    _, which = np.nonzero(absent.T)
    bounds = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])
    values = texts(names).take(numbers(which))
    return pa.ListArray.from_arrays(numbers(bounds), values, mask=flags(counts == 0))
