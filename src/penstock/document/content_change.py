"""Which statements change the content of tables without a row in the log.

| statement                                                        | rows of the table                       |
|------------------------------------------------------------------|-----------------------------------------|
| TRUNCATE, DROP, RENAME, CREATE, DROP DATABASE                    | may be others now                       |
| ALTER … ADD, MODIFY, CHANGE, DROP, RENAME of or to one in use    | may have other values now               |
| ALTER … CONVERT TO CHARACTER SET, RENAME TO                      | the same                                |
| ALTER … DROP, TRUNCATE, EXCHANGE, IMPORT, CONVERT PARTITION      | may be others now                       |
| ALTER … ADD, DROP FOREIGN KEY; DROP CONSTRAINT                   | may change without a row in the log     |
| ALTER … ADD, DROP PRIMARY KEY                                    | may have other ids now                  |
| ALTER … ADD, DROP SYSTEM VERSIONING; ALTER IGNORE                | may be others now                       |
| ALTER … indexes, options, other columns                          | are the same to a document              |
| CREATE TABLE IF NOT EXISTS of a table that is there              | are the same                            |
| what cannot be read                                              | may be others now                       |
"""

import re
from collections.abc import Mapping

from penstock.document.changes import TableStatement
from penstock.model import TableName
from penstock.schema.ddl import DdlError, StatementKind, classify_statement_text, parse_statement
from penstock.schema.ddl.clause import (
    AddColumn,
    AddKey,
    AlterTable,
    ChangeColumn,
    ConvertCharset,
    DropColumn,
    DropKey,
    ExchangePartition,
    PartitionToTable,
    RenameColumn,
    RenameTo,
    SetVersioning,
    TableToPartition,
)
from penstock.schema.ddl.column import ColumnSpec
from penstock.schema.ddl.create import CreateTable
from penstock.schema.ddl.key import KeyKind, KeySpec
from penstock.schema.ddl.statement import DropDatabase, DropTables, RenameTables, Statement, TruncateTable
from penstock.schema.dialect import SqlDialect
from penstock.schema.shape import fold

UsedColumns = Mapping[TableName, frozenset[str]]

_DIALECT = SqlDialect()
_PARTITION = re.compile(
    r"\b(DROP|TRUNCATE|EXCHANGE|DISCARD|IMPORT|CONVERT)\s+(PARTITION|TABLESPACE|TABLE)\b", re.IGNORECASE
)

# Foreign keys that are added or dropped: rows may have changed by them before a drop, unseen. MariaDB's ALTER IGNORE
# deletes rows that a new unique key does not allow.
_UNLOGGED = re.compile(
    r"\bREFERENCES\b|\bDROP\s+(FOREIGN\s+KEY|CONSTRAINT)\b|^\s*ALTER\s+(ONLINE\s+)?IGNORE\b", re.IGNORECASE
)


def find_changed_tables(
    statement: TableStatement,
    used: UsedColumns,
    missing: frozenset[TableName] = frozenset(),
    *,
    folds_names: bool = False,
) -> set[TableName]:
    """Return the tables of a document whose rows may be others after a statement; `missing` are those that were not
    there before it. With `folds_names` (`lower_case_table_names`) a statement may name them in other letters."""
    names = _TableNames(used, missing, folds_names=folds_names)
    kind = classify_statement_text(statement.text, _DIALECT)
    if not kind.changes_tables:
        return set()
    schema = statement.table.partition(".")[0]
    try:
        parsed = parse_statement(statement.text, kind, _DIALECT, schema)
    except DdlError:
        return _named_in(statement, used)
    if isinstance(parsed, AlterTable) and _PARTITION.search(statement.text):
        return _named_in(statement, used)
    if isinstance(parsed, AlterTable) and _UNLOGGED.search(statement.text):
        return {names.find(parsed.name)} & set(used)
    if kind in (StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX):
        return set()
    return {own for name in _concerned(parsed, names) if (own := names.find(name)) in used}


class _TableNames:
    """The tables of a document, by their names as a statement writes them."""

    def __init__(self, used: UsedColumns, missing: frozenset[TableName], *, folds_names: bool) -> None:
        self.used, self.missing = used, missing
        self._folds = folds_names
        self._by_folded = {_fold(name): name for name in used} if folds_names else {}

    def find(self, name: TableName) -> TableName:
        """Return the name that a table has in the document; the same one where it is of no document."""
        return self._by_folded.get(_fold(name), name) if self._folds else name

    def in_database(self, schema: str) -> set[TableName]:
        """Return the tables of a database."""
        return {
            name for name in self.used if name.schema == schema or (self._folds and fold(name.schema) == fold(schema))
        }


def _fold(name: TableName) -> TableName:
    """Return the name of a table folded for comparison."""
    return TableName(fold(name.schema), fold(name.table))


def _concerned(  # noqa: PLR0911 - one per kind of statement
    parsed: Statement, names: _TableNames
) -> set[TableName]:
    """Return the tables, known or not, whose rows a parsed statement may change."""
    match parsed:
        case TruncateTable(name):
            return {name}
        case DropTables():
            return set() if parsed.are_views or parsed.is_temporary else set(parsed.names)
        case RenameTables():
            return {name for pair in parsed.pairs for name in pair}
        case CreateTable():
            is_new = not parsed.if_not_exists or names.find(parsed.name) in names.missing
            return {parsed.name} if is_new and not parsed.is_temporary else set()
        case DropDatabase(name):
            return names.in_database(name)
        case AlterTable():
            return _altered(parsed, names.used.get(names.find(parsed.name), frozenset()))
        case _:
            return set()


def _altered(parsed: AlterTable, used: frozenset[str]) -> set[TableName]:
    """Return the tables whose rows an ALTER TABLE may change."""
    folded = {name.casefold() for name in used}
    tables: set[TableName] = set()
    for clause in parsed.clauses:
        match clause:
            case ChangeColumn(old=old, column=column):
                # By its new name, too: rows that were logged before have the column by another one.
                if {old.casefold(), column.name.casefold()} & folded:
                    tables.add(parsed.name)
            case RenameColumn(old=old, new=new):
                if {old.casefold(), new.casefold()} & folded:
                    tables.add(parsed.name)
            case AddColumn(column=ColumnSpec(name=name)) | DropColumn(name=name):
                if name.casefold() in folded:
                    tables.add(parsed.name)
            case (
                AddKey(key=KeySpec(kind=KeyKind.PRIMARY)) | DropKey(name="PRIMARY") | SetVersioning() | ConvertCharset()
            ):
                tables.add(parsed.name)
            case RenameTo(name) | PartitionToTable(name) | TableToPartition(name) | ExchangePartition(name):
                tables |= {parsed.name, name}
            case _:
                pass
    return tables


def _named_in(statement: TableStatement, used: UsedColumns) -> set[TableName]:
    """Return the tables whose names stand in a statement that was not read to its end."""
    text = statement.text.casefold()
    return {
        name
        for name in used
        if str(name) == statement.table or re.search(rf"\b{re.escape(name.table.casefold())}\b", text)
    }
