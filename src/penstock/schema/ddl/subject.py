"""What a statement is about: the tables and views that it changes, or else the database that it belongs to.

A filter of tables decides by it about every statement of a log, DDL or not:

    tables       DDL, INSERT, UPDATE, DELETE, LOAD DATA, ANALYZE and its like, triggers
    a database   CREATE, ALTER and DROP DATABASE; procedures, functions, events
    nothing      accounts, tablespaces, servers, and what cannot be told
"""

from dataclasses import dataclass

from penstock.model import TableName
from penstock.schema.ddl.data_tables import find_data_tables
from penstock.schema.ddl.kind import StatementKind
from penstock.schema.ddl.problem import DdlError
from penstock.schema.ddl.reader import TokenReader
from penstock.schema.ddl.statement import parse_statement
from penstock.schema.ddl.table_names import find_changed_in_order, find_named_tables, skip_past
from penstock.schema.dialect import SqlDialect

_DATABASES = {StatementKind.CREATE_DATABASE, StatementKind.ALTER_DATABASE, StatementKind.DROP_DATABASE}
_VIEWS = {StatementKind.CREATE_VIEW, StatementKind.ALTER_VIEW, StatementKind.DROP_VIEW}
_ROUTINES = ("PROCEDURE", "FUNCTION", "EVENT", "PACKAGE", "LIBRARY")


@dataclass(frozen=True, slots=True)
class Subject:
    """What a statement is about: `tables` in its order; `database` only where there are none."""

    tables: tuple[TableName, ...] = ()
    database: str = ""

    @property
    def names(self) -> tuple[TableName, ...]:
        """Return the names to check with a table filter; for a statement about a database or nothing, one without a
        table."""
        return self.tables or (TableName(self.database, ""),)


def find_subject(text: str, kind: StatementKind, dialect: SqlDialect, database: str = "") -> Subject:
    """Return the tables or the database that a DDL statement changes. Names without a database belong to `database`,
    the one that was in use."""
    try:
        return _subject(text, kind, dialect, database)
    except DdlError:
        return Subject()


def _subject(text: str, kind: StatementKind, dialect: SqlDialect, database: str) -> Subject:
    if kind is StatementKind.DATA:
        return Subject(find_data_tables(text, dialect, database))
    if kind in _DATABASES:
        name = getattr(parse_statement(text, kind, dialect, database), "name", database)
        return Subject(database=name)
    if kind is StatementKind.MAINTENANCE:
        return Subject(_read_names(TokenReader(text, dialect, database), "TABLE", "TABLES"))
    if kind is StatementKind.ROUTINE:
        return _routine(TokenReader(text, dialect, database))
    changed = find_changed_in_order(text, kind, dialect, database) or find_named_tables(text, kind, dialect, database)
    if not changed and kind in _VIEWS:
        changed = _read_names(TokenReader(text, dialect, database), "VIEW")
    return Subject(changed)


def _read_names(reader: TokenReader, *words: str) -> tuple[TableName, ...]:
    """Return the names behind one of these words, as in `ANALYZE LOCAL TABLE a, b` and `DROP VIEW IF EXISTS a, b`."""
    skip_past(reader, *words)
    reader.accept("IF", "NOT", "EXISTS")
    reader.accept("IF", "EXISTS")
    tables = [reader.read_table()]
    while reader.accept(","):
        tables.append(reader.read_table())
    return tuple(tables)


def _routine(reader: TokenReader) -> Subject:
    """Return the subject of a routine: the table that a trigger watches; otherwise, and for DROP TRIGGER, the
    database."""
    skip_past(reader, "TRIGGER", *_ROUTINES)
    is_trigger = reader.before.word == "TRIGGER"
    reader.accept("BODY")
    reader.accept("IF", "NOT", "EXISTS")
    reader.accept("IF", "EXISTS")
    owner = reader.read_table()
    if is_trigger:
        while not reader.is_done:
            if reader.accept("ON"):
                table = reader.read_table()
                return Subject((table if table.schema else TableName(owner.schema, table.table),))
            reader.next()
    return Subject(database=owner.schema)
