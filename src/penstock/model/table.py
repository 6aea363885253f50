"""The shape of a table at one point of the log."""

from dataclasses import dataclass
from enum import IntEnum

from penstock.errors import ConfigurationError


class WireType(IntEnum):
    """Column type codes of the protocol, with CHAR, ENUM and SET already told apart."""

    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    VECTOR = 242
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    BLOB = 252
    STRING = 254
    GEOMETRY = 255


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """A table with its database; the database is called schema, as in the server's own catalogue."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    @classmethod
    def parse(cls, text: str) -> "TableName":
        schema, dot, table = text.strip().partition(".")
        if not (schema and dot and table):
            raise ConfigurationError(
                f"not a table name: {text!r}; write it as database.table, for example shop.product"
            )
        return cls(schema, table)


@dataclass(frozen=True, slots=True)
class Column:
    """`size` is what the type's metadata says: length in bytes, fraction digits, or length bytes of a blob."""

    name: str
    type: WireType
    size: int = 0
    precision: int = 0
    scale: int = 0
    unsigned: bool = False
    nullable: bool = True
    charset: str = ""  # empty for what is not text; "binary" for bytes
    labels: tuple[str, ...] = ()  # of ENUM and SET


@dataclass(frozen=True, slots=True)
class TableSchema:
    name: TableName
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)
