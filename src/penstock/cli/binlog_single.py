"""Checks that the rows to write are all of one table, before the first is written: a file that ends at the row of
another table would look complete."""

from collections.abc import Iterable

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.binlog.rows.table_changes import ColumnChoice
from penstock.errors import ConfigurationError, PenstockError
from penstock.inspect.shapes import SchemaLookup
from penstock.model import TableName
from penstock.render.table_files import Kind, several_tables_error


class SingleTableCheck:
    """Checks that the picked blocks have rows of one table with the same columns throughout, as a single output file
    needs.
    """

    def __init__(self, kind: Kind, choice: ColumnChoice, shapes: SchemaLookup) -> None:
        self._kind: Kind = kind
        self._choice, self._shapes = choice, shapes
        self._versions: dict[tuple[TableName, tuple[str, ...]], None] = {}

    def check_block(self, block: Block) -> None:
        """Raise if the block has rows of another table, or with other columns, than those before it."""
        for number in np.unique(block.column("table_id")[block.column("entry") == Entry.ROWS]).tolist():
            self._versions[self._table_version(block, number)] = None
        if len(self._versions) > 1:
            raise several_tables_error(self._kind, [table for table, _ in self._versions])

    def check_log(self, blocks: Iterable[Block]) -> None:
        """Check a whole log. A log that cannot be read to its end is refused later, when its rows are written up to
        there.
        """
        try:
            for block in blocks:
                self.check_block(block)
        except ConfigurationError:
            raise
        except PenstockError:
            return

    def _table_version(self, block: Block, number: int) -> tuple[TableName, tuple[str, ...]]:
        """Return the name and the shown columns of a table of the block."""
        shape = self._shapes(block, number)
        names = self._choice.names(shape)
        if self._kind == "csv":
            return shape.name, tuple(names)
        fields = arrow_fields_of_table(shape, names)
        return shape.name, tuple(f"{field.name} {field.type}" for field in fields)
