"""Picked blocks → CSV, Arrow and Parquet, table by table, up to a limit of changes."""

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.binlog.arrays import to_arrow_booleans, to_arrow_strings, to_mask, to_numpy
from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.binlog.events.table_map import table_name
from penstock.binlog.rows.changes import decode_changes_at
from penstock.binlog.rows.fields import CHANGE_FIELDS, arrow_fields_of_table, choose_free_names
from penstock.binlog.rows.table_changes import ColumnChoice, TableChanges, decode_table_changes
from penstock.binlog.values.column import DecodeOptions
from penstock.inspect.shapes import Shapes
from penstock.model import ChangeKind, TableName
from penstock.render.table_files import BatchFiles, CsvFiles, Kind, Targets

Batches = list[tuple[TableName, pa.RecordBatch]]
_FAR = (1 << 63) - 1
_PREIMAGE = to_arrow_strings([ChangeKind.UPDATE_PREIMAGE.text])[0]
# Where ours are among the columns of a batch, counted from its end: a table may have columns of these names.
_CHANGE_TYPE, _SEQ, _ROW = (
    CHANGE_FIELDS.names.index(name) - len(CHANGE_FIELDS) for name in ("_change_type", "_seq", "_row")
)
_DECODING = DecodeOptions(partial_json="operations")


def table_files(kind: Kind, targets: Targets) -> CsvFiles | BatchFiles:
    return CsvFiles(targets) if kind == "csv" else BatchFiles(targets, kind)


class TableOutput:
    def __init__(self, files: CsvFiles | BatchFiles, choice: ColumnChoice, shapes: Shapes, limit: int | None) -> None:
        self._files, self._choice, self._shapes = files, choice, shapes
        self.left = limit  # changes that may still come

    def write(self, block: Block) -> None:
        if isinstance(self._files, CsvFiles):
            self._write_csv(self._files, block)
        else:
            for table, batch in self._first_of(self._batches(block)):
                self._files.write(table, batch)

    def _write_csv(self, files: CsvFiles, block: Block) -> None:
        found: Iterable[TableChanges] = decode_table_changes(block, self._choice, self._shapes)
        last = _FAR
        if self.left is not None:
            found = list(found)
            orders = [changes.order for changes in found]
            last = self._last_of(np.sort(np.concatenate(orders))) if orders else _FAR
        for _, group in groupby(found, key=lambda changes: changes.table.name):
            for changes in _versions(group):
                if count := sum(int(np.count_nonzero(some.order <= last)) for some in changes):
                    files.write(block, changes, count)

    def _last_of(self, ordered: NDArray[np.int64]) -> int:
        """Where the limit is reached, in the sorted numbers of a block's changes."""
        count = self._take(ordered.size)
        return int(ordered[count - 1])

    def _take(self, count: int) -> int:
        """So many of these changes may still come."""
        count = count if self.left is None else min(self.left, count)
        self.left = None if self.left is None else self.left - count
        return count

    def _batches(self, block: Block) -> Iterator[tuple[TableName, pa.RecordBatch]]:
        for events in _runs(block):
            number = int(block.column("table_id")[events[0]])
            shape = self._shapes(block, number)
            fields = arrow_fields_of_table(shape, self._choice.names(shape))
            names = [*fields.names, *choose_free_names(CHANGE_FIELDS.names, fields.names)]
            for batch in decode_changes_at(block, events, shape, fields, _DECODING):
                yield shape.name, batch.rename_columns(names)

    def _first_of(
        self, batches: Iterator[tuple[TableName, pa.RecordBatch]]
    ) -> Iterable[tuple[TableName, pa.RecordBatch]]:
        """Up to the limit. A preimage comes before the postimage that it belongs to. What was compressed shares places
        in the file: there the number of the row in its transaction tells."""
        if self.left is None:
            return batches
        found = list(batches)
        if not found:
            return found
        places, rows = (
            np.concatenate([to_numpy(batch.column(batch.num_columns + which)) for _, batch in found])
            for which in (_SEQ, _ROW)
        )
        is_end = np.concatenate(
            [~to_mask(pc.equal(batch.column(batch.num_columns + _CHANGE_TYPE), _PREIMAGE)) for _, batch in found]
        )
        order = np.lexsort((rows, places))
        ends = order[is_end[order]]
        keep = np.zeros(order.size, np.bool_)
        last = ends[self._take(ends.size) - 1]
        keep[order[: int(np.flatnonzero(order == last)[0]) + 1]] = True
        bounds = np.cumsum([batch.num_rows for _, batch in found])[:-1]
        parts = zip(found, np.split(keep, bounds), strict=True)
        return [(table, batch.filter(to_arrow_booleans(mask))) for (table, batch), mask in parts if mask.any()]


def _versions(changes: Iterable[TableChanges]) -> list[list[TableChanges]]:
    """Of one table, together what has the same columns to show; the version that the log has first comes first."""
    found: dict[tuple[str, ...], list[TableChanges]] = {}
    for some in changes:
        found.setdefault(some.shown, []).append(some)
    return sorted(found.values(), key=lambda version: min(int(some.event[0]) for some in version))


def _runs(block: Block) -> Iterable[NDArray[np.int64]]:
    """Rows events of one table id, table by table, and in each table in the order of the log: a table that was altered
    or flushed goes on with another id."""
    rows = np.flatnonzero(block.column("entry") == Entry.ROWS)
    if not rows.size:
        return ()
    numbers_, which = np.unique(block.column("table_id")[rows], return_inverse=True)
    names = [table_name(block.tables[number]) for number in numbers_.tolist()]
    rank = {name: i for i, name in enumerate(sorted(set(names)))}
    table = np.array([rank[name] for name in names])[which]
    order = np.argsort(table, kind="stable")
    is_next = (np.diff(table[order]) != 0) | (np.diff(which[order]) != 0)
    return np.split(rows[order], np.flatnonzero(is_next) + 1)
