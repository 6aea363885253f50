"""The type of a column, with every name that servers know for it.

The kind is the word of information_schema.columns.data_type. What depends on a charset (which kind of TEXT holds so
many characters) is decided later, when the charset is known: `schema/resolve.py`.
"""

from dataclasses import dataclass, replace

from penstock.schema.ddl.reader import TokenReader
from penstock.schema.ddl.tokens import TokenKind
from penstock.schema.dialect import ServerProfile, SqlMode

_INTEGERS = {
    "TINYINT": "tinyint", "INT1": "tinyint", "SMALLINT": "smallint", "INT2": "smallint", "MEDIUMINT": "mediumint",
    "INT3": "mediumint", "MIDDLEINT": "mediumint", "INT": "int", "INTEGER": "int", "INT4": "int",
    "BIGINT": "bigint", "INT8": "bigint",
}  # fmt: skip
_DECIMALS = {"DECIMAL", "DEC", "NUMERIC", "FIXED"}
_DOUBLES = {"DOUBLE", "FLOAT8", "REAL"}
_TIMES = {"TIME": "time", "DATETIME": "datetime", "TIMESTAMP": "timestamp"}
_PLAIN = {
    "DATE": "date", "JSON": "json", "TINYBLOB": "tinyblob", "MEDIUMBLOB": "mediumblob", "LONGBLOB": "longblob",
    "TINYTEXT": "tinytext", "MEDIUMTEXT": "mediumtext", "LONGTEXT": "longtext", "GEOMETRY": "geometry",
    "POINT": "point", "LINESTRING": "linestring", "POLYGON": "polygon", "MULTIPOINT": "multipoint",
    "MULTILINESTRING": "multilinestring", "MULTIPOLYGON": "multipolygon", "GEOMETRYCOLLECTION": "geometrycollection",
    "GEOMCOLLECTION": "geometrycollection", "UUID": "uuid", "INET4": "inet4", "INET6": "inet6",
}  # fmt: skip
_SCHEMAS = {"MARIADB_SCHEMA", "ORACLE_SCHEMA", "MAXDB_SCHEMA"}
_MAX_OF_FLOAT = 24
WIDTHS = {"tinyint": (4, 3), "smallint": (6, 5), "mediumint": (9, 8), "int": (11, 10), "bigint": (20, 20)}
"""Of numbers as they are shown, with a sign and without."""

TEXTS = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"}
"""Kinds that have a charset."""


@dataclass(frozen=True, slots=True)
class DataType:
    """The type of a column as the server stores it. `length` is in the unit of the declaration: characters, bytes,
    bits, digits, digits of a fraction."""

    kind: str
    length: int = 0
    scale: int = 0
    is_unsigned: bool = False
    is_compressed: bool = False
    is_sized: bool = False  # TEXT(300), BLOB(70000): the kind is chosen by the length
    labels: tuple[str | bytes, ...] = ()  # bytes are of the column's charset, as all are once that is known
    width: int = 0  # of a number as it is shown, where it is not that of its type
    is_zerofill: bool = False


@dataclass(frozen=True, slots=True)
class TypeSpec:
    """A type and what its name alone implies."""

    type: DataType
    charset: str = ""
    is_serial: bool = False


def read_type(reader: TokenReader) -> TypeSpec:  # noqa: C901, PLR0911, PLR0912 - one branch per family of types
    """Read the type of a column, by any name that servers know for it."""
    word = reader.read_name("a type").upper()
    flavour = ""
    if word in _SCHEMAS and reader.accept("."):
        flavour, word = word, reader.read_name("a type").upper()
    is_oracle = flavour == "ORACLE_SCHEMA" or (reader.has_mode(SqlMode.ORACLE) and reader.is_mariadb and not flavour)
    if is_oracle and (oracle_type := _read_oracle(reader, word)):
        return oracle_type
    if word in _INTEGERS:
        return TypeSpec(DataType(_INTEGERS[word], width=_read_length(reader) or 0))
    if word in ("BOOL", "BOOLEAN"):
        return TypeSpec(DataType("tinyint", width=1))
    if word == "SERIAL":
        return TypeSpec(DataType("bigint", is_unsigned=True), is_serial=True)
    if word in _DECIMALS or (word == "NUMBER" and reader.is_mariadb):
        return TypeSpec(_read_decimal(reader))
    if word in _DOUBLES or word in ("FLOAT", "FLOAT4"):
        return TypeSpec(_read_floating(reader, word))
    if word in _TIMES:
        is_maxdb = flavour == "MAXDB_SCHEMA" or (reader.has_mode(SqlMode.MAXDB) and not flavour)
        kind = "datetime" if word == "TIMESTAMP" and is_maxdb else _TIMES[word]
        return TypeSpec(DataType(kind, length=_read_length(reader) or 0))
    if word == "YEAR":
        _read_length(reader)
        return TypeSpec(DataType("year"))
    if word == "BIT":
        return TypeSpec(DataType("bit", length=_read_length(reader) or 1))
    if word == "VECTOR":
        return TypeSpec(DataType("vector", length=_read_length(reader) or 2048))
    if word in ("TEXT", "BLOB"):
        length = _read_length(reader)
        return TypeSpec(DataType(word.lower(), length=length or 0, is_sized=length is not None))
    if word in ("ENUM", "SET"):
        return TypeSpec(DataType(word.lower(), labels=_read_labels(reader)))
    if word in _PLAIN:
        if reader.word == "(":  # GEOMETRY(…), UUID() and the like have no meaning, but JSON(…) is an error
            reader.skip_group()
        return TypeSpec(DataType(_PLAIN[word]))
    return _read_string(reader, word)


