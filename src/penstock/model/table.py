"""The shape of a table at one point of the log."""

import re
from dataclasses import dataclass, replace
from enum import IntEnum

from penstock.errors import ConfigurationError, SchemaError

_HASH_NAME = re.compile(r"DB_ROW_HASH_[0-9]+")  # as the server writes it: a name in other letters is a user's
_WIDE = {"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"}  # charsets with characters beyond three bytes of UTF-8


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
    BLOB_COMPRESSED = 140  # MariaDB's, as the next
    VARCHAR_COMPRESSED = 141
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
    """A table with its database; the database is called schema, as in the server's own catalogue.

    name = TableName.parse("shop.product")
    name == TableName("shop", "product")  # True
    """

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    @classmethod
    def parse(cls, text: str) -> "TableName":
        """Parse `database.table`; raise ConfigurationError for another form."""
        schema, dot, table = text.strip().partition(".")
        if not (schema and dot and table):
            raise ConfigurationError(
                f"not a table name: {text!r}; write it as database.table, for example shop.product"
            )
        return cls(schema, table)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table, with its type as the log has it. `size` is what the type's metadata says: length in bytes,
    fraction digits, or length bytes of a blob.

        Column("id", WireType.LONG, unsigned=True, nullable=False)
    """

    name: str
    type: WireType
    size: int = 0
    precision: int = 0
    scale: int = 0
    unsigned: bool = False
    nullable: bool = True
    charset: str = ""  # "binary" for bytes; empty for what is not text, and for text whose log does not say
    labels: tuple[str, ...] = ()  # of ENUM and SET; empty when the log does not say
    declared: str = ""  # what the log does not tell from BINARY and VARBINARY: uuid, inet4, inet6, vector
    geometry: int = 0  # which kind: 0 any, 1 point, 2 line, 3 polygon …
    dimension: int = 0  # of a vector
    is_visible: bool = True
    is_hidden: bool = False  # a column of the server's own, which nobody declared and nobody is to see


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns and the key of a table. Where a log has no names, its columns are called @1, @2 and so on, as the
    servers' own tools do.

        schema = TableSchema(TableName("shop", "product"), (Column("id", WireType.LONG),), key=("id",))
        schema.column("id")
    """

    name: TableName
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    has_signs: bool = True  # it is known which numbers are unsigned; a log without metadata does not say
    key_prefixes: tuple[int, ...] = ()  # characters of each key column that count, 0 for all; empty: all of all

    @property
    def declared_columns(self) -> tuple[Column, ...]:
        """Return the declared columns; the rows of the log also have columns that the server added by itself."""
        return tuple(column for column in self.columns if not column.is_hidden)

    def with_name(self, name: TableName) -> "TableSchema":
        """Return the same table with another name."""
        return TableSchema(name, self.columns, self.key, self.has_signs, self.key_prefixes)

    def with_hashes_hidden(self) -> "TableSchema":
        """Return this table of MariaDB with the columns hidden in which the server stores the hashes of long unique
        keys. They come last, and are called DB_ROW_HASH_1 and so on; the log does not say that they were not declared.
        """
        columns = list(self.columns)
        for i in range(len(columns) - 1, -1, -1):
            if not is_hash_column(columns[i]):
                break
            columns[i] = replace(columns[i], is_hidden=True)
        return self if columns == list(self.columns) else replace(self, columns=tuple(columns))

    def column(self, name: str) -> Column | None:
        """Return the column of this name; None when there is none."""
        return next((column for column in self.columns if column.name == name), None)

    def with_exact_labels(self) -> "TableSchema":
        """Return the table for rows of a log without labels: where the catalogue cannot tell them, the values stay
        numbers."""
        columns = (column if are_exact_labels(column) else replace(column, labels=()) for column in self.columns)
        return replace(self, columns=tuple(columns))

    def merged_with(self, known: "TableSchema") -> "TableSchema":
        """Return this schema, as the log has it, with what `known` (from a catalogue or a schema history) says beyond
        it."""
        if len(known.columns) != len(self.columns):
            raise SchemaError(
                f"table {self.name} has {len(self.columns)} columns in the log and {len(known.columns)} now: it was"
                " altered in between, and this log does not name its columns"
            )
        columns = tuple(
            _merge_column(self, mine, theirs) for mine, theirs in zip(self.columns, known.columns, strict=True)
        )
        key = known.key if is_nameless(self) else self.key
        return replace(self, columns=columns, key=key, has_signs=self.has_signs or known.has_signs)


def is_hash_column(column: Column) -> bool:
    """Return whether MariaDB stores in a column the hash of a unique key over a BLOB, a TEXT, or too much else ("long
    unique")."""
    return column.type is WireType.LONGLONG and column.unsigned and _HASH_NAME.fullmatch(column.name) is not None


def is_nameless(table: TableSchema) -> bool:
    """Return whether the log gave no names to the columns of a table."""
    return bool(table.columns) and table.columns[0].name == "@1"


def _merge_column(logged: TableSchema, mine: Column, theirs: Column) -> Column:
    """Return a column of the log with what the same column of a catalogue says beyond it."""
    table = logged.name
    if mine.name[:1] != "@" and mine.name != theirs.name:
        raise SchemaError(f"column {mine.name} of table {table} in the log is now called {theirs.name}: it was altered")
    digits = (mine.precision, mine.scale) == (theirs.precision, theirs.scale) or mine.type is not WireType.NEWDECIMAL
    if mine.type is not theirs.type or not digits or (mine.type is not WireType.BLOB and mine.size != theirs.size):
        raise SchemaError(
            f"column {theirs.name} of table {table} is {mine.type.name} in the log and {theirs.type.name} now"
        )
    return replace(
        mine,
        name=theirs.name,
        unsigned=mine.unsigned if logged.has_signs else theirs.unsigned,
        charset=mine.charset or theirs.charset,
        labels=mine.labels or (theirs.labels if are_exact_labels(theirs) else ()),
        declared=theirs.declared,
        is_hidden=mine.is_hidden or theirs.is_hidden,
    )


def are_exact_labels(column: Column) -> bool:
    """Return whether all labels are known exactly: a catalogue shows a question mark for characters beyond three
    bytes."""
    return column.charset not in _WIDE or not any("?" in label for label in column.labels)
