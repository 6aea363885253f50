"""How long keys are, and what servers do with one that is longer than the engine allows.

A plain one is cut to a prefix: by MySQL when the session is not strict (it refuses otherwise), by MariaDB always. A
unique one MariaDB turns into a hash: a column DB_ROW_HASH_n, last in the log's rows and in no catalogue.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from penstock.schema.collation import max_character_bytes
from penstock.schema.ddl.data_type import DataType
from penstock.schema.ddl.key import KeyKind
from penstock.schema.label import decode_label
from penstock.schema.shape import HASH_NAME, ColumnDefinition, IndexDefinition, IndexPart, blob_bytes, fold

POINT_BYTES, _HASH_BYTES = 25, 8
_LIMITS = {"innodb": 3072, "myisam": 1000, "aria": 2300}
_OLD_FORMATS, _OLD_LIMIT = ("compact", "redundant"), 767
_SIZES = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8, "float": 4, "double": 8, "date": 3,
          "time": 3, "datetime": 5, "timestamp": 4, "year": 1, "uuid": 16, "inet4": 4, "inet6": 16}  # fmt: skip
_HASH = DataType("bigint", is_unsigned=True)


def part_bytes(part: IndexPart, field: ColumnDefinition) -> int:
    """Return the bytes of a key part; 0 where it is not known, or where the part takes a whole BLOB."""
    kind = field.type.kind
    if part.prefix:
        return part.prefix * character_bytes(field)
    if kind in ("time", "datetime", "timestamp"):
        return _SIZES[kind] + (field.type.length + 1) // 2
    if kind in ("char", "varchar", "binary", "varbinary"):
        return field.bytes
    return _SIZES.get(kind, 0)


def carried_prefix(part: IndexPart, before: ColumnDefinition) -> int:
    """Return the length of the key prefix, in characters, that a column has after its type was changed: servers take
    over the bytes that the old type had in the key, also those of a number or of an ENUM."""
    if part.prefix or before.is_blob:
        return part.prefix
    if before.type.labels:
        return before.to_column(is_mariadb=False).size // character_bytes(before)
    return part_bytes(part, before) // character_bytes(before)


def label_prefix(field: ColumnDefinition) -> int:
    """Return the prefix that a key keeps when MySQL changes an ENUM or SET into a text."""
    texts = [decode_label(label, field.charset) for label in field.type.labels if isinstance(label, bytes)]
    is_enum = field.type.kind == "enum"
    shown = max(map(len, texts)) if is_enum else sum(map(len, texts)) + len(texts) - 1
    size = field.to_column(is_mariadb=False).size
    return 0 if shown * character_bytes(field) == size else size // character_bytes(field)


def key_limit(engine: str, row_format: str) -> int:
    """Return the most bytes of a column in a key; 0 for unknown engines."""
    is_old = engine == "innodb" and row_format in _OLD_FORMATS
    return _OLD_LIMIT if is_old else _LIMITS.get(engine, 0)


def shorten_parts(index: IndexDefinition, fields: Sequence[ColumnDefinition], limit: int) -> IndexDefinition:
    """Return the index with its parts cut to what the engine allows. Of a geometry, MariaDB's unique index is a hash
    that seems to be a prefix."""
    if not limit or index.kind not in (KeyKind.PLAIN, KeyKind.UNIQUE):
        return index
    by_name = {fold(field.name): field for field in fields}
    parts, is_hash = list(index.parts), index.is_hash
    for at, part in enumerate(parts):
        field = by_name.get(fold(part.column))
        if field and index.kind is KeyKind.PLAIN:
            parts[at] = _cut(part, field, limit)
        elif field and field.is_geometry and not part.prefix:
            parts[at], is_hash = IndexPart(part.column, _HASH_BYTES), True
    return replace(index, parts=tuple(parts), is_hash=is_hash)


def mark_hashed(index: IndexDefinition, fields: Sequence[ColumnDefinition], limit: int) -> IndexDefinition:
    """Return the index, marked if MariaDB stores it as a hash: it is too long, or the statement that made it says USING
    HASH."""
    if not limit or index.kind is not KeyKind.UNIQUE:
        return replace(index, is_hash=False) if index.is_hash else index
    by_name = {fold(field.name): field for field in fields}
    columns = [by_name[fold(part.column)] for part in index.parts if part.column]
    return replace(index, is_hash=len(columns) == len(index.parts) and _is_hash(index, columns, limit))


def hash_fields(indexes: Sequence[IndexDefinition], fields: Sequence[ColumnDefinition]) -> tuple[ColumnDefinition, ...]:
    """Return the hidden columns of unique indexes that MariaDB stores as hashes."""
    by_name = {fold(field.name): field for field in fields}
    made: list[ColumnDefinition] = []
    names = (name for number in count(1) if fold(name := f"{HASH_NAME}{number}") not in by_name)
    for index in indexes:
        if index.is_hash:
            is_nullable = any(by_name[fold(part.column)].is_nullable for part in index.parts)
            made.append(ColumnDefinition(next(names), _HASH, is_nullable=is_nullable, is_hidden=True))
    return tuple(made)


def _is_hash(index: IndexDefinition, columns: Sequence[ColumnDefinition], limit: int) -> bool:
    pairs = list(zip(index.parts, columns, strict=True))
    takes_whole = any(column.is_blob and not part.prefix for part, column in pairs)
    return index.is_hash or takes_whole or sum(part_bytes(part, column) for part, column in pairs) > limit


def _cut(part: IndexPart, field: ColumnDefinition, limit: int) -> IndexPart:
    if field.is_blob and not part.prefix:
        return IndexPart(part.column, min(limit // character_bytes(field), 256 ** blob_bytes(field.type.kind) - 1))
    if field.is_geometry and not part.prefix:
        return IndexPart(part.column, limit)
    return IndexPart(part.column, limit // character_bytes(field)) if part_bytes(part, field) > limit else part


def character_bytes(field: ColumnDefinition) -> int:
    """Return the most bytes of a character of a column."""
    return max_character_bytes(field.charset) if field.collation else 1
