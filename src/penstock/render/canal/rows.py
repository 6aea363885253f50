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
from penstock.render.canal.tables import TablePlan
from penstock.render.canal.values import Values, are_wide
from penstock.render.operations import call_functions

if TYPE_CHECKING:
    from penstock.binlog.values.json_operations import JsonOperations


@dataclass(frozen=True, slots=True, eq=False)
class WrittenRows:
    """`data` has the rows of `event[i]`, which are `count[i]`, from `first[i]` to `last[i]`; the first event may have
    others in what was written before."""

    data: NDArray[np.uint8]
    event: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    count: NDArray[np.int64]


def write_rows(block: Block, events: NDArray[np.int64], plan: TablePlan, values: Values) -> Iterator[WrittenRows]:
    """In one piece, or several."""
    names = [column.name for column in plan.columns]
    for rows in decode_rows(block, events, plan.table, names, values.decoding):
        if rows.located.rows:
            yield _written(rows, plan, values)


def _written(rows: Rows, plan: TablePlan, values: Values) -> WrittenRows:
    found = rows.located
    texts, bounds, cells = _texts(rows, plan, values)
    first = np.flatnonzero(found.kind != ChangeKind.UPDATE_POSTIMAGE)
    kind = found.kind[first]
    before = np.where(kind == ChangeKind.INSERT, -1, first)
    after = np.where(kind == ChangeKind.DELETE, -1, np.where(kind == ChangeKind.INSERT, first, first + 1))
    shape = found.rows, len(plan.columns)
    updated, sizes = np.empty(shape, np.uint8), np.empty(shape, np.int32)
    inner, ends = np.empty(first.size, np.int64), np.empty(first.size, np.int64)
    row_kernels.measure_rows(texts, bounds, cells, plan.frames, before, after, updated, sizes, inner, ends)
    out = np.empty(int(ends[-1]), np.uint8)
    row_kernels.write_rows(
        texts, bounds, cells, plan.frames, plan.frame_texts, before, after, updated, sizes, inner, out
    )
    event = found.event[first]
    starts = np.flatnonzero(np.concatenate([[True], event[1:] != event[:-1]]))
    stops = np.append(starts[1:], event.size)
    edges = np.concatenate([[0], ends])
    return WrittenRows(out, rows.events[event[starts]], edges[starts], edges[stops], stops - starts)


def _expressions(operations: "JsonOperations", column: Column) -> pa.Array:
    """What canal gives in place of a document that the log does not have: calls of functions, with values as JSON."""
    return call_functions(operations, column.name, operations.paths, operations.values)


def _texts(
    rows: Rows, plan: TablePlan, values: Values
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8]]:
    """All columns in one buffer, with a line of bounds and of cells for each."""
    found, count = rows.located, len(plan.columns)
    pieces = list[NDArray[np.uint8]]()
    bounds = np.empty((count, found.rows + 1), np.int64)
    cells = np.zeros((count, found.rows), np.uint8)
    done = 0
    for line, column in enumerate(plan.columns):
        array = rows.columns[column.name]
        written = values.write(column, array)
        is_partial = None
        if column.name in rows.operations:
            operations = rows.operations[column.name]
            is_partial = operations.counts > 0
            written = pc.if_else(to_arrow_booleans(is_partial), _expressions(operations, column), text.plain(written))
        data, own = text.bytes_of(written)
        start, stop = int(own[0]), int(own[-1])
        np.add(own, done - start, out=bounds[line])
        pieces.append(data[start:stop])
        done += stop - start
        if (wide := are_wide(column, array)) is not None:
            cells[line, wide] = row_kernels.WIDE
        valid = text.validity(array)
        if valid.size:
            cells[line, valid == 0] = row_kernels.NULL
        if not found.is_whole:
            cells[line, found.offsets(line) <= ABSENT] = row_kernels.ABSENT
            if is_partial is not None:
                cells[line, is_partial] = 0
    return np.concatenate(pieces) if pieces else np.empty(0, np.uint8), bounds, cells
