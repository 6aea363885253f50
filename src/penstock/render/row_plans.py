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
from penstock.binlog.rows.programs import MOST_TABLES, GrowingArray, GrowingTexts, TablePrograms
from penstock.model import Column, TableName, TableSchema
from penstock.render.text import of_bytes

ColumnsOf = Callable[[TableSchema], Sequence[Column]]
LEFT_OUT = -1  # as the number of a plan: the table does not pass


@dataclass(frozen=True, slots=True, eq=False)
class RowPlan:
    """A table, the columns of it that are shown, and its program; -1: it is decoded by itself."""

    table: TableSchema
    columns: Sequence[Column]
    program: int
    key: tuple[int, ...]  # where its columns are among those of the table; nothing where one is not shown


class RowPlans:
    """The plans of the tables of one stream, by number.

    plans = RowPlans(lambda table: table.shown)
    numbers = plans.of(block, table_ids)
    plans[numbers[0]].columns
    """

    def __init__(self, columns_of: ColumnsOf, passes: Callable[[TableName], bool] = lambda _: True) -> None:
        """Show the columns that `columns_of` gives of the tables that pass."""
        self._columns_of, self._passes = columns_of, passes
        self._forget()

    def _forget(self) -> None:
        self.programs = TablePrograms(has_labels=True)
        self._plans: list[RowPlan] = []
        self._known: dict[str, dict[bytes, int]] = {}  # by server version and table map
        self._shapes: dict[tuple[object, ...], tuple[tuple[Column, ...], int]] = {}
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
    def program(self) -> NDArray[np.int64]:
        """The program of each plan."""
        return self._program.view

    @property
    def names(self) -> pa.Array:
        """The name of each plan's table, as a text."""
        return of_bytes(self._names.bounds, self._names.data)

    @property
    def key_bounds(self) -> NDArray[np.int64]:
        """The columns of the key of plan p are key_bounds[p] … key_bounds[p + 1] - 1 of the next two."""
        return self._key_bounds.view

    @property
    def key_positions(self) -> NDArray[np.int64]:
        """Where columns of keys are among those of their tables."""
        return self._key_positions.view

    @property
    def key_names(self) -> pa.Array:
        """The names of columns of keys, as texts."""
        return of_bytes(self._key_names.bounds, self._key_names.data)

    def of(self, block: Block, ids: Sequence[int]) -> NDArray[np.int64]:
        """Return the numbers of the plans of these table ids of the block, which count until the next call."""
        if self.programs.is_full or len(self) >= MOST_TABLES or sum(map(len, self._known.values())) >= 2 * MOST_TABLES:
            self._forget()
        known, tables = self._known.setdefault(block.server_version, {}), block.tables
        numbers = [known.get(tables[number]) for number in ids]
        if block.problems or None in numbers:
            for place, number in enumerate(ids):
                if numbers[place] is None or number in block.problems:
                    numbers[place] = known[tables[number]] = self._add(block, number)
        return np.array(numbers, np.int64)

    def _add(self, block: Block, number: int) -> int:
        """Plan one version of a table."""
        if not self._passes(table_name(block.tables[number])):
            return LEFT_OUT
        plan = self._plan(block.schema_of(number), block.server_version)
        self._plans.append(plan)
        self._program.append(np.array([plan.program], np.int64))
        self._names.append([str(plan.table.name).encode()])
        self._key_positions.append(np.array(plan.key, np.int64))
        self._key_bounds.append(np.array([len(self._key_positions)], np.int64))
        self._key_names.append([plan.table.columns[position].name.encode() for position in plan.key])
        return len(self._plans) - 1

    def _plan(self, table: TableSchema, server_version: str) -> RowPlan:
        """Make the plan of a table. Tables that differ in their names only have one program."""
        columns = self._columns_of(table)
        names = tuple(column.name for column in columns)
        positions = {column.name: position for position, column in enumerate(table.columns)}
        key = tuple(positions[name] for name in table.key) if {*table.key} <= {*names} else ()
        if has_old_times(table, server_version):
            return RowPlan(table, columns, -1, key)
        known = self._shapes.get((id(table.columns), names))
        if known is None:
            program = self.programs.add(table, columns, _column_texts(table, {*names}))
            known = self._shapes[id(table.columns), names] = table.columns, program
        return RowPlan(table, columns, known[1], key)


def _column_texts(table: TableSchema, shown: set[str]) -> list[bytes]:
    """Return for each column what comes before its value in the object, and its name."""
    texts, mark = list[bytes](), "{"
    for column in table.columns:
        texts += [f"{mark}{json.dumps(column.name, ensure_ascii=False)}:".encode(), column.name.encode()]
        if column.name in shown:
            mark = ","
    return texts
