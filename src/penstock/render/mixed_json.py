"""The rows of many tables as JSON objects, in the order of the log, with the columns that say what, when and where.

For tables with few rows in a block, of which there may be thousands: see `binlog.rows.mixed`.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import flags, numbers
from penstock.binlog.events.block import Block
from penstock.binlog.rows.changes import Images, change_arrays
from penstock.binlog.rows.decode import choice_for
from penstock.binlog.rows.mixed import MixedRows, walk_rows
from penstock.binlog.rows.partial_type import PARTIAL
from penstock.binlog.rows.programs import GrowingTexts, TablePrograms
from penstock.binlog.values.column import Decoding
from penstock.binlog.values.problem import ValueProblemError
from penstock.model import ChangeKind
from penstock.render import mixed_kernels
from penstock.render.dialect import Dialect
from penstock.render.mixed_texts import FieldTexts
from penstock.render.text import TEXT

_MOST_BYTES = 0x7FFFFFFF  # of an Arrow array of texts


@dataclass(frozen=True, slots=True, eq=False)
class MixedJson:
    """Rows events of a block, by their indexes in it; `names[table[i]]` is the name of the table of event i."""

    block: Block
    events: NDArray[np.int64]
    programs: TablePrograms
    program: NDArray[np.int64]
    names: pa.Array
    table: NDArray[np.int64]


def mixed_json_rows(mixed: MixedJson, choice: Decoding, values: Dialect) -> list[pa.Array] | None:
    """Table, row, and the columns of CHANGE_FIELDS. None where each table is to be decoded alone, which says what is
    wrong."""
    block, events = mixed.block, mixed.events
    data, starts, sizes = block.raw
    starts = starts[events]
    ends = starts + sizes[events] - block.column("checksum")[events]
    rows = walk_rows(data, starts, ends, mixed.programs, mixed.program)
    if rows is None:
        return None
    try:
        objects = _objects(rows, choice_for(block, choice), values)
    except ValueProblemError:
        return None
    if objects is None:
        return None
    names = mixed.names.take(numbers(mixed.table[rows.event]))
    images = Images(events, rows.event, rows.start, rows.kind, rows.number)
    return [names, objects, *change_arrays(block, images), *_differences(rows, images), pa.nulls(len(rows), PARTIAL)]


def _objects(rows: MixedRows, choice: Decoding, values: Dialect) -> pa.Array | None:
    texts, marks = FieldTexts.of(rows), [b""] * (2 * len(rows.programs.kinds))
    for kind, column, array in rows.decoded(choice):
        written = values.write(column, array)
        texts.add(int(rows.kind_bounds[kind]), written.texts)
        marks[2 * kind], marks[2 * kind + 1] = written.before.encode(), written.after.encode()
    around = GrowingTexts()
    around.append(marks)
    cells = texts.starts, texts.ends, rows.cells, rows.event, rows.cell, rows.program
    table = rows.programs.bounds, rows.programs.columns, rows.programs.texts.bounds
    bounds = np.zeros(len(rows) + 1, np.int64)
    mixed_kernels.measure_objects(*cells, *table, around.bounds, bounds[1:])
    size = int(bounds[-1])
    if size > _MOST_BYTES:
        return None
    out = np.empty(size, np.uint8)
    heads = rows.programs.texts.data
    mixed_kernels.write_objects(texts.joined, *cells, *table, heads, around.bounds, around.data, out)
    buffers = [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.string(), len(rows), buffers)


def _differences(rows: MixedRows, images: Images) -> tuple[pa.Array, pa.Array]:
    """Names of the columns that each image has changed, and of those that it does not carry."""
    programs, count = rows.programs, rows.cells.size
    changed, absent = np.empty(count, np.int32), np.empty(count, np.int32)
    changed_bounds, absent_bounds = np.zeros(len(rows) + 1, np.int32), np.zeros(len(rows) + 1, np.int32)
    changes, absences = mixed_kernels.list_differences(
        rows.data, rows.offsets, rows.lengths, rows.cells, rows.event, rows.cell, rows.program, rows.event_kind,
        programs.bounds, programs.columns, changed_bounds[1:], changed, absent_bounds[1:], absent,
    )  # fmt: skip
    is_post = images.kind == ChangeKind.UPDATE_POSTIMAGE
    return (
        _lists(programs, changed_bounds, changed[:changes], is_post),
        _lists(programs, absent_bounds, absent[:absences], np.diff(absent_bounds) > 0),
    )


def _lists(
    programs: TablePrograms, bounds: NDArray[np.int32], columns: NDArray[np.int32], are_there: NDArray[np.bool_]
) -> pa.Array:
    """Lists of names; null where there is none."""
    if not are_there.any():
        return pa.nulls(are_there.size, pa.list_(pa.string()))
    texts = programs.texts
    buffers = [None, pa.py_buffer(texts.bounds), pa.py_buffer(texts.data)]
    every = pa.Array.from_buffers(TEXT, texts.bounds.size - 1, buffers)
    names = every.take(numbers(mixed_kernels.TEXTS * columns.astype(np.int64) + 1)).cast(pa.string())
    mask = None if are_there.all() else flags(~are_there)
    return pa.ListArray.from_arrays(numbers(bounds), names, mask=mask)
