"""The tables of a log as far as its own DDL tells them, with nothing known of what was there before the log.

The default charset of a database that the log does not create is not known. Such a database is followed twice, once as
if it had the narrowest charset and once as if it had the widest: what is the same in both is certain, and a text column
that is not has an unknown charset.
"""

from dataclasses import dataclass, field, replace

from penstock.binlog.events.table_map import parse_table_map
from penstock.errors import SchemaError
from penstock.model import TableName
from penstock.schema.catalogue import AppliedStatement, Catalogue
from penstock.schema.change import SchemaChange
from penstock.schema.complete import complete_table_map
from penstock.schema.database import Database
from penstock.schema.ddl import DdlError, StatementKind, parse_statement
from penstock.schema.ddl.create import CreateTable
from penstock.schema.ddl.statement import AlterDatabase, CreateDatabase
from penstock.schema.ddl.table_names import find_changed_tables, find_named_tables
from penstock.schema.dialect import ServerProfile, SqlDialect
from penstock.schema.shape import TableDefinition, fold

_ASSUMED = ("latin1_swedish_ci", "utf8mb4_general_ci")
_OF_DATABASES = {StatementKind.CREATE_DATABASE, StatementKind.ALTER_DATABASE, StatementKind.DROP_DATABASE}
_WITHOUT_SHAPE = _OF_DATABASES | {StatementKind.CREATE_VIEW, StatementKind.DROP_VIEW}
_SAME_CASE = 2  # of lower_case_table_names: names keep their letters, and are the same in any case


@dataclass(frozen=True, slots=True)
class LogCatalogue:
    """The tables of a log, as its own DDL defines them. A binlog does not say whether the names of tables are
    case-sensitive: they are compared without case, and two tables whose names differ only in case are both unknown.

    >>> catalogue = LogCatalogue.for_server("5.7.44-log").apply(StatementKind.CREATE_TABLE, change)
    >>> catalogue.complete(table_map_body, "5.7.44-log")
    """

    sides: tuple[Catalogue, ...]
    assumed: frozenset[str] = frozenset()  # databases that the log did not create, folded
    doubtful: frozenset[str] = field(default=frozenset())  # tables that may have been there before, folded

    @classmethod
    def for_server(cls, server_version: str) -> "LogCatalogue":
        """Return a catalogue of a server of this version that knows no table yet."""
        return cls(tuple(Catalogue(ServerProfile.from_version_text(server_version, _SAME_CASE)) for _ in _ASSUMED))

    def with_server(self, server_version: str) -> "LogCatalogue":
        """Return the same tables, for DDL that a server of this version has run."""
        server = ServerProfile.from_version_text(server_version, _SAME_CASE)
        if self.sides[0].server == server:
            return self
        return replace(self, sides=tuple(replace(side, server=server) for side in self.sides))

    def apply(self, kind: StatementKind, change: SchemaChange) -> "LogCatalogue":
        """Return the tables after a statement. A statement that cannot be understood, and names no table that it could
        be about, leaves nothing that is certain."""
        ready = self._with_databases(kind, change)
        try:
            applied = [side.apply_or_skip(change.text, change.database, change.session) for side in ready.sides]
        except DdlError:
            if kind in _WITHOUT_SHAPE:
                return ready
            empty = tuple(Catalogue(side.server) for side in ready.sides)
            return LogCatalogue(empty)
        after = replace(ready, sides=tuple(each.catalogue for each in applied))
        doubtful = _doubts_after(ready, kind, change, applied[-1])
        return after if doubtful == after.doubtful else replace(after, doubtful=doubtful)

    def complete(self, body: bytes, server_version: str) -> bytes | None:
        """Return a TABLE_MAP body with what the DDL says of its table; None where the log has no DDL of it.

        Raises SchemaError where the table has another shape than its DDL, or is not known since some statement.
        """
        logged = parse_table_map(body, server_version)
        tables = self.find(logged.name)
        if not tables:
            since = next(filter(None, (_unknown_since(side, logged.name) for side in self.sides)), "")
            if since:
                raise SchemaError(since)
            return None
        table = next((each for each in reversed(tables) if len(each.fields) == len(logged.columns)), tables[-1])
        return complete_table_map(
            body, table, server_version, unsure=_unsure(table, tables, len(self.sides)), with_declared=True
        )

    def find(self, name: TableName) -> list[TableDefinition]:
        """Return the definitions of a table, one for each assumed charset of its database with which the table is
        known."""
        return [table for side in self.sides if (table := side.find(name)) is not None]

    def is_doubtful(self, name: TableName) -> bool:
        """Return whether all that is known of a table is a CREATE TABLE IF NOT EXISTS, which may have changed
        nothing."""
        return fold(str(name)) in self.doubtful

    def _with_databases(self, kind: StatementKind, change: SchemaChange) -> "LogCatalogue":
        """Return a catalogue that has the databases which the statement needs to be there."""
        dialect = SqlDialect(self.sides[0].server, change.session)
        if kind in _OF_DATABASES:
            return self._with_database_of(kind, change, dialect)
        text = change.text, kind, dialect, change.database
        names = {name.schema for name in (*find_changed_tables(*text), *find_named_tables(*text))}
        catalogue = self
        for name in names:
            catalogue = catalogue._with_assumed(name)
        return catalogue

    def _with_database_of(self, kind: StatementKind, change: SchemaChange, dialect: SqlDialect) -> "LogCatalogue":
        try:
            statement = parse_statement(change.text, kind, dialect, change.database)
        except DdlError:
            return self
        match statement:
            case CreateDatabase(name, if_not_exists=True):
                return self._with_assumed(name)  # it may have been there, with another charset
            case CreateDatabase(name):
                # The server has made it: what was there under this name is gone.
                sides = tuple(side.without_database(name) for side in self.sides)
                return replace(self, sides=sides, assumed=self.assumed - {fold(name)})
            case AlterDatabase(name):
                return self._with_assumed(name)
            case _:
                return self

    def _with_assumed(self, name: str) -> "LogCatalogue":
        if not name or self.sides[0].database(name) is not None:
            return self
        sides = tuple(
            replace(side, databases=side.databases.with_item(fold(name), Database(name, collation)))
            for side, collation in zip(self.sides, _ASSUMED, strict=True)
        )
        return replace(self, sides=sides, assumed=self.assumed | {fold(name)})


