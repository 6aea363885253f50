"""The type of a column as its table's definition has it: `int(11)`, `decimal(10,2) unsigned`, `enum('a','b')`.

Where the definition is not known it is made of what the log says, as the server would print it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.binlog.events.block import Block
from penstock.model import Column, TableSchema, WireType
from penstock.schema.collation import max_character_bytes
from penstock.schema.ddl.data_type import WIDTHS, DataType
from penstock.schema.dialect import ServerProfile
from penstock.schema.identity_cache import IdentityCache
from penstock.schema.label import decode_label
from penstock.schema.shape import ColumnDefinition, TableDefinition

W = WireType
_KINDS = {
    W.TINY: "tinyint", W.SHORT: "smallint", W.INT24: "mediumint", W.LONG: "int", W.LONGLONG: "bigint",
    W.FLOAT: "float", W.DOUBLE: "double", W.NEWDECIMAL: "decimal", W.DATE: "date", W.JSON: "json", W.YEAR: "year",
    W.TIME: "time", W.TIME2: "time", W.DATETIME: "datetime", W.DATETIME2: "datetime", W.TIMESTAMP: "timestamp",
    W.TIMESTAMP2: "timestamp", W.BIT: "bit", W.ENUM: "enum", W.SET: "set", W.VECTOR: "vector",
}  # fmt: skip
_BLOBS = {1: "tiny", 2: "", 3: "medium", 4: "long"}
_GEOMETRIES = ("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
               "geometrycollection")  # fmt: skip
_WITH_LENGTH = {"char", "varchar", "binary", "varbinary", "bit", "vector"}
_MOMENTS = {"time", "datetime", "timestamp"}
_BYTES = {"", "binary"}
_SHORT_COLLECTION = 80000  # in MySQL, from there on


@dataclass(frozen=True, slots=True, eq=False)
class BlockColumnTypes:
    """The declared types of the columns of a block's tables.

    Two blocks of one server version with the same `basis` object have the same types for the same table map, so that a
    caller may cache them. Without a `basis`, tables may change within the block: look types up for each table id.
    """

    of_table: Callable[[int], tuple[str, ...]]  # by table id
    basis: object | None = None


def logged_column_types(block: Block) -> BlockColumnTypes:
    """Return the SQL types of the columns of a block's tables as far as the log tells them."""
    return BlockColumnTypes(lambda number: declared_types(block.schema_of(number), block.server_version), _LOG)


_LOG = object()  # the basis of types that depend on nothing but the table map
_MAX_SHAPES = 4_096
_LOGGED, _DEFINED = IdentityCache[tuple[str, ...]](_MAX_SHAPES), IdentityCache[tuple[str, ...]](_MAX_SHAPES)


def declared_types(table: TableSchema, server_version: str) -> tuple[str, ...]:
    """Return the SQL types of the columns as far as the log tells them."""

    def make() -> tuple[str, ...]:
        server = ServerProfile.from_version_text(server_version)
        return tuple(_text(_type_of(column), column.labels, server) for column in table.columns)

    return _LOGGED.get((table.columns,), server_version, make)


def declared_types_in_ddl(table: TableDefinition, server: ServerProfile) -> tuple[str, ...]:
    """Return the SQL types of the columns as the table's definition has them."""
    make = lambda: tuple(_text(field.type, _labels(field), server) for field in table.fields)  # noqa: E731
    return _DEFINED.get((table.fields, server), None, make)


def _labels(field: ColumnDefinition) -> tuple[str, ...]:
    return tuple(decode_label(label, field.charset) for label in field.type.labels if isinstance(label, bytes))


def _text(type_: DataType, labels: tuple[str, ...], server: ServerProfile) -> str:  # noqa: PLR0911 - one per kind of type
    kind = type_.kind
    signs = " unsigned" * type_.is_unsigned + " zerofill" * type_.is_zerofill
    if kind in WIDTHS:
        width = type_.width or (WIDTHS[kind][type_.is_unsigned] if server.has_widths or type_.is_zerofill else 0)
        return f"{kind}({width}){signs}" if width else f"{kind}{signs}"
    if kind in {"float", "double"}:
        return f"{kind}({type_.width},{type_.scale}){signs}" if type_.width else f"{kind}{signs}"
    if kind == "decimal":
        return f"decimal({type_.length},{type_.scale}){signs}"
    if kind in {"enum", "set"}:
        quoted = ",".join("'" + label.replace("'", "''") + "'" for label in labels)
        return f"{kind}({quoted})"
    if kind in _WITH_LENGTH or (kind in _MOMENTS and type_.length):
        return f"{kind}({type_.length})"
    if kind == "year" and server.has_widths:
        return "year(4)"
    is_short = kind == "geometrycollection" and not server.is_mariadb and server.version >= _SHORT_COLLECTION
    return "geomcollection" if is_short else kind


def _type_of(column: Column) -> DataType:  # noqa: PLR0911 - one per kind of type
    """Return the type of a column as the log has it."""
    kind = column.type
    if column.declared:
        return DataType(column.declared, length=column.dimension or column.size // 4)
    if kind is W.NEWDECIMAL:
        return DataType("decimal", column.precision, column.scale, column.unsigned)
    if kind is W.GEOMETRY:
        return DataType(_GEOMETRIES[column.geometry if column.geometry < len(_GEOMETRIES) else 0])
    if kind in {W.BLOB, W.BLOB_COMPRESSED}:
        return DataType(_BLOBS.get(column.size, "") + ("blob" if column.charset in _BYTES else "text"))
    if kind in _KINDS:
        length = column.dimension if kind is W.VECTOR else column.size
        return DataType(_KINDS[kind], length=length, is_unsigned=column.unsigned and kind is not W.YEAR)
    size = column.size - (kind is W.VARCHAR_COMPRESSED)
    names = ("char", "binary") if kind is W.STRING else ("varchar", "varbinary")
    if column.charset in _BYTES:
        return DataType(names[1], length=size)
    return DataType(names[0], length=size // max(max_character_bytes(column.charset), 1))
