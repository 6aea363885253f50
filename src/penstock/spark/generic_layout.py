"""The columns of a `penstock` stream of all tables that match a filter, and how a block's changes are put into them.

One line per change, the row before and after it as JSON. Rows are decoded by the columns that they were written with,
so that no change of a table's columns stops the stream.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.model import Column, TableSchema
from penstock.model.table_rules import TableRules
from penstock.render.json_change_fields import json_change_fields
from penstock.spark.types import for_spark

if TYPE_CHECKING:
    from penstock.binlog.events.block import Block
    from penstock.render.json_changes import JsonChangeReader


def shown_columns(table: TableSchema) -> Sequence[Column]:
    """Return the columns that a table declares, without those that the server added by itself."""
    return table.declared_columns


class GenericLayout:
    """Puts the changes of all tables that pass a filter into the columns of a query, one row for each change. It is
    picklable: it travels to the executors with the reader, and takes the blocks of a part in their order there.

    layout = GenericLayout(TableRules.parse("shop\\\\..*"), include_ddl=True)
    for batch in layout.batches(block): ...
    """

    def __init__(
        self,
        rules: TableRules,
        *,
        include_ddl: bool = False,
        columns_of: Callable[[TableSchema], Sequence[Column]] = shown_columns,
    ) -> None:
        """Show the tables that pass the rules, with the columns that `columns_of`, which must be picklable, gives."""
        self._rules, self._include_ddl, self._columns_of = rules, include_ddl, columns_of
        self._changes: JsonChangeReader | None = None
        self.schema = for_spark(json_change_fields(include_ddl=include_ddl))

    def __getstate__(self) -> dict[str, Any]:
        """Return all but what was found out of tables, which each process finds out by itself."""
        return {**self.__dict__, "_changes": None}

    def batches(self, block: "Block", delivered: object = None) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Yield all changes of a block in the order of the log; a query by a filter has no snapshot."""
        if self._changes is None:
            from penstock.render.json_changes import JsonChangeReader  # noqa: PLC0415 - planning does without kernels

            self._changes = JsonChangeReader(self._columns_of, self._rules.passes, include_ddl=self._include_ddl)
        for batch in self._changes.read_batches(block):
            arrays = [column.cast(field.type) for column, field in zip(batch.columns, self.schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
