"""All databases and tables of a server, as the DDL of its log leaves them.

A catalogue is immutable: `apply` returns the next one, which shares with the first what the statement did not touch, so
that one can be held for every position of the log. It trusts the log: a statement that a server has run is not checked
again. It does not guess: an unknown clause, table or database is an error that carries the statement. Only dropping or
truncating what does not exist is ignored. `follow` continues after such an error: the tables that the statement names
are then unknown until they are dropped or created again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import cast

from penstock.errors import SchemaError
from penstock.model import TableName, TableSchema
from penstock.schema.altering import altered
from penstock.schema.collation import charset_of_collation, chosen, default_collation
from penstock.schema.creating import created
from penstock.schema.ddl import DdlError, Statement, StatementKind, kind_of, parse
from penstock.schema.ddl.clause import AlterTable, PartitionToTable, Remake, RenameTo, TableToPartition
from penstock.schema.ddl.column import CharsetSpec
from penstock.schema.ddl.create import CreateTable
from penstock.schema.ddl.named import named_tables
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
from penstock.schema.shape import Table, fold
from penstock.schema.shared_map import SharedMap

_SERVER, _SESSION = ServerProfile(), SqlSession()
_PARTLY_DONE = {StatementKind.CREATE_TABLE, StatementKind.DROP_TABLE, StatementKind.DROP_VIEW}


@dataclass(frozen=True, slots=True)
class Database:
    name: str
    collation: str
    tables: SharedMap[Table] = field(default_factory=SharedMap[Table])  # by folded name
    views: frozenset[str] = frozenset()
    unknown: SharedMap[str] = field(default_factory=SharedMap[str])  # by folded name: since which statement

    @property
    def charset(self) -> str:
        return charset_of_collation(self.collation)


@dataclass(frozen=True, slots=True)
class Applied:
    """The catalogue after a statement, and what the statement did."""

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
    def changed(self) -> bool:
        return bool(self.created or self.altered or self.dropped or self.renamed)


@dataclass(frozen=True, slots=True)
class Catalogue:
    server: ServerProfile = _SERVER
    databases: SharedMap[Database] = field(default_factory=SharedMap[Database])  # by folded name
    temporary: frozenset[tuple[int, TableName]] = frozenset()  # thread, table: they hide others

    def apply(self, text: str, database: str = "", session: SqlSession = _SESSION) -> Applied:
        """Run a statement in `database`. Raises DdlError, a SchemaError."""
        dialect = SqlDialect(self.server, session)
        kind = kind_of(text, dialect)
        if not kind.changes_tables or (session.error and kind not in _PARTLY_DONE):
            return Applied(self, kind)
        statement = parse(text, kind, dialect, database)
        try:
            return _StatementRun(self, dialect, kind).run(statement)
        except DdlError:
            raise
        except SchemaError as error:
            raise DdlError(f"{error}", text) from None

    def follow(self, text: str, database: str = "", session: SqlSession = _SESSION) -> Applied:
        """Apply a statement as `apply` does, but what is not understood stops only the tables that it names. Raises
        DdlError where it names none."""
        try:
            return self.apply(text, database, session)
        except DdlError as error:
            dialect = SqlDialect(self.server, session)
            kind = kind_of(text, dialect)
            names = named_tables(text, kind, dialect, database)
            if not names:
                raise
            return _StatementRun(self, dialect, kind).give_up(names, error)

    def database(self, name: str) -> Database | None:
        return self.databases.get(self._key(name))

    def find(self, name: TableName) -> Table | None:
        """Return a table with all that DDL says of it; None when it does not exist."""
        database = self.database(name.schema)
        return database.tables.get(self._key(name.table)) if database else None

    def known(self, name: TableName) -> Table:
        """Return a table as `find` does, but raise SchemaError when it does not exist, or its schema is not known."""
        found = self.find(name)
        if found is None:
            database = self.database(name.schema)
            statement = database.unknown.get(self._key(name.table)) if database else None
            raise SchemaError(_unknown(name, statement) if statement else f"there is no table {name} in the log's DDL")
        return found

    def table(self, name: TableName) -> TableSchema:
        return self.known(name).schema

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

    def tables(self) -> list[TableName]:
        return sorted(table.name for database in self.databases.values() for table in database.tables.values())

    def _key(self, name: str) -> str:
        return fold(name) if self.server.lower_case_table_names else name


class _StatementRun:
    """One statement being applied: the databases as they become, and what was done."""

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

    def run(self, statement: Statement) -> Applied:
        run = cast("Callable[[Statement], None]", getattr(self, _RUN[type(statement)]))
        run(statement)
        before = self._before
        is_same = self._databases is before.databases and self._temporary is before.temporary
        return Applied(
            before if is_same else Catalogue(self._server, self._databases, self._temporary),
            self._kind,
            frozenset(self._created),
            frozenset(self._altered),
            frozenset(self._dropped),
            frozenset(self._truncated),
            tuple(self._renamed),
        )

    def give_up(self, names: Iterable[TableName], error: DdlError) -> Applied:
        unknown: set[TableName] = set()
        for name in map(self._stored, names):
            if self._is_temporary(name) or self._key(name.schema) not in self._databases:
                continue
            database, key = self._database(name.schema), self._key(name.table)
            if key in database.tables:
                database = replace(database, tables=database.tables.without(key))
            if key not in database.unknown:
                database = replace(database, unknown=database.unknown.with_item(key, error.statement))
            self._keep(database)
            unknown.add(name)
        catalogue = Catalogue(self._server, self._databases, self._temporary)
        return Applied(catalogue, self._kind, unknown=frozenset(unknown), problem=str(error))

    def create_table(self, statement: CreateTable) -> None:
        name = self._stored(statement.name)
        if statement.is_temporary:
            self._temporary |= {(self._dialect.session.thread, name)}
            return
        database, existing = self._database(name.schema), self._find(name)
        if statement.if_not_exists and (existing or self._since(name)):
            return
        if existing and not statement.replaces and not self._dialect.session.error:
            raise SchemaError(f"table {name} is there already")
        source = self._table(self._stored(statement.like)) if statement.like else None
        if existing and statement.replaces:
            self._drop(name)
        if self._dialect.session.error:  # MariaDB drops the old table before it makes the new one
            return
        if source:
            table = altered(source.renamed(name), (Remake(),), self._dialect, database.collation)
        else:
            table = created(replace(statement, name=name), self._dialect, database.collation)
        self._put(table)
        self._created.add(name)

    def alter_table(self, statement: AlterTable) -> None:
        name = self._stored(statement.name)
        new_name = next((clause.name for clause in statement.clauses if isinstance(clause, RenameTo)), None)
        if self._is_temporary(name):
            if new_name:
                self._rename_temporary(name, self._stored(new_name))
            return
        if self._find(name) is None and (statement.if_exists or self._is_view(name)):
            return
        before = self._table(name)
        table = altered(before, statement.clauses, self._dialect, self._database(name.schema).collation)
        self._put(table)
        self._altered.add(name)
        for clause in statement.clauses:
            if isinstance(clause, PartitionToTable):
                self._put(table.renamed(self._stored(clause.name)))
                self._created.add(self._stored(clause.name))
            elif isinstance(clause, TableToPartition):
                self._drop(self._stored(clause.name))
        if new_name:
            self._rename(name, self._stored(new_name))

    def drop_tables(self, statement: DropTables) -> None:
        for given in statement.names:
            name = self._stored(given)
            if statement.are_views:
                self._set_view(name, False)
            elif self._is_temporary(name):
                self._temporary -= {(self._dialect.session.thread, name)}
            elif not statement.is_temporary:
                self._drop(name)

    def rename_tables(self, statement: RenameTables) -> None:
        for given_old, given_new in statement.pairs:
            old, new = self._stored(given_old), self._stored(given_new)
            if self._is_temporary(old):
                self._rename_temporary(old, new)
            elif self._is_view(old):
                self._set_view(old, False)
                self._set_view(new, True)
            elif self._find(old) or self._since(old) or not statement.if_exists:
                self._rename(old, new)

    def truncate_table(self, statement: TruncateTable) -> None:
        name = self._stored(statement.name)
        if not self._is_temporary(name):
            self._truncated.add(name)

    def create_database(self, statement: CreateDatabase) -> None:
        name = self._stored_name(statement.name)
        if self._key(name) in self._databases:
            if statement.if_not_exists:
                return
            if not statement.replaces:
                raise SchemaError(f"database {name} is there already")
            self.drop_database(DropDatabase(statement.name))
        self._keep(Database(name, self._chosen(statement.charset, self._server_collation())))

    def alter_database(self, statement: AlterDatabase) -> None:
        database = self._database(statement.name)
        collation = self._chosen(statement.charset, database.collation)
        self._keep(replace(database, collation=collation))

    def drop_database(self, statement: DropDatabase) -> None:
        database = self._databases.get(self._key(statement.name))
        if database:
            self._databases = self._databases.without(self._key(statement.name))
            self._dropped |= {table.name for table in database.tables.values()}

    def create_view(self, statement: CreateView) -> None:
        self._set_view(self._stored(statement.name), True)

    def _server_collation(self) -> str:
        given = self._dialect.session.collation_server
        if given:
            return self._chosen(CharsetSpec(collation=given), "")
        is_old = not self._server.is_mariadb and self._server.version < 80000
        is_latin = is_old or (self._server.is_mariadb and self._server.version < 110600)
        return default_collation("latin1" if is_latin else "utf8mb4", self._dialect)

    def _chosen(self, spec: CharsetSpec, default: str) -> str:
        return chosen(spec, default, self._dialect, self._dialect.session.collation_server)

    def _key(self, name: str) -> str:
        return fold(name) if self._server.lower_case_table_names else name

    def _stored_name(self, name: str) -> str:
        return fold(name) if self._server.lower_case_table_names == 1 else name

    def _stored(self, name: TableName) -> TableName:
        """Return a name as the server stores it."""
        return TableName(self._stored_name(name.schema), self._stored_name(name.table))

    def _database(self, name: str) -> Database:
        found = self._databases.get(self._key(name))
        if found is None:
            raise SchemaError(f"database {name} is not known" if name else "no database is in use")
        return found

    def _keep(self, database: Database) -> None:
        self._databases = self._databases.with_item(self._key(database.name), database)

    def _find(self, name: TableName) -> Table | None:
        database = self._databases.get(self._key(name.schema))
        return database.tables.get(self._key(name.table)) if database else None

    def _table(self, name: TableName) -> Table:
        found = self._find(name)
        if found is None:
            since = self._since(name)
            raise SchemaError(_unknown(name, since) if since else f"table {name} is not known")
        return found

    def _since(self, name: TableName) -> str:
        """The statement since which a table is unknown, or nothing."""
        database = self._databases.get(self._key(name.schema))
        return database.unknown.get(self._key(name.table), "") if database else ""

    def _put(self, table: Table) -> None:
        self._forget(table.name)
        database = self._database(table.name.schema)
        tables = database.tables.with_item(self._key(table.name.table), table)
        self._keep(replace(database, tables=tables))

    def _forget(self, name: TableName) -> None:
        """Clear the mark that a table is unknown."""
        if self._since(name):
            database = self._database(name.schema)
            self._keep(replace(database, unknown=database.unknown.without(self._key(name.table))))

    def _drop(self, name: TableName) -> None:
        found = self._find(name)
        if found is None:
            if self._since(name):
                self._forget(name)
                self._dropped.add(name)
            return
        database = self._database(name.schema)
        tables = database.tables.without(self._key(name.table))
        self._keep(replace(database, tables=tables))
        self._dropped.add(found.name)

    def _rename(self, old: TableName, new: TableName) -> None:
        since = self._since(old)
        if since:
            self._forget(old)
            database = self._database(new.schema)
            self._keep(replace(database, unknown=database.unknown.with_item(self._key(new.table), since)))
            self._renamed.append((old, new))
            return
        table = self._table(old)
        self._drop(old)
        self._dropped.discard(table.name)
        self._put(table.renamed(new))
        self._renamed.append((table.name, new))

    def _is_view(self, name: TableName) -> bool:
        database = self._databases.get(self._key(name.schema))
        return database is not None and self._key(name.table) in database.views

    def _set_view(self, name: TableName, is_there: bool) -> None:
        database = self._databases.get(self._key(name.schema))
        if database:
            one = frozenset({self._key(name.table)})
            views = database.views | one if is_there else database.views - one
            self._keep(replace(database, views=views))

    def _is_temporary(self, name: TableName) -> bool:
        return (self._dialect.session.thread, name) in self._temporary

    def _rename_temporary(self, old: TableName, new: TableName) -> None:
        thread = self._dialect.session.thread
        self._temporary = (self._temporary - {(thread, old)}) | {(thread, new)}


def _unknown(name: TableName, statement: str) -> str:
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
