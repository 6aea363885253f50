"""All databases and tables of a server, as the DDL of its log leaves them.

A catalogue is immutable: `apply` returns the next one, which shares with the first what the statement did not touch, so
that one can be held for every position of the log. It trusts the log: a statement that a server has run is not checked
again. It does not guess: an unknown clause, table or database is an error that carries the statement. Only dropping or
truncating what does not exist is ignored. `apply_or_skip` continues after such an error: the tables that the statement
names are then unknown until they are dropped or created again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import cast

from penstock.errors import SchemaError
from penstock.model import TableName, TableSchema
from penstock.schema.altering import apply_alter
from penstock.schema.collation import charset_of_collation, choose_collation, default_collation
from penstock.schema.creating import build_created_table
from penstock.schema.ddl import DdlError, Statement, StatementKind, classify_statement_text, parse_statement
from penstock.schema.ddl.clause import AlterTable, PartitionToTable, RebuildTable, RenameTo, TableToPartition
from penstock.schema.ddl.column import CharsetSpec
from penstock.schema.ddl.create import CreateTable
from penstock.schema.ddl.named import find_named_tables
from penstock.schema.ddl.statement import (
    AlterDatabase,
    CreateDatabase,
    CreateView,
    DropDatabase,
    DropTables,
    RenameTables,
    TruncateTable,
)
from penstock.schema.dialect import ServerProfile, SqlDialect, SqlSession
from penstock.schema.shape import TableDefinition, fold
from penstock.schema.shared_map import SharedMap

_SERVER, _SESSION = ServerProfile(), SqlSession()
_PARTLY_DONE = {StatementKind.CREATE_TABLE, StatementKind.DROP_TABLE, StatementKind.DROP_VIEW}


@dataclass(frozen=True, slots=True)
class Database:
    """A database of a catalogue: its default collation, tables, views, and the tables whose schema is unknown."""

    name: str
    collation: str
    tables: SharedMap[TableDefinition] = field(default_factory=SharedMap[TableDefinition])  # by folded name
    views: frozenset[str] = frozenset()
    unknown: SharedMap[str] = field(default_factory=SharedMap[str])  # by folded name: since which statement

    @property
    def charset(self) -> str:
        """Return the charset of the default collation."""
        return charset_of_collation(self.collation)


@dataclass(frozen=True, slots=True)
class AppliedStatement:
    """The catalogue after a statement, and which tables the statement created, altered, dropped, renamed or made
    unknown."""

    catalogue: "Catalogue"
    kind: StatementKind
    created: frozenset[TableName] = frozenset()
    altered: frozenset[TableName] = frozenset()
    dropped: frozenset[TableName] = frozenset()
    truncated: frozenset[TableName] = frozenset()
    renamed: tuple[tuple[TableName, TableName], ...] = ()  # old, new; one after the other
    unknown: frozenset[TableName] = frozenset()  # from now on, because of:
    problem: str = ""

    @property
    def has_changed_tables(self) -> bool:
        """Return whether the statement changed the schema of any table."""
        return bool(self.created or self.altered or self.dropped or self.renamed)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All databases and tables of a server at one position of its log; immutable."""

    server: ServerProfile = _SERVER
    databases: SharedMap[Database] = field(default_factory=SharedMap[Database])  # by folded name
    temporary: frozenset[tuple[int, TableName]] = frozenset()  # thread, table: they hide others

    def apply(self, text: str, database: str = "", session: SqlSession = _SESSION) -> AppliedStatement:
        """Return the catalogue after a statement that was run in `database`. Raises DdlError, a SchemaError."""
        dialect = SqlDialect(self.server, session)
        kind = classify_statement_text(text, dialect)
        if not kind.changes_tables or (session.error and kind not in _PARTLY_DONE):
            return AppliedStatement(self, kind)
        statement = parse_statement(text, kind, dialect, database)
        try:
            return _StatementApplier(self, dialect, kind).apply(statement)
        except DdlError:
            raise
        except SchemaError as error:
            raise DdlError(f"{error}", text) from None

    def apply_or_skip(self, text: str, database: str = "", session: SqlSession = _SESSION) -> AppliedStatement:
        """Apply a statement as `apply` does, but one that is not understood only makes the tables that it names
        unknown. Raises DdlError where it names none."""
        try:
            return self.apply(text, database, session)
        except DdlError as error:
            dialect = SqlDialect(self.server, session)
            kind = classify_statement_text(text, dialect)
            names = find_named_tables(text, kind, dialect, database)
            if not names:
                raise
            return _StatementApplier(self, dialect, kind).mark_unknown(names, error)

    def database(self, name: str) -> Database | None:
        """Return a database by its name; None when it does not exist."""
        return self.databases.get(self._key(name))

    def find(self, name: TableName) -> TableDefinition | None:
        """Return the definition of a table; None when the table does not exist."""
        database = self.database(name.schema)
        return database.tables.get(self._key(name.table)) if database else None

    def get(self, name: TableName) -> TableDefinition:
        """Return the definition of a table; raise SchemaError when it does not exist, or its schema is not known."""
        found = self.find(name)
        if found is None:
            database = self.database(name.schema)
            statement = database.unknown.get(self._key(name.table)) if database else None
            raise SchemaError(
                _describe_unknown(name, statement) if statement else f"there is no table {name} in the log's DDL"
            )
        return found

    def schema_of(self, name: TableName) -> TableSchema:
        """Return the schema of a table in the terms of table maps; raise SchemaError when it is not known."""
        return self.get(name).schema

    def without_table(self, name: TableName, statement: str) -> "Catalogue":
        """Return a catalogue in which the schema of this table is not known, because of this statement."""
        database, key = self.database(name.schema), self._key(name.table)
        if database is None:
            return self
        unknown = database.unknown.with_item(key, statement)
        made = replace(database, tables=database.tables.without(key), unknown=unknown)
        return replace(self, databases=self.databases.with_item(self._key(name.schema), made))

    def without_database(self, name: str) -> "Catalogue":
        """Return a catalogue in which nothing is known of a database."""
        return replace(self, databases=self.databases.without(self._key(name)))

    def table_names(self) -> list[TableName]:
        """Return the names of all tables, sorted."""
        return sorted(table.name for database in self.databases.values() for table in database.tables.values())

    def _key(self, name: str) -> str:
        """Return the key of a name in the maps: folded where the server compares names without case."""
        return fold(name) if self.server.lower_case_table_names else name


