"""CREATE TABLE, CREATE SEQUENCE.

A statement that takes its columns from a SELECT says too little. Servers whose log is in row format never write such a
one: MySQL and MariaDB log the finished table's own CREATE TABLE, and its rows apart.
"""

from dataclasses import dataclass, replace

from penstock.model import TableName
from penstock.schema.ddl.column import ColumnSpec, read_column
from penstock.schema.ddl.data_type import DataType
from penstock.schema.ddl.key import KeySpec, is_key, keys_of_column, read_key
from penstock.schema.ddl.option import NO_OPTIONS, TableOptions, read_options
from penstock.schema.ddl.reader import TokenReader

_SELECTS = ("AS", "SELECT", "WITH", "VALUES", "TABLE", "IGNORE", "REPLACE")
_SEQUENCE_WIDTH = 21


@dataclass(frozen=True, slots=True)
class Period:
    """MariaDB's PERIOD FOR: two columns."""

    name: str
    start: str
    end: str


@dataclass(frozen=True, slots=True)
class CreateTable:
    """A parsed CREATE TABLE or CREATE SEQUENCE."""

    name: TableName
    columns: tuple[ColumnSpec, ...] = ()
    keys: tuple[KeySpec, ...] = ()  # those in columns too, in the order of the text
    options: TableOptions = NO_OPTIONS
    like: TableName | None = None
    periods: tuple[Period, ...] = ()
    is_temporary: bool = False
    replaces: bool = False
    if_not_exists: bool = False


def read_create_table(reader: TokenReader) -> CreateTable:
    """Read `CREATE [OR REPLACE] [TEMPORARY] TABLE …`."""
    reader.expect("CREATE")
    replaces = reader.accept("OR", "REPLACE")
    is_temporary = reader.accept("TEMPORARY")
    reader.expect("TABLE")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.read_table()
    parts = _Definitions()
    like = _read_like(reader)
    if like is None:
        if reader.word == "(" and reader.peek(1).word not in ("SELECT", "WITH", "VALUES", "("):
            _read_elements(reader, parts)
        options = read_options(reader)
        if reader.word == "PARTITION":
            _skip_partitions(reader)
        if not parts.columns or reader.word in (*_SELECTS, "("):
            reader.fail("the columns of this table come from a SELECT, and only a log in row format says them")
    else:
        options = NO_OPTIONS
    reader.expect_end()
    return CreateTable(
        name, tuple(parts.columns), tuple(parts.keys), options, like, tuple(parts.periods), is_temporary, replaces,
        if_not_exists,
    )  # fmt: skip


class _Definitions:
    """The columns, keys and periods between the brackets, in their order."""

    def __init__(self) -> None:
        self.columns: list[ColumnSpec] = []
        self.keys: list[KeySpec] = []
        self.periods: list[Period] = []


def _read_like(reader: TokenReader) -> TableName | None:
    """Read `LIKE table`, with or without brackets; None where it does not come next."""
    if reader.accept("LIKE"):
        return reader.read_table()
    if reader.accept("(", "LIKE"):
        name = reader.read_table()
        reader.expect(")")
        return name
    return None


def _read_elements(reader: TokenReader, parts: _Definitions) -> None:
    """Read the columns, keys and periods between the brackets of a CREATE TABLE."""
    reader.expect("(")
    while True:
        if is_key(reader):
            key = read_key(reader)
            if key is not None:
                parts.keys.append(key)
        elif reader.sees("PERIOD", "FOR"):
            parts.periods.append(read_period(reader))
        else:
            column = read_column(reader)
            parts.columns.append(column)
            parts.keys += keys_of_column(column)
        if not reader.accept(","):
            break
    if reader.word != ")":
        reader.fail_as_unknown(f"column {parts.columns[-1].name}" if parts.columns else "the table")
    reader.next()


def read_period(reader: TokenReader) -> Period:
    """Read `PERIOD FOR name (start, end)`."""
    reader.expect("PERIOD", "FOR")
    name = reader.read_name()
    reader.expect("(")
    start = reader.read_name()
    reader.expect(",")
    end = reader.read_name()
    reader.expect(")")
    return Period(name, start, end)


def _skip_partitions(reader: TokenReader) -> None:
    """Skip the partitions of a CREATE TABLE."""
    while not reader.is_done and reader.word not in (*_SELECTS, ";"):
        if reader.word == "(":
            reader.skip_group()
        else:
            reader.next()


def _sequence_columns(kind: str, is_unsigned: bool) -> tuple[ColumnSpec, ...]:
    """Return the columns of a sequence, which are shown one wider than others."""
    value = DataType(kind, is_unsigned=is_unsigned, width=_SEQUENCE_WIDTH if kind == "bigint" else 0)
    step = DataType("bigint", width=_SEQUENCE_WIDTH)
    types = {
        "next_not_cached_value": value, "minimum_value": value, "maximum_value": value, "start_value": value,
        "increment": step, "cache_size": replace(step, is_unsigned=True),
        "cycle_option": DataType("tinyint", is_unsigned=True, width=1), "cycle_count": step,
    }  # fmt: skip
    return tuple(ColumnSpec(name, type_, is_nullable=False) for name, type_ in types.items())


def read_create_sequence(reader: TokenReader) -> CreateTable:
    """Read CREATE SEQUENCE: MariaDB's sequences are tables of one row, whose changes are in the log as rows."""
    reader.expect("CREATE")
    replaces = reader.accept("OR", "REPLACE")
    is_temporary = reader.accept("TEMPORARY")
    reader.expect("SEQUENCE")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.read_table()
    kind, is_unsigned = "bigint", False
    if reader.accept("AS"):
        kind = {"INTEGER": "int"}.get(reader.word, reader.word.lower())
        reader.next()
        is_unsigned = reader.accept("UNSIGNED")
    columns = _sequence_columns(kind, is_unsigned)
    return CreateTable(name, columns, is_temporary=is_temporary, replaces=replaces, if_not_exists=if_not_exists)
