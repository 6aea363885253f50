"""Hides the rows of the tables that a client is not to see.

A block may have rows of thousands of tables. Whether a table passes is found out once for each table map; after that a
block costs one look-up for each of its tables.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Protocol, runtime_checkable

import numpy as np

from penstock.binlog.arrays import distinct
from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.binlog.events.table_map import table_name
from penstock.model import TableName

TableFilter = Callable[[TableName], bool]

_REMEMBERED = 1 << 16  # table maps


@runtime_checkable
class BatchFilter(Protocol):
    """A TableFilter that can also decide about many tables in one call, which is faster than one call for each."""

    def __call__(self, table: TableName) -> bool:
        """Return whether rows of the table are shown."""
        ...

    def prepare(self, tables: Collection[TableName]) -> None:
        """Decide about these tables now, because they will be asked for next."""
        ...


class RowsFilter:
    """Applies a table filter to blocks, for one thread at a time.

    rows_filter = RowsFilter(lambda table: table.schema == "shop")
    block = rows_filter.apply(block)
    """

    def __init__(self, passes: TableFilter) -> None:
        self.passes = passes
        self._shown: set[bytes] = set()  # table maps
        self._hidden: set[bytes] = set()

    def apply(self, block: Block) -> Block:
        """Return the block with rows of tables that the filter hides as events without a meaning.

        The bytes are shared, not copied.
        """
        entry, ids, tables = block.column("entry"), block.column("table_id"), block.tables
        are_rows = entry == Entry.ROWS
        # A block may have thousands of tables, and this part of it only a few.
        used = {number: tables[number] for number in distinct(ids[are_rows]) if number in tables}
        visible = used
        if not self._shown.issuperset(used.values()):
            self._decide(used.values())
            visible = {number: body for number, body in used.items() if body in self._shown}
        filtered = block
        if len(visible) < len(used):
            is_hidden = are_rows & np.isin(ids, [number for number in used if number not in visible])
            filtered = block.with_columns(entry=np.where(is_hidden, np.uint8(Entry.OTHER), entry))
        return filtered if len(visible) == len(tables) else filtered.with_tables(visible)

    def _decide(self, bodies: Iterable[bytes]) -> None:
        """Find out which of these table maps are of tables that pass, where that is not known."""
        if len(self._shown) + len(self._hidden) > _REMEMBERED:
            self._shown, self._hidden = set(), set()
        new = [body for body in dict.fromkeys(bodies) if body not in self._shown and body not in self._hidden]
        names = [table_name(body) for body in new]
        if isinstance(self.passes, BatchFilter):
            self.passes.prepare(names)
        for body, name in zip(new, names, strict=True):
            (self._shown if self.passes(name) else self._hidden).add(body)
