"""The statements of a block that change tables, with all that decides what they mean."""

from collections.abc import Iterator

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.bodies import Statement
from penstock.binlog.events.query import query_at
from penstock.binlog.values.charset import TEXT, charset_of
from penstock.filter.kinds import are_statements
from penstock.schema.change import Change
from penstock.schema.collation import default_collation
from penstock.schema.ddl import StatementKind, kind_of
from penstock.schema.dialect import Dialect, Server, Session, SqlMode


def changes_in(block: Block, server: Server) -> Iterator[tuple[StatementKind, Change]]:
    """In their order. Each is at the place where it ends."""
    for event in np.flatnonzero(are_statements(block)).tolist():
        query = query_at(block, event)
        session = _session(query, server)
        kind = kind_of(query.text, Dialect(server, session))
        if kind.changes_tables:
            server_id = int(block.column("server_id")[event])
            yield kind, Change(block.end_of(event), query.text, query.database, session, server_id)


def _session(query: Statement, server: Server) -> Session:
    """The log has the number of the server's collation; of that only the charset counts."""
    charset = charset_of(query.server_collation or 0)
    return Session(
        SqlMode(query.sql_mode or 0),
        query.explicit_timestamps,
        default_collation(charset, Dialect(server)) if charset in TEXT or charset == "binary" else "",
        thread=query.thread,
        error=query.error,
    )
