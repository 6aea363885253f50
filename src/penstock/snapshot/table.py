"""What a snapshot must know of a table before it reads it: its columns, its key and its size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.errors import ConfigurationError, SchemaError
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.schema.live import read_live_schema
from penstock.snapshot.key_column import KeyColumn, quote_name

_TABLE = (
    "SELECT table_type, engine, table_rows, data_length FROM information_schema.tables"
    " WHERE table_schema = %s AND table_name = %s"
)
_UNIQUE_KEYS = (
    "SELECT * FROM information_schema.statistics"  # not every server has all columns
    " WHERE table_schema = %s AND table_name = %s AND non_unique = 0 AND index_type = 'BTREE'"
    " ORDER BY index_name <> 'PRIMARY', index_name, seq_in_index"
)
_COLLATIONS = (
    "SELECT column_name, collation_name FROM information_schema.columns"
    " WHERE table_schema = %s AND table_name = %s AND collation_name IS NOT NULL"
)
_TRANSACTIONAL = {"innodb", "rocksdb", "tokudb"}
_OF_ANY_SIZE = {
    WireType.VARCHAR, WireType.STRING, WireType.BLOB, WireType.VARCHAR_COMPRESSED, WireType.BLOB_COMPRESSED,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SnapshotTable:
    """A table as a snapshot reads it."""

    schema: TableSchema  # with the types that its rows get
    live: TableSchema  # as the server has described it
    columns: tuple[Column, ...]  # those that are read, in their order
    key: tuple[KeyColumn, ...]  # by which it is cut into chunks; empty: it is one chunk
    index: str  # that has the key; empty without one
    identity: tuple[str, ...]  # all columns of that index, which tell one row from every other
    estimated_rows: int
    estimated_bytes: int
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> TableName:
        """Return the name of the table."""
        return self.schema.name

    @property
    def quoted(self) -> str:
        """Return the name of the table in SQL."""
        return f"{quote_name(self.name.schema)}.{quote_name(self.name.table)}"

    @property
    def source(self) -> str:
        """Return what stands behind FROM: the table, read in the order of its key."""
        return f"{self.quoted} FORCE INDEX ({quote_name(self.index)})" if self.index else self.quoted

    @property
    def key_description(self) -> str:
        """Return what the order of the table's keys depends on."""
        return ", ".join(column.order_fingerprint for column in self.key)

    @property
    def row_bytes(self) -> float:
        """Return the estimated size of a row."""
        return max(1.0, self.estimated_bytes / max(1, self.estimated_rows))

    def with_types_of(self, schema: TableSchema) -> "SnapshotTable":
        """Return the table with rows of the types that a schema of the log has."""
        return replace(self, schema=schema, columns=_choose_columns(schema, [column.name for column in self.columns]))

    def check_unchanged(self, cursor: Any) -> None:
        """Raise SchemaError when a column that is read, or the key, is not what it was when the table was described:
        rows would get wrong values, and chunks limits that do not fit to each other. Ask after the rows were read."""
        now = read_live_schema(cursor, self.name)
        for column in self.columns:
            before, after = self.live.column(column.name), now.column(column.name)
            if before is None or after is None or _shape_of(before) != _shape_of(after):
                raise SchemaError(
                    f"column {column.name} of {self.name} has another type, charset or labels than before: the table"
                    " was altered meanwhile; read it again from the start"
                )
        key, index, _ = _choose_key(cursor, now)
        key_now = replace(self, key=key, index=index).key_description
        if (index, key_now) != (self.index, self.key_description):
            raise SchemaError(
                f"the key of {self.name} has changed ({self.key_description}; now {key_now}): the table was altered"
                " meanwhile; read it again from the start"
            )


