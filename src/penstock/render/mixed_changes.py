"""Changes of many tables with few rows each in a block, read together: the cost per row is that of few tables."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import distinct, to_arrow_numbers
from penstock.binlog.rows.located import ABSENT
from penstock.binlog.rows.programs import KIND
from penstock.render import text
from penstock.render.change_part import (
    DECODING,
    VALUES,
    ChangeImages,
    ChangePart,
    JsonObjects,
    KeyTexts,
    lists_of_last_images,
    write_key_texts,
)
from penstock.render.mixed_json import MixedJsonObjects, MixedRowsInput, write_mixed_objects
from penstock.render.row_plans import RowPlanCache
from penstock.render.weave import FormattedColumn, LineLayout, write_lines

Numbers = NDArray[np.int64]


def read_mixed_changes(mixed: MixedRowsInput, plan: Numbers, plans: RowPlanCache) -> ChangePart | None:
    """Read the changes of rows events of many tables; `plan` is the number of each event's plan. Returns None if each
    table is to be read alone.
    """
    objects = write_mixed_objects(mixed, DECODING, VALUES, skips_absent=True)
    if objects is None:
        return None
    rows = objects.rows
    kinds = rows.kind
    pairs = ChangeImages.from_kinds(kinds)
    last, own = pairs.last, rows.event[pairs.last].astype(np.int64)
    changed, absent = objects.list_differences(kinds)
    sizes, keys = _collect_keys(objects, pairs, plan[own], plans)
    return ChangePart(
        plan[own],
        mixed.events[own],
        rows.number[last],
        rows.start[last].astype(np.int64),
        kinds[last],
        _pick_objects(objects.texts, pairs.with_before, pairs.first),
        _pick_objects(objects.texts, pairs.with_after, last),
        None if changed.null_count == len(changed) else lists_of_last_images(changed, last, len(rows)),
        None if absent.null_count == len(absent) else absent.take(to_arrow_numbers(last)),
        None,
        sizes,
        keys,
    )


def _pick_objects(objects: pa.Array, changes: Numbers, images: Numbers) -> JsonObjects | None:
    """Return the objects of these images as those of these changes; None if there are none."""
    if not changes.size:
        return None
    return JsonObjects(changes, LineLayout([FormattedColumn(objects).pick_rows(images[changes])], changes.size))


def _collect_keys(
    objects: MixedJsonObjects, pairs: ChangeImages, plan: Numbers, plans: RowPlanCache
) -> tuple[Numbers, list[KeyTexts]]:
    """Return the texts of the keys; `plan` is the number of each change's plan.

    The value comes from the last image, or from the first where the last does not carry a column.
    """
    rows = objects.rows
    sizes = np.diff(plans.key_bounds)[plan]
    change = np.repeat(np.arange(plan.size), sizes)
    key_part = np.arange(change.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    name = plans.key_bounds[plan][change] + key_part
    column = plans.key_positions[name]
    cell = rows.cells[rows.cell[pairs.last[change]] + column]
    is_absent = cell == ABSENT
    if is_absent.any():
        cell = np.where(is_absent, rows.cells[rows.cell[pairs.first[change]] + column], cell)
        is_known = np.bincount(change, cell == ABSENT, plan.size) == 0
        sizes = np.where(is_known, sizes, 0)
        keep = is_known[change]
        change, key_part, name, column, cell = (array[keep] for array in (change, key_part, name, column, cell))
    if not change.size:
        return sizes, []
    event = rows.event[pairs.last[change]]
    kind = rows.programs.columns[rows.programs.bounds[rows.program[event]] + column, KIND]
    is_null = cell < 0
    texts, first = _join_field_texts(objects, distinct(kind[~is_null]))
    chosen = np.where(is_null, len(texts) - 1, first[kind] + cell)
    layout = LineLayout([FormattedColumn(texts).pick_rows(chosen)], change.size)
    return sizes, [KeyTexts(change, key_part, name, layout, is_null if is_null.any() else None)]


def _join_field_texts(objects: MixedJsonObjects, kinds: Sequence[int]) -> tuple[pa.Array, Numbers]:
    """Return the texts of all fields of these kinds, followed by an empty one; field f of kind k is text first[k] +
    f.
    """
    first, done = np.zeros(len(objects.rows.programs.kinds), np.int64), 0
    arrays = list[pa.Array]()
    for kind in kinds:
        value = write_key_texts(*objects.written[kind])
        texts = value.texts
        if value.before or value.after:
            texts = write_lines([value.pick_rows(np.arange(len(texts)))], len(texts))
        arrays.append(text.write_plain(texts))
        first[kind] = done - objects.rows.kind_bounds[kind]
        done += len(texts)
    return pa.concat_arrays([*arrays, text.texts_from_list([""])]), first
