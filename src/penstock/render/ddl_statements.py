"""The DDL of a log as lines of a stream of changes: which statements there are, and of which table each is.

Statements about accounts, views and transactions are left out, passwords are masked. A statement passes the filter with
any of its tables, or with its database where it has none.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.block_flags import STATEMENTS, scan_flags
from penstock.binlog.events.query import are_statements, parse_query_at
from penstock.filter.kinds import filter_kind
from penstock.model import TableName
from penstock.schema.ddl import StatementKind, classify_statement_text
from penstock.schema.ddl.secret import mask_secrets
from penstock.schema.ddl.subject import find_subject
from penstock.schema.dialect import ServerProfile, SqlDialect, SqlMode, SqlSession
from penstock.schema.log_statements import SchemaStatements

_LEFT_OUT = {
    StatementKind.CREATE_VIEW, StatementKind.ALTER_VIEW, StatementKind.DROP_VIEW, StatementKind.TRANSACTION,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DdlStatement:
    """A DDL statement in a stream of changes; `table` is its first table that passes the filter, or a database, or
    None.
    """

    event: int  # index in the block
    table: str | None
    text: str


class DdlStatementReader:
    """Finds the DDL statements in the blocks of one stream, which come in the order of the log."""

    def __init__(self, passes: Callable[[TableName], bool]) -> None:
        self._passes = passes
        self._changes = SchemaStatements()

    def read_block(self, block: Block) -> Iterator[DdlStatement]:
        """Yield the DDL of a block; an ALTER that MariaDB logs in two phases is yielded when it is done."""
        server = ServerProfile.from_version_text(block.server_version)
        done = {event for event, _, _ in self._changes.find_with_events(block, server)}
        if not scan_flags(block) & STATEMENTS:
            return
        for event in np.flatnonzero(are_statements(block)).tolist():
            query = parse_query_at(block, event)
            dialect = SqlDialect(server, SqlSession(SqlMode(query.sql_mode or 0)))
            kind = classify_statement_text(query.text, dialect)
            if filter_kind(kind) != "ddl" or kind in _LEFT_OUT or (kind.changes_tables and event not in done):
                continue
            names = find_subject(query.text, kind, dialect, query.database).names
            passing = [name for name in names if self._passes(name)]
            if passing:
                text = mask_secrets(query.text, kind, dialect).rstrip(" ")
                yield DdlStatement(event, _name_text(passing[0]), text)


def _name_text(name: TableName) -> str | None:
    """Return a table's or database's name as text; None if it is empty."""
    return str(name) if name.table else name.schema or None
