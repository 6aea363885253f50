"""Changes of any table in one shape, one line per change: the row before and after it as JSON, and where it is from.

Values are those of `json_lines`, and so is what an object has: a column that an image does not carry is not in it, and
a NULL is null. Tables with few rows in a block are read together, the others one by one; all write into the same
columns, in the order of the log.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import distinct
from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.binlog.rows.mixed import should_decode_alone
from penstock.model import TableName
from penstock.render.change_part import DDL, ChangePart
from penstock.render.ddl_statements import DdlStatement, DdlStatementReader
from penstock.render.json_change_fields import json_change_fields
from penstock.render.mixed_changes import read_mixed_changes
from penstock.render.mixed_json import MixedRowsInput
from penstock.render.ordered_changes import OrderedChanges
from penstock.render.row_plans import NOT_PLANNED, ColumnsOf, RowPlanCache
from penstock.render.table_changes import read_table_changes

Passes = Callable[[TableName], bool]


class JsonChangeReader:
    """Turns the blocks of one stream into lines with one change each; plans of tables are cached between blocks.

    reader = JsonChangeReader(lambda table: table.shown, include_ddl=True)
    for batch in reader.read_batches(block): ...
    """

    def __init__(self, columns_of: ColumnsOf, passes: Passes = lambda _: True, *, include_ddl: bool = False) -> None:
        """Show the columns that `columns_of` gives of the tables that pass."""
        self.schema = json_change_fields(include_ddl=include_ddl)
        self._plans = RowPlanCache(columns_of, passes)
        self._ddl = DdlStatementReader(passes) if include_ddl else None

    def read_batches(self, block: Block) -> Iterator[pa.RecordBatch]:
        """Yield all changes of a block in the order of the log, in one batch if that can hold their texts."""
        statements = list(self._ddl.read_block(block)) if self._ddl is not None else []
        parts = self._read_parts(block)
        if statements:
            parts.append(_statement_changes(block, statements, len(self._plans)))
        if parts:
            yield from OrderedChanges(block, parts, self._plans, statements).to_batches(self.schema)

    def _read_parts(self, block: Block) -> list[ChangePart]:
        """Read the rows of the tables that pass the filter."""
        events = np.flatnonzero(block.column("entry") == Entry.ROWS)
        ids = block.column("table_id")[events]
        there = distinct(ids)
        plans = self._plans.find_or_add(block, there)
        table = np.searchsorted(np.array(there, np.int64), ids)
        if (plans == NOT_PLANNED).any():
            is_wanted = (plans != NOT_PLANNED)[table]
            events, table = events[is_wanted], (np.cumsum(plans != NOT_PLANNED) - 1)[table[is_wanted]]
            plans = plans[plans != NOT_PLANNED]
        return list(self._read_rows(block, events, table, plans)) if events.size else []

    def _read_rows(
        self, block: Block, events: NDArray[np.int64], table: NDArray[np.int64], plans: NDArray[np.int64]
    ) -> Iterator[ChangePart]:
        """Yield the changes of tables with few rows together, and of the others one by one; `plans[table[i]]` is the
        number of the plan of event i.
        """
        program = self._plans.programs_by_plan[plans]
        alone = should_decode_alone(block, events, table, plans.size) | (program < 0)
        if not alone.all():
            mixed = ~alone[table]
            own = table[mixed]
            mixed_rows = MixedRowsInput(block, events[mixed], self._plans.programs, program[own])
            part = read_mixed_changes(mixed_rows, plans[own], self._plans)
            if part is None:
                alone[:] = True
            elif len(part):
                yield part
        for number in np.flatnonzero(alone).tolist():
            yield from read_table_changes(block, events[table == number], self._plans, int(plans[number]))


def _statement_changes(block: Block, statements: Sequence[DdlStatement], first: int) -> ChangePart:
    """Make lines of statements, whose tables have numbers from `first` on."""
    event = np.array([statement.event for statement in statements], np.int64)
    table, count = np.arange(first, first + event.size), event.size
    return ChangePart(table, event, np.zeros(count, np.int64), block.raw[1][event], np.full(count, DDL, np.uint8))
