"""Text → statement: the door of this room."""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.model import TableName
from penstock.schema.ddl.alter import read_alter_table, read_create_index, read_drop_index, skip_wait
from penstock.schema.ddl.clause import AlterTable
from penstock.schema.ddl.column import NO_CHARSET, CharsetSpec
from penstock.schema.ddl.create import CreateTable, read_create_sequence, read_create_table
from penstock.schema.ddl.kind import StatementKind
from penstock.schema.ddl.option import NO_OPTIONS, read_charset, read_option
from penstock.schema.ddl.reader import TokenReader
from penstock.schema.dialect import SqlDialect


@dataclass(frozen=True, slots=True)
class DropTables:
    """A parsed DROP TABLE or DROP VIEW."""

    names: tuple[TableName, ...]
    is_temporary: bool = False
    are_views: bool = False


@dataclass(frozen=True, slots=True)
class RenameTables:
    """A parsed RENAME TABLE. Tables are renamed one after the other: the second may use the first's old name."""

    pairs: tuple[tuple[TableName, TableName], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class TruncateTable:
    """A parsed TRUNCATE TABLE."""

    name: TableName


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    """A parsed CREATE DATABASE."""

    name: str
    charset: CharsetSpec = NO_CHARSET
    replaces: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterDatabase:
    """A parsed ALTER DATABASE."""

    name: str
    charset: CharsetSpec = NO_CHARSET


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """A parsed DROP DATABASE."""

    name: str


@dataclass(frozen=True, slots=True)
class CreateView:
    """A parsed CREATE VIEW."""

    name: TableName


Statement = (
    CreateTable | AlterTable | DropTables | RenameTables | TruncateTable | CreateDatabase | AlterDatabase
    | DropDatabase | CreateView
)  # fmt: skip


def parse_statement(text: str, kind: StatementKind, dialect: SqlDialect, database: str = "") -> Statement:
    """Parse a statement of a kind that `changes_tables`; names without a database belong to `database`."""
    reader = TokenReader(text, dialect, database)
    if reader.accept("SET", "STATEMENT"):
        while not reader.accept("FOR"):
            reader.next()
    return _READ[kind](reader)


def _read_drop_tables(reader: TokenReader) -> DropTables:
    """Read DROP TABLE, DROP VIEW or DROP SEQUENCE."""
    reader.expect("DROP")
    is_temporary = reader.accept("TEMPORARY")
    are_views = reader.word == "VIEW"
    if not reader.accept_any("TABLE", "TABLES", "VIEW", "SEQUENCE"):
        reader.fail("TABLE is missing")
    reader.accept("IF", "EXISTS")
    names = [reader.read_table()]
    while reader.accept(","):
        names.append(reader.read_table())
    skip_wait(reader)
    reader.accept_any("RESTRICT", "CASCADE")
    skip_wait(reader)
    reader.expect_end()
    return DropTables(tuple(names), is_temporary, are_views)


def _read_rename_tables(reader: TokenReader) -> RenameTables:
    """Read RENAME TABLE."""
    reader.expect("RENAME")
    if not reader.accept_any("TABLE", "TABLES"):
        reader.fail("TABLE is missing")
    if_exists = reader.accept("IF", "EXISTS")
    pairs: list[tuple[TableName, TableName]] = []
    while True:
        old = reader.read_table()
        skip_wait(reader)
        reader.expect("TO")
        pairs.append((old, reader.read_table()))
        if not reader.accept(","):
            break
    reader.expect_end()
    return RenameTables(tuple(pairs), if_exists)


def _read_truncate(reader: TokenReader) -> TruncateTable:
    """Read TRUNCATE TABLE."""
    reader.expect("TRUNCATE")
    reader.accept("TABLE")
    name = reader.read_table()
    skip_wait(reader)
    reader.expect_end()
    return TruncateTable(name)


def _read_create_database(reader: TokenReader) -> CreateDatabase:
    """Read CREATE DATABASE."""
    reader.expect("CREATE")
    replaces = reader.accept("OR", "REPLACE")
    reader.accept_any("DATABASE", "SCHEMA")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.read_name("a database's name")
    return CreateDatabase(name, _read_database_options(reader), replaces, if_not_exists)


def _read_alter_database(reader: TokenReader) -> AlterDatabase:
    """Read ALTER DATABASE."""
    reader.expect("ALTER")
    reader.accept_any("DATABASE", "SCHEMA")
    if reader.word in ("DEFAULT", "CHARACTER", "CHARSET", "COLLATE"):
        return AlterDatabase(reader.database, _read_database_options(reader))
    name = reader.read_name("a database's name")
    if reader.accept("UPGRADE"):
        reader.skip_rest()
    return AlterDatabase(name, _read_database_options(reader))


def _read_database_options(reader: TokenReader) -> CharsetSpec:
    """Read the options of a database, and return its charset."""
    charset = NO_CHARSET
    while not reader.is_done and reader.word != ";":
        parsed = read_charset(reader, charset)
        if parsed is not None:
            charset = parsed
        elif reader.accept("READ", "ONLY"):
            reader.accept("=")
            reader.next()
        elif not reader.accept("DEFAULT") and read_option(reader, NO_OPTIONS) is None:
            reader.fail_as_unknown("the database")
    reader.expect_end()
    return charset


def _read_drop_database(reader: TokenReader) -> DropDatabase:
    """Read DROP DATABASE."""
    reader.expect("DROP")
    reader.accept_any("DATABASE", "SCHEMA")
    reader.accept("IF", "EXISTS")
    name = reader.read_name("a database's name")
    reader.expect_end()
    return DropDatabase(name)


def _read_create_view(reader: TokenReader) -> CreateView:
    """Read CREATE VIEW; only the name is needed."""
    while reader.word != "VIEW":
        if reader.is_done:
            reader.fail("VIEW is missing")
        reader.next()
    reader.next()
    reader.accept("IF", "NOT", "EXISTS")
    return CreateView(reader.read_table())


_READ: dict[StatementKind, Callable[[TokenReader], Statement]] = {
    StatementKind.CREATE_TABLE: read_create_table,
    StatementKind.ALTER_TABLE: read_alter_table,
    StatementKind.DROP_TABLE: _read_drop_tables,
    StatementKind.RENAME_TABLE: _read_rename_tables,
    StatementKind.TRUNCATE_TABLE: _read_truncate,
    StatementKind.CREATE_INDEX: read_create_index,
    StatementKind.DROP_INDEX: read_drop_index,
    StatementKind.CREATE_DATABASE: _read_create_database,
    StatementKind.ALTER_DATABASE: _read_alter_database,
    StatementKind.DROP_DATABASE: _read_drop_database,
    StatementKind.CREATE_VIEW: _read_create_view,
    StatementKind.DROP_VIEW: _read_drop_tables,
    StatementKind.CREATE_SEQUENCE: read_create_sequence,
    StatementKind.DROP_SEQUENCE: _read_drop_tables,
}
