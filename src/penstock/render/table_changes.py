"""Changes of one table that has many rows in a block: decoded and written column by column."""

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import to_arrow_numbers
from penstock.binlog.events.block import Block
from penstock.binlog.rows.decode import Rows, decode_rows
from penstock.binlog.rows.differences import list_absent_columns, list_changed_columns
from penstock.binlog.rows.located import ABSENT
from penstock.binlog.rows.partial import list_operations
from penstock.model import Column
from penstock.render import text
from penstock.render.change_part import DECODING, VALUES, ChangePart, KeyTexts, Objects, Pairs, key_text, last_lists
from penstock.render.row_plans import RowPlan, RowPlans
from penstock.render.weave import Chosen, Layout, Written, weave


def table_changes(block: Block, events: NDArray[np.int64], plans: RowPlans, number: int) -> Iterator[ChangePart]:
    """Read the rows events at these indexes, which are all of the version of a table that the plan `number` is for."""
    plan, first_name = plans[number], int(plans.key_bounds[number])
    names = [column.name for column in plan.columns]
    for rows in decode_rows(block, events, plan.table, names, DECODING):
        if rows.located.rows:
            yield _TableRows(block, plan, rows).part(number, first_name)


class _TableRows:
    """Row images of one table with their columns, each written once for the rows before and after."""

    def __init__(self, block: Block, plan: RowPlan, rows: Rows) -> None:
        self._block, self._plan, self._rows = block, plan, rows
        self._columns = [column for column in plan.table.columns if column.name in rows.columns]
        self._written = {column.name: VALUES.write(column, rows.columns[column.name]) for column in self._columns}
        self._sparse_made: dict[str, Written] = {}
        self._absent: dict[str, NDArray[np.bool_]] = {}  # images that do not carry a column
        if not rows.located.is_whole:
            lines = ((column.name, rows.located.offsets(line)) for line, column in enumerate(self._columns))
            self._absent = {name: offsets <= ABSENT for name, offsets in lines}

    def part(self, number: int, first_name: int) -> ChangePart:
        """Return all changes; the names of the key's columns have numbers from `first_name` on."""
        found, rows = self._rows.located, self._rows
        pairs = Pairs.of(found.kind)
        last, count = pairs.last, pairs.last.size
        names = [column.name for column in self._columns]
        changed = list_changed_columns(self._block.raw[0], found, self._columns)
        absent = list_absent_columns(found, names, []) if self._absent else None
        partial = list_operations(found.rows, names, rows.operations) if rows.operations else None
        sizes, keys = self._keys(pairs, first_name)
        return ChangePart(
            np.full(count, number, np.int64),
            rows.events[found.event[last]],
            found.number[last].astype(np.int64),
            found.start[last].astype(np.int64),
            found.kind[last],
            self._objects(pairs.with_before, pairs.first[pairs.with_before]),
            self._objects(pairs.with_after, last[pairs.with_after]),
            None if changed.null_count == len(changed) else last_lists(changed, last, found.rows),
            None if absent is None else absent.take(to_arrow_numbers(last)),
            None if partial is None else last_lists(partial, last, found.rows),
            sizes,
            keys,
        )

    def _objects(self, changes: NDArray[np.int64], images: NDArray[np.int64]) -> Objects | None:
        if not changes.size:
            return None
        if self._absent:
            return Objects(changes, Layout(self._sparse_line(images), images.size), "{")
        line = list[str | Chosen]()
        for column in self._columns:
            line += [f"{',' if line else '{'}{_head(column)}", self._written[column.name].at(images)]
        return Objects(changes, Layout([*line, "}" if line else "{}"], images.size))

    def _sparse_line(self, images: NDArray[np.int64]) -> list[Chosen]:
        """Write what each image carries; an object then begins with a comma, in the place of its brace."""
        pieces = [self._sparse(column).at(images) for column in self._columns]
        is_empty = np.all([self._absent[column.name][images] for column in self._columns], axis=0)
        return [*pieces, Written(text.of_list(["}", ",}"])).at(is_empty.astype(np.int64))]

    def _sparse(self, column: Column) -> Written:
        """Return a column's members of objects, empty for images that do not carry it."""
        made = self._sparse_made.get(column.name)
        if made is None:
            every = np.arange(self._rows.located.rows)
            texts = weave([f",{_head(column)}", self._written[column.name].at(every)], every.size)
            valid = pa.py_buffer(np.packbits(~self._absent[column.name], bitorder="little"))
            buffers = [valid, *texts.buffers()[1:]]
            made = Written(pa.Array.from_buffers(text.TEXT, every.size, buffers))
            self._sparse_made[column.name] = made
        return made

    def _keys(self, pairs: Pairs, first_name: int) -> tuple[NDArray[np.int64] | None, list[KeyTexts]]:
        """Return the texts of the key: of the last image, or where that does not carry a column, of the first."""
        key = self._plan.table.key
        if not self._plan.key:
            return None, []
        by_name = {column.name: column for column in self._columns}
        images = [self._images_with(name, pairs) for name in key]
        is_known = np.all([is_there for _, is_there in images], axis=0)
        changes = np.flatnonzero(is_known)
        texts = list[KeyTexts]()
        for place, (name, (rows, _)) in enumerate(zip(key, images, strict=True)):
            value = key_text(by_name[name], self._rows.columns[name], self._written[name])
            valid, chosen = text.validity(value.texts), rows[changes]
            same = np.full(changes.size, place, np.int64)
            is_null = valid[chosen] == 0 if valid.size else None
            texts.append(KeyTexts(changes, same, same + first_name, Layout([value.at(chosen)], changes.size), is_null))
        return np.where(is_known, len(key), 0), texts

    def _images_with(self, name: str, pairs: Pairs) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the image that has a column of the key, for each change, and whether there is one."""
        absent = self._absent.get(name)
        if absent is None:
            return pairs.last, np.ones(pairs.last.size, np.bool_)
        images = np.where(absent[pairs.last], pairs.first, pairs.last)
        return images, ~absent[images]


def _head(column: Column) -> str:
    return f"{json.dumps(column.name, ensure_ascii=False)}:"
