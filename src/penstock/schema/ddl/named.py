"""The tables that a statement is about, also of one that is not understood beyond their names."""

from collections.abc import Iterator

from penstock.model import TableName
from penstock.schema.ddl.kind import StatementKind
from penstock.schema.ddl.problem import DdlError
from penstock.schema.ddl.reader import Reader
from penstock.schema.dialect import Dialect

_ONE = {StatementKind.CREATE_TABLE, StatementKind.ALTER_TABLE, StatementKind.CREATE_SEQUENCE}
_SEVERAL = {StatementKind.DROP_TABLE, StatementKind.DROP_SEQUENCE, StatementKind.RENAME_TABLE}
_INDEX = {StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX}


def named_tables(text: str, kind: StatementKind, dialect: Dialect, database: str = "") -> tuple[TableName, ...]:
    """None where no table can be told."""
    try:
        return tuple(_names(Reader(text, dialect, database), kind))
    except DdlError:
        return ()


def _names(reader: Reader, kind: StatementKind) -> Iterator[TableName]:
    if kind in _INDEX:
        _go_behind(reader, "ON")
        yield reader.table()
    elif kind in _ONE or kind in _SEVERAL:
        _go_behind(reader, "TABLE", "TABLES", "SEQUENCE")
        reader.accept("IF", "NOT", "EXISTS")
        reader.accept("IF", "EXISTS")
        yield reader.table()
        while kind in _SEVERAL and not reader.is_done:
            if reader.accept_any(",", "TO"):
                yield reader.table()
            else:
                reader.next()


def _go_behind(reader: Reader, *words: str) -> None:
    while not reader.accept_any(*words):
        if reader.is_done:
            reader.fail(f"{words[0]} is missing")
        reader.next()
