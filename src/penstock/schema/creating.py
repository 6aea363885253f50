"""CREATE TABLE on the model."""

from dataclasses import replace

from penstock.schema.collation import choose_collation
from penstock.schema.ddl.create import CreateTable
from penstock.schema.ddl.data_type import DataType
from penstock.schema.dialect import SqlDialect
from penstock.schema.indexing import build_indexes
from penstock.schema.key_length import hash_fields, key_limit, mark_hashed
from penstock.schema.resolve import resolve_column
from penstock.schema.shape import ColumnDefinition, TableDefinition, fold

_MOMENT = DataType("timestamp", length=6)
HIDDEN = (
    ColumnDefinition("row_start", _MOMENT, is_nullable=False, is_hidden=True),
    ColumnDefinition("row_end", _MOMENT, is_nullable=False, is_hidden=True, is_row_end=True),
)
"""The columns that MariaDB's WITH SYSTEM VERSIONING implies: last in the rows, and in no catalogue."""


def build_created_table(statement: CreateTable, dialect: SqlDialect, database_collation: str) -> TableDefinition:
    """Return the table that a CREATE TABLE without LIKE creates."""
    options = statement.options
    collation = choose_collation(options.charset, database_collation, dialect)
    fields = tuple(resolve_column(column, collation, dialect) for column in statement.columns)
    is_versioned = options.is_versioned or any(column.is_versioned for column in statement.columns)
    if is_versioned and not any(field.is_row_end for field in fields):
        fields += HIDDEN
    row_end = next((field.name for field in fields if field.is_row_end), "") if is_versioned else ""
    periods = tuple((period.name, period.start, period.end) for period in statement.periods)
    engine, row_format = options.engine or "innodb", options.row_format or ""
    limit = key_limit(engine, row_format)
    indexes = build_indexes((), statement.keys, fields, periods, row_end, limit, dialect.server)
    table = TableDefinition(
        statement.name,
        fields,
        indexes,
        collation,
        engine,
        row_format,
        periods,
        is_versioned,
        dialect.server.is_mariadb,
    )
    return apply_key_effects(table, dialect)


def apply_key_effects(table: TableDefinition, dialect: SqlDialect) -> TableDefinition:
    """Return the table with what its keys do to its columns: those of the primary key and of periods are never null,
    and hashes get a column."""
    primary = table.find_index("PRIMARY")
    names = {fold(part.column) for part in primary.parts} if primary else set[str]()
    names |= {fold(column) for _, start, end in table.periods for column in (start, end)}
    fields = tuple(
        replace(field, is_nullable=False) if field.is_nullable and fold(field.name) in names else field
        for field in table.fields
    )
    has_hashes = dialect.server.is_mariadb and dialect.server.version >= 100400
    limit = key_limit(table.engine, table.row_format) if has_hashes else 0
    indexes = tuple(mark_hashed(index, fields, limit) for index in table.indexes)
    return replace(table, fields=fields + hash_fields(indexes, fields), indexes=indexes)