class _StatementApplier:
    """Applies one statement: holds the databases as they become, and which tables were changed."""

    def __init__(self, catalogue: Catalogue, dialect: SqlDialect, kind: StatementKind) -> None:
        self._before = catalogue
        self._databases = catalogue.databases
        self._temporary = catalogue.temporary
        self._server, self._dialect, self._kind = catalogue.server, dialect, kind
        self._created: set[TableName] = set()
        self._altered: set[TableName] = set()
        self._dropped: set[TableName] = set()
        self._truncated: set[TableName] = set()
        self._renamed: list[tuple[TableName, TableName]] = []

    def apply(self, statement: Statement) -> AppliedStatement:
        """Apply a parsed statement and return the new catalogue with what was done."""
        run = cast("Callable[[Statement], None]", getattr(self, _RUN[type(statement)]))
        run(statement)
        before = self._before
        is_same = self._databases is before.databases and self._temporary is before.temporary
        return AppliedStatement(
            before if is_same else Catalogue(self._server, self._databases, self._temporary),
            self._kind,
            frozenset(self._created),
            frozenset(self._altered),
            frozenset(self._dropped),
            frozenset(self._truncated),
            tuple(self._renamed),
        )

    def mark_unknown(self, names: Iterable[TableName], error: DdlError) -> AppliedStatement:
        """Return a catalogue in which these tables are unknown, because their statement was not understood."""
        unknown: set[TableName] = set()
        for name in map(self._stored_table_name, names):
            if self._is_temporary(name) or self._key(name.schema) not in self._databases:
                continue
            database, key = self._get_database(name.schema), self._key(name.table)
            if key in database.tables:
                database = replace(database, tables=database.tables.without(key))
            if key not in database.unknown:
                database = replace(database, unknown=database.unknown.with_item(key, error.statement))
            self._put_database(database)
            unknown.add(name)
        catalogue = Catalogue(self._server, self._databases, self._temporary)
        return AppliedStatement(catalogue, self._kind, unknown=frozenset(unknown), problem=str(error))

    def create_table(self, statement: CreateTable) -> None:
        """Apply CREATE TABLE."""
        name = self._stored_table_name(statement.name)
        if statement.is_temporary:
            self._temporary |= {(self._dialect.session.thread, name)}
            return
        database, existing = self._get_database(name.schema), self._find_table(name)
        if statement.if_not_exists and (existing or self._unknown_since(name)):
            return
        if existing and not statement.replaces and not self._dialect.session.error:
            raise SchemaError(f"table {name} is there already")
        source = self._get_table(self._stored_table_name(statement.like)) if statement.like else None
        if existing and statement.replaces:
            self._drop_table(name)
        if self._dialect.session.error:  # MariaDB drops the old table before it makes the new one
            return
        if source:
            table = apply_alter(source.with_name(name), (RebuildTable(),), self._dialect, database.collation)
        else:
            table = build_created_table(replace(statement, name=name), self._dialect, database.collation)
        self._put_table(table)
        self._created.add(name)

    def alter_table(self, statement: AlterTable) -> None:
        """Apply ALTER TABLE, CREATE INDEX or DROP INDEX."""
        name = self._stored_table_name(statement.name)
        new_name = next((clause.name for clause in statement.clauses if isinstance(clause, RenameTo)), None)
        if self._is_temporary(name):
            if new_name:
                self._rename_temporary(name, self._stored_table_name(new_name))
            return
        if self._find_table(name) is None and (statement.if_exists or self._is_view(name)):
            return
        before = self._get_table(name)
        table = apply_alter(before, statement.clauses, self._dialect, self._get_database(name.schema).collation)
        self._put_table(table)
        self._altered.add(name)
        for clause in statement.clauses:
            if isinstance(clause, PartitionToTable):
                self._put_table(table.with_name(self._stored_table_name(clause.name)))
                self._created.add(self._stored_table_name(clause.name))
            elif isinstance(clause, TableToPartition):
                self._drop_table(self._stored_table_name(clause.name))
        if new_name:
            self._rename_table(name, self._stored_table_name(new_name))

    def drop_tables(self, statement: DropTables) -> None:
        """Apply DROP TABLE or DROP VIEW."""
        for given in statement.names:
            name = self._stored_table_name(given)
            if statement.are_views:
                self._set_view(name, False)
            elif self._is_temporary(name):
                self._temporary -= {(self._dialect.session.thread, name)}
            elif not statement.is_temporary:
                self._drop_table(name)

    def rename_tables(self, statement: RenameTables) -> None:
        """Apply RENAME TABLE."""
        for given_old, given_new in statement.pairs:
            old, new = self._stored_table_name(given_old), self._stored_table_name(given_new)
            if self._is_temporary(old):
                self._rename_temporary(old, new)
            elif self._is_view(old):
                self._set_view(old, False)
                self._set_view(new, True)
            elif self._find_table(old) or self._unknown_since(old) or not statement.if_exists:
                self._rename_table(old, new)

    def truncate_table(self, statement: TruncateTable) -> None:
        """Apply TRUNCATE TABLE."""
        name = self._stored_table_name(statement.name)
        if not self._is_temporary(name):
            self._truncated.add(name)

    def create_database(self, statement: CreateDatabase) -> None:
        """Apply CREATE DATABASE."""
        name = self._stored_name(statement.name)
        if self._key(name) in self._databases:
            if statement.if_not_exists:
                return
            if not statement.replaces:
                raise SchemaError(f"database {name} is there already")
            self.drop_database(DropDatabase(statement.name))
        self._put_database(Database(name, self._choose_collation(statement.charset, self._server_collation())))

    def alter_database(self, statement: AlterDatabase) -> None:
        """Apply ALTER DATABASE."""
        database = self._get_database(statement.name)
        collation = self._choose_collation(statement.charset, database.collation)
        self._put_database(replace(database, collation=collation))

    def drop_database(self, statement: DropDatabase) -> None:
        """Apply DROP DATABASE."""
        database = self._databases.get(self._key(statement.name))
        if database:
            self._databases = self._databases.without(self._key(statement.name))
            self._dropped |= {table.name for table in database.tables.values()}

    def create_view(self, statement: CreateView) -> None:
        """Apply CREATE VIEW."""
        self._set_view(self._stored_table_name(statement.name), True)

    def _server_collation(self) -> str:
        """Return the default collation of new databases."""
        given = self._dialect.session.collation_server
        if given:
            return self._choose_collation(CharsetSpec(collation=given), "")
        is_old = not self._server.is_mariadb and self._server.version < 80000
        is_latin = is_old or (self._server.is_mariadb and self._server.version < 110600)
        return default_collation("latin1" if is_latin else "utf8mb4", self._dialect)

    def _choose_collation(self, spec: CharsetSpec, default: str) -> str:
        """Return the collation that a definition asks for, or the default."""
        return choose_collation(spec, default, self._dialect, self._dialect.session.collation_server)

    def _key(self, name: str) -> str:
        """Return the key of a name in the maps: folded where the server compares names without case."""
        return fold(name) if self._server.lower_case_table_names else name

    def _stored_name(self, name: str) -> str:
        """Return a name as the server stores it."""
        return fold(name) if self._server.lower_case_table_names == 1 else name

    def _stored_table_name(self, name: TableName) -> TableName:
        """Return the name of a table as the server stores it."""
        return TableName(self._stored_name(name.schema), self._stored_name(name.table))

    def _get_database(self, name: str) -> Database:
        """Return a database; raise SchemaError when it is not known."""
        found = self._databases.get(self._key(name))
        if found is None:
            raise SchemaError(f"database {name} is not known" if name else "no database is in use")
        return found

    def _put_database(self, database: Database) -> None:
        """Replace a database."""
        self._databases = self._databases.with_item(self._key(database.name), database)

    def _find_table(self, name: TableName) -> TableDefinition | None:
        """Return the definition of a table; None when it does not exist."""
        database = self._databases.get(self._key(name.schema))
        return database.tables.get(self._key(name.table)) if database else None

    def _get_table(self, name: TableName) -> TableDefinition:
        """Return the definition of a table; raise SchemaError when it is not known."""
        found = self._find_table(name)
        if found is None:
            since = self._unknown_since(name)
            raise SchemaError(_describe_unknown(name, since) if since else f"table {name} is not known")
        return found

    def _unknown_since(self, name: TableName) -> str:
        """Return the statement since which a table is unknown, or an empty text."""
        database = self._databases.get(self._key(name.schema))
        return database.unknown.get(self._key(name.table), "") if database else ""

    def _put_table(self, table: TableDefinition) -> None:
        """Add or replace a table."""
        self._clear_unknown(table.name)
        database = self._get_database(table.name.schema)
        tables = database.tables.with_item(self._key(table.name.table), table)
        self._put_database(replace(database, tables=tables))

    def _clear_unknown(self, name: TableName) -> None:
        """Clear the mark that a table is unknown."""
        if self._unknown_since(name):
            database = self._get_database(name.schema)
            self._put_database(replace(database, unknown=database.unknown.without(self._key(name.table))))

    def _drop_table(self, name: TableName) -> None:
        """Remove a table, and note that it was dropped."""
        found = self._find_table(name)
        if found is None:
            if self._unknown_since(name):
                self._clear_unknown(name)
                self._dropped.add(name)
            return
        database = self._get_database(name.schema)
        tables = database.tables.without(self._key(name.table))
        self._put_database(replace(database, tables=tables))
        self._dropped.add(found.name)

    def _rename_table(self, old: TableName, new: TableName) -> None:
        """Move a table to another name, and note that it was renamed."""
        since = self._unknown_since(old)
        if since:
            self._clear_unknown(old)
            database = self._get_database(new.schema)
            self._put_database(replace(database, unknown=database.unknown.with_item(self._key(new.table), since)))
            self._renamed.append((old, new))
            return
        table = self._get_table(old)
        self._drop_table(old)
        self._dropped.discard(table.name)
        self._put_table(table.with_name(new))
        self._renamed.append((table.name, new))

    def _is_view(self, name: TableName) -> bool:
        """Return whether a name is that of a view."""
        database = self._databases.get(self._key(name.schema))
        return database is not None and self._key(name.table) in database.views

    def _set_view(self, name: TableName, is_there: bool) -> None:
        """Add or remove a view."""
        database = self._databases.get(self._key(name.schema))
        if database:
            one = frozenset({self._key(name.table)})
            views = database.views | one if is_there else database.views - one
            self._put_database(replace(database, views=views))

    def _is_temporary(self, name: TableName) -> bool:
        """Return whether a name is that of a temporary table of the session."""
        return (self._dialect.session.thread, name) in self._temporary

    def _rename_temporary(self, old: TableName, new: TableName) -> None:
        """Rename a temporary table of the session."""
        thread = self._dialect.session.thread
        self._temporary = (self._temporary - {(thread, old)}) | {(thread, new)}


def _describe_unknown(name: TableName, statement: str) -> str:
    """Return in words that the schema of a table is not known since a statement."""
    return f"what table {name} looks like is not known since this statement: {statement}"


_RUN = {
    CreateTable: "create_table",
    AlterTable: "alter_table",
    DropTables: "drop_tables",
    RenameTables: "rename_tables",
    TruncateTable: "truncate_table",
    CreateDatabase: "create_database",
    AlterDatabase: "alter_database",
    DropDatabase: "drop_database",
    CreateView: "create_view",
}
