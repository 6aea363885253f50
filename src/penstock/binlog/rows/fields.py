"""The Arrow fields of row changes: a table's own, and those that say what, when and in which order.

The first three names and meanings are those of Delta's change feed and of Spark's own change queries.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from penstock.binlog.rows.partial_type import PARTIAL
from penstock.binlog.values.column import DEFAULT, DecodeOptions, arrow_type
from penstock.errors import PenstockError, SchemaError
from penstock.model import Column, TableName, TableSchema

_DECLARED: Final = "declared"

CHANGE_FIELDS = pa.schema(
    [
        pa.field("_change_type", pa.string()),  # insert, update_preimage, update_postimage, delete
        pa.field("_commit_version", pa.int64()),  # the _seq of the transaction's first event
        pa.field("_commit_timestamp", pa.timestamp("us", "UTC")),  # the finest the log has
        pa.field("_seq", pa.int64()),  # order of all changes of an instance
        pa.field("_row", pa.int64()),  # order in the transaction: number of the event, then of the image in it
        pa.field("_gtid", pa.string()),
        pa.field("_file", pa.string()),
        pa.field("_offset", pa.int64()),  # of the row image in the file
        pa.field("_changed", pa.list_(pa.string())),  # on a postimage: which of the columns read differ
        pa.field("_absent", pa.list_(pa.string())),  # columns read that the image does not carry; null when it is whole
        pa.field("_partial", PARTIAL),  # operations on JSON documents that the log does not have; usually null
    ]
)


def choose_free_names(ours: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Return names for our columns beside those of a table: one that the table has too, in any case, gets one more
    underscore, until it is free."""
    taken = {name.casefold() for name in columns}
    free_names: list[str] = []
    for name in ours:
        while name.casefold() in taken:
            name = f"_{name}"  # noqa: PLW2901 - longer and longer
        taken.add(name.casefold())
        free_names.append(name)
    return free_names


def arrow_fields_of_table(
    table: TableSchema, columns: Sequence[str] | None = None, choice: DecodeOptions = DEFAULT
) -> pa.Schema:
    """Return the Arrow fields of a table, all nullable: a minimal row image may leave any of them out."""
    unknown = set(columns or ()) - {column.name for column in table.declared_columns}
    if unknown:
        known = ", ".join(column.name for column in table.declared_columns)
        raise SchemaError(f"table {table.name} has no column {', '.join(sorted(unknown))}; it has {known}")
    chosen = [column for column in table.declared_columns if columns is None or column.name in columns]
    return pa.schema([_field(column, choice) for column in chosen])


def _field(column: Column, choice: DecodeOptions) -> pa.Field:
    """Return the Arrow field of a column, with what the log does not say of the column as metadata."""
    metadata = {_DECLARED: column.declared} if column.declared else None
    return pa.field(column.name, arrow_type(column, choice), metadata=metadata)


def with_declared(table: TableSchema, fields: pa.Schema) -> TableSchema:
    """Return a table of the log with the declared SQL types that the metadata of these Arrow fields has."""
    declared = {
        field.name: field.metadata[_DECLARED.encode()].decode()
        for field in fields
        if field.metadata and _DECLARED.encode() in field.metadata
    }
    if not declared:
        return table
    columns = (replace(column, declared=declared.get(column.name, column.declared)) for column in table.columns)
    return replace(table, columns=tuple(columns))


def describe_table(table: TableSchema) -> pa.Schema:
    """Return the Arrow schema of a table; columns that cannot be decoded are left out and named in the metadata."""
    decoded: list[pa.Field] = []
    refused: dict[str, str] = {}
    for column in table.declared_columns:
        try:
            decoded.extend(arrow_fields_of_table(table, [column.name]))
        except PenstockError as error:
            refused[column.name] = str(error)
    metadata = {"table": str(table.name), "key": json.dumps(table.key), "refused": json.dumps(refused)}
    return pa.schema(decoded, metadata=metadata)


def refused_columns(described: pa.Schema) -> dict[str, str]:
    """Return the columns that cannot be decoded, and why."""
    metadata: dict[bytes, bytes] = described.metadata or {}
    return json.loads(metadata.get(b"refused", b"{}"))


def select_fields(table: TableName, described: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """Return the Arrow fields of all columns that can be decoded, or of the chosen ones, each of which must be."""
    if columns is None:
        return described.remove_metadata()
    for name in columns:
        if name in (refused := refused_columns(described)):
            raise SchemaError(refused[name])
        if name not in described.names:
            raise SchemaError(f"table {table} has no column {name}; it has {', '.join(described.names)}")
    return pa.schema([field for field in described.remove_metadata() if field.name in columns])
