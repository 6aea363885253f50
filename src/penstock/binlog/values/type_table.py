"""The one table of column types: how a value lies on the wire, and what it becomes. `docs/types.md` is made from it."""
# ruff: noqa: E501 - a line per type

from dataclasses import dataclass
from enum import Enum, auto


class Family(Enum):
    """Names the kernel that decodes a column."""

    INTEGER = auto()
    REAL = auto()
    DECIMAL = auto()
    BIT = auto()
    YEAR = auto()
    DATE = auto()
    TIME = auto()
    DATETIME = auto()
    TIMESTAMP = auto()
    TEXT = auto()
    BYTES = auto()
    ENUM = auto()
    SET = auto()
    JSON = auto()
    VECTOR = auto()
    UUID = auto()
    INET4 = auto()
    INET6 = auto()


@dataclass(frozen=True, slots=True)
class ColumnType:
    """One line of the table of types. The last two fields are what canal's protocol says of such a column."""

    name: str
    wire: str
    family: Family
    arrow: str
    spark: str
    text: str
    sql_type: int  # of java.sql.Types
    mysql_type: str


# java.sql.Types
_BIT, _TINYINT, _BIGINT, _CHAR, _DECIMAL, _INTEGER, _SMALLINT = -7, -6, -5, 1, 3, 4, 5
_REAL, _DOUBLE, _VARCHAR, _DATE, _TIME, _TIMESTAMP, _BLOB, _CLOB = 7, 8, 12, 91, 92, 93, 2004, 2005

_F = Family
TYPES = (
    ColumnType("TINYINT", "1 byte", _F.INTEGER, "int8, uint8", "tinyint, smallint", "-128", _TINYINT, "tinyint(4)"),
    ColumnType("SMALLINT", "2 bytes little-endian", _F.INTEGER, "int16, uint16", "smallint, int", "-32768", _SMALLINT, "smallint(6)"),
    ColumnType("MEDIUMINT", "3 bytes little-endian", _F.INTEGER, "int32, uint32", "int, bigint", "-8388608", _INTEGER, "mediumint(9)"),
    ColumnType("INT", "4 bytes little-endian", _F.INTEGER, "int32, uint32", "int, bigint", "-2147483648", _INTEGER, "int(11) unsigned"),
    ColumnType("BIGINT", "8 bytes little-endian", _F.INTEGER, "int64, uint64", "bigint, decimal(20,0)", "18446744073709551615", _BIGINT, "bigint(20) unsigned"),
    ColumnType("FLOAT", "IEEE, 4 bytes", _F.REAL, "float32", "float", "1.5", _REAL, "float"),
    ColumnType("DOUBLE", "IEEE, 8 bytes", _F.REAL, "float64", "double", "1.5", _DOUBLE, "double"),
    ColumnType("DECIMAL(p,s)", "groups of 9 digits in 4 bytes, big-endian, sign bit inverted", _F.DECIMAL, "decimal128(p,s), decimal256(p,s) above 38", "decimal(p,s), string above 38", "1.50", _DECIMAL, "decimal(10,2)"),
    ColumnType("BIT(n)", "(n+7)/8 bytes big-endian", _F.BIT, "uint64", "decimal(20,0)", "5", _BIT, "bit(8)"),
    ColumnType("YEAR", "1 byte, years since 1900, 0 for 0000", _F.YEAR, "int16", "smallint", "2024", _VARCHAR, "year(4)"),
    ColumnType("DATE", "3 bytes", _F.DATE, "date32", "date", "2024-02-29", _DATE, "date"),
    ColumnType("TIME(f)", "3 bytes + fraction, big-endian; before 5.6: 3 bytes decimal", _F.TIME, "duration[us]", "interval day to second", "-838:59:59.5", _TIME, "time(1)"),
    ColumnType("DATETIME(f)", "5 bytes + fraction, big-endian; before 5.6: 8 bytes decimal", _F.DATETIME, "timestamp[us]", "timestamp_ntz", "2024-02-29 12:00:00.123", _TIMESTAMP, "datetime(3)"),
    ColumnType("TIMESTAMP(f)", "4 bytes + fraction, big-endian; before 5.6: 4 bytes little-endian", _F.TIMESTAMP, "timestamp[us, UTC]", "timestamp", "2024-02-29 12:00:00", _TIMESTAMP, "timestamp"),
    ColumnType("CHAR(n)", "length 1–2 bytes, then the bytes", _F.TEXT, "string", "string", "text", _CHAR, "char(10)"),
    ColumnType("VARCHAR(n)", "length 1–2 bytes, then the bytes; MariaDB's COMPRESSED: head, zlib", _F.TEXT, "string", "string", "text", _VARCHAR, "varchar(64)"),
    ColumnType("TINYTEXT … LONGTEXT", "length 1–4 bytes, then the bytes; MariaDB's COMPRESSED: head, zlib", _F.TEXT, "string", "string", "text", _CLOB, "text"),
    ColumnType("BINARY(n)", "length 1–2 bytes, then the bytes without the zeros at their end", _F.BYTES, "binary, the zeros restored", "binary", "X'00FF'", _BLOB, "binary(16)"),
    ColumnType("VARBINARY(n)", "length 1–2 bytes, then the bytes", _F.BYTES, "binary", "binary", "X'00FF'", _BLOB, "varbinary(16)"),
    ColumnType("TINYBLOB … LONGBLOB", "length 1–4 bytes, then the bytes; MariaDB's COMPRESSED: head, zlib", _F.BYTES, "binary", "binary", "X'00FF'", _BLOB, "blob"),
    ColumnType("ENUM", "number 1–2 bytes", _F.ENUM, "string, the label; uint16 as a number", "string", "red", _INTEGER, "enum('red','blue')"),
    ColumnType("SET", "bits 1–8 bytes", _F.SET, "string, labels joined by commas; uint64 as a number", "string", "red,blue", _BIT, "set('red','blue')"),
    ColumnType("JSON (MySQL)", "length 4 bytes, then binary JSON", _F.JSON, "string, as the server prints it", "string", '{"a": 1}', _VARCHAR, "json"),
    ColumnType("JSON (MariaDB)", "it is a LONGTEXT", _F.TEXT, "string", "string", '{"a":1}', _CLOB, "longtext"),
    ColumnType("GEOMETRY and its kinds", "length 4 bytes, SRID 4 bytes little-endian, WKB", _F.BYTES, "binary, SRID and WKB as stored", "binary", "X'00000000 0101…'", _BLOB, "geometry"),
    ColumnType("VECTOR(n)", "length 4 bytes (MariaDB 11.7: 2), then floats", _F.VECTOR, "list<float32>", "array<float>", "[1,2.5]", _BLOB, "vector(3)"),
    ColumnType("UUID (MariaDB)", "as BINARY(16), in the order of its text", _F.UUID, "string", "string", "123e4567-e89b-12d3-a456-426655440000", _CHAR, "uuid"),
    ColumnType("INET4 (MariaDB)", "as BINARY(4)", _F.INET4, "string", "string", "10.0.0.1", _CHAR, "inet4"),
    ColumnType("INET6 (MariaDB)", "as BINARY(16)", _F.INET6, "string", "string", "2001:db8::1", _CHAR, "inet6"),
)  # fmt: skip