def _read_string(reader: TokenReader, word: str) -> TypeSpec:
    """Read a type of text or bytes."""
    charset = ""
    if word == "LONG":
        return _read_long(reader)
    if word == "NATIONAL":
        charset, word = "utf8mb3", reader.read_name("a type").upper()
    elif word in ("NCHAR", "NVARCHAR"):
        charset, word = "utf8mb3", word[1:]
    match word:
        case "CHAR" | "CHARACTER":
            kind = "varchar" if reader.accept_any("VARYING", "VARCHAR", "VARCHARACTER") else "char"
        case "VARCHAR" | "VARCHARACTER":
            kind = "varchar"
        case "VARCHAR2" if reader.is_mariadb:
            kind = "varchar"
        case "BINARY" | "VARBINARY":
            kind = word.lower()
        case _:
            reader.fail(f"{word} is no type that is known")
    length = _read_length(reader)
    if length is None:
        length = 1
    return TypeSpec(DataType(kind, length=length), charset)


def _read_long(reader: TokenReader) -> TypeSpec:
    """Read what comes after LONG."""
    if reader.accept("VARBINARY"):
        return TypeSpec(DataType("mediumblob"))
    if reader.accept_any("CHAR", "CHARACTER"):
        reader.expect("VARYING")
    else:
        reader.accept_any("VARCHAR", "VARCHARACTER")
    return TypeSpec(DataType("mediumtext"))


def _read_oracle(reader: TokenReader, word: str) -> TypeSpec | None:  # noqa: PLR0911 - one per type
    """Read a type of MariaDB's sql_mode=ORACLE."""
    match word:
        case "DATE":
            return TypeSpec(DataType("datetime"))
        case "NUMBER":
            return TypeSpec(_read_decimal(reader) if reader.word == "(" else DataType("double"))
        case "CLOB":
            return TypeSpec(DataType("longtext"))
        case "BLOB" if reader.word != "(":
            return TypeSpec(DataType("longblob"))
        case "RAW":
            return TypeSpec(DataType("varbinary", length=_read_length(reader) or 1))
        case "VARCHAR" | "VARCHAR2" if reader.word != "(":
            return TypeSpec(DataType("varchar", length=4000))
        case _:
            return None


def _read_length(reader: TokenReader) -> int | None:
    """Read a length in brackets; None where there is none."""
    if not reader.accept("("):
        return None
    number = reader.read_length()
    reader.accept_any("CHAR", "BYTE")  # Oracle's
    reader.expect(")")
    return number


def _read_number_pair(reader: TokenReader) -> tuple[int, int | None] | None:
    """Read one or two numbers in brackets; None where there are none."""
    if not reader.accept("("):
        return None
    first, second = reader.read_length(), None
    if reader.accept(","):
        second = reader.read_number()
    reader.expect(")")
    return first, second


def _read_decimal(reader: TokenReader) -> DataType:
    """Read precision and scale of a DECIMAL."""
    precision, scale = _read_number_pair(reader) or (10, 0)
    return DataType("decimal", length=precision or 10, scale=scale or 0)


def _read_floating(reader: TokenReader, word: str) -> DataType:
    """Read a FLOAT, DOUBLE or REAL."""
    if word == "DOUBLE":
        reader.accept("PRECISION")
    digits = _read_number_pair(reader)
    is_double = word in _DOUBLES and not (word == "REAL" and reader.has_mode(SqlMode.REAL_AS_FLOAT))
    if digits and digits[1] is None and digits[0] > _MAX_OF_FLOAT:
        is_double = True
    width, scale = digits if digits and digits[1] is not None else (0, 0)
    return DataType("double" if is_double else "float", width=width, scale=scale or 0)


def normalize_width(type_: DataType, server: ServerProfile) -> DataType:
    """Return the type without a width that servers do not show: the default of the type, and from MySQL 8.0.19 on all
    but that of BOOL, tinyint(1), and of numbers with ZEROFILL."""
    if type_.kind not in WIDTHS:
        return type_
    is_shown = server.has_widths or type_.is_zerofill or _is_bool(type_)
    is_own = type_.width == WIDTHS[type_.kind][type_.is_unsigned]
    return type_ if is_shown and not is_own else replace(type_, width=0)


def _is_bool(type_: DataType) -> bool:
    """Return whether a type is what BOOL stands for: tinyint(1)."""
    return type_.kind == "tinyint" and type_.width == 1 and not type_.is_unsigned


def _read_labels(reader: TokenReader) -> tuple[str | bytes, ...]:
    """Read the labels of an ENUM or SET."""
    reader.expect("(")
    labels: list[str | bytes] = []
    while True:
        labels.append(_read_label(reader))
        if not reader.accept(","):
            break
    reader.expect(")")
    return tuple(labels)


def _read_label(reader: TokenReader) -> str | bytes:
    """Read one label: a text, or bytes as a hexadecimal or binary literal."""
    token = reader.token
    if token.kind is TokenKind.HEX:
        return bytes.fromhex(reader.next().value.rjust(len(token.value) + len(token.value) % 2, "0"))
    if token.kind is TokenKind.BITS:
        return int(reader.next().value or "0", 2).to_bytes((len(token.value) + 7) // 8, "big")
    return reader.read_string()
