"""The changes of a chunk's rows between two positions of the log: of each row the one that decides how it was there."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.binlog.events.block import Block
from penstock.binlog.rows.changes import decode_changes_at, group_by_table_version
from penstock.binlog.rows.fields import CHANGE_FIELDS, with_declared
from penstock.binlog.values.column import DEFAULT
from penstock.errors import ConfigurationError
from penstock.model import TableName
from penstock.snapshot.as_of import FindInside, choose_deciding, select_inside
from penstock.snapshot.table import SnapshotTable

_PAGE_ROWS = 100_000  # changes of which those of a chunk are selected at once


@dataclass(slots=True)
class ChunkChanges:
    """Collects changes of a chunk's rows in the order of the log: of each row the last one, or the first one. What it
    holds grows with the rows of the chunk that were changed, not with the log; `limit_bytes` bounds that."""

    table: SnapshotTable
    fields: pa.Schema
    find: FindInside
    keeps_last: bool
    limit_bytes: int
    _page: list[pa.RecordBatch] = field(default_factory=list[pa.RecordBatch])
    _page_rows: int = 0
    _kept: list[pa.Table] = field(default_factory=list[pa.Table])
    _kept_rows: int = 0
    _chosen_rows: int = 0  # that were left when rows were chosen last

    @property
    def schema(self) -> pa.Schema:
        """Return the fields of the changes."""
        return pa.schema([*self.fields, *CHANGE_FIELDS])

    def add(self, block: Block) -> None:
        """Add the changes of a block."""
        for batch in _decode_whole(block, self.table.name, self.fields):
            self._page.append(batch)
            self._page_rows += batch.num_rows
        if self._page_rows >= _PAGE_ROWS:
            self._turn_page()

    def result(self) -> pa.Table:
        """Return the changes that decide, in the order of the log."""
        self._turn_page()
        return self._choose()

    def _turn_page(self) -> None:
        """Select the changes of the chunk from those that were read, and choose again when there are twice as many."""
        page = pa.Table.from_batches(self._page, self.schema)
        self._page, self._page_rows = [], 0
        part = select_inside(page, self.table, self.find)
        self._kept.append(part)
        self._kept_rows += part.num_rows
        if self._kept_rows > 2 * self._chosen_rows + _PAGE_ROWS:
            self._kept = [self._choose()]
            self._kept_rows = self._chosen_rows = self._kept[0].num_rows
        size = sum(part.nbytes for part in self._kept)
        if size > self.limit_bytes:
            raise ConfigurationError(
                f"rows of a chunk of {self.table.name} were changed so often since its batch was planned that they take"
                f" more than {self.limit_bytes >> 20} MiB: start the query with a new checkpoint, or let the chunk have"
                " more memory by `snapshot.chunk_bytes` of the instance"
            )

    def _choose(self) -> pa.Table:
        """Return one change of each row."""
        return choose_deciding(pa.concat_tables(self._kept), self.table, keeps_last=self.keeps_last)


def collect_changes(changes: ChunkChanges, blocks: Iterator[Block], check_reader: Callable[[], None]) -> pa.Table:
    """Return the deciding changes of blocks, which come in the order of the log; `check_reader` may end it."""
    for block in blocks:
        check_reader()
        changes.add(block)
    return changes.result()


def _decode_whole(block: Block, name: TableName, fields: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the changes of a table in a block. A column that the table did not have then is null, and is not called
    absent."""
    schema = pa.schema([*fields, *CHANGE_FIELDS])
    for events, shape in group_by_table_version(block, name):
        there = {column.name for column in shape.columns}
        own = pa.schema([known for known in fields if known.name in there])
        for batch in decode_changes_at(block, events, with_declared(shape, own), own, DEFAULT):
            columns = dict(zip(own.names, batch.columns, strict=False))
            arrays = [columns.get(known.name, pa.nulls(batch.num_rows, known.type)) for known in fields]
            yield pa.RecordBatch.from_arrays([*arrays, *batch.columns[len(own) :]], schema=schema)
