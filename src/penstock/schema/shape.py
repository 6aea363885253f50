"""A table as DDL knows it: what later statements build on, and the shape that the log's rows have.

All of it is frozen; a change makes a new table that shares what stayed.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from penstock.model import Column, TableName, TableSchema, WireType
from penstock.schema.collation import charset_of_collation, max_character_bytes
from penstock.schema.ddl.data_type import DataType
from penstock.schema.ddl.key import KeyKind
from penstock.schema.identity_cache import IdentityCache
from penstock.schema.label import decode_label

_TYPES = {
    "tinyint": WireType.TINY, "smallint": WireType.SHORT, "mediumint": WireType.INT24, "int": WireType.LONG,
    "bigint": WireType.LONGLONG, "float": WireType.FLOAT, "double": WireType.DOUBLE, "decimal": WireType.NEWDECIMAL,
    "date": WireType.DATE, "time": WireType.TIME2, "datetime": WireType.DATETIME2, "timestamp": WireType.TIMESTAMP2,
    "year": WireType.YEAR, "bit": WireType.BIT, "json": WireType.JSON, "enum": WireType.ENUM, "set": WireType.SET,
    "char": WireType.STRING, "binary": WireType.STRING, "varchar": WireType.VARCHAR, "varbinary": WireType.VARCHAR,
    "vector": WireType.VECTOR, "uuid": WireType.STRING, "inet4": WireType.STRING, "inet6": WireType.STRING,
}  # fmt: skip
_BLOBS = {"tiny": 1, "text": 2, "blob": 2, "medium": 3, "long": 4}
_GEOMETRIES = ("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
               "geometrycollection")  # fmt: skip
_STORED = {WireType.JSON: 4, WireType.GEOMETRY: 4, WireType.VECTOR: 4, WireType.FLOAT: 4, WireType.DOUBLE: 8}
_DECLARED = {"uuid": 16, "inet4": 4, "inet6": 16}
_COMPRESSED = {WireType.VARCHAR: WireType.VARCHAR_COMPRESSED, WireType.BLOB: WireType.BLOB_COMPRESSED}
_WITH_BYTES = (WireType.STRING, WireType.VARCHAR, WireType.BLOB, *_COMPRESSED.values())
_MAX_BYTES = 65535
HASH_NAME = "DB_ROW_HASH_"


def fold(name: str) -> str:
    """Return a name folded for comparison: of columns and indexes, and of tables where case does not count."""
    return name.lower() if name.isascii() else "".join(char.lower() for char in name)


def blob_bytes(kind: str) -> int:
    """Return how many bytes the length of a TEXT or BLOB has."""
    return next(size for start, size in _BLOBS.items() if kind.startswith(start))


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column as DDL defines it; `collation` is empty for types that are not text."""

    name: str
    type: DataType
    collation: str = ""
    is_nullable: bool = True
    is_auto: bool = False
    is_generated: bool = False
    is_visible: bool = True
    is_row_end: bool = False  # until when a row counted, in MariaDB's system versioning
    is_hidden: bool = False  # in the log's rows, not in the catalogue

    @property
    def is_hash(self) -> bool:
        """Return whether MariaDB stores the hash of a unique key in it."""
        return self.is_hidden and self.name.startswith(HASH_NAME)

    @property
    def charset(self) -> str:
        """Return the charset of the collation."""
        return charset_of_collation(self.collation)

    @property
    def is_blob(self) -> bool:
        """Return whether the type is one of TEXT or BLOB."""
        return self.type.kind.endswith(("text", "blob"))

    @property
    def is_geometry(self) -> bool:
        """Return whether the type is geometric."""
        return self.type.kind in _GEOMETRIES

    @property
    def bytes(self) -> int:
        """Return the most bytes that a string takes, if it is not a TEXT or BLOB."""
        return self.type.length * (max_character_bytes(self.charset) if self.collation else 1)

    def to_column(self, is_mariadb: bool) -> Column:
        """Return the column as a table map of the log describes it."""
        kind, type_ = self.type.kind, self.type
        wire = WireType.BLOB if self.is_blob else _TYPES.get(kind, WireType.GEOMETRY)
        declared = kind if kind in _DECLARED else ""
        if kind == "vector" and is_mariadb:
            wire, declared = WireType.VARCHAR, kind
        if type_.is_compressed:
            wire = _COMPRESSED.get(wire, wire)
        is_decimal = wire is WireType.NEWDECIMAL
        return Column(
            self.name,
            wire,
            size=self._size(wire),
            precision=type_.length if is_decimal else 0,
            scale=type_.scale if is_decimal else 0,
            unsigned=type_.is_unsigned,
            nullable=self.is_nullable,
            charset=self.charset or ("binary" if wire in _WITH_BYTES else ""),
            labels=tuple(decode_label(label, self.charset) for label in type_.labels if isinstance(label, bytes)),
            declared=declared,
            geometry=_GEOMETRIES.index(kind) if wire is WireType.GEOMETRY else 0,
            dimension=type_.length if kind == "vector" else 0,
            is_visible=self.is_visible and not self.is_hidden,
            is_hidden=self.is_hash,
        )

    def _size(self, wire: WireType) -> int:  # noqa: PLR0911 - one per kind of type
        kind, length = self.type.kind, self.type.length
        if wire in (WireType.TIME2, WireType.DATETIME2, WireType.TIMESTAMP2, WireType.BIT):
            return length
        if self.is_blob:
            return blob_bytes(kind)
        if wire in _STORED:
            return _STORED[wire]
        if wire is WireType.ENUM:
            return 1 if len(self.type.labels) < 256 else 2
        if wire is WireType.SET:
            return 8 if len(self.type.labels) > 32 else (len(self.type.labels) + 7) // 8
        if kind in _DECLARED:
            return _DECLARED[kind]
        if kind == "vector":
            return 4 * length
        if wire in (WireType.VARCHAR_COMPRESSED, WireType.VARCHAR, WireType.STRING):
            return min(self.bytes, _MAX_BYTES) + (wire is WireType.VARCHAR_COMPRESSED)
        return 0


