"""All databases and tables of a server, as the DDL of its log leaves them.

A catalogue is immutable: `apply` returns the next one, which shares with the first what the statement did not touch, so
that one can be held for every position of the log. It trusts the log: a statement that a server has run is not checked
again. It does not guess: an unknown clause, table or database is an error that carries the statement. Only dropping or
truncating what does not exist is ignored. `apply_or_skip` continues after such an error: the tables that the statement
names are then unknown until they are dropped or created again.
"""

from dataclasses import dataclass, field, replace

from penstock.errors import SchemaError
from penstock.model import TableName, TableSchema
from penstock.schema.catalogue_editor import CatalogueEditor, TemporaryTables
from penstock.schema.database import Database, describe_unknown
from penstock.schema.ddl import DdlError, Statement, StatementKind, classify_statement_text, parse_statement
from penstock.schema.ddl.table_names import find_named_tables
from penstock.schema.dialect import ServerProfile, SqlDialect, SqlSession
from penstock.schema.shape import TableDefinition, fold
from penstock.schema.shared_map import SharedMap
from penstock.schema.statement_applier import StatementApplier

_SERVER, _SESSION = ServerProfile(), SqlSession()
_PARTLY_DONE = {StatementKind.CREATE_TABLE, StatementKind.DROP_TABLE, StatementKind.DROP_VIEW}


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
    """All databases and tables of a server at one position of its log; immutable.

    catalogue = Catalogue(ServerProfile.from_version_text("8.0.36"))
    catalogue = catalogue.apply("CREATE TABLE t (id INT)", "shop").catalogue
    """

    server: ServerProfile = _SERVER
    databases: SharedMap[Database] = field(default_factory=SharedMap[Database])  # by folded name
    temporary: TemporaryTables = frozenset()

    def apply(self, text: str, database: str = "", session: SqlSession = _SESSION) -> AppliedStatement:
        """Return the catalogue after a statement that was run in `database`. Raises DdlError, a SchemaError."""
        dialect = SqlDialect(self.server, session)
        kind = classify_statement_text(text, dialect)
        if not kind.changes_tables or (session.error and kind not in _PARTLY_DONE):
            return AppliedStatement(self, kind)
        statement = parse_statement(text, kind, dialect, database)
        try:
            return self._apply(statement, kind, dialect)
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
            edit = self._edit(dialect)
            unknown = StatementApplier(edit, self.server, dialect).mark_unknown(names, error.statement)
            catalogue = Catalogue(self.server, edit.databases, edit.temporary)
            return AppliedStatement(catalogue, kind, unknown=frozenset(unknown), problem=str(error))

    def _apply(self, statement: Statement, kind: StatementKind, dialect: SqlDialect) -> AppliedStatement:
        edit = self._edit(dialect)
        StatementApplier(edit, self.server, dialect).apply(statement)
        is_same = edit.databases is self.databases and edit.temporary is self.temporary
        return AppliedStatement(
            self if is_same else Catalogue(self.server, edit.databases, edit.temporary),
            kind,
            frozenset(edit.created),
            frozenset(edit.altered),
            frozenset(edit.dropped),
            frozenset(edit.truncated),
            tuple(edit.renamed),
        )

    def _edit(self, dialect: SqlDialect) -> CatalogueEditor:
        """Return a working copy of the catalogue."""
        return CatalogueEditor(self.server, self.databases, self.temporary, dialect.session.thread)

    def database(self, name: str) -> Database | None:
        """Return a database by its name; None when it does not exist."""
        return self.databases.get(self._key(name))

    def find(self, name: TableName) -> TableDefinition | None:
        """Return the definition of a table; None when the table does not exist."""
        database = self.database(name.schema)
        return database.tables.get(self._key(name.table)) if database else None

    def get(self, name: TableName) -> TableDefinition:
        """Return the definition of a table; raise SchemaError when it does not exist, or its schema is not known."""
        table = self.find(name)
        if table is None:
            database = self.database(name.schema)
            statement = database.unknown.get(self._key(name.table)) if database else None
            raise SchemaError(
                describe_unknown(name, statement) if statement else f"there is no table {name} in the log's DDL"
            )
        return table

    def schema_of(self, name: TableName) -> TableSchema:
        """Return the schema of a table, made from its definition in this catalogue, with the columns and types that a
        table map of the log has for it; raise SchemaError when the definition is not known."""
        return self.get(name).schema

    def without_table(self, name: TableName, statement: str) -> "Catalogue":
        """Return a catalogue in which the schema of this table is not known, because of this statement."""
        database, key = self.database(name.schema), self._key(name.table)
        if database is None:
            return self
        unknown = database.unknown.with_item(key, statement)
        changed = replace(database, tables=database.tables.without(key), unknown=unknown)
        return replace(self, databases=self.databases.with_item(self._key(name.schema), changed))

    def without_database(self, name: str) -> "Catalogue":
        """Return a catalogue in which nothing is known of a database."""
        return replace(self, databases=self.databases.without(self._key(name)))

    def table_names(self) -> list[TableName]:
        """Return the names of all tables, sorted."""
        return sorted(table.name for database in self.databases.values() for table in database.tables.values())

    def _key(self, name: str) -> str:
        """Return the key of a name in the maps: folded where the server compares names without case."""
        return fold(name) if self.server.lower_case_table_names else name
