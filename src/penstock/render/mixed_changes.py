"""Changes of many tables with few rows each in a block, read together: the cost per row is that of few tables."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import distinct, to_arrow_numbers
from penstock.binlog.rows.located import ABSENT
from penstock.binlog.rows.programs import KIND
from penstock.render import text
from penstock.render.change_part import DECODING, VALUES, ChangePart, KeyTexts, Objects, Pairs, key_text, last_lists
from penstock.render.mixed_json import MixedJson, MixedObjects, mixed_objects
from penstock.render.row_plans import RowPlans
from penstock.render.weave import Layout, Written, weave

Numbers = NDArray[np.int64]


def mixed_changes(mixed: MixedJson, plan: Numbers, plans: RowPlans) -> ChangePart | None:
    """Read the rows events; `plan` is the number of each event's plan. None where each table is to be read alone."""
    objects = mixed_objects(mixed, DECODING, VALUES, skips_absent=True)
    if objects is None:
        return None
    rows = objects.rows
    kinds = rows.kind
    pairs = Pairs.of(kinds)
    last, own = pairs.last, rows.event[pairs.last].astype(np.int64)
    changed, absent = objects.differences(kinds)
    sizes, keys = _keys(objects, pairs, plan[own], plans)
    return ChangePart(
        plan[own],
        mixed.events[own],
        rows.number[last],
        rows.start[last].astype(np.int64),
        kinds[last],
        _chosen(objects.texts, pairs.with_before, pairs.first),
        _chosen(objects.texts, pairs.with_after, last),
        None if changed.null_count == len(changed) else last_lists(changed, last, len(rows)),
        None if absent.null_count == len(absent) else absent.take(to_arrow_numbers(last)),
        None,
        sizes,
        keys,
    )


def _chosen(objects: pa.Array, changes: Numbers, images: Numbers) -> Objects | None:
    if not changes.size:
        return None
    return Objects(changes, Layout([Written(objects).at(images[changes])], changes.size))


def _keys(objects: MixedObjects, pairs: Pairs, plan: Numbers, plans: RowPlans) -> tuple[Numbers, list[KeyTexts]]:
    """Return the texts of the keys; `plan` is the number of each change's plan.

    A cell of the last image counts, or where that does not carry a column, one of the first.
    """
    rows = objects.rows
    sizes = np.diff(plans.key_bounds)[plan]
    change = np.repeat(np.arange(plan.size), sizes)
    place = np.arange(change.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    name = plans.key_bounds[plan][change] + place
    column = plans.key_positions[name]
    cell = rows.cells[rows.cell[pairs.last[change]] + column]
    is_absent = cell == ABSENT
    if is_absent.any():
        cell = np.where(is_absent, rows.cells[rows.cell[pairs.first[change]] + column], cell)
        is_known = np.bincount(change, cell == ABSENT, plan.size) == 0
        sizes = np.where(is_known, sizes, 0)
        keep = is_known[change]
        change, place, name, column, cell = (array[keep] for array in (change, place, name, column, cell))
    if not change.size:
        return sizes, []
    event = rows.event[pairs.last[change]]
    kind = rows.programs.columns[rows.programs.bounds[rows.program[event]] + column, KIND]
    is_null = cell < 0
    texts, first = _texts(objects, distinct(kind[~is_null]))
    chosen = np.where(is_null, len(texts) - 1, first[kind] + cell)
    layout = Layout([Written(texts).at(chosen)], change.size)
    return sizes, [KeyTexts(change, place, name, layout, is_null if is_null.any() else None)]


def _texts(objects: MixedObjects, kinds: Sequence[int]) -> tuple[pa.Array, Numbers]:
    """Return the texts of all fields of these kinds, and an empty one behind them. Field f of kind k is text
    first[k] + f."""
    first, done = np.zeros(len(objects.rows.programs.kinds), np.int64), 0
    arrays = list[pa.Array]()
    for kind in kinds:
        value = key_text(*objects.written[kind])
        texts = value.texts
        if value.before or value.after:
            texts = weave([value.at(np.arange(len(texts)))], len(texts))
        arrays.append(text.plain(texts))
        first[kind] = done - objects.rows.kind_bounds[kind]
        done += len(texts)
    return pa.concat_arrays([*arrays, text.of_list([""])]), first
