"""The schema of a table at a position of the log, completed with what a server knows of it."""

import threading
from collections.abc import Callable
from dataclasses import replace

from penstock.binlog.events.block import Block
from penstock.errors import SchemaError
from penstock.inspect.log_tables import UnnamedTables
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.model.table import is_nameless

_DECLARED_SIZES = {4, 16}  # of INET4; of INET6 and UUID
_TEXTS = {WireType.STRING, WireType.VARCHAR, WireType.BLOB, WireType.VARCHAR_COMPRESSED, WireType.BLOB_COMPRESSED}


class SchemaLookup:
    """Returns the schema of a table in a block, completed from a server with what neither the log nor its DDL has.

    The server, if there is one, is asked once per table. A table without names is completed; where the server has no
    such table, or another one by now, it stays without names, and `unnamed` has the reason. Text columns get the
    charset that the DDL lacks, and BINARY columns of MariaDB their type UUID, INET4 or INET6. Several threads may call
    it.
    """

    def __init__(
        self, ask: Callable[[TableName], TableSchema] | None = None, unnamed: UnnamedTables | None = None
    ) -> None:
        self._ask = ask
        self._unnamed = unnamed or UnnamedTables()
        self._known: dict[TableName, TableSchema | SchemaError] = {}
        self._lock = threading.Lock()  # of `_known`, of `unnamed`, and of the connection to the server

    def __call__(self, block: Block, table_id: int) -> TableSchema:
        """Return the schema of a table of a block."""
        return self.complete_table(block.schema_of(table_id), block.server_version)

    def complete_table(self, table: TableSchema, server_version: str) -> TableSchema:
        """Return the table with what the server knows of it."""
        if self._ask is None:
            return table
        with self._lock:
            return self._complete(table, server_version)

    def _complete(self, table: TableSchema, server_version: str) -> TableSchema:
        """Complete the names, the charsets and the declared types of a table."""
        if is_nameless(table):
            return self._add_names(table)
        if any(map(lacks_charset, table.columns)):
            table = _add_charsets(table, self._ask_once(table.name))
        if "MariaDB" in server_version and any(map(_may_be_uuid_or_inet, table.columns)):
            answer = self._ask_once(table.name)
            return table if isinstance(answer, SchemaError) else _add_declared_types(table, answer)
        return table

    def _add_names(self, table: TableSchema) -> TableSchema:
        """Return the table with the server's column names, if they fit."""
        answer = self._ask_once(table.name)
        try:
            if isinstance(answer, SchemaError):
                raise answer
            return table.merged_with(answer)
        except SchemaError as error:
            self._unnamed.by_server.setdefault(table.name, str(error))
            return table

    def _ask_once(self, table: TableName) -> TableSchema | SchemaError:
        """Return the server's schema of a table, or the error it gave; each table is asked for once."""
        if self._ask is not None and table not in self._known:
            try:
                self._known[table] = self._ask(table)
            except SchemaError as error:
                self._known[table] = error
        return self._known[table]


def lacks_charset(column: Column) -> bool:
    """Tell whether a column may be text and its charset is not known."""
    return column.type in _TEXTS and not column.charset and not column.declared


def _add_charsets(table: TableSchema, known: TableSchema | SchemaError) -> TableSchema:
    """Return the table with the charsets of columns that the server has with the same name, type and size."""
    if isinstance(known, SchemaError):
        return table

    def add_charset(column: Column) -> Column:
        now = known.column(column.name) if lacks_charset(column) else None
        is_same = now is not None and (now.type, now.size) == (column.type, column.size)
        return replace(column, charset=now.charset) if now is not None and is_same else column

    return replace(table, columns=tuple(map(add_charset, table.columns)))


def _may_be_uuid_or_inet(column: Column) -> bool:
    """Tell whether a BINARY column may be declared as UUID, INET4 or INET6."""
    return column.type is WireType.STRING and column.charset == "binary" and column.size in _DECLARED_SIZES


def _add_declared_types(table: TableSchema, known: TableSchema) -> TableSchema:
    """Return the table with the declared types of columns of the same name; the table may have changed since."""

    def add_declared_type(column: Column) -> Column:
        now = known.column(column.name)
        is_same = now is not None and (now.type, now.size) == (column.type, column.size)
        return replace(column, declared=now.declared) if now and is_same and _may_be_uuid_or_inet(column) else column

    return replace(table, columns=tuple(map(add_declared_type, table.columns)))
