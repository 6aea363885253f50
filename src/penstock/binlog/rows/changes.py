"""A block → the row changes of one table, with the columns that say what, when and in which order."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.binlog.arrays import flags, numbers, texts
from penstock.binlog.events.block import Block, table_name
from penstock.binlog.events.gtid import render_gtids
from penstock.binlog.events.layout import Entry
from penstock.binlog.kernel import BYTES, I32S, I64, I64S_2D_IN, U8S, kernel
from penstock.binlog.rows.decode import Rows, decode_rows
from penstock.binlog.rows.fields import CHANGE_FIELDS
from penstock.binlog.rows.locate import ABSENT
from penstock.errors import BinlogError, SchemaError
from penstock.model import ChangeKind, TableName, TableSchema
from penstock.model.sequence import EPOCH_SHIFT, FILE_SHIFT, MAX_FILE, MAX_OFFSET

_KINDS = texts([kind.text for kind in ChangeKind])


def changes_of(block: Block, table: TableName, fields: pa.Schema, epoch: int) -> Iterator[pa.RecordBatch]:
    """Changes of `table` in log order, as `fields` followed by CHANGE_FIELDS; one batch per table version."""
    entry, table_ids = block.column("entry"), block.column("table_id")
    rows_events = np.flatnonzero(entry == Entry.ROWS)
    wanted = [number for number, body in block.tables.items() if table_name(body) == table]
    rows_events = rows_events[np.isin(table_ids[rows_events], wanted)]
    if not rows_events.size:
        return
    ids = table_ids[rows_events]
    cuts = np.flatnonzero(np.diff(ids)) + 1
    for events in np.split(rows_events, cuts):
        schema = block.schema_of(int(table_ids[events[0]]))
        names = [name for name in fields.names if schema.column(name)]
        rows = decode_rows(block, events, schema, names)
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
    event = rows.events[found.event]
    position = block.column("position")[event]
    _, starts, _ = block.raw
    offset = position + found.start - starts[event]
    number = block.start.file_number
    if number > MAX_FILE or (found.rows and offset[-1] > MAX_OFFSET):
        raise BinlogError(
            f"{block.file}:{int(offset[-1]) if found.rows else 0} has no `_seq`: it counts {MAX_FILE} files of 4 GiB;"
            " lower max_binlog_size, split the largest transactions, or start a new log with RESET MASTER"
        )
    high = (epoch << EPOCH_SHIFT) | (number << FILE_SHIFT)
    arrays += [
        _KINDS.take(numbers(found.kind)),
        numbers(high | block.column("transaction")[event]),
        numbers(block.column("commit_us")[event]).cast(pa.timestamp("us", "UTC")),
        numbers(high | offset),
        numbers(found.number),
        render_gtids(block.gtids[rows.events]).take(numbers(found.event)),
        texts([block.file]).take(numbers(np.zeros(found.rows, np.int8))),
        numbers(offset),
        _changed(block, rows, [column.name for column in schema.columns if column.name in rows.columns]),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*fields, *CHANGE_FIELDS]))


@kernel(I64(BYTES, I64S_2D_IN, I64S_2D_IN, U8S, I32S, I32S))
def _differences(data: Any, offsets: Any, lengths: Any, kinds: Any, bounds: Any, which: Any) -> Any:
    """Lines in which a postimage differs from the preimage just before it: those of row i end at bounds[i + 1].

    What a postimage does not carry has not changed. Gives the number of all lines found.
    """
    count = 0
    bounds[0] = 0
    for row in range(kinds.size):
        if kinds[row] == 2:
            for line in range(lengths.shape[0]):
                size, a, b = lengths[line, row], offsets[line, row - 1], offsets[line, row]
                if size == ABSENT:
                    continue
                is_other = size != lengths[line, row - 1]
                k = 0
                while not is_other and k < size:
                    is_other = data[a + k] != data[b + k]
                    k += 1
                if is_other:
                    which[count] = line
                    count += 1
        bounds[row + 1] = count
    return count


def _changed(block: Block, rows: Rows, names: list[str]) -> pa.Array:
    found = rows.located
    is_post = found.kind == ChangeKind.UPDATE_POSTIMAGE
    posts = int(np.count_nonzero(is_post))
    if not posts:
        return pa.nulls(found.rows, pa.list_(pa.string()))
    data, _, _ = block.raw
    bounds, which = np.empty(found.rows + 1, np.int32), np.empty(posts * len(names), np.int32)
    count = _differences(data, found.offsets, found.lengths, found.kind, bounds, which)
    values = texts(names).take(numbers(which[:count]))
    mask = flags(~is_post) if posts < found.rows else None
    return pa.ListArray.from_arrays(numbers(bounds), values, mask=mask)
