"""Statements that a log holds as text, such as DDL; and LOAD DATA of a log in statement format."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntFlag

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import FLAGS_AT, HEADER, Entry, EventType
from penstock.binlog.events.query import are_logged_statements, begin_with, body_at, parse_query_at, text_at
from penstock.model import TableName

_NAME = r"(?:`((?:[^`]|``)+)`|([\w$]+))"
_TABLE = re.compile(
    r"\s*(?:CREATE(?:\s+OR\s+REPLACE)?(?:\s+TEMPORARY)?|ALTER(?:\s+ONLINE|\s+OFFLINE)?(?:\s+IGNORE)?|DROP(?:\s+TEMPORARY)?"
    r"|RENAME|TRUNCATE|ANALYZE|OPTIMIZE|REPAIR)(?:\s+TABLE)?(?:\s+IF\s+(?:NOT\s+)?EXISTS)?\s+"
    rf"{_NAME}(?:\s*\.\s*{_NAME})?",
    re.IGNORECASE,
)
_BACK = re.compile(r"\s*ROLLBACK\s+(?:WORK\s+)?TO\b", re.IGNORECASE)
_SAVEPOINT = re.compile(r"\s*(?:RELEASE\s+)?SAVEPOINT\b", re.IGNORECASE)
_DROPS_DATABASE = re.compile(r"DROP\s+(?:DATABASE|SCHEMA)\b", re.IGNORECASE)
# MySQL's CREATE TABLE … SELECT: the table and its rows are one transaction.
_WITH_ROWS = re.compile(r"(CREATE\s+TABLE\b.*?)\s+START\s+TRANSACTION\s*", re.IGNORECASE | re.DOTALL)
_SUPPRESS_USE = 0x8  # in the flags of the header
_FLAGS_CODE, _FLAGS_SIZE = 0, 5  # of the options of the session, the first of the variables
_VARIABLES_SIZE_AT = 11
_ROWS_FLAGS_AT, _ROWS_FLAGS, _ROWS_SHIFT = 6, 0b110, 25  # of rows events, and how far they are from Options
_COMMENTS = re.compile(r"\s*(?:/\*.*?\*/\s*)*", re.DOTALL)


class Options(IntFlag):
    """Session options that a QUERY event records."""

    NO_FOREIGN_KEY_CHECKS = 1 << 26
    RELAXED_UNIQUE_CHECKS = 1 << 27


_NO_OPTIONS = Options(0)


@dataclass(frozen=True, slots=True)
class StatementEvent:
    """A statement of a block, with what is needed to run it again."""

    event: int  # index in its block
    database: str
    text: str
    is_in_transaction: bool
    needs_database: bool = True  # it must be the one in use
    options: Options = _NO_OPTIONS
    sql_mode: int | None = None
    is_masked: bool = False  # a password in its text is not shown
    is_load: bool = False  # a LOAD DATA whose file is in other events

    @property
    def is_rollback_to_savepoint(self) -> bool:
        """Return whether the statement is a ROLLBACK TO a savepoint: rows before it in the log did not take place."""
        return bool(_BACK.match(self.text))

    @property
    def is_savepoint(self) -> bool:
        """Return whether it sets or releases a savepoint, which changes nothing."""
        return bool(_SAVEPOINT.match(self.text))

    @property
    def drops_database(self) -> bool:
        """Return whether the statement is a DROP DATABASE."""
        return bool(_DROPS_DATABASE.match(self.text, self._begin))

    @property
    def create_table_without_rows(self) -> str | None:
        """Return the plain CREATE TABLE of a CREATE TABLE … SELECT whose rows follow as events, else None."""
        match = _WITH_ROWS.fullmatch(self.text, self._begin)
        return match[1] if match else None

    @property
    def _begin(self) -> int:
        """Return where the text begins, after comments."""
        comment = _COMMENTS.match(self.text)
        return comment.end() if comment else 0

    @property
    def table(self) -> TableName | None:
        """Return the table that a DDL names first, as far as its text says."""
        match = _TABLE.match(self.text, self._begin)
        if not match:
            return None
        names = [name.replace("``", "`") for name in (match[1] or match[2], match[3] or match[4]) if name]
        return TableName(names[0], names[1]) if len(names) > 1 else TableName(self.database, names[0])


def find_statements(block: Block) -> Iterator[StatementEvent]:
    """Yield the statements of a block, each with what is needed to run it again."""
    kind, entry = block.column("kind"), block.column("entry")
    data, starts, _ = block.raw
    for i in np.flatnonzero(are_logged_statements(block)).tolist():
        query = parse_query_at(block, i)
        # Servers put a comment instead of events that a reader would not understand.
        if not query.text.startswith("#"):
            yield StatementEvent(
                i,
                query.database,
                query.text,
                bool(entry[i] == Entry.OTHER),
                not data[starts[i] + FLAGS_AT] & _SUPPRESS_USE,
                _options(body_at(block, i), text_at(block, i)),
                query.sql_mode,
                is_load=bool(kind[i] == EventType.EXECUTE_LOAD_QUERY),
            )


def _options(body: bytes, at: int) -> Options:
    """Return the session options of a QUERY body: servers write them before all other variables, which begin at
    `at`."""
    size = int.from_bytes(body[_VARIABLES_SIZE_AT : _VARIABLES_SIZE_AT + 2], "little")
    if size < _FLAGS_SIZE or body[at] != _FLAGS_CODE:
        return Options(0)
    every = Options.NO_FOREIGN_KEY_CHECKS | Options.RELAXED_UNIQUE_CHECKS
    return Options(int.from_bytes(body[at + 1 : at + _FLAGS_SIZE], "little") & every)


def options_of_rows(block: Block) -> NDArray[np.int64]:
    """Return the session options of each rows event; 0 for all other events.

    rows event: table id 6 | flags 2 (2: no foreign key checks, 4: relaxed unique checks)
    """
    data, starts, _ = block.raw
    rows = np.flatnonzero(block.column("entry") == Entry.ROWS)
    options = np.zeros(len(block), np.int64)
    options[rows] = (data[starts[rows] + HEADER + _ROWS_FLAGS_AT] & _ROWS_FLAGS).astype(np.int64) << _ROWS_SHIFT
    return options


def are_rolled_back(block: Block) -> NDArray[np.bool_]:
    """Return which events end a transaction by ROLLBACK."""
    return begin_with(
        block, (block.column("entry") == Entry.END) & (block.column("kind") == EventType.QUERY), "ROLLBACK"
    )
