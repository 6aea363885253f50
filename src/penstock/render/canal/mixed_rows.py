"""The rows events of many tables → RowData, in the order of the log.

What `rows` does table by table and column by column is done here kind of value by kind of value, over all tables: for
tables with few rows in a block, of which there may be thousands.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.rows.decode import choice_for_block
from penstock.binlog.rows.mixed import walk_rows
from penstock.binlog.rows.programs import TablePrograms
from penstock.binlog.values.problem import ValueProblemError
from penstock.render.canal import mixed_kernels
from penstock.render.canal.rows import EncodedRows
from penstock.render.canal.values import CanalValueWriter, are_wide
from penstock.render.mixed_texts import FieldTextBuffer


@dataclass(frozen=True, slots=True, eq=False)
class MixedRowsEvents:
    """Rows events of many tables, by their indexes in a block, with the row-walking program of the table of each."""

    block: Block
    events: NDArray[np.int64]
    programs: TablePrograms
    program: NDArray[np.int64]


def write_mixed_rows(mixed: MixedRowsEvents, values: CanalValueWriter) -> EncodedRows | None:
    """Write the RowData of rows events of many tables in one piece.

    Returns None if a value or a row cannot be decoded: each table is then to be written alone, which raises the error.
    """
    block, events, programs = mixed.block, mixed.events, mixed.programs
    data, starts, sizes = block.raw
    starts = starts[events]
    ends = starts + sizes[events] - block.column("checksum")[events]
    rows = walk_rows(data, starts, ends, programs, mixed.program)
    if rows is None:
        return None
    texts, wide = FieldTextBuffer.for_rows(rows), np.zeros(rows.offsets.size, np.uint8)
    try:
        for kind, column, array in rows.decode_by_kind(choice_for_block(block, values.decoding)):
            first = int(rows.kind_bounds[kind])
            texts.add(first, values.write_column(column, array))
            if (is_wide := are_wide(column, array)) is not None:
                wide[first : first + len(array)] = is_wide
    except ValueProblemError:
        return None
    count = events.size
    cells, inner = rows.cells.size, np.empty(len(rows), np.int64)
    updated, column_sizes = np.empty(cells, np.uint8), np.empty(cells, np.int32)
    first, last, row_count = (np.empty(count, np.int64) for _ in range(3))
    joined = texts.joined
    fields = joined, texts.starts, texts.ends, wide, rows.cells, rows.event, rows.cell, rows.program, rows.event_kind
    frames = programs.texts
    mixed_kernels.measure_mixed(
        *fields, programs.bounds, programs.columns, frames.bounds, updated, column_sizes, inner, first, last, row_count
    )
    out = np.empty(int(last[-1]) if count else 0, np.uint8)
    mixed_kernels.write_mixed(*fields, programs.bounds, frames.bounds, frames.data, updated, column_sizes, inner, out)
    return EncodedRows(out, events, first, last, row_count)