def _doubts_after(
    before: LogCatalogue, kind: StatementKind, change: SchemaChange, applied: AppliedStatement
) -> frozenset[str]:
    """Return the doubtful tables after a statement."""
    doubtful = set(before.doubtful)
    for old, new in applied.renamed:
        if fold(str(old)) in doubtful:
            doubtful.add(fold(str(new)))
    gone = {*applied.dropped, *applied.created, *(old for old, _ in applied.renamed)}
    doubtful -= {fold(str(name)) for name in gone}
    if kind is StatementKind.CREATE_TABLE and applied.created:
        dialect = SqlDialect(before.sides[0].server, change.session)
        statement = parse_statement(change.text, kind, dialect, change.database)
        if isinstance(statement, CreateTable) and statement.if_not_exists:
            doubtful |= {fold(str(name)) for name in applied.created if fold(name.schema) in before.assumed}
    return frozenset(doubtful)


def _unknown_since(side: Catalogue, name: TableName) -> str:
    database = side.database(name.schema)
    if database is None or fold(name.table) not in database.unknown:
        return ""
    try:
        side.get(name)
    except SchemaError as error:
        return str(error)
    return ""


def _unsure(table: TableDefinition, tables: list[TableDefinition], sides: int) -> frozenset[str]:
    """Return the columns with text or labels whose charset depends on that of the database, which is not known.

    Where one of the assumptions does not allow the table, it is not known which of its columns have the charset of the
    other one because they were declared so.
    """
    columns = [column for column in table.schema.columns if column.charset not in {"", "binary"}]
    if len(tables) < sides:
        return frozenset(column.name for column in columns)
    others = [other.schema for other in tables if other is not table]
    return frozenset(column.name for column in columns if any(other.column(column.name) != column for other in others))
