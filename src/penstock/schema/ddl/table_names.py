"""The tables that a statement is about, also of one that is not understood beyond their names."""

from collections.abc import Iterator

from penstock.model import TableName
from penstock.schema.ddl.clause import AlterTable, ExchangePartition, PartitionToTable, RenameTo, TableToPartition
from penstock.schema.ddl.create import CreateTable
from penstock.schema.ddl.kind import StatementKind
from penstock.schema.ddl.problem import DdlError
from penstock.schema.ddl.reader import TokenReader
from penstock.schema.ddl.statement import (
    CreateView,
    DropTables,
    RenameTables,
    Statement,
    TruncateTable,
    parse_statement,
)
from penstock.schema.dialect import SqlDialect

_ONE_TABLE = {
    StatementKind.CREATE_TABLE, StatementKind.ALTER_TABLE, StatementKind.CREATE_SEQUENCE, StatementKind.ALTER_SEQUENCE,
}  # fmt: skip
_SEVERAL_TABLES = {StatementKind.DROP_TABLE, StatementKind.DROP_SEQUENCE, StatementKind.RENAME_TABLE}
_INDEX = {StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX}


def find_named_tables(text: str, kind: StatementKind, dialect: SqlDialect, database: str = "") -> tuple[TableName, ...]:
    """Return the tables that a statement names; none where that cannot be told."""
    try:
        return tuple(_names(TokenReader(text, dialect, database), kind))
    except DdlError:
        return ()


def find_changed_tables(
    text: str, kind: StatementKind, dialect: SqlDialect, database: str = ""
) -> frozenset[TableName]:
    """Return all tables and views that a statement changes, by all their names; none where it is not completely
    understood."""
    return frozenset(find_changed_in_order(text, kind, dialect, database))


def find_changed_in_order(
    text: str, kind: StatementKind, dialect: SqlDialect, database: str = ""
) -> tuple[TableName, ...]:
    """Return the tables that a statement changes in its order; a name that comes twice is there twice."""
    if not kind.changes_tables:
        return ()
    try:
        return tuple(_iterate_changed_tables(parse_statement(text, kind, dialect, database)))
    except DdlError:
        return ()


def _iterate_changed_tables(statement: Statement) -> Iterator[TableName]:
    match statement:
        case CreateTable() | CreateView() | TruncateTable():
            yield statement.name
        case AlterTable():
            yield statement.name
            others = (RenameTo, PartitionToTable, TableToPartition, ExchangePartition)
            yield from (clause.name for clause in statement.clauses if isinstance(clause, others))
        case DropTables():
            yield from statement.names
        case RenameTables():
            yield from (name for pair in statement.pairs for name in pair)
        case _:
            pass


def _names(reader: TokenReader, kind: StatementKind) -> Iterator[TableName]:
    if kind in _INDEX:
        skip_past(reader, "ON")
        yield reader.read_table()
    elif kind is StatementKind.TRUNCATE_TABLE:
        skip_past(reader, "TRUNCATE")
        reader.accept("TABLE")
        yield reader.read_table()
    elif kind in _ONE_TABLE or kind in _SEVERAL_TABLES:
        skip_past(reader, "TABLE", "TABLES", "SEQUENCE")
        reader.accept("IF", "NOT", "EXISTS")
        reader.accept("IF", "EXISTS")
        yield reader.read_table()
        while kind in _SEVERAL_TABLES and not reader.is_done:
            if reader.accept_any(",", "TO"):
                yield reader.read_table()
            else:
                reader.next()


def skip_past(reader: TokenReader, *words: str) -> None:
    """Skip everything up to one of these words, and that word; raise DdlError where there is none."""
    while not reader.accept_any(*words):
        if reader.is_done:
            reader.fail(f"{words[0]} is missing")
        reader.next()
