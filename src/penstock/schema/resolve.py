"""A column as written → the column that the server makes of it, in its table."""

from dataclasses import replace

from penstock.errors import SchemaError
from penstock.schema.collation import charset_of_collation, choose_collation, max_character_bytes
from penstock.schema.ddl.column import CharsetSpec, ColumnSpec
from penstock.schema.ddl.data_type import TEXTS, DataType
from penstock.schema.dialect import SqlDialect
from penstock.schema.label import decode_label, normalize_label
from penstock.schema.shape import ColumnDefinition, blob_bytes

_AS_BYTES = {
    "char": "binary", "varchar": "varbinary", "tinytext": "tinyblob", "text": "blob", "mediumtext": "mediumblob",
    "longtext": "longblob",
}  # fmt: skip
_MAX_OF_VARCHAR = 65535


def resolve_column(spec: ColumnSpec, table_collation: str, dialect: SqlDialect) -> ColumnDefinition:
    """Return the column that the server makes of a column as written, in its table."""
    type_, collation = spec.type, ""
    if type_.kind == "json" and dialect.server.is_mariadb:
        type_, table_collation = replace(type_, kind="longtext"), "utf8mb4_bin"
    if type_.kind in TEXTS:
        collation = choose_collation(spec.charset, table_collation, dialect)
    type_, collation = resolve_type(type_, collation, dialect)
    charset = charset_of_collation(collation)
    return ColumnDefinition(
        spec.name,
        replace(type_, labels=tuple(normalize_label(label, charset) for label in type_.labels))
        if type_.labels
        else type_,
        collation,
        is_nullable=_is_nullable(spec, dialect),
        is_auto=spec.is_auto,
        is_generated=spec.is_generated,
        is_visible=spec.is_visible,
        is_row_end=spec.row == "END",
    )


def resolve_type(type_: DataType, collation: str, dialect: SqlDialect) -> tuple[DataType, str]:
    """Return the type that the server chooses: text in no charset is bytes; TEXT with a length, and too long a VARCHAR,
    are the TEXT that holds it."""
    charset = charset_of_collation(collation)
    if charset == "binary" and type_.kind in _AS_BYTES:
        type_, collation, charset = replace(type_, kind=_AS_BYTES[type_.kind]), "", ""
    length = type_.length * (max_character_bytes(charset) if charset else 1)
    if type_.is_sized and not length and not _takes_none(dialect):
        type_ = replace(type_, is_sized=False)
    elif type_.is_sized:
        type_ = replace(type_, kind=_blob_kind(length, type_.kind), length=0, is_sized=False)
    elif type_.kind in ("varchar", "varbinary") and length > _MAX_OF_VARCHAR:
        if dialect.session.is_strict:
            raise SchemaError(f"a column of {length} bytes is too long")
        type_ = replace(type_, kind=_blob_kind(length, "text" if collation else "blob"), length=0)
    return type_, collation


def _takes_none(dialect: SqlDialect) -> bool:
    """Return whether BLOB(0) is a length; seen in MySQL 9, not in 5.7, 8.0.12 and MariaDB."""
    return not dialect.server.is_mariadb and dialect.server.version > 80012


def convert_charset(field: ColumnDefinition, collation: str, dialect: SqlDialect) -> ColumnDefinition:
    """Return a column after CONVERT TO CHARACTER SET: a TEXT may have to grow, so that as many characters fit; labels
    stay the same bytes."""
    if not field.collation or field.charset == "binary":
        return field
    type_ = field.type
    if field.is_blob:
        type_ = _grow(type_, max_character_bytes(field.charset), max_character_bytes(charset_of_collation(collation)))
    type_, collation = resolve_type(type_, collation, dialect)
    return replace(field, type=type_, collation=collation)


def redefine_in_charset(
    spec: ColumnSpec, old: ColumnDefinition | None, collation: str, dialect: SqlDialect
) -> ColumnDefinition:
    """Return a column that is added or redefined in the same ALTER TABLE as CONVERT TO CHARACTER SET: it gets the new
    charset, even if its definition names another; a binary column stays binary.

    MySQL 9 (8.0.12 does not) then makes a TEXT or BLOB as large as needed to hold all characters of the old column.
    """
    new = resolve_column(replace(spec, charset=CharsetSpec(is_bin=spec.charset.is_bin)), collation, dialect)
    given = resolve_column(spec, collation, dialect)
    if not given.collation or given.charset == "binary":
        new = given
    if new.collation and spec.type.kind == "json":
        new = replace(new, collation=collation)
    if old is None or not new.is_blob or spec.type.is_sized or not _takes_none(dialect) or "long" in new.type.kind:
        return new
    width = max_character_bytes(new.charset) if new.collation else 1
    return replace(new, type=replace(new.type, kind=_blob_kind(_characters(old) * width, new.type.kind)))


def _characters(field: ColumnDefinition) -> int:
    """Return how many characters a value takes as text, as far as it decides between kinds of TEXT."""
    type_ = field.type
    if field.is_blob:
        width = max_character_bytes(field.charset) if field.collation else 1
        return (256 ** blob_bytes(type_.kind) - 1 + width - 1) // width
    if type_.kind in ("char", "varchar", "binary", "varbinary", "bit"):
        return type_.length
    if type_.labels:
        texts = [len(decode_label(label, field.charset)) for label in type_.labels if isinstance(label, bytes)]
        return max(texts) if type_.kind == "enum" else sum(texts) + len(texts) - 1
    return 256**4 - 1 if field.is_geometry or type_.kind == "json" else 22


def _grow(type_: DataType, before: int, after: int) -> DataType:
    most = 256 ** blob_bytes(type_.kind) - 1
    needed = (most + before - 1) // before * after
    if after <= before or type_.kind == "longtext":
        return type_
    return replace(type_, kind=_blob_kind(needed, "text"))


def _blob_kind(length: int, kind: str) -> str:
    ending = "text" if kind.endswith("text") else "blob"
    for size, prefix in ((1, "tiny"), (2, ""), (3, "medium")):
        if length < 256**size:
            return prefix + ending
    return "long" + ending


def _is_nullable(spec: ColumnSpec, dialect: SqlDialect) -> bool:
    if spec.is_auto or spec.is_primary or spec.row:
        return False
    if spec.is_nullable is not None:
        return spec.is_nullable
    is_computed = spec.is_generated and dialect.server.is_mariadb
    return spec.type.kind != "timestamp" or dialect.explicit_timestamps or is_computed
