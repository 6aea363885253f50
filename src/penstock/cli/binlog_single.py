"""Whether what is to be written is one table, told before anything is: half a file would look like all of it."""

from collections.abc import Iterable

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.binlog.rows.table_changes import ColumnChoice
from penstock.errors import ConfigurationError, PenstockError
from penstock.inspect.shapes import Shapes
from penstock.model import TableName
from penstock.render.table_files import Kind, refusal


class SingleTable:
    """Goes over picked blocks. One table, with the same columns throughout, goes into a file or a pipe."""

    def __init__(self, kind: Kind, choice: ColumnChoice, shapes: Shapes) -> None:
        self._kind: Kind = kind
        self._choice, self._shapes = choice, shapes
        self._versions: dict[tuple[TableName, tuple[str, ...]], None] = {}

    def check(self, block: Block) -> None:
        """Raise when the block has rows of another table, or with other columns, than those before it."""
        for number in np.unique(block.column("table_id")[block.column("entry") == Entry.ROWS]).tolist():
            self._versions[self._version(block, number)] = None
        if len(self._versions) > 1:
            raise refusal(self._kind, [table for table, _ in self._versions])

    def check_all(self, blocks: Iterable[Block]) -> None:
        """The same for a whole log. A log that cannot be read to its end is refused later, when its rows are written up
        to there."""
        try:
            for block in blocks:
                self.check(block)
        except ConfigurationError:
            raise
        except PenstockError:
            return

    def _version(self, block: Block, number: int) -> tuple[TableName, tuple[str, ...]]:
        shape = self._shapes(block, number)
        names = self._choice.names(shape)
        if self._kind == "csv":
            return shape.name, tuple(names)
        fields = arrow_fields_of_table(shape, names)
        return shape.name, tuple(f"{field.name} {field.type}" for field in fields)
