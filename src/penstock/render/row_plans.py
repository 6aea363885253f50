"""What JSON writers remember of the tables of one stream: the columns to show, and the program that walks their rows.

`binlog.rows.mixed` walks the rows of many tables together by such programs. What is known of a table lies in arrays, so
that a block with rows of a thousand tables costs one look-up for each of them.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.table_map import table_name
from penstock.binlog.rows.decode import has_old_times
from penstock.binlog.rows.programs import MAX_TABLES, GrowingArray, GrowingTexts, TablePrograms
from penstock.model import Column, TableName, TableSchema
from penstock.render.text import texts_from_bytes

ColumnsOf = Callable[[TableSchema], Sequence[Column]]
NOT_PLANNED = -1  # as the number of a plan: the table does not pass


@dataclass(frozen=True, slots=True, eq=False)
class RowPlan:
    """Describes how rows of one table version become JSON: its shown columns, its key and its row-walking program; -1
    if it is decoded by itself.
    """

    table: TableSchema
    columns: Sequence[Column]
    program: int
    key: tuple[int, ...]  # where its columns are among those of the table; nothing where one is not shown

    def with_table(self, table: TableSchema) -> "RowPlan":
        """Return the plan of another table, which differs in its name only."""
        return RowPlan(table, self.columns, self.program, self.key)


class RowPlanCache:
    """The plans of the tables of one stream, by number.

    plans = RowPlanCache(lambda table: table.shown)
    numbers = plans.find_or_add(block, table_ids)
    plans[numbers[0]].columns
    """

    def __init__(self, columns_of: ColumnsOf, passes: Callable[[TableName], bool] = lambda _: True) -> None:
        """Show the columns that `columns_of` gives of the tables that pass."""
        self._columns_of, self._passes = columns_of, passes
        self._clear()

    def _clear(self) -> None:
        """Drop all plans."""
        self.programs = TablePrograms(has_labels=True)
        self._plans: list[RowPlan] = []
        self._known: dict[str, dict[bytes, int]] = {}  # by server version and table map
        self._shapes: dict[tuple[object, ...], tuple[tuple[Column, ...], RowPlan]] = {}
        self._program, self._names = GrowingArray(np.int64), GrowingTexts()
        self._key_bounds, self._key_positions, self._key_names = (
            GrowingArray(np.int64),
            GrowingArray(np.int64),
            GrowingTexts(),
        )
        self._key_bounds.append(np.zeros(1, np.int64))

    def __len__(self) -> int:
        return len(self._plans)

    def __getitem__(self, number: int) -> RowPlan:
        return self._plans[number]

    @property
    def programs_by_plan(self) -> NDArray[np.int64]:
        """Return the number of the row-walking program of each plan."""
        return self._program.view

    @property
    def names(self) -> pa.Array:
        """Return the name of each plan's table as a text."""
        return texts_from_bytes(self._names.bounds, self._names.data)

    @property
    def key_bounds(self) -> NDArray[np.int64]:
        """Return the bounds of each plan's key: its columns are key_bounds[p] … key_bounds[p + 1] - 1 of
        `key_positions` and `key_names`.
        """
        return self._key_bounds.view

    @property
    def key_positions(self) -> NDArray[np.int64]:
        """Return the positions of key columns among the columns of their tables."""
        return self._key_positions.view

    @property
    def key_names(self) -> pa.Array:
        """Return the names of key columns as texts."""
        return texts_from_bytes(self._key_names.bounds, self._key_names.data)

    def find_or_add(self, block: Block, table_ids: Sequence[int]) -> NDArray[np.int64]:
        """Return the plan numbers of these table ids of the block; they are valid until the next call."""
        if self.programs.is_full or len(self) >= MAX_TABLES or sum(map(len, self._known.values())) >= 2 * MAX_TABLES:
            self._clear()
        known, tables = self._known.setdefault(block.server_version, {}), block.tables
        numbers = [known.get(tables[number]) for number in table_ids]
        if block.problems or None in numbers:
            try:
                for index, number in enumerate(table_ids):
                    if numbers[index] is None or number in block.problems:
                        numbers[index] = known[tables[number]] = self._add_plan(block, number)
            finally:
                self._append_facts()
        return np.array(numbers, np.int64)

    def _add_plan(self, block: Block, number: int) -> int:
        """Plan one version of a table and return its number, or NOT_PLANNED if the table is filtered out."""
        if not self._passes(table_name(block.tables[number])):
            return NOT_PLANNED
        self._plans.append(self._plan_table(block.schema_of(number), block.server_version))
        return len(self._plans) - 1

    def _append_facts(self) -> None:
        """Append to the arrays what they lack of the plans: for thousands of new tables at once."""
        plans = self._plans[len(self._program) :]
        if not plans:
            return
        keys = np.cumsum([len(plan.key) for plan in plans], dtype=np.int64)
        self._key_bounds.append(len(self._key_positions) + keys)
        self._key_positions.append(np.array([position for plan in plans for position in plan.key], np.int64))
        self._key_names.append([plan.table.columns[position].name.encode() for plan in plans for position in plan.key])
        self._names.append([str(plan.table.name).encode() for plan in plans])
        self._program.append(np.array([plan.program for plan in plans], np.int64))

    def _plan_table(self, table: TableSchema, server_version: str) -> RowPlan:
        """Build the plan of a table; tables that differ in their names only share all else."""
        columns = self._columns_of(table)
        names = tuple(column.name for column in columns)
        shape = id(table.columns), table.key, names, server_version
        known = self._shapes.get(shape)
        if known is None:
            # With the columns by whose identity it is found: they live as long as it does.
            known = self._shapes[shape] = table.columns, self._plan_shape(table, columns, server_version)
        return known[1].with_table(table)

    def _plan_shape(self, table: TableSchema, columns: Sequence[Column], server_version: str) -> RowPlan:
        """Build the plan of the first table of its shape."""
        names = {column.name for column in columns}
        positions = {column.name: position for position, column in enumerate(table.columns)}
        key = tuple(positions[name] for name in table.key) if {*table.key} <= names else ()
        if has_old_times(table, server_version):
            return RowPlan(table, columns, -1, key)
        return RowPlan(table, columns, self.programs.add(table, columns, _member_texts(table, names)), key)


def _member_texts(table: TableSchema, shown: set[str]) -> list[bytes]:
    """Return for each column what comes before its value in the object, and its name."""
    texts, mark = list[bytes](), "{"
    for column in table.columns:
        texts += [f"{mark}{json.dumps(column.name, ensure_ascii=False)}:".encode(), column.name.encode()]
        if column.name in shown:
            mark = ","
    return texts
