"""The schema of a table at a position of the log, completed with what a server knows of it."""

import threading
from collections.abc import Callable
from dataclasses import replace

from penstock.binlog.events.block import Block
from penstock.errors import SchemaError
from penstock.inspect.log_tables import Unnamed
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.model.table import is_nameless

_DECLARED_SIZES = {4, 16}  # of INET4; of INET6 and UUID
_TEXTS = {WireType.STRING, WireType.VARCHAR, WireType.BLOB, WireType.VARCHAR_COMPRESSED, WireType.BLOB_COMPRESSED}


class Shapes:
    """Asks the server, if there is one, once per table, and only for what neither the log nor its DDL says.

    A table without names is completed; where the server has no such table, or another one by now, it stays without
    names, and `unnamed` says why. A table whose DDL does not tell the charset of a text gets that. A log of MariaDB
    with names lacks which of its BINARY columns are UUID, INET4 or INET6: these are bytes where the server cannot say.
    Several threads may call it.
    """

    def __init__(self, ask: Callable[[TableName], TableSchema] | None = None, unnamed: Unnamed | None = None) -> None:
        self._ask = ask
        self._unnamed = unnamed or Unnamed()
        self._known: dict[TableName, TableSchema | SchemaError] = {}
        self._lock = threading.Lock()  # of `_known`, of `unnamed`, and of the connection to the server

    def __call__(self, block: Block, table_id: int) -> TableSchema:
        return self.of(block.schema_of(table_id), block.server_version)

    def of(self, table: TableSchema, server_version: str) -> TableSchema:
        """Return the table with what the server knows of it."""
        if self._ask is None:
            return table
        with self._lock:
            return self._completed(table, server_version)

    def _completed(self, table: TableSchema, server_version: str) -> TableSchema:
        if is_nameless(table):
            return self._with_names(table)
        if any(map(lacks_charset, table.columns)):
            table = _with_charsets(table, self._asked(table.name))
        if "MariaDB" in server_version and any(map(_may_be_declared, table.columns)):
            found = self._asked(table.name)
            return table if isinstance(found, SchemaError) else _with_declared(table, found)
        return table

    def _with_names(self, table: TableSchema) -> TableSchema:
        found = self._asked(table.name)
        try:
            if isinstance(found, SchemaError):
                raise found
            return table.merged_with(found)
        except SchemaError as error:
            self._unnamed.by_server.setdefault(table.name, str(error))
            return table

    def _asked(self, table: TableName) -> TableSchema | SchemaError:
        if self._ask is not None and table not in self._known:
            try:
                self._known[table] = self._ask(table)
            except SchemaError as error:
                self._known[table] = error
        return self._known[table]


def lacks_charset(column: Column) -> bool:
    """Return whether a column may be text, and its charset is not known."""
    return column.type in _TEXTS and not column.charset and not column.declared


def _with_charsets(table: TableSchema, known: TableSchema | SchemaError) -> TableSchema:
    """Return the table with the charsets of columns that the server has with the same name, type and size."""
    if isinstance(known, SchemaError):
        return table

    def of(column: Column) -> Column:
        now = known.column(column.name) if lacks_charset(column) else None
        is_same = now is not None and (now.type, now.size) == (column.type, column.size)
        return replace(column, charset=now.charset) if now is not None and is_same else column

    return replace(table, columns=tuple(map(of, table.columns)))


def _may_be_declared(column: Column) -> bool:
    return column.type is WireType.STRING and column.charset == "binary" and column.size in _DECLARED_SIZES


def _with_declared(table: TableSchema, known: TableSchema) -> TableSchema:
    """Return the table with the declared types of columns of the same name: the table may have got others since."""

    def of(column: Column) -> Column:
        now = known.column(column.name)
        is_same = now is not None and (now.type, now.size) == (column.type, column.size)
        return replace(column, declared=now.declared) if now and is_same and _may_be_declared(column) else column

    return replace(table, columns=tuple(map(of, table.columns)))