@dataclass(frozen=True, slots=True)
class IndexPart:
    """One part of an index: a column, or an expression, for which `column` is empty. `prefix` is in characters, 0 for
    the whole column."""

    column: str
    prefix: int = 0


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """An index as the server stores it."""

    name: str
    kind: KeyKind
    parts: tuple[IndexPart, ...]
    is_implied: bool = False  # made for a foreign key; goes when another index serves
    is_hash: bool = False  # kept by MariaDB as a hash of the columns, in a hidden one


_MAX_SHAPES = 1 << 12
_COLUMNS = IdentityCache[tuple[Column, ...]](_MAX_SHAPES)


@lru_cache(_MAX_SHAPES)
def _share_fields(fields: tuple[ColumnDefinition, ...]) -> tuple[ColumnDefinition, ...]:
    """Return the same object for equal columns: of thousands of tables, most may differ in their names only."""
    return fields


@dataclass(frozen=True)
class TableDefinition:
    """A table as DDL defines it; `collation` is the default of columns to come."""

    name: TableName
    fields: tuple[ColumnDefinition, ...]
    indexes: tuple[IndexDefinition, ...]
    collation: str
    engine: str = "innodb"
    row_format: str = ""
    periods: tuple[tuple[str, str, str], ...] = ()  # name, start, end
    is_versioned: bool = False
    is_mariadb: bool = False

    def __post_init__(self) -> None:
        """Share the columns with all tables that have the same ones."""
        object.__setattr__(self, "fields", _share_fields(self.fields))

    def find_column(self, name: str) -> ColumnDefinition | None:
        """Return a column by its name, in any case; None when there is none."""
        wanted = fold(name)
        return next((each for each in self.fields if fold(each.name) == wanted), None)

    def find_index(self, name: str) -> IndexDefinition | None:
        """Return an index by its name, in any case; None when there is none."""
        wanted = fold(name)
        return next((each for each in self.indexes if fold(each.name) == wanted), None)

    @property
    def auto_increment(self) -> str:
        """Return the name of the AUTO_INCREMENT column, or nothing."""
        return next((each.name for each in self.fields if each.is_auto), "")

    @cached_property
    def schema(self) -> TableSchema:
        """Return the schema of the table, made from this definition, with the columns and types that a table map of the
        log has for it."""
        primary = self.find_index("PRIMARY")
        parts = primary.parts if primary else ()
        prefixes = tuple(part.prefix for part in parts)
        return TableSchema(
            self.name,
            _COLUMNS.get((self.fields,), self.is_mariadb, self._make_columns),
            tuple(part.column for part in parts),
            key_prefixes=prefixes if any(prefixes) else (),
        )

    def _make_columns(self) -> tuple[Column, ...]:
        """Return the columns as a table map of the log describes them."""
        return tuple(each.to_column(self.is_mariadb) for each in self.fields)

    def with_name(self, name: TableName) -> "TableDefinition":
        """Return the same table with another name."""
        return replace(self, name=name)
