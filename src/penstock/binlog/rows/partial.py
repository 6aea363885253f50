"""Changes to JSON documents that the log does not have, as lists of operations beside the rows.

An update with `binlog_row_value_options=PARTIAL_JSON` and without the document in its before image carries only what it
changed. The column is null in such a row, and `_partial` has the operations.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.binlog.arrays import to_arrow_booleans, to_arrow_numbers, to_arrow_strings
from penstock.binlog.events.block import Block
from penstock.binlog.rows.decode import Rows
from penstock.binlog.rows.partial_type import PARTIAL
from penstock.errors import BinlogError
from penstock.model import TableSchema

if TYPE_CHECKING:
    from penstock.binlog.values.json_operations import JsonOperations


def list_json_operations(rows: int, columns: Sequence[str], operations: "Mapping[str, JsonOperations]") -> pa.Array:
    """Return the operations on JSON documents that each row has instead of the documents, in the order of the columns;
    null where a row has none."""
    there = [(name, operations[name]) for name in columns if name in operations]
    if not there:
        return pa.nulls(rows, PARTIAL)
    row = np.concatenate([np.repeat(np.arange(rows), operations_of_column.counts) for _, operations_of_column in there])
    line = np.concatenate(
        [
            np.full(operations_of_column.codes.size, number, np.int32)
            for number, (_, operations_of_column) in enumerate(there)
        ]
    )
    order = to_arrow_numbers(np.argsort(row, kind="stable"))
    arrays = [
        to_arrow_strings([name for name, _ in there]).take(to_arrow_numbers(line)),
        pa.concat_arrays([operations_of_column.names for _, operations_of_column in there]),
        pa.concat_arrays([operations_of_column.paths for _, operations_of_column in there]),
        pa.concat_arrays([operations_of_column.values for _, operations_of_column in there]),
    ]
    items = pa.StructArray.from_arrays([array.take(order) for array in arrays], fields=list(PARTIAL.value_type))
    counts = np.bincount(row, minlength=rows)
    bounds = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])
    return pa.ListArray.from_arrays(to_arrow_numbers(bounds), items, type=PARTIAL, mask=to_arrow_booleans(counts == 0))


def refuse_partial_json(block: Block, rows: Rows, schema: TableSchema) -> None:
    """Raise BinlogError if an update has only operations on a JSON document (a partial update), and not the document.
    The reader asked for values, and the null in that column would be taken for an unchanged document, or for NULL."""
    for name, operations in rows.operations.items():
        row = int(np.argmax(operations.counts > 0))
        event = int(rows.events[rows.located.event[row]])
        at = int(block.column("position")[event])
        raise BinlogError(
            f"{block.file}:{at} the update in {schema.name} changes parts of the JSON document in column {name}, and"
            " the log has neither the document before nor the one after it (binlog_row_value_options=PARTIAL_JSON with"
            " binlog_row_image=MINIMAL or NOBLOB): read other columns, or the operations instead of the document"
            " (read_binlog: partial_json='operations'; Spark: the option partialJson; Flight: rows as JSON). For later"
            " changes SET GLOBAL binlog_row_value_options='' or binlog_row_image='FULL' on the source"
        )
