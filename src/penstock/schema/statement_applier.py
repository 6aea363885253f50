"""Applies one parsed DDL statement to the working copy of a catalogue."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import cast

from penstock.errors import SchemaError
from penstock.model import TableName
from penstock.schema.altering import apply_alter
from penstock.schema.catalogue_editor import CatalogueEditor
from penstock.schema.collation import choose_collation, default_collation
from penstock.schema.creating import build_created_table
from penstock.schema.database import Database
from penstock.schema.ddl import Statement
from penstock.schema.ddl.clause import AlterTable, PartitionToTable, RebuildTable, RenameTo, TableToPartition
from penstock.schema.ddl.column import CharsetSpec
from penstock.schema.ddl.create import CreateTable
from penstock.schema.ddl.statement import (
    AlterDatabase,
    CreateDatabase,
    CreateView,
    DropDatabase,
    DropTables,
    RenameTables,
    TruncateTable,
)
from penstock.schema.dialect import ServerProfile, SqlDialect


class StatementApplier:
    """Applies a statement: each kind of statement is one method that changes the working copy `edit`."""

    def __init__(self, edit: CatalogueEditor, server: ServerProfile, dialect: SqlDialect) -> None:
        self._edit, self._server, self._dialect = edit, server, dialect

    def apply(self, statement: Statement) -> None:
        """Apply a parsed statement. Raises SchemaError for a table or a database that is not known."""
        run = cast("Callable[[Statement], None]", getattr(self, _METHODS[type(statement)]))
        run(statement)

    def mark_unknown(self, names: Iterable[TableName], statement: str) -> set[TableName]:
        """Mark these tables as unknown since a statement that was not understood, and return those that were marked."""
        unknown: set[TableName] = set()
        for name in map(self._edit.stored_table_name, names):
            if self._edit.is_temporary(name) or self._edit.key(name.schema) not in self._edit.databases:
                continue
            database, key = self._edit.get_database(name.schema), self._edit.key(name.table)
            if key in database.tables:
                database = replace(database, tables=database.tables.without(key))
            if key not in database.unknown:
                database = replace(database, unknown=database.unknown.with_item(key, statement))
            self._edit.put_database(database)
            unknown.add(name)
        return unknown

    def create_table(self, statement: CreateTable) -> None:
        """Apply CREATE TABLE."""
        name = self._edit.stored_table_name(statement.name)
        if statement.is_temporary:
            self._edit.add_temporary(name)
            return
        database, existing = self._edit.get_database(name.schema), self._edit.find_table(name)
        if statement.if_not_exists and (existing or self._edit.unknown_since(name)):
            return
        if existing and not statement.replaces and not self._dialect.session.error:
            raise SchemaError(f"table {name} is there already")
        source = self._edit.get_table(self._edit.stored_table_name(statement.like)) if statement.like else None
        if existing and statement.replaces:
            self._edit.drop_table(name)
        if self._dialect.session.error:  # MariaDB drops the old table before it makes the new one
            return
        if source:
            table = apply_alter(source.with_name(name), (RebuildTable(),), self._dialect, database.collation)
        else:
            table = build_created_table(replace(statement, name=name), self._dialect, database.collation)
        self._edit.put_table(table)
        self._edit.created.add(name)

    def alter_table(self, statement: AlterTable) -> None:
        """Apply ALTER TABLE, CREATE INDEX or DROP INDEX."""
        name = self._edit.stored_table_name(statement.name)
        new_name = next((clause.name for clause in statement.clauses if isinstance(clause, RenameTo)), None)
        if self._edit.is_temporary(name):
            if new_name:
                self._edit.rename_temporary(name, self._edit.stored_table_name(new_name))
            return
        if self._edit.find_table(name) is None and (statement.if_exists or self._edit.is_view(name)):
            return
        before = self._edit.get_table(name)
        table = apply_alter(before, statement.clauses, self._dialect, self._edit.get_database(name.schema).collation)
        self._edit.put_table(table)
        self._edit.altered.add(name)
        for clause in statement.clauses:
            if isinstance(clause, PartitionToTable):
                self._edit.put_table(table.with_name(self._edit.stored_table_name(clause.name)))
                self._edit.created.add(self._edit.stored_table_name(clause.name))
            elif isinstance(clause, TableToPartition):
                self._edit.drop_table(self._edit.stored_table_name(clause.name))
        if new_name:
            self._edit.rename_table(name, self._edit.stored_table_name(new_name))

    def drop_tables(self, statement: DropTables) -> None:
        """Apply DROP TABLE or DROP VIEW."""
        for given in statement.names:
            name = self._edit.stored_table_name(given)
            if statement.are_views:
                self._edit.set_view(name, False)
            elif self._edit.is_temporary(name):
                self._edit.drop_temporary(name)
            elif not statement.is_temporary:
                self._edit.drop_table(name)

    def rename_tables(self, statement: RenameTables) -> None:
        """Apply RENAME TABLE."""
        for given_old, given_new in statement.pairs:
            old, new = self._edit.stored_table_name(given_old), self._edit.stored_table_name(given_new)
            if self._edit.is_temporary(old):
                self._edit.rename_temporary(old, new)
            elif self._edit.is_view(old):
                self._edit.set_view(old, False)
                self._edit.set_view(new, True)
            elif self._edit.find_table(old) or self._edit.unknown_since(old) or not statement.if_exists:
                self._edit.rename_table(old, new)

    def truncate_table(self, statement: TruncateTable) -> None:
        """Apply TRUNCATE TABLE."""
        name = self._edit.stored_table_name(statement.name)
        if not self._edit.is_temporary(name):
            self._edit.truncated.add(name)

    def create_database(self, statement: CreateDatabase) -> None:
        """Apply CREATE DATABASE."""
        name = self._edit.stored_name(statement.name)
        if self._edit.key(name) in self._edit.databases:
            if statement.if_not_exists:
                return
            if not statement.replaces:
                raise SchemaError(f"database {name} is there already")
            self.drop_database(DropDatabase(statement.name))
        self._edit.put_database(Database(name, self._choose_collation(statement.charset, self._server_collation())))

    def alter_database(self, statement: AlterDatabase) -> None:
        """Apply ALTER DATABASE."""
        database = self._edit.get_database(statement.name)
        collation = self._choose_collation(statement.charset, database.collation)
        self._edit.put_database(replace(database, collation=collation))

    def drop_database(self, statement: DropDatabase) -> None:
        """Apply DROP DATABASE."""
        database = self._edit.databases.get(self._edit.key(statement.name))
        if database:
            self._edit.databases = self._edit.databases.without(self._edit.key(statement.name))
            self._edit.dropped |= {table.name for table in database.tables.values()}

    def create_view(self, statement: CreateView) -> None:
        """Apply CREATE VIEW."""
        self._edit.set_view(self._edit.stored_table_name(statement.name), True)

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


_METHODS = {
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
