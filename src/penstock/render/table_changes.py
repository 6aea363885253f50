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
from penstock.binlog.rows.partial import list_json_operations
from penstock.model import Column
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
from penstock.render.row_plans import RowPlan, RowPlanCache
from penstock.render.weave import ColumnPiece, FormattedColumn, LineLayout, write_lines


def read_table_changes(
    block: Block, events: NDArray[np.int64], plans: RowPlanCache, number: int
) -> Iterator[ChangePart]:
    """Yield the changes of the rows events at these indexes, which all belong to the table version of plan `number`."""
    plan, first_name = plans[number], int(plans.key_bounds[number])
    names = [column.name for column in plan.columns]
    for rows in decode_rows(block, events, plan.table, names, DECODING):
        if rows.located.rows:
            yield _TableImages(block, plan, rows).build_part(number, first_name)


class _TableImages:
    """Row images of one table whose columns are each written once for the rows before and after."""

    def __init__(self, block: Block, plan: RowPlan, rows: Rows) -> None:
        self._block, self._plan, self._rows = block, plan, rows
        self._columns = [column for column in plan.table.columns if column.name in rows.columns]
        self._written = {
            column.name: VALUES.write_column(column, rows.columns[column.name]) for column in self._columns
        }
        self._sparse_made: dict[str, FormattedColumn] = {}
        self._absent: dict[str, NDArray[np.bool_]] = {}  # images that do not carry a column
        if not rows.located.is_whole:
            lines = ((column.name, rows.located.offsets(line)) for line, column in enumerate(self._columns))
            self._absent = {name: offsets <= ABSENT for name, offsets in lines}

    def build_part(self, number: int, first_name: int) -> ChangePart:
        """Return all changes; the names of the key columns have numbers from `first_name` on."""
        located, rows = self._rows.located, self._rows
        pairs = ChangeImages.from_kinds(located.kind)
        last, count = pairs.last, pairs.last.size
        names = [column.name for column in self._columns]
        changed = list_changed_columns(self._block.raw[0], located, self._columns)
        absent = list_absent_columns(located, names, []) if self._absent else None
        partial = list_json_operations(located.rows, names, rows.operations) if rows.operations else None
        sizes, keys = self._collect_keys(pairs, first_name)
        return ChangePart(
            np.full(count, number, np.int64),
            rows.events[located.event[last]],
            located.number[last].astype(np.int64),
            located.start[last].astype(np.int64),
            located.kind[last],
            self._write_objects(pairs.with_before, pairs.first[pairs.with_before]),
            self._write_objects(pairs.with_after, last[pairs.with_after]),
            None if changed.null_count == len(changed) else lists_of_last_images(changed, last, located.rows),
            None if absent is None else absent.take(to_arrow_numbers(last)),
            None if partial is None else lists_of_last_images(partial, last, located.rows),
            sizes,
            keys,
        )

    def _write_objects(self, changes: NDArray[np.int64], images: NDArray[np.int64]) -> JsonObjects | None:
        """Write these images as JSON objects of these changes."""
        if not changes.size:
            return None
        if self._absent:
            return JsonObjects(changes, LineLayout(self._sparse_pattern(images), images.size), "{")
        line = list[str | ColumnPiece]()
        for column in self._columns:
            line += [f"{',' if line else '{'}{_member_head(column)}", self._written[column.name].pick_rows(images)]
        return JsonObjects(changes, LineLayout([*line, "}" if line else "{}"], images.size))

    def _sparse_pattern(self, images: NDArray[np.int64]) -> list[ColumnPiece]:
        """Return the pieces of objects that have only the columns an image carries; such an object begins with a comma
        instead of its brace.
        """
        pieces = [self._sparse_members(column).pick_rows(images) for column in self._columns]
        is_empty = np.all([self._absent[column.name][images] for column in self._columns], axis=0)
        return [*pieces, FormattedColumn(text.texts_from_list(["}", ",}"])).pick_rows(is_empty.astype(np.int64))]

    def _sparse_members(self, column: Column) -> FormattedColumn:
        """Return a column's members of the objects, empty for images that do not carry it."""
        made = self._sparse_made.get(column.name)
        if made is None:
            every = np.arange(self._rows.located.rows)
            texts = write_lines([f",{_member_head(column)}", self._written[column.name].pick_rows(every)], every.size)
            valid = pa.py_buffer(np.packbits(~self._absent[column.name], bitorder="little"))
            buffers = [valid, *texts.buffers()[1:]]
            made = FormattedColumn(pa.Array.from_buffers(text.TEXT, every.size, buffers))
            self._sparse_made[column.name] = made
        return made

    def _collect_keys(self, pairs: ChangeImages, first_name: int) -> tuple[NDArray[np.int64] | None, list[KeyTexts]]:
        """Return the texts of the key: from the last image, or from the first where the last does not carry a
        column.
        """
        key = self._plan.table.key
        if not self._plan.key:
            return None, []
        by_name = {column.name: column for column in self._columns}
        images = [self._find_key_images(name, pairs) for name in key]
        is_known = np.all([is_there for _, is_there in images], axis=0)
        changes = np.flatnonzero(is_known)
        texts = list[KeyTexts]()
        for key_part, (name, (rows, _)) in enumerate(zip(key, images, strict=True)):
            value = write_key_texts(by_name[name], self._rows.columns[name], self._written[name])
            valid, chosen = text.get_validity(value.texts), rows[changes]
            same = np.full(changes.size, key_part, np.int64)
            is_null = valid[chosen] == 0 if valid.size else None
            texts.append(
                KeyTexts(changes, same, same + first_name, LineLayout([value.pick_rows(chosen)], changes.size), is_null)
            )
        return np.where(is_known, len(key), 0), texts

    def _find_key_images(self, name: str, pairs: ChangeImages) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return for each change the image that carries a key column, and whether there is one."""
        absent = self._absent.get(name)
        if absent is None:
            return pairs.last, np.ones(pairs.last.size, np.bool_)
        images = np.where(absent[pairs.last], pairs.first, pairs.last)
        return images, ~absent[images]


def _member_head(column: Column) -> str:
    """Return what comes before a column's value in a JSON object."""
    return f"{json.dumps(column.name, ensure_ascii=False)}:"
