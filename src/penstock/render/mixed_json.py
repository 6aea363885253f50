"""The rows of many tables as JSON objects, in the order of the log, with the columns that say what, when and where.

For tables with few rows in a block, of which there may be thousands: see `binlog.rows.mixed`.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import to_arrow_booleans, to_arrow_numbers
from penstock.binlog.events.block import Block
from penstock.binlog.rows.changes import ImageLocations, build_change_columns
from penstock.binlog.rows.decode import choice_for_block
from penstock.binlog.rows.mixed import MixedRows, walk_rows
from penstock.binlog.rows.partial_type import PARTIAL
from penstock.binlog.rows.programs import GrowingTexts, TablePrograms
from penstock.binlog.values.column import DecodeOptions
from penstock.binlog.values.problem import ValueProblemError
from penstock.model import ChangeKind, Column
from penstock.render import mixed_kernels
from penstock.render.dialect import ValueWriter
from penstock.render.mixed_texts import FieldTextBuffer
from penstock.render.text import TEXT
from penstock.render.weave import FormattedColumn

_MAX_BYTES = 0x7FFFFFFF  # of an Arrow array of texts


@dataclass(frozen=True, slots=True, eq=False)
class MixedRowsInput:
    """Rows events of many tables, by their indexes in a block, with the row-walking program of each."""

    block: Block
    events: NDArray[np.int64]
    programs: TablePrograms
    program: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class MixedJsonObjects:
    """Row images of many tables in the order of the log, each as a JSON object."""

    rows: MixedRows
    written: dict[int, tuple[Column, pa.Array, FormattedColumn]]  # by kind: its decoded fields, and their texts
    texts: pa.Array

    def list_differences(self, kinds: NDArray[np.uint8]) -> tuple[pa.Array, pa.Array]:
        """Return the names of the columns that each image changed, and of those that it does not carry; `kinds` are
        those of the rows.
        """
        return _list_differences(self.rows, kinds)


def read_mixed_rows(
    mixed: MixedRowsInput, choice: DecodeOptions, values: ValueWriter, names: pa.Array, table: NDArray[np.int64]
) -> list[pa.Array] | None:
    """Return table, row, and the columns of CHANGE_FIELDS of rows of many tables; `names[table[i]]` is the name of the
    table of event i.

    Returns None if each table is to be decoded alone, which raises the error.
    """
    objects = write_mixed_objects(mixed, choice, values)
    if objects is None:
        return None
    rows = objects.rows
    kinds = rows.kind
    tables = names.take(to_arrow_numbers(table[rows.event])).cast(pa.string())
    images = ImageLocations(mixed.events, rows.event, rows.start, kinds, rows.number)
    arrays = build_change_columns(mixed.block, images)
    return [tables, objects.texts, *arrays, *objects.list_differences(kinds), pa.nulls(len(rows), PARTIAL)]


def write_mixed_objects(
    mixed: MixedRowsInput, choice: DecodeOptions, values: ValueWriter, *, skips_absent: bool = False
) -> MixedJsonObjects | None:
    """Write all rows of the events as JSON objects, in which columns that an image does not carry are null, or are left
    out.

    Returns None if each table is to be decoded alone.
    """
    block, events = mixed.block, mixed.events
    data, starts, sizes = block.raw
    starts = starts[events]
    ends = starts + sizes[events] - block.column("checksum")[events]
    rows = walk_rows(data, starts, ends, mixed.programs, mixed.program)
    if rows is None:
        return None
    try:
        fields = rows.decode_by_kind(choice_for_block(block, choice))
        written = {kind: (column, array, values.write_column(column, array)) for kind, column, array in fields}
    except ValueProblemError:
        return None
    texts = _write_objects(rows, written, skips_absent=skips_absent)
    return None if texts is None else MixedJsonObjects(rows, written, texts)


def _write_objects(
    rows: MixedRows, written: dict[int, tuple[Column, pa.Array, FormattedColumn]], *, skips_absent: bool
) -> pa.Array | None:
    """Return a JSON object for each image; None if together they are larger than an array of texts can hold."""
    texts, marks = FieldTextBuffer.for_rows(rows), [b""] * (2 * len(rows.programs.kinds))
    for kind, (_, _, value) in written.items():
        texts.add(int(rows.kind_bounds[kind]), value.texts)
        marks[2 * kind], marks[2 * kind + 1] = value.before.encode(), value.after.encode()
    around = GrowingTexts()
    around.append(marks)
    cells = texts.starts, texts.ends, rows.cells, rows.event, rows.cell, rows.program
    table = rows.programs.bounds, rows.programs.columns, rows.programs.texts.bounds
    bounds = np.zeros(len(rows) + 1, np.int64)
    mixed_kernels.measure_objects(*cells, *table, around.bounds, skips_absent, bounds[1:])
    size = int(bounds[-1])
    if size > _MAX_BYTES:
        return None
    out = np.empty(size, np.uint8)
    heads = rows.programs.texts.data
    mixed_kernels.write_objects(texts.joined, *cells, *table, heads, around.bounds, around.data, skips_absent, out)
    buffers = [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.string(), len(rows), buffers)


def _list_differences(rows: MixedRows, kinds: NDArray[np.uint8]) -> tuple[pa.Array, pa.Array]:
    """Return the names of changed and of absent columns of each image."""
    programs, count = rows.programs, rows.cells.size
    changed, absent = np.empty(count, np.int32), np.empty(count, np.int32)
    changed_bounds, absent_bounds = np.zeros(len(rows) + 1, np.int32), np.zeros(len(rows) + 1, np.int32)
    changes, absences = mixed_kernels.list_differences(
        rows.data, rows.offsets, rows.lengths, rows.cells, rows.event, rows.cell, rows.program, rows.event_kind,
        programs.bounds, programs.columns, changed_bounds[1:], changed, absent_bounds[1:], absent,
    )  # fmt: skip
    is_post = kinds == ChangeKind.UPDATE_POSTIMAGE
    return (
        _name_lists(programs, changed_bounds, changed[:changes], is_post),
        _name_lists(programs, absent_bounds, absent[:absences], np.diff(absent_bounds) > 0),
    )


def _name_lists(
    programs: TablePrograms, bounds: NDArray[np.int32], columns: NDArray[np.int32], is_listed: NDArray[np.bool_]
) -> pa.Array:
    """Return lists of column names; null where there is none."""
    if not is_listed.any():
        return pa.nulls(is_listed.size, pa.list_(pa.string()))
    texts = programs.texts
    buffers = [None, pa.py_buffer(texts.bounds), pa.py_buffer(texts.data)]
    every = pa.Array.from_buffers(TEXT, texts.bounds.size - 1, buffers)
    names = every.take(to_arrow_numbers(mixed_kernels.TEXTS * columns.astype(np.int64) + 1)).cast(pa.string())
    mask = None if is_listed.all() else to_arrow_booleans(~is_listed)
    return pa.ListArray.from_arrays(to_arrow_numbers(bounds), names, mask=mask)
