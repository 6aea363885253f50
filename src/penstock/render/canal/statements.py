"""Events that are text in the log → their part of an entry: DDL, statements behind rows, marks of XA.

A DDL has one type and one name, those of the first thing that it does, as in canal:

    ALTER TABLE a ADD INDEX, ADD UNIQUE, ADD PRIMARY KEY     CINDEX a
    ALTER TABLE a DROP INDEX, DROP CONSTRAINT                DINDEX a
    ALTER TABLE a RENAME TO b                                RENAME b
    RENAME TABLE a TO b, c TO d                              RENAME b
    CREATE, ALTER and DROP VIEW                              no entry at all
    accounts                                                 none unless they are asked for, then QUERY
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from penstock.binlog.events.block import Block
from penstock.binlog.events.query import parse_query_at
from penstock.canal import protobuf
from penstock.canal.schema import number_of
from penstock.canal.types import CanalEventType, EntryType
from penstock.model import TableName
from penstock.render.canal.tables import encode_names
from penstock.schema.ddl import DdlError, StatementKind, classify_statement_text, parse_statement
from penstock.schema.ddl.clause import AddKey, AlterTable, DropKey, RenameTo
from penstock.schema.ddl.data_tables import find_data_verb
from penstock.schema.ddl.secret import mask_secrets
from penstock.schema.ddl.statement import RenameTables
from penstock.schema.ddl.subject import find_subject
from penstock.schema.dialect import ServerProfile, SqlDialect, SqlMode, SqlSession

_EVENT_TYPE, _IS_DDL, _SQL, _DDL_SCHEMA_NAME = (
    number_of("RowChange", name) for name in ("eventType", "isDdl", "sql", "ddlSchemaName")
)
_DDL = {
    StatementKind.CREATE_TABLE: CanalEventType.CREATE, StatementKind.ALTER_TABLE: CanalEventType.ALTER,
    StatementKind.DROP_TABLE: CanalEventType.ERASE, StatementKind.TRUNCATE_TABLE: CanalEventType.TRUNCATE,
    StatementKind.RENAME_TABLE: CanalEventType.RENAME, StatementKind.CREATE_INDEX: CanalEventType.CINDEX,
    StatementKind.DROP_INDEX: CanalEventType.DINDEX,
}  # fmt: skip
_DATA = {"INSERT": CanalEventType.INSERT, "REPLACE": CanalEventType.INSERT, "UPDATE": CanalEventType.UPDATE,
         "DELETE": CanalEventType.DELETE, "LOAD": CanalEventType.INSERT}  # fmt: skip
_XA_ENTRIES = {
    "XA START": EntryType.TRANSACTIONBEGIN, "XA END": EntryType.TRANSACTIONEND,
    "XA COMMIT": EntryType.ROWDATA, "XA ROLLBACK": EntryType.ROWDATA,
}  # fmt: skip
_XA_EVENTS = {"XA COMMIT": CanalEventType.XACOMMIT, "XA ROLLBACK": CanalEventType.XAROLLBACK}
_VIEWS = {StatementKind.CREATE_VIEW, StatementKind.ALTER_VIEW, StatementKind.DROP_VIEW}
WantsTable = Callable[[TableName], bool]


@dataclass(frozen=True, slots=True)
class EntryContent:
    """The types, the encoded table names and the encoded store value of an entry that is made of a statement."""

    entry_type: EntryType
    event_type: CanalEventType
    names: bytes
    store: bytes


def build_statement_entry(
    block: Block, event: int, wants_table: WantsTable | None, *, accounts: bool = False
) -> EntryContent | None:
    """Return the entry for a QUERY event: DDL, data in statement format, or XA.

    Returns None for statements that clients do not see: views, transaction control, tables that `wants` rejects, and
    accounts unless `accounts` is set.
    """
    query = parse_query_at(block, event)
    for word, entry_type in _XA_ENTRIES.items():
        if query.text[: len(word)].upper() == word:
            return _build_xa_entry(query.text, word, entry_type, query.thread)
    dialect = SqlDialect(
        ServerProfile.from_version_text(block.server_version), SqlSession(SqlMode(query.sql_mode or 0))
    )
    kind = classify_statement_text(query.text, dialect)
    if kind is StatementKind.TRANSACTION or kind in _VIEWS or query.text.startswith("#"):
        return None
    if kind is StatementKind.ACCOUNT and not accounts:
        return None
    names = find_subject(query.text, kind, dialect, query.database).names
    if wants_table is not None and not any(map(wants_table, names)):
        return None
    verb = find_data_verb(query.text, dialect) if kind is StatementKind.DATA else ""
    is_data = verb in _DATA
    event_type, name = _DATA[verb] if is_data else _DDL.get(kind, CanalEventType.QUERY), names[0]
    if kind in {StatementKind.ALTER_TABLE, StatementKind.RENAME_TABLE}:
        event_type, name = _first_alteration(query.text, kind, dialect, query.database) or (event_type, name)
    text = mask_secrets(query.text, kind, dialect).rstrip(" ")
    store = (
        protobuf.encode_number_always(_EVENT_TYPE, event_type)
        + protobuf.encode_number_always(_IS_DDL, not is_data)
        + protobuf.encode_text(_SQL, text)
    )
    return EntryContent(
        EntryType.ROWDATA,
        event_type,
        encode_names(name),
        store + protobuf.encode_text(_DDL_SCHEMA_NAME, query.database),
    )


def _first_alteration(
    text: str, kind: StatementKind, dialect: SqlDialect, database: str
) -> tuple[CanalEventType, TableName] | None:
    """Return the type and table of the first thing an ALTER TABLE or RENAME TABLE does; None if that is an ordinary
    ALTER or cannot be parsed.
    """
    try:
        statement = parse_statement(text, kind, dialect, database)
    except DdlError:
        return None
    match statement:
        case RenameTables(((_, name), *_)) | AlterTable(_, (RenameTo(name), *_)):
            return CanalEventType.RENAME, name
        case AlterTable(name, (AddKey(key), *_)) if not key.is_implied:
            return CanalEventType.CINDEX, name
        case AlterTable(name, (DropKey(key), *_)) if key != "PRIMARY":
            return CanalEventType.DINDEX, name
        case _:
            return None


def encode_note(text: str) -> bytes:
    """Encode the statement that produced rows as the store value of an entry."""
    return protobuf.encode_number_always(_EVENT_TYPE, CanalEventType.QUERY) + protobuf.encode_text(_SQL, text)


def _build_xa_entry(text: str, word: str, entry_type: EntryType, thread: int) -> EntryContent:
    """Return the entry for XA START, END, COMMIT or ROLLBACK."""
    properties = (("XA_TYPE", word), ("XA_XID", text[len(word) :]))
    if entry_type is EntryType.TRANSACTIONBEGIN:
        store = _encode_properties("TransactionBegin", properties)
        store += protobuf.encode_number(number_of("TransactionBegin", "threadId"), thread)
    elif entry_type is EntryType.TRANSACTIONEND:
        store = protobuf.encode_text(number_of("TransactionEnd", "transactionId"), "0")
        store += _encode_properties("TransactionEnd", properties)
    else:
        store = protobuf.encode_number_always(_EVENT_TYPE, _XA_EVENTS[word]) + protobuf.encode_text(_SQL, text)
        store += _encode_properties("RowChange", properties)
    return EntryContent(entry_type, _XA_EVENTS.get(word, CanalEventType.NONE), b"", store)


def _encode_properties(message: str, pairs: Iterable[tuple[str, str]]) -> bytes:
    """Encode names and values as the props of a message."""
    field = number_of(message, "props")
    return b"".join(protobuf.encode_pair(field, *pair) for pair in pairs)
