"""Keys and constraints, in CREATE TABLE, in ALTER TABLE … ADD, and in CREATE INDEX."""

from dataclasses import dataclass
from enum import Enum

from penstock.schema.ddl.column import ColumnSpec, skip_reference
from penstock.schema.ddl.reader import TokenReader
from penstock.schema.ddl.tokens import TokenKind

_FIRST = {"CONSTRAINT", "PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"}
_ALTER_ENDS = ("PARTITION", "REMOVE")


class KeyKind(Enum):
    """The kind of a key."""

    PRIMARY = "PRIMARY"
    UNIQUE = "UNIQUE"
    PLAIN = "INDEX"
    FULLTEXT = "FULLTEXT"
    SPATIAL = "SPATIAL"
    VECTOR = "VECTOR"


@dataclass(frozen=True, slots=True)
class PartSpec:
    """One part of a key as written; `column` is empty for an expression, `prefix` is 0 for the whole column."""

    column: str
    prefix: int = 0
    is_period: bool = False  # MariaDB's WITHOUT OVERLAPS


@dataclass(frozen=True, slots=True)
class KeySpec:
    """A key as DDL writes it. A foreign key is given as the index that it needs, with `is_implied`: the server does not
    create that index where another one serves."""

    kind: KeyKind
    name: str
    parts: tuple[PartSpec, ...]
    if_not_exists: bool = False
    is_implied: bool = False
    is_hash: bool = False


def is_key(reader: TokenReader) -> bool:
    """Return whether a key or a constraint comes next, and not a column."""
    return reader.word in _FIRST or (reader.word == "VECTOR" and reader.peek(1).word in ("INDEX", "KEY", "("))


def keys_of_column(column: ColumnSpec) -> list[KeySpec]:
    """Return the keys that the definition of a column asks for."""
    parts = (PartSpec(column.name),)
    wanted = [(column.is_primary, KeyKind.PRIMARY), (column.is_unique, KeyKind.UNIQUE)]
    keys = [KeySpec(kind, "", parts) for is_wanted, kind in wanted if is_wanted]
    return [*keys, KeySpec(KeyKind.PLAIN, "", parts, is_implied=True)] if column.is_reference else keys


def read_key(reader: TokenReader) -> KeySpec | None:
    """Read the definition of a key or a constraint in a DDL statement; return None for a constraint without an index,
    such as CHECK."""
    symbol, if_not_exists = "", False
    if reader.accept("CONSTRAINT"):
        if_not_exists = reader.accept("IF", "NOT", "EXISTS")
        if reader.word not in _FIRST:
            symbol = reader.read_name()
    if reader.accept("CHECK"):
        reader.skip_group()
        if reader.accept("NOT"):
            reader.expect("ENFORCED")
        reader.accept("ENFORCED")
        return None
    if reader.accept("FOREIGN"):
        return _read_foreign_key(reader, symbol, if_not_exists)
    if reader.accept("PRIMARY"):
        reader.expect("KEY")
        return read_index(reader, KeyKind.PRIMARY, "", if_not_exists)
    return read_index(reader, read_key_kind(reader), symbol, if_not_exists)


def read_key_kind(reader: TokenReader) -> KeyKind:
    """Read `[UNIQUE | FULLTEXT | SPATIAL | VECTOR] [INDEX | KEY]`."""
    word = reader.accept_any("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR")
    if not reader.accept_any("INDEX", "KEY") and not word:
        reader.fail("INDEX or KEY is missing")
    return KeyKind(word or "INDEX")


def read_index(reader: TokenReader, kind: KeyKind, symbol: str = "", if_not_exists: bool = False) -> KeySpec:
    """Read `[IF NOT EXISTS] [name] [USING method] (parts) options`."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS") or if_not_exists
    name = ""
    if reader.word not in ("(", "USING", "TYPE") or reader.token.kind is TokenKind.NAME:
        name = reader.read_name()
    method = read_index_method(reader)
    parts = read_key_parts(reader)
    method = read_key_options(reader) or method
    name = "PRIMARY" if kind is KeyKind.PRIMARY else name or symbol
    return KeySpec(kind, name, parts, if_not_exists, is_hash=method == "HASH")


def read_index_method(reader: TokenReader) -> str:
    """Read `USING method`; empty where there is none."""
    return reader.read_name("BTREE, HASH or RTREE").upper() if reader.accept_any("USING", "TYPE") else ""


def read_key_options(reader: TokenReader) -> str:
    """Read the options of a key and return the method, the only one that matters."""
    reader.skip_clause(*_ALTER_ENDS, "USING", "TYPE")
    method = read_index_method(reader)
    reader.skip_clause(*_ALTER_ENDS)
    return method


def read_key_parts(reader: TokenReader) -> tuple[PartSpec, ...]:
    """Read the parts of a key, in brackets."""
    reader.expect("(")
    parts: list[PartSpec] = []
    while True:
        parts.append(_read_key_part(reader))
        if not reader.accept(","):
            break
    reader.expect(")")
    return tuple(parts)


def _read_key_part(reader: TokenReader) -> PartSpec:
    """Read one part of a key: a column with an optional prefix, or an expression."""
    if reader.word == "(":
        reader.skip_group()
        reader.accept_any("ASC", "DESC")
        return PartSpec("")
    column, prefix = reader.read_name("a column's name"), 0
    if reader.accept("("):
        prefix = reader.read_number()
        reader.expect(")")
    if reader.accept("WITHOUT", "OVERLAPS"):
        return PartSpec(column, is_period=True)
    reader.accept_any("ASC", "DESC")
    return PartSpec(column, prefix)


def _read_foreign_key(reader: TokenReader, symbol: str, if_not_exists: bool) -> KeySpec:
    """Read a foreign key, and return the index that it needs."""
    reader.expect("KEY")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS") or if_not_exists
    name = "" if reader.word == "(" else reader.read_name()
    parts = read_key_parts(reader)
    reader.expect("REFERENCES")
    skip_reference(reader)
    return KeySpec(KeyKind.PLAIN, symbol or name, parts, if_not_exists, is_implied=True)
