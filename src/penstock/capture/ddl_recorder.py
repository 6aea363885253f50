"""Records the DDL of a log in the schema history.

A statement that changes rows instead of tables is counted: the log has it as a statement and not as rows, so that what
it changed reaches no client.
"""

import logging
from collections.abc import Iterator

from penstock.binlog.events.block import Block
from penstock.errors import SchemaError
from penstock.model import Position
from penstock.schema.catalogue import AppliedStatement, Catalogue
from penstock.schema.change import SchemaChange
from penstock.schema.ddl import DdlError, StatementKind, parse_statement
from penstock.schema.dialect import SqlDialect
from penstock.schema.history import SchemaHistory
from penstock.schema.incomplete import mark_incomplete
from penstock.schema.log_statements import SchemaStatements

log = logging.getLogger(__name__)

_SHOWN = 200  # characters of a statement
_WITHOUT_SHAPE = {
    StatementKind.CREATE_DATABASE, StatementKind.DROP_DATABASE, StatementKind.CREATE_VIEW, StatementKind.DROP_VIEW,
}  # fmt: skip


class DdlRecorder:
    """Finds the DDL of blocks and records it. Called with the lock of the tracker that owns it.

    recorder = DdlRecorder(history, later=None, destination="shop")
    for applied in recorder.record_all(block):
        print(applied.altered)
    """

    def __init__(
        self, history: SchemaHistory, later: tuple[Position, Catalogue] | None, *, destination: str = ""
    ) -> None:
        """`later` is a position that is still to come, with the tables that are there, whatever leads to it."""
        self._history, self._destination = history, destination
        self._statements = SchemaStatements()
        self.uncaptured_count = 0  # changes that the log has as statements
        self.last_uncaptured = ""
        self._later = later
        mark_incomplete(history.folder, is_so=later is not None)

    @property
    def is_complete(self) -> bool:
        """Return whether the history has all tables: no later ones are waited for."""
        return self._later is None

    def restart(self, position: Position, catalogue: Catalogue, later: tuple[Position, Catalogue] | None) -> None:
        """Begin a new part of the history at a position with these tables."""
        self._later = later
        mark_incomplete(self._history.folder, is_so=later is not None)
        self._history.restart(position, catalogue)

    def record_all(self, block: Block) -> Iterator[AppliedStatement | None]:
        """Record the DDL of a block; yield each statement as it was applied, or None for one that was not."""
        for kind, change in self._statements.find(block, self._history.catalogue.server):
            if kind is StatementKind.DATA:
                self._count_uncaptured(change)
                continue
            self._adopt_later_tables(change.position)
            yield self.record(kind, change)
        self._adopt_later_tables(block.end)

    def record(self, kind: StatementKind, change: SchemaChange) -> AppliedStatement | None:
        """Record a statement in the history; return it as it was applied, or None when it changes no tracked table."""
        position, history = change.position, self._history
        if position <= history.first:
            return None  # before it, tables are known by their full metadata or not at all
        try:
            applied = history.record(change)
        except DdlError as error:
            if not _changes_no_table(kind, change, SqlDialect(history.catalogue.server, change.session)):
                raise SchemaError(f"{position}: {error}") from None
            log.warning(
                "DDL statement not applied to the tracked schemas destination=%s position=%s reason=%s: it changes no"
                " table",
                self._destination, position, error,
            )  # fmt: skip
            return None
        if applied.problem:
            names = ", ".join(map(str, sorted(applied.unknown)))
            log.warning(
                "DDL statement not parsed destination=%s position=%s tables=%s reason=%s: their schemas are unknown"
                " from here on, and rows whose table map lacks column names are not delivered",
                self._destination, position, names, applied.problem,
            )  # fmt: skip
        return applied

    def _count_uncaptured(self, change: SchemaChange) -> None:
        """Count a change that the log has as a statement and not as rows, and log the 1st, 10th, 100th and so on."""
        self.uncaptured_count += 1
        self.last_uncaptured = f"{change.position}: {change.text[:_SHOWN]}"
        if str(self.uncaptured_count).strip("0") == "1":  # 1, 10, 100 …
            log.error(
                "changes logged as statements, not captured destination=%s count=%d position=%s statement=%s: a session"
                " has binlog_format other than ROW; compare the target with the source",
                self._destination, self.uncaptured_count, change.position, change.text[:_SHOWN],
            )  # fmt: skip

    def _adopt_later_tables(self, position: Position) -> None:
        """Take over the later tables once their position is reached. A statement that ends there is already part of
        them, and is recorded as one that is read again."""
        if self._later is None or position < self._later[0]:
            return
        (at, catalogue), self._later = self._later, None
        if at >= self._history.last:
            self._history.restart(at, catalogue)
        mark_incomplete(self._history.folder, is_so=False)


def _changes_no_table(kind: StatementKind, change: SchemaChange, dialect: SqlDialect) -> bool:
    """Return whether a statement that cannot be followed changes no table: it is about a view, or a database that
    exists already or is not known."""
    if kind in _WITHOUT_SHAPE:
        return True
    try:
        parse_statement(change.text, kind, dialect, change.database)
    except DdlError:
        return False
    return kind is StatementKind.ALTER_DATABASE
