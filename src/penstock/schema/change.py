"""A statement of the log that changes tables, with all that decides what it means."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from penstock.model import Position
from penstock.schema.dialect import SqlMode, SqlSession

_SESSION = SqlSession()


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A statement of the log that changes tables, with the database and the session values that decide what it means.
    `position` is the end of the statement: from there on the tables are as it leaves them."""

    position: Position
    text: str
    database: str = ""
    session: SqlSession = _SESSION
    server_id: int = 0


def change_to_plain(change: SchemaChange) -> list[Any]:
    """Return a change as plain data: `[epoch, file, offset, time, server id, database, text, [session values, …]]`."""
    at, session = change.position, change.session
    facts = [int(session.sql_mode), *astuple(session)[1:]]
    return [at.epoch, at.file, at.offset, at.timestamp, change.server_id, change.database, change.text, facts]


def change_from_plain(row: Sequence[Any]) -> SchemaChange:
    """Return the change that `change_to_plain` made plain data of."""
    epoch, file, offset, timestamp, server_id, database, text, facts = row
    mode, *others = facts
    session = SqlSession(SqlMode(mode), *others)
    return SchemaChange(Position(file, offset, timestamp, epoch), text, database, session, server_id)
