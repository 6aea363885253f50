"""How the values of key columns are written in SQL, so that the server compares them as it orders them.

| type                                  | read as             | written as                                          |
| ------------------------------------- | ------------------- | --------------------------------------------------- |
| integers, YEAR, BIT                   | a number            | the number                                          |
| DECIMAL, DATE, DATETIME, TIMESTAMP …  | its text            | the text in quotes                                  |
| CHAR, VARCHAR, TEXT                   | HEX of its bytes    | those bytes in the column's charset: `_latin1 x'…'` |
| BINARY, VARBINARY, BLOB               | HEX of its bytes    | those bytes: `x'…'`                                 |
| UUID, INET4, INET6 (MariaDB)          | its text            | the text in quotes                                  |

A literal is compared in the collation of the column, so ranges are those of the server's own index. ENUM and SET are
ordered by number and compared by text, FLOAT and DOUBLE are not exact: a key is used up to the first of these.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from penstock.binlog.values.column import Family, kernel_family_of
from penstock.errors import SchemaError
from penstock.model import Column

Key = tuple[str, ...]
"""A key as texts, one per key column, as `KeyColumn.expression` reads them; they become SQL in `KeyColumn.literal`."""

_NUMBERS = {Family.INTEGER, Family.YEAR, Family.BIT}
_TEXTS = {
    Family.DECIMAL, Family.DATE, Family.TIME, Family.DATETIME, Family.TIMESTAMP, Family.UUID, Family.INET4,
    Family.INET6,
}  # fmt: skip
_BYTES = {Family.TEXT, Family.BYTES}
_CASTS = {
    Family.DATE: "DATE", Family.TIME: "TIME(6)", Family.DATETIME: "DATETIME(6)",
    Family.TIMESTAMP: "DATETIME(6)", Family.UUID: "UUID", Family.INET4: "INET4", Family.INET6: "INET6",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of the key by which a table is cut into chunks."""

    name: str
    family: Family
    charset: str
    collation: str = ""
    scale: int = 0

    @classmethod
    def of(cls, column: Column, collation: str = "") -> "KeyColumn | None":
        """Return a column as a key column; None when ranges of it cannot be written exactly."""
        family = kernel_family_of(column)[0]
        if family not in _NUMBERS | _TEXTS | _BYTES:
            return None
        return cls(column.name, family, column.charset, collation, column.scale)

    @property
    def is_integer(self) -> bool:
        """Return whether keys between two keys can be computed."""
        return self.family is Family.INTEGER

    @property
    def quoted(self) -> str:
        """Return the name of the column in SQL."""
        return quote_name(self.name)

    @property
    def expression(self) -> str:
        """Return the SQL that reads a value as text."""
        if self.family in _BYTES:
            return f"HEX({self.quoted})"
        kind = "SIGNED" if self.family is Family.YEAR else "UNSIGNED" if self.family is Family.BIT else "CHAR"
        return f"CAST({self.quoted} AS {kind})"

    def literal(self, text: str) -> str:
        """Return the SQL literal of a value that `expression` has read."""
        if self.family in _NUMBERS:
            return _read_number(text)
        if self.family in _BYTES:
            introducer = f"_{self.charset} " if self.family is Family.TEXT else ""
            return f"{introducer}x'{_read_hex(text)}'"
        return _quote_text(text)

    def typed_value(self, text: str) -> str:
        """Return the SQL for a value of this column's type, order and collation, from the text that `value_text` makes
        of it."""
        match self.family:
            case Family.INTEGER | Family.YEAR | Family.BIT:
                return _read_number(text)
            case Family.TEXT:
                value = f"CONVERT(_utf8mb4 x'{text.encode().hex()}' USING {self.charset})"
                return f"{value} COLLATE {self.collation}" if self.collation else value
            case Family.BYTES:
                return f"x'{_read_hex(text)}'"
            case _:
                return self._cast(text)

    def typed_limit(self, text: str) -> str:
        """Return the SQL for a limit beside a `typed_value`. Without a column between them, the server would compare a
        DECIMAL or a TIME with a text as no index does."""
        return self.literal(text) if self.family in _NUMBERS | _BYTES else self._cast(text)

    def _cast(self, text: str) -> str:
        """Return a text as a value of this column's type."""
        kind = f"DECIMAL(65, {self.scale})" if self.family is Family.DECIMAL else _CASTS[self.family]
        return f"CAST({_quote_text(text)} AS {kind})"

    @property
    def order_fingerprint(self) -> str:
        """Return all that the order of values of this column depends on, as one text: name, type, charset, collation
        and scale. Chunks that were planned with another fingerprint do not fit the table any more."""
        return " ".join([self.name, self.family.name, self.charset, self.collation, str(self.scale)])


def value_text(value: Any) -> str:
    """Return a value of a key column, as the stream decodes it, as the text that `KeyColumn.typed_value` takes."""
    match value:
        case bytes():
            return value.hex()
        case timedelta():
            microseconds = value // timedelta(microseconds=1)
            sign, microseconds = "-" if microseconds < 0 else "", abs(microseconds)
            minutes, rest = divmod(microseconds, 60_000_000)
            return f"{sign}{minutes // 60}:{minutes % 60:02}:{rest // 1_000_000:02}.{rest % 1_000_000:06}"
        case datetime():
            return value.replace(tzinfo=None).isoformat(" ", "microseconds")
        case Decimal():
            return format(value, "f")
        case _:
            return str(value)


def _read_number(text: str) -> str:
    """Return the SQL of an integer. Raises SchemaError for any other text: it may come from a client."""
    try:
        return str(int(text))
    except ValueError:
        raise SchemaError(f"not a number of a key: {text[:50]!r}") from None


def _read_hex(text: str) -> str:
    """Return hex digits. Raises SchemaError for any other text: it may come from a client."""
    try:
        return bytes.fromhex(text).hex()
    except ValueError:
        raise SchemaError(f"not the bytes of a key: {text[:50]!r}") from None


def _quote_text(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """Return an identifier in SQL."""
    return "`" + name.replace("`", "``") + "`"


def after(values: Sequence[str], limit: Sequence[str]) -> str:
    """Return the condition for rows behind a key, given columns, or other values, and the limit in SQL. Row
    constructors would be simpler, but no index serves them."""
    return _compare(values, limit, ">", is_equal_included=False)


def up_to(values: Sequence[str], limit: Sequence[str]) -> str:
    """Return the condition for rows up to and including a key."""
    return _compare(values, limit, "<", is_equal_included=True)


def _compare(values: Sequence[str], limit: Sequence[str], operator: str, *, is_equal_included: bool) -> str:
    """Return the SQL predicate that compares a composite key with a limit. With the columns a, b and the limit 1, 2:

        a > 1 OR a = 1 AND (b > 2)

    Where `b` is only compared beside one value of `a`, the server reads a range of the index: also of a table in which
    many rows have the same `a`, no row before the limit is read.
    """
    value, bound = values[0], limit[0]
    if len(limit) == 1:
        return f"{value} {operator}{'=' if is_equal_included else ''} {bound}"
    rest = _compare(values[1:], limit[1:], operator, is_equal_included=is_equal_included)
    return f"{value} {operator} {bound} OR {value} = {bound} AND ({rest})"
