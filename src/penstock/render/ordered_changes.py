"""Changes of the parts of a block as Arrow batches, in the order of the log."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import to_arrow_booleans, to_arrow_numbers, to_arrow_strings
from penstock.binlog.events.block import Block
from penstock.binlog.rows.changes import ImageLocations, build_change_columns
from penstock.binlog.rows.fields import CHANGE_FIELDS
from penstock.render.change_part import DDL, ChangePart
from penstock.render.ddl_statements import DdlStatement
from penstock.render.row_plans import RowPlanCache
from penstock.render.text import TEXT
from penstock.render.text_column import LongTexts, TextColumnBuilder

MAX_BYTES = 1 << 30  # of texts in one batch
_CHANGE_TYPES = to_arrow_strings(["insert", "update", "update", "delete", "ddl"])  # by ChangeKind, and DDL


class OrderedChanges:
    """Merges the changes of all parts of a block into the order of the log."""

    def __init__(
        self, block: Block, parts: Sequence[ChangePart], plans: RowPlanCache, statements: Sequence[DdlStatement]
    ) -> None:
        """Merge the parts, whose tables are numbers of plans, followed by those of statements."""
        self._block, self._parts, self._plans, self._statements = block, parts, plans, statements
        event, number = (_concatenate(parts, name) for name in ("event", "number"))
        order = event << 32 | number
        self._count = order.size
        self._order: NDArray[np.int64] | None = None
        if len(parts) > 1 and (order[1:] < order[:-1]).any():
            self._order = np.argsort(order, kind="stable")  # each part is in order: few runs to merge
        self._rows = self._rows_of_parts()

    def _rows_of_parts(self) -> list[NDArray[np.int64]]:
        """Return the lines that the changes of each part become."""
        lines = np.arange(self._count)
        if self._order is not None:
            lines = np.empty(self._count, np.int64)
            lines[self._order] = np.arange(self._count)
        return np.split(lines, np.cumsum([len(part) for part in self._parts])[:-1])

    def to_batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the changes as batches of this schema."""
        before, after = (self._write_objects(name) for name in ("before", "after"))
        names, values, bounds = self._write_keys()
        columns = self._metadata_columns(has_ddl="ddl" in schema.names)
        for first, stop in self._cut_batches(before, after, values, bounds):
            items = slice(int(bounds[first]), int(bounds[stop]))
            keys = _build_maps(
                names.slice(items.start, items.stop - items.start),
                values.slice_texts(items.start, items.stop),
                (bounds[first : stop + 1] - bounds[first]).astype(np.int32),
            )
            rows = {name: array.slice(first, stop - first) for name, array in columns.items()}
            rows |= {"_key": keys, "before": before.slice_texts(first, stop), "after": after.slice_texts(first, stop)}
            yield pa.RecordBatch.from_arrays([rows[name] for name in schema.names], schema=schema)

    def _cut_batches(
        self, before: LongTexts, after: LongTexts, values: LongTexts, bounds: NDArray[np.int64]
    ) -> Iterator[tuple[int, int]]:
        """Yield ranges of lines so that the texts of a batch stay below a limit; a single change can be larger."""
        size: NDArray[np.int64] = before.bounds + after.bounds + values.bounds[bounds]
        first = 0
        while first < self._count:
            stop = int(np.searchsorted(size, int(size[first]) + MAX_BYTES, "right")) - 1
            stop = min(max(stop, first + 1), self._count)
            yield first, stop
            first = stop

    def _write_objects(self, side: str) -> LongTexts:
        """Write the row images of one side, before or after, in order."""
        column = TextColumnBuilder(self._count)
        for part, rows in zip(self._parts, self._rows, strict=True):
            objects = getattr(part, side)
            if objects is not None:
                column.add(rows[objects.changes], objects.layout, objects.first)
        return column.write()

    def _write_keys(self) -> tuple[pa.Array, LongTexts, NDArray[np.int64]]:
        """Return the names and the values of all key columns, and where the key of each line begins."""
        sizes = np.zeros(self._count, np.int64)
        for part, rows in zip(self._parts, self._rows, strict=True):
            if part.key_sizes is not None:
                sizes[rows] = part.key_sizes
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        column, name = TextColumnBuilder(int(bounds[-1])), np.empty(int(bounds[-1]), np.int64)
        is_null = np.zeros(name.size, np.bool_)
        for part, rows in zip(self._parts, self._rows, strict=True):
            for key in part.keys:
                items = bounds[rows[key.changes]] + key.key_index
                column.add(items, key.layout)
                name[items] = key.name
                if key.is_null is not None:
                    is_null[items] = key.is_null
        values = column.write()
        if is_null.any():
            values = LongTexts(values.bounds, values.data, values.is_there & ~is_null)
        return self._plans.key_names.take(to_arrow_numbers(name)).cast(pa.string()), values, bounds

    def _metadata_columns(self, *, has_ddl: bool) -> dict[str, pa.Array]:
        """Return the columns that are not texts of rows or keys."""
        kind, event, table = (
            self._order_values(_concatenate(self._parts, name)) for name in ("kind", "event", "table")
        )
        number, start = (self._order_values(_concatenate(self._parts, name)) for name in ("number", "start"))
        is_new = np.ones(event.size, np.bool_)
        np.not_equal(event[1:], event[:-1], out=is_new[1:])
        images = ImageLocations(event[is_new], np.cumsum(is_new) - 1, start, np.zeros(kind.size, np.uint8), number)
        columns = dict(zip(CHANGE_FIELDS.names, build_change_columns(self._block, images), strict=False))
        columns["_change_type"] = _CHANGE_TYPES.take(to_arrow_numbers(kind))
        columns["_table"] = self._table_names().take(to_arrow_numbers(table)).cast(pa.string())
        for name in ("_changed", "_absent", "_partial"):
            columns[name] = self._ordered_lists(name)
        if has_ddl:
            which = np.where(kind == DDL, table - len(self._plans), len(self._statements))
            columns["ddl"] = _nullable_texts([*(each.text for each in self._statements), None]).take(
                to_arrow_numbers(which)
            )
        return columns

    def _table_names(self) -> pa.Array:
        """Return the names of the tables of all plans, followed by those of the statements."""
        if not self._statements:
            return self._plans.names
        return pa.concat_arrays(
            [self._plans.names, _nullable_texts([each.table for each in self._statements]).cast(TEXT)]
        )

    def _ordered_lists(self, name: str) -> pa.Array:
        """Return a column of name lists in the order of the log."""
        lists = [getattr(part, name.removeprefix("_")) for part in self._parts]
        kind = CHANGE_FIELDS.field(name).type
        if all(each is None for each in lists):
            return pa.nulls(self._count, kind)
        parts = zip(self._parts, lists, strict=True)
        joined = pa.concat_arrays([pa.nulls(len(part), kind) if each is None else each for part, each in parts])
        return joined if self._order is None else joined.take(to_arrow_numbers(self._order))

    def _order_values(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of all parts in the order of the log."""
        return values if self._order is None else values[self._order]


def _concatenate(parts: Sequence[ChangePart], name: str) -> NDArray[Any]:
    """Return an array attribute of all parts, one after the other."""
    return getattr(parts[0], name) if len(parts) == 1 else np.concatenate([getattr(part, name) for part in parts])


def _nullable_texts(values: Sequence[str | None]) -> pa.Array:
    """Return strings as an array of texts; None is null."""
    array = to_arrow_strings([value or "" for value in values])
    if None not in values:
        return array
    valid = np.packbits(np.array([value is not None for value in values], np.bool_), bitorder="little")
    return pa.Array.from_buffers(pa.string(), len(values), [pa.py_buffer(valid), *array.buffers()[1:]])


def _build_maps(names: pa.Array, values: pa.Array, bounds: NDArray[np.int32]) -> pa.Array:
    """Return a map from column names to values for each line; null where it has no key."""
    is_null = bounds[1:] == bounds[:-1]
    mask = to_arrow_booleans(is_null) if is_null.any() else None
    return pa.MapArray.from_arrays(to_arrow_numbers(bounds), names, values, mask=mask)
