"""What a table looks like at a place of the log, with what a server knows beyond that."""

from collections.abc import Callable

from penstock.binlog.events.block import Block
from penstock.model import TableName, TableSchema
from penstock.model.table import is_nameless


class Shapes:
    """Asks the server, if there is one, once per table, and only for what the log does not say."""

    def __init__(self, ask: Callable[[TableName], TableSchema] | None = None) -> None:
        self._ask = ask
        self._known: dict[TableName, TableSchema] = {}

    def __call__(self, block: Block, table_id: int) -> TableSchema:
        table = block.schema_of(table_id)
        known = self.known(table)
        return table.completed(known) if known else table

    def known(self, table: TableSchema) -> TableSchema | None:
        if self._ask is None or not is_nameless(table):
            return None
        if table.name not in self._known:
            self._known[table.name] = self._ask(table.name)
        return self._known[table.name]
