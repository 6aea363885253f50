"""The working copy of a catalogue while one statement is applied to it.

The maps of the catalogue are immutable: every change here replaces the map that it touches, so that the catalogue from
before the statement stays as it was.
"""

from dataclasses import replace

from penstock.errors import SchemaError
from penstock.model import TableName
from penstock.schema.database import Database, describe_unknown
from penstock.schema.dialect import ServerProfile
from penstock.schema.shape import TableDefinition, fold
from penstock.schema.shared_map import SharedMap

TemporaryTables = frozenset[tuple[int, TableName]]  # thread, table: they hide others


class CatalogueEditor:
    """Changes databases and tables of a catalogue, and records which tables were created, altered, dropped, truncated
    or renamed. `thread` is the session whose temporary tables hide others."""

    def __init__(
        self, server: ServerProfile, databases: SharedMap[Database], temporary: TemporaryTables, thread: int
    ) -> None:
        self.databases, self.temporary = databases, temporary
        self._server, self._thread = server, thread
        self.created: set[TableName] = set()
        self.altered: set[TableName] = set()
        self.dropped: set[TableName] = set()
        self.truncated: set[TableName] = set()
        self.renamed: list[tuple[TableName, TableName]] = []

    def key(self, name: str) -> str:
        """Return the key of a name in the maps: folded where the server compares names without case."""
        return fold(name) if self._server.lower_case_table_names else name

    def stored_name(self, name: str) -> str:
        """Return a name as the server stores it."""
        return fold(name) if self._server.lower_case_table_names == 1 else name

    def stored_table_name(self, name: TableName) -> TableName:
        """Return the name of a table as the server stores it."""
        return TableName(self.stored_name(name.schema), self.stored_name(name.table))

    def get_database(self, name: str) -> Database:
        """Return a database; raise SchemaError when it is not known."""
        database = self.databases.get(self.key(name))
        if database is None:
            raise SchemaError(f"database {name} is not known" if name else "no database is in use")
        return database

    def put_database(self, database: Database) -> None:
        """Replace a database."""
        self.databases = self.databases.with_item(self.key(database.name), database)

    def find_table(self, name: TableName) -> TableDefinition | None:
        """Return the definition of a table; None when it does not exist."""
        database = self.databases.get(self.key(name.schema))
        return database.tables.get(self.key(name.table)) if database else None

    def get_table(self, name: TableName) -> TableDefinition:
        """Return the definition of a table; raise SchemaError when it is not known."""
        table = self.find_table(name)
        if table is None:
            since = self.unknown_since(name)
            raise SchemaError(describe_unknown(name, since) if since else f"table {name} is not known")
        return table

    def unknown_since(self, name: TableName) -> str:
        """Return the statement since which a table is unknown, or an empty text."""
        database = self.databases.get(self.key(name.schema))
        return database.unknown.get(self.key(name.table), "") if database else ""

    def put_table(self, table: TableDefinition) -> None:
        """Add or replace a table."""
        self._clear_unknown(table.name)
        database = self.get_database(table.name.schema)
        tables = database.tables.with_item(self.key(table.name.table), table)
        self.put_database(replace(database, tables=tables))

    def _clear_unknown(self, name: TableName) -> None:
        """Clear the mark that a table is unknown."""
        if self.unknown_since(name):
            database = self.get_database(name.schema)
            self.put_database(replace(database, unknown=database.unknown.without(self.key(name.table))))

    def drop_table(self, name: TableName) -> None:
        """Remove a table, and note that it was dropped."""
        table = self.find_table(name)
        if table is None:
            if self.unknown_since(name):
                self._clear_unknown(name)
                self.dropped.add(name)
            return
        database = self.get_database(name.schema)
        tables = database.tables.without(self.key(name.table))
        self.put_database(replace(database, tables=tables))
        self.dropped.add(table.name)

    def rename_table(self, old: TableName, new: TableName) -> None:
        """Move a table to another name, and note that it was renamed."""
        since = self.unknown_since(old)
        if since:
            self._clear_unknown(old)
            database = self.get_database(new.schema)
            self.put_database(replace(database, unknown=database.unknown.with_item(self.key(new.table), since)))
            self.renamed.append((old, new))
            return
        table = self.get_table(old)
        self.drop_table(old)
        self.dropped.discard(table.name)
        self.put_table(table.with_name(new))
        self.renamed.append((table.name, new))

    def is_view(self, name: TableName) -> bool:
        """Return whether a name is that of a view."""
        database = self.databases.get(self.key(name.schema))
        return database is not None and self.key(name.table) in database.views

    def set_view(self, name: TableName, exists: bool) -> None:
        """Add or remove a view."""
        database = self.databases.get(self.key(name.schema))
        if database:
            view = frozenset({self.key(name.table)})
            views = database.views | view if exists else database.views - view
            self.put_database(replace(database, views=views))

    def is_temporary(self, name: TableName) -> bool:
        """Return whether a name is that of a temporary table of the session."""
        return (self._thread, name) in self.temporary

    def rename_temporary(self, old: TableName, new: TableName) -> None:
        """Rename a temporary table of the session."""
        thread = self._thread
        self.temporary = (self.temporary - {(thread, old)}) | {(thread, new)}

    def add_temporary(self, name: TableName) -> None:
        """Add a temporary table of the session."""
        self.temporary |= {(self._thread, name)}

    def drop_temporary(self, name: TableName) -> None:
        """Remove a temporary table of the session."""
        self.temporary -= {(self._thread, name)}