def describe_table(cursor: Any, name: TableName, columns: Sequence[str] | None = None) -> SnapshotTable:
    """Read what a snapshot must know of a table, of which it reads these columns, or all; raise SchemaError for what
    cannot be snapshotted."""
    schema = read_live_schema(cursor, name)
    cursor.execute(_TABLE, (name.schema, name.table))
    kind, engine, rows, size = cursor.fetchone()
    if "VIEW" in str(kind).upper():
        raise SchemaError(f"{name} is a view, whose rows have no log: snapshot the tables that it selects from")
    warnings: list[str] = []
    if str(engine).lower() not in _TRANSACTIONAL:
        raise SchemaError(
            f"{name} is stored by {engine}, which has no consistent reads: ALTER TABLE {name} ENGINE=InnoDB"
        )
    chosen = _choose_columns(schema, columns)
    key, index, identity = _choose_key(cursor, schema)
    if not key:
        warnings.append(
            f"{name} has no key that it can be cut by: it is read as one chunk, on one connection and in one read view;"
            " if the connection breaks, the table has to be read again from the start"
        )
    return SnapshotTable(schema, schema, chosen, key, index, identity, int(rows or 0), int(size or 0), tuple(warnings))


def _shape_of(column: Column) -> tuple[object, ...]:
    """Return all that the values of a column are decoded by; a text or BLOB may become longer."""
    size = 0 if column.type in _OF_ANY_SIZE else column.size
    charset = "utf8mb3" if column.charset == "utf8" else column.charset  # its older name
    number = (column.precision, column.scale, column.unsigned)
    return column.type, size, charset, number, column.labels, column.declared


def estimate_rows(cursor: Any, name: TableName) -> int:
    """Return how many rows a table has by the estimate of the server; 0 for one that is not there."""
    cursor.execute(_TABLE, (name.schema, name.table))
    _, _, rows, _ = cursor.fetchone() or (None, None, 0, None)
    return int(rows or 0)


def _choose_columns(schema: TableSchema, names: Sequence[str] | None) -> tuple[Column, ...]:
    """Return the columns to read, in the order of the table."""
    declared = schema.declared_columns
    if names is None:
        return declared
    unknown = [name for name in names if all(name != column.name for column in declared)]
    if unknown:
        has = ", ".join(column.name for column in declared)
        raise ConfigurationError(f"{schema.name} has no column {', '.join(unknown)}; it has {has}")
    return tuple(column for column in declared if column.name in names)


def _choose_key(cursor: Any, schema: TableSchema) -> tuple[tuple[KeyColumn, ...], str, tuple[str, ...]]:
    """Return the key to cut the table by, its index, and all columns of that: the primary key, else the first unique
    one without nulls."""
    cursor.execute(_UNIQUE_KEYS, (schema.name.schema, schema.name.table))
    names = [str(column[0]).lower() for column in cursor.description]
    indexes: dict[str, list[tuple[str | None, Any, str]]] = {}
    for row in cursor.fetchall():
        part = dict(zip(names, row, strict=True))
        if part.get("is_visible") == "NO" or part.get("ignored") == "YES":
            continue  # one that the server does not use, of MySQL and of MariaDB
        column = (part["column_name"], part["sub_part"], str(part["nullable"]))
        indexes.setdefault(str(part["index_name"]), []).append(column)
    collations = _read_collations(cursor, schema)
    for index, parts in indexes.items():
        if any(column is None or nullable == "YES" for column, _, nullable in parts):
            continue  # an index over an expression, or with rows that no range has
        if key := _usable_part(schema, parts, collations):
            return key, index, tuple(str(column) for column, _, _ in parts)
    return (), "", ()


def _read_collations(cursor: Any, schema: TableSchema) -> dict[str, str]:
    """Return the collations of the columns that hold texts."""
    cursor.execute(_COLLATIONS, (schema.name.schema, schema.name.table))
    return {str(column): str(collation) for column, collation in cursor.fetchall()}


def _usable_part(
    schema: TableSchema, parts: list[tuple[str | None, Any, str]], collations: Mapping[str, str]
) -> tuple[KeyColumn, ...]:
    """Return the first columns of an index, up to one by which no exact range can be written."""
    key: list[KeyColumn] = []
    for name, prefix, _ in parts:
        column = schema.column(str(name))
        part = KeyColumn.of(column, collations.get(str(name), "")) if column is not None and not prefix else None
        if part is None:
            break
        key.append(part)
    return tuple(key)
