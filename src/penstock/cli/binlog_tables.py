"""Picked blocks → CSV, Arrow and Parquet, table by table, up to a limit of changes."""

from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.binlog.arrays import flags, texts, view
from penstock.binlog.events.block import Block
from penstock.binlog.rows.changes import changes_of
from penstock.binlog.rows.fields import table_fields
from penstock.inspect.changes import ColumnChoice, changes_in
from penstock.inspect.gtid_set import truths
from penstock.inspect.shapes import Shapes
from penstock.model import ChangeKind, TableName
from penstock.render.table_files import BatchFiles, CsvFiles, Kind, Targets

Batches = list[tuple[TableName, pa.RecordBatch]]
_FAR = (1 << 63) - 1
_PREIMAGE = texts([ChangeKind.UPDATE_PREIMAGE.text])[0]


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
            self._write_batches(self._files, block)

    def _write_csv(self, files: CsvFiles, block: Block) -> None:
        found = list(changes_in(block, self._choice, self._shapes))
        order = np.sort(np.concatenate([changes.order for changes in found])) if found else np.empty(0, np.int64)
        last = self._last_of(order)
        for _, group in groupby(found, key=lambda changes: (changes.table.name, changes.shown)):
            changes = list(group)
            files.write(block, changes, sum(int(np.count_nonzero(some.order <= last)) for some in changes))

    def _last_of(self, order: NDArray[np.int64]) -> int:
        """Where the limit is reached, in the sorted numbers of a block's changes."""
        if self.left is None or not order.size:
            return _FAR
        count = min(self.left, order.size)
        self.left -= count
        return int(order[count - 1])

    def _write_batches(self, files: BatchFiles, block: Block) -> None:
        found: Batches = []
        for number in block.tables:
            table = block.schema_of(number)
            known = self._shapes.known(table)
            shape = table.completed(known) if known else table
            names = self._choice.names(shape)
            own = block.events.filter(flags(block.column("table_id") == number))
            part = Block(block.file, block.server_version, block.tags, own, {number: block.tables[number]})
            batches = changes_of(part, table.name, table_fields(shape, names), 0, known=known)
            found += ((table.name, batch) for batch in batches)
        for table, batch in self._first_of(found):
            files.write(table, batch)

    def _first_of(self, found: Batches) -> Batches:
        """Up to the limit. A preimage has a lower number than the postimage that it belongs to."""
        if self.left is None or not found:
            return found
        orders = [view(batch.column("_seq")) for _, batch in found]
        ends = [
            order[~truths(pc.equal(batch.column("_change_type"), _PREIMAGE))]
            for order, (_, batch) in zip(orders, found, strict=True)
        ]
        last = self._last_of(np.sort(np.concatenate(ends)))
        return [
            (table, batch.filter(flags(order <= last))) for order, (table, batch) in zip(orders, found, strict=True)
        ]
