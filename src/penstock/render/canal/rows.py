"""The rows events of one version of a table → RowData, event by event."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.binlog.arrays import to_arrow_booleans
from penstock.binlog.events.block import Block
from penstock.binlog.rows.decode import Rows, decode_rows
from penstock.binlog.rows.located import ABSENT
from penstock.model import ChangeKind, Column
from penstock.render import text
from penstock.render.canal import row_kernels
from penstock.render.canal.tables import TableEncoding, TablePlan
from penstock.render.canal.values import CanalValueWriter, are_wide
from penstock.render.operations import write_function_calls

if TYPE_CHECKING:
    from penstock.binlog.values.json_operations import JsonOperations


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRows:
    """RowData of rows events as protobuf: the count[i] rows of event[i] lie between first[i] and last[i] of `data`.

    The first event may have more rows in the piece before.
    """

    data: NDArray[np.uint8]
    event: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    count: NDArray[np.int64]


def write_table_rows(
    block: Block, events: NDArray[np.int64], plan: TablePlan, values: CanalValueWriter
) -> Iterator[EncodedRows]:
    """Yield the RowData of rows events of one table version, in one piece or several."""
    encoding = plan.encoding
    names = [column.name for column in encoding.columns]
    for rows in decode_rows(block, events, plan.table, names, values.decoding):
        if rows.located.rows:
            yield _encode_rows(rows, encoding, values)


def _encode_rows(rows: Rows, plan: TableEncoding, values: CanalValueWriter) -> EncodedRows:
    """Encode decoded row images as RowData."""
    located = rows.located
    texts, bounds, cells = _collect_column_texts(rows, plan, values)
    first = np.flatnonzero(located.kind != ChangeKind.UPDATE_POSTIMAGE)
    kind = located.kind[first]
    before = np.where(kind == ChangeKind.INSERT, -1, first)
    after = np.where(kind == ChangeKind.DELETE, -1, np.where(kind == ChangeKind.INSERT, first, first + 1))
    shape = located.rows, len(plan.columns)
    updated, sizes = np.empty(shape, np.uint8), np.empty(shape, np.int32)
    inner, ends = np.empty(first.size, np.int64), np.empty(first.size, np.int64)
    row_kernels.measure_rows(texts, bounds, cells, plan.frames, before, after, updated, sizes, inner, ends)
    out = np.empty(int(ends[-1]), np.uint8)
    row_kernels.write_row_data(
        texts, bounds, cells, plan.frames, plan.frame_texts, before, after, updated, sizes, inner, out
    )
    event = located.event[first]
    starts = np.flatnonzero(np.concatenate([[True], event[1:] != event[:-1]]))
    stops = np.append(starts[1:], event.size)
    edges = np.concatenate([[0], ends])
    return EncodedRows(out, rows.events[event[starts]], edges[starts], edges[stops], stops - starts)


def _json_function_calls(operations: "JsonOperations", column: Column) -> pa.Array:
    """Return the SQL function calls that canal shows in place of a JSON document of which the log has only the
    changes.
    """
    return write_function_calls(operations, column.name, operations.paths, operations.values)


def _collect_column_texts(
    rows: Rows, plan: TableEncoding, values: CanalValueWriter
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8]]:
    """Return the texts of all columns in one buffer, and for each column the bounds of its texts and the state of its
    cells.
    """
    located, count = rows.located, len(plan.columns)
    pieces = list[NDArray[np.uint8]]()
    bounds = np.empty((count, located.rows + 1), np.int64)
    cells = np.zeros((count, located.rows), np.uint8)
    done = 0
    for line, column in enumerate(plan.columns):
        array = rows.columns[column.name]
        written = values.write_column(column, array)
        is_partial = None
        if column.name in rows.operations:
            operations = rows.operations[column.name]
            is_partial = operations.counts > 0
            written = pc.if_else(
                to_arrow_booleans(is_partial), _json_function_calls(operations, column), text.write_plain(written)
            )
        data, column_bounds = text.get_bytes(written)
        start, stop = int(column_bounds[0]), int(column_bounds[-1])
        np.add(column_bounds, done - start, out=bounds[line])
        pieces.append(data[start:stop])
        done += stop - start
        if (wide := are_wide(column, array)) is not None:
            cells[line, wide] = row_kernels.WIDE
        valid = text.get_validity(array)
        if valid.size:
            cells[line, valid == 0] = row_kernels.NULL
        if not located.is_whole:
            cells[line, located.offsets(line) <= ABSENT] = row_kernels.ABSENT
            if is_partial is not None:
                cells[line, is_partial] = 0
    return np.concatenate(pieces) if pieces else np.empty(0, np.uint8), bounds, cells
