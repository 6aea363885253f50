"""What a table looks like at a place of the log, with what a server knows beyond that."""

from collections.abc import Callable
from dataclasses import replace

from penstock.binlog.events.block import Block
from penstock.errors import SchemaError
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.model.table import is_nameless

_DECLARED_SIZES = {4, 16}  # of INET4; of INET6 and UUID


class Shapes:
    """Asks the server, if there is one, once per table, and only for what the log does not say.

    A log without names is completed, or refused where the server's table is another one by now. A log of MariaDB with
    names lacks only which of its BINARY columns are UUID, INET4 or INET6: these are bytes where the server cannot say.
    """

    def __init__(self, ask: Callable[[TableName], TableSchema] | None = None) -> None:
        self._ask = ask
        self._known: dict[TableName, TableSchema | SchemaError] = {}

    def __call__(self, block: Block, table_id: int) -> TableSchema:
        return self.of(block.schema_of(table_id), block.server_version)

    def of(self, table: TableSchema, server_version: str) -> TableSchema:
        known = self.known(table)
        if known is not None:
            return table.completed(known)
        if self._ask is not None and "MariaDB" in server_version and any(map(_may_be_declared, table.columns)):
            found = self._asked(table.name)
            return table if isinstance(found, SchemaError) else _with_declared(table, found)
        return table

    def known(self, table: TableSchema) -> TableSchema | None:
        """Of a table whose columns the log does not name."""
        if self._ask is None or not is_nameless(table):
            return None
        found = self._asked(table.name)
        if isinstance(found, SchemaError):
            raise found
        return found

    def _asked(self, table: TableName) -> TableSchema | SchemaError:
        if self._ask is not None and table not in self._known:
            try:
                self._known[table] = self._ask(table)
            except SchemaError as error:
                self._known[table] = error
        return self._known[table]


def _may_be_declared(column: Column) -> bool:
    return column.type is WireType.STRING and column.charset == "binary" and column.size in _DECLARED_SIZES


def _with_declared(table: TableSchema, known: TableSchema) -> TableSchema:
    """Columns are told by their names: the table may have got others since."""

    def of(column: Column) -> Column:
        now = known.column(column.name)
        is_same = now is not None and (now.type, now.size) == (column.type, column.size)
        return replace(column, declared=now.declared) if now and is_same and _may_be_declared(column) else column

    return replace(table, columns=tuple(map(of, table.columns)))
