"""The statements of a block that change tables, with all that decides what they mean."""

from collections.abc import Iterator

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.block_flags import STATEMENTS, scan_flags
from penstock.binlog.events.bodies import QueryBody
from penstock.binlog.events.layout import EventType
from penstock.binlog.events.query import are_statements, body_at, parse_query_at
from penstock.binlog.values.charset import TEXT, charset_of_collation_id
from penstock.schema.change import SchemaChange
from penstock.schema.collation import default_collation
from penstock.schema.ddl import StatementKind, classify_statement_text
from penstock.schema.dialect import ServerProfile, SqlDialect, SqlMode, SqlSession

# MariaDB's GTID event: number 8 | domain 4 | flags 1 | commit id 8, if flagged 2 | XID, if flagged 0xc0 | more flags
_FLAGS_AT, _HAS_COMMIT_ID, _HAS_XID = 12, 2, 0xC0
_BEGINS_ALTER, _ROLLS_ALTER_BACK = 2, 8


class SchemaStatements:
    """Finds the statements that change tables in the blocks of one stream, in their order.

    statements = SchemaStatements()
    for kind, change in statements.find(block, server): ...
    """

    def __init__(self) -> None:
        self._gtid = b""  # that of a statement which comes in the next block

    def find(self, block: Block, server: ServerProfile) -> Iterator[tuple[StatementKind, SchemaChange]]:
        """Yield the statements of a block that change tables or their rows, each at the position where it ends."""
        return ((kind, change) for _, kind, change in self.find_with_events(block, server))

    def find_with_events(
        self, block: Block, server: ServerProfile
    ) -> Iterator[tuple[int, StatementKind, SchemaChange]]:
        """Yield the statements of a block that change tables or their rows, each with the number of its event."""
        kinds = block.column("kind")
        statements: list[int] = np.flatnonzero(are_statements(block)).tolist() if scan_flags(block) & STATEMENTS else []
        gtids = np.flatnonzero(kinds == EventType.MARIADB_GTID) if statements else np.empty(0, np.int64)
        for event in statements:
            before = int(np.searchsorted(gtids, event))
            if _is_unfinished(body_at(block, int(gtids[before - 1])) if before else self._gtid):
                continue
            query = parse_query_at(block, event)
            session = _session(query, server)
            kind = classify_statement_text(query.text, SqlDialect(server, session))
            if kind.changes_tables or kind is StatementKind.DATA:
                server_id = int(block.column("server_id")[event])
                yield (
                    event,
                    kind,
                    SchemaChange(block.end_of_event(event), query.text, query.database, session, server_id),
                )
        if len(block):
            self._gtid = body_at(block, len(block) - 1) if kinds[-1] == EventType.MARIADB_GTID else b""


def _is_unfinished(gtid: bytes) -> bool:
    """Return whether an ALTER has only begun: with binlog_alter_two_phase it is in the log when it begins, and again
    when it ends or is rolled back."""
    if len(gtid) <= _FLAGS_AT:
        return False
    flags, at = gtid[_FLAGS_AT], _FLAGS_AT + 1
    if flags & _HAS_COMMIT_ID:
        at += 8
    if flags & _HAS_XID and at + 6 <= len(gtid):
        at += 6 + gtid[at + 4] + gtid[at + 5]
    return at < len(gtid) and bool(gtid[at] & (_BEGINS_ALTER | _ROLLS_ALTER_BACK))


def _session(query: QueryBody, server: ServerProfile) -> SqlSession:
    """Return the session of a statement. The log has the number of the server's collation, of which only the charset is
    needed."""
    charset = charset_of_collation_id(query.server_collation or 0)
    return SqlSession(
        SqlMode(query.sql_mode or 0),
        query.explicit_timestamps,
        default_collation(charset, SqlDialect(server)) if charset in TEXT or charset == "binary" else "",
        thread=query.thread,
        error=query.error,
    )
