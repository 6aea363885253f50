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

from penstock.binlog.values.column import Family, kernel_family_of
from penstock.model import Column

Key = tuple[str, ...]
"""A key as SQL literals, one per key column."""

_NUMBERS = {Family.INTEGER, Family.YEAR, Family.BIT}
_TEXTS = {
    Family.DECIMAL, Family.DATE, Family.TIME, Family.DATETIME, Family.TIMESTAMP, Family.UUID, Family.INET4,
    Family.INET6,
}  # fmt: skip
_BYTES = {Family.TEXT, Family.BYTES}


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of the key by which a table is cut into chunks."""

    name: str
    family: Family
    charset: str

    @classmethod
    def of(cls, column: Column) -> "KeyColumn | None":
        """Return a column as a key column; None when ranges of it cannot be written exactly."""
        family = kernel_family_of(column)[0]
        if family not in _NUMBERS | _TEXTS | _BYTES:
            return None
        return cls(column.name, family, column.charset)

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
            return str(int(text))
        if self.family in _BYTES:
            introducer = f"_{self.charset} " if self.family is Family.TEXT else ""
            return f"{introducer}x'{text}'"
        return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """Return an identifier in SQL."""
    return "`" + name.replace("`", "``") + "`"


def after(columns: Sequence[KeyColumn], key: Key) -> str:
    """Return the condition for rows behind a key. Row constructors would be simpler, but no index serves them."""
    return _compare(columns, key, ">", is_equal_included=False)


def up_to(columns: Sequence[KeyColumn], key: Key) -> str:
    """Return the condition for rows up to a key, that one included."""
    return _compare(columns, key, "<", is_equal_included=True)


def _compare(columns: Sequence[KeyColumn], key: Key, operator: str, *, is_equal_included: bool) -> str:
    """Return a comparison column by column, that of the first one outside, where the optimizer takes it as a range."""
    name, value = columns[0].quoted, key[0]
    if len(columns) == 1:
        return f"{name} {operator}{'=' if is_equal_included else ''} {value}"
    rest = _compare(columns[1:], key[1:], operator, is_equal_included=is_equal_included)
    return f"{name} {operator}= {value} AND ({name} {operator} {value} OR {rest})"
