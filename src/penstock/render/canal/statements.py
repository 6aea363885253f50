"""Events that are text in the log → their part of an entry: DDL, statements behind rows, marks of XA."""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.binlog.events.block import Block
from penstock.binlog.events.query import query_at
from penstock.canal import protobuf
from penstock.canal.types import EntryType, EventType
from penstock.model import TableName
from penstock.render.canal.tables import names_of
from penstock.schema.ddl import StatementKind, kind_of
from penstock.schema.ddl.named import changed_tables, named_tables
from penstock.schema.dialect import Dialect, Server, Session, SqlMode

_DDL = {
    StatementKind.CREATE_TABLE: EventType.CREATE, StatementKind.ALTER_TABLE: EventType.ALTER,
    StatementKind.DROP_TABLE: EventType.ERASE, StatementKind.TRUNCATE_TABLE: EventType.TRUNCATE,
    StatementKind.RENAME_TABLE: EventType.RENAME, StatementKind.CREATE_INDEX: EventType.CINDEX,
    StatementKind.DROP_INDEX: EventType.DINDEX,
}  # fmt: skip
_DATA = {"INSERT": EventType.INSERT, "REPLACE": EventType.INSERT, "UPDATE": EventType.UPDATE,
         "DELETE": EventType.DELETE}  # fmt: skip
_XA_ENTRIES = {
    "XA START": EntryType.TRANSACTIONBEGIN, "XA END": EntryType.TRANSACTIONEND,
    "XA COMMIT": EntryType.ROWDATA, "XA ROLLBACK": EntryType.ROWDATA,
}  # fmt: skip
_XA_EVENTS = {"XA COMMIT": EventType.XACOMMIT, "XA ROLLBACK": EventType.XAROLLBACK}
_NO_NAMES = TableName("", "")
Wanted = Callable[[TableName], bool]


@dataclass(frozen=True, slots=True)
class Said:
    """What an entry is to say of an event."""

    entry_type: EntryType
    event_type: EventType
    names: bytes
    store: bytes


def said_by(block: Block, event: int, wants: Wanted | None) -> Said | None:
    """Of a QUERY that is a transaction of its own, or is inside of one; None where nobody is to hear of it."""
    query = query_at(block, event)
    for word, entry_type in _XA_ENTRIES.items():
        if query.text[: len(word)].upper() == word:
            return _said_of_xa(query.text, word, entry_type, query.thread)
    dialect = Dialect(Server.of(block.server_version), Session(SqlMode(query.sql_mode or 0)))
    kind = kind_of(query.text, dialect)
    if kind is StatementKind.TRANSACTION or query.text.startswith("#"):
        return None
    tables = named_tables(query.text, kind, dialect, query.database)
    changed = changed_tables(query.text, kind, dialect, query.database) or frozenset(tables)
    if wants is not None and changed and not any(map(wants, changed)):
        return None
    first = _first_word(query.text)
    is_data = kind is StatementKind.DATA and first in _DATA
    event_type = _DATA[first] if is_data else _DDL.get(kind, EventType.QUERY)
    name = tables[-1] if kind is StatementKind.RENAME_TABLE and tables else tables[0] if tables else _NO_NAMES
    if kind in {StatementKind.CREATE_DATABASE, StatementKind.DROP_DATABASE, StatementKind.ALTER_DATABASE}:
        name = TableName(query.database, "")
    store = protobuf.flag(2, event_type) + protobuf.flag(10, not is_data) + protobuf.text(11, query.text)
    return Said(EntryType.ROWDATA, event_type, names_of(name), store + protobuf.text(14, query.database))


def said_of_note(text: str) -> bytes:
    """The statement behind rows."""
    return protobuf.flag(2, EventType.QUERY) + protobuf.text(11, text)


def _said_of_xa(text: str, word: str, entry_type: EntryType, thread: int) -> Said:
    about = (("XA_TYPE", word), ("XA_XID", text[len(word) :]))
    if entry_type is EntryType.TRANSACTIONBEGIN:
        store = b"".join(protobuf.pair(3, *one) for one in about) + protobuf.number(4, thread)
    elif entry_type is EntryType.TRANSACTIONEND:
        store = protobuf.text(2, "0") + b"".join(protobuf.pair(3, *one) for one in about)
    else:
        store = protobuf.flag(2, _XA_EVENTS[word]) + protobuf.text(11, text)
        store += b"".join(protobuf.pair(13, *one) for one in about)
    return Said(entry_type, _XA_EVENTS.get(word, EventType.NONE), b"", store)


def _first_word(text: str) -> str:
    return text.split(None, 1)[0].upper() if text.split() else ""
