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
    names: tuple[TableName, ...]
    is_temporary: bool = False
    are_views: bool = False


@dataclass(frozen=True, slots=True)
class RenameTables:
    """Renames tables one after the other: the second may use the first's old name."""

    pairs: tuple[tuple[TableName, TableName], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class TruncateTable:
    name: TableName


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    name: str
    charset: CharsetSpec = NO_CHARSET
    replaces: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterDatabase:
    name: str
    charset: CharsetSpec = NO_CHARSET


@dataclass(frozen=True, slots=True)
class DropDatabase:
    name: str


@dataclass(frozen=True, slots=True)
class CreateView:
    name: TableName


Statement = (
    CreateTable | AlterTable | DropTables | RenameTables | TruncateTable | CreateDatabase | AlterDatabase
    | DropDatabase | CreateView
)  # fmt: skip


def parse(text: str, kind: StatementKind, dialect: SqlDialect, database: str = "") -> Statement:
    """Parse a statement of a kind that `changes_tables`; names without a database are of `database`."""
    reader = TokenReader(text, dialect, database)
    if reader.accept("SET", "STATEMENT"):
        while not reader.accept("FOR"):
            reader.next()
    return _READ[kind](reader)


def _read_drop_tables(reader: TokenReader) -> DropTables:
    reader.expect("DROP")
    is_temporary = reader.accept("TEMPORARY")
    are_views = reader.word == "VIEW"
    if not reader.accept_any("TABLE", "TABLES", "VIEW", "SEQUENCE"):
        reader.fail("TABLE is missing")
    reader.accept("IF", "EXISTS")
    names = [reader.table()]
    while reader.accept(","):
        names.append(reader.table())
    skip_wait(reader)
    reader.accept_any("RESTRICT", "CASCADE")
    skip_wait(reader)
    reader.end()
    return DropTables(tuple(names), is_temporary, are_views)


def _read_rename_tables(reader: TokenReader) -> RenameTables:
    reader.expect("RENAME")
    if not reader.accept_any("TABLE", "TABLES"):
        reader.fail("TABLE is missing")
    if_exists = reader.accept("IF", "EXISTS")
    pairs: list[tuple[TableName, TableName]] = []
    while True:
        old = reader.table()
        skip_wait(reader)
        reader.expect("TO")
        pairs.append((old, reader.table()))
        if not reader.accept(","):
            break
    reader.end()
    return RenameTables(tuple(pairs), if_exists)


def _read_truncate(reader: TokenReader) -> TruncateTable:
    reader.expect("TRUNCATE")
    reader.accept("TABLE")
    name = reader.table()
    skip_wait(reader)
    reader.end()
    return TruncateTable(name)


def _read_create_database(reader: TokenReader) -> CreateDatabase:
    reader.expect("CREATE")
    replaces = reader.accept("OR", "REPLACE")
    reader.accept_any("DATABASE", "SCHEMA")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name("a database's name")
    return CreateDatabase(name, _read_database_options(reader), replaces, if_not_exists)


def _read_alter_database(reader: TokenReader) -> AlterDatabase:
    reader.expect("ALTER")
    reader.accept_any("DATABASE", "SCHEMA")
    if reader.word in ("DEFAULT", "CHARACTER", "CHARSET", "COLLATE"):
        return AlterDatabase(reader.database, _read_database_options(reader))
    name = reader.name("a database's name")
    if reader.accept("UPGRADE"):
        reader.skip_rest()
    return AlterDatabase(name, _read_database_options(reader))


def _read_database_options(reader: TokenReader) -> CharsetSpec:
    charset = NO_CHARSET
    while not reader.is_done and reader.word != ";":
        found = read_charset(reader, charset)
        if found is not None:
            charset = found
        elif reader.accept("READ", "ONLY"):
            reader.accept("=")
            reader.next()
        elif not reader.accept("DEFAULT") and read_option(reader, NO_OPTIONS) is None:
            reader.fail_as_unknown("the database")
    reader.end()
    return charset


def _read_drop_database(reader: TokenReader) -> DropDatabase:
    reader.expect("DROP")
    reader.accept_any("DATABASE", "SCHEMA")
    reader.accept("IF", "EXISTS")
    name = reader.name("a database's name")
    reader.end()
    return DropDatabase(name)


def _read_create_view(reader: TokenReader) -> CreateView:
    """Read CREATE VIEW; only the name is needed."""
    while reader.word != "VIEW":
        if reader.is_done:
            reader.fail("VIEW is missing")
        reader.next()
    reader.next()
    reader.accept("IF", "NOT", "EXISTS")
    return CreateView(reader.table())


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
