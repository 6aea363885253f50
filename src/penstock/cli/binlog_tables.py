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
from penstock.inspect.shapes import SchemaLookup
from penstock.model import ChangeKind, TableName
from penstock.render.table_files import BatchFileWriter, CsvFileWriter, Kind, OutputFiles

Batches = list[tuple[TableName, pa.RecordBatch]]
_FAR = (1 << 63) - 1
_PREIMAGE = to_arrow_strings([ChangeKind.UPDATE_PREIMAGE.text])[0]
# Where ours are among the columns of a batch, counted from its end: a table may have columns of these names.
_CHANGE_TYPE, _SEQ, _ROW = (
    CHANGE_FIELDS.names.index(name) - len(CHANGE_FIELDS) for name in ("_change_type", "_seq", "_row")
)
_DECODING = DecodeOptions(partial_json="operations")


def open_table_writer(kind: Kind, targets: OutputFiles) -> CsvFileWriter | BatchFileWriter:
    """Return the writer of CSV files, or of Arrow or Parquet files."""
    return CsvFileWriter(targets) if kind == "csv" else BatchFileWriter(targets, kind)


class TableWriter:
    """Writes picked blocks table by table, up to a limit of changes."""

    def __init__(
        self, files: CsvFileWriter | BatchFileWriter, choice: ColumnChoice, shapes: SchemaLookup, limit: int | None
    ) -> None:
        self._files, self._choice, self._shapes = files, choice, shapes
        self.left = limit  # changes that may still come

    def write_block(self, block: Block) -> None:
        """Write the changes of a block."""
        if isinstance(self._files, CsvFileWriter):
            self._write_csv(self._files, block)
        else:
            for table, batch in self._limit_batches(self._read_batches(block)):
                self._files.write(table, batch)

    def _write_csv(self, files: CsvFileWriter, block: Block) -> None:
        """Write the changes of a block as CSV."""
        all_changes: Iterable[TableChanges] = decode_table_changes(block, self._choice, self._shapes)
        last = _FAR
        if self.left is not None:
            all_changes = list(all_changes)
            orders = [changes.order for changes in all_changes]
            last = self._find_limit(np.sort(np.concatenate(orders))) if orders else _FAR
        for _, group in groupby(all_changes, key=lambda changes: changes.table.name):
            for changes in _group_by_columns(group):
                if count := sum(int(np.count_nonzero(some.order <= last)) for some in changes):
                    files.write(block, changes, count)

    def _find_limit(self, ordered: NDArray[np.int64]) -> int:
        """Return where the limit is reached in the sorted numbers of a block's changes."""
        count = self._count_allowed(ordered.size)
        return int(ordered[count - 1])

    def _count_allowed(self, count: int) -> int:
        """Return how many of these changes the limit still allows, and count them."""
        count = count if self.left is None else min(self.left, count)
        self.left = None if self.left is None else self.left - count
        return count

    def _read_batches(self, block: Block) -> Iterator[tuple[TableName, pa.RecordBatch]]:
        """Yield the changes of a block as record batches with their tables."""
        for events in _group_by_table(block):
            number = int(block.column("table_id")[events[0]])
            shape = self._shapes(block, number)
            fields = arrow_fields_of_table(shape, self._choice.names(shape))
            names = [*fields.names, *choose_free_names(CHANGE_FIELDS.names, fields.names)]
            for batch in decode_changes_at(block, events, shape, fields, _DECODING):
                yield shape.name, batch.rename_columns(names)

    def _limit_batches(
        self, batches: Iterator[tuple[TableName, pa.RecordBatch]]
    ) -> Iterable[tuple[TableName, pa.RecordBatch]]:
        """Yield batches up to the limit.

        A preimage comes before the postimage that it belongs to. Changes that were compressed share file offsets: there
        the number of the row in its transaction decides.
        """
        if self.left is None:
            return batches
        batch_list = list(batches)
        if not batch_list:
            return batch_list
        positions, rows = (
            np.concatenate([to_numpy(batch.column(batch.num_columns + which)) for _, batch in batch_list])
            for which in (_SEQ, _ROW)
        )
        is_end = np.concatenate(
            [~to_mask(pc.equal(batch.column(batch.num_columns + _CHANGE_TYPE), _PREIMAGE)) for _, batch in batch_list]
        )
        order = np.lexsort((rows, positions))
        ends = order[is_end[order]]
        keep = np.zeros(order.size, np.bool_)
        last = ends[self._count_allowed(ends.size) - 1]
        keep[order[: int(np.flatnonzero(order == last)[0]) + 1]] = True
        bounds = np.cumsum([batch.num_rows for _, batch in batch_list])[:-1]
        parts = zip(batch_list, np.split(keep, bounds), strict=True)
        return [(table, batch.filter(to_arrow_booleans(mask))) for (table, batch), mask in parts if mask.any()]


def _group_by_columns(changes: Iterable[TableChanges]) -> list[list[TableChanges]]:
    """Group the changes of one table by the columns to show; the version that the log has first comes first."""
    by_columns: dict[tuple[str, ...], list[TableChanges]] = {}
    for some in changes:
        by_columns.setdefault(some.shown, []).append(some)
    return sorted(by_columns.values(), key=lambda version: min(int(some.event[0]) for some in version))


def _group_by_table(block: Block) -> Iterable[NDArray[np.int64]]:
    """Yield the rows events of each table id, table by table, and in each table in the order of the log: an altered or
    flushed table continues with another id.
    """
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
