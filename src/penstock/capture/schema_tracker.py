"""Follows the DDL of a log, so that its blocks can be decoded later with the tables of their time.

DDL is recorded in the schema history. A table map without names is completed from the history at its position; one with
full metadata wins over the history, and a difference is reported. A table whose schema is not known is stopped alone:
its rows stay in the block as they are, with a problem that is raised when they are decoded.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from penstock.binlog.events.block import Block
from penstock.binlog.events.table_map import parse_table_map, table_name
from penstock.capture.table_map_completion import (
    CompletedMap,
    complete_table_map_or_compare,
    declared_column_types,
    find_row_positions,
    lacks_column_names,
)
from penstock.errors import NotCapturedError, SchemaError
from penstock.model import Position, TableName, TableSchema
from penstock.model.table import is_nameless
from penstock.schema.catalogue import Catalogue
from penstock.schema.change import SchemaChange
from penstock.schema.ddl import DdlError, StatementKind, classify_statement_text, parse_statement
from penstock.schema.ddl.secret import mask_secrets
from penstock.schema.dialect import ServerProfile, SqlDialect
from penstock.schema.history import SchemaHistory
from penstock.schema.incomplete import mark_incomplete
from penstock.schema.log_statements import SchemaStatements
from penstock.schema.shape import TableDefinition

log = logging.getLogger(__name__)

_REMEMBERED = 1 << 16  # table maps
_SHOWN = 200  # characters of a statement
_WITHOUT_SHAPE = {
    StatementKind.CREATE_DATABASE, StatementKind.DROP_DATABASE, StatementKind.CREATE_VIEW, StatementKind.DROP_VIEW,
}  # fmt: skip


class SchemaTracker:
    """The schemas of one instance's tables. `follow` is called by the capture thread only, `complete` by any thread
    that reads the log again.

        tracker = SchemaTracker(SchemaHistory(folder, lambda: (start, catalogue)))
        block = tracker.follow(block)
    """

    def __init__(
        self,
        history: SchemaHistory,
        later: tuple[Position, Catalogue] | None = None,
        on_close: Callable[[], None] = lambda: None,
        *,
        hint: str = "",
        destination: str = "",
    ) -> None:
        """`later` is a position that is still to come, with the tables that are there, whatever leads to it. `hint` is
        added to the error about a table that the history does not have."""
        self._history = history
        self._later = later
        mark_incomplete(history.folder, is_so=later is not None)
        self._on_close, self._hint, self._destination = on_close, hint, destination
        self._lock = threading.Lock()  # of all below, and of the history
        self._shapes: dict[
            bytes, tuple[TableDefinition, str, CompletedMap]
        ] = {}  # by table map: the history's table, server version
        self._differences: dict[TableName, str] = {}
        self._stopped: dict[TableName, str] = {}
        # Table maps to which nothing is to be added, as long as the log comes from this server and is after all changes
        # with these tables, or (None) before all that are known.
        self._plain: set[bytes] = set()
        self._plain_in: tuple[Catalogue | None, int, str] | None = None
        self._declared: dict[tuple[bytes, str], tuple[str, ...]] = {}  # by table map and server version
        self._declared_in: Catalogue | None = None  # as long as the tables are these
        self._statements = SchemaStatements()
        self._followed: Position | None = None  # up to where the log was followed since the start
        self._unseen = 0
        self.last_unseen = ""
        self._seen: dict[TableName, tuple[bytes, str]] = {}  # the last table map, server version

    def close(self) -> None:
        """Close the schema history."""
        with self._lock:
            self._history.close()
            self._on_close()

    @property
    def differences(self) -> Mapping[TableName, str]:
        """Return how the history differs from the log's full metadata, which counts."""
        with self._lock:
            return dict(self._differences)

    @property
    def stopped_tables(self) -> Mapping[TableName, str]:
        """Return the tables whose rows cannot be decoded, and why."""
        with self._lock:
            return dict(self._stopped)

    @property
    def uncaptured_count(self) -> int:
        """Return the number of changes that the log has as statements and not as rows: no client receives them."""
        return self._unseen

    @property
    def table_names(self) -> list[TableName]:
        """Return the tables that exist at the position up to which the log was followed."""
        with self._lock:
            return self._history.catalogue.table_names()

    def describe(self, name: TableName) -> TableSchema:
        """Return the schema of a table as the last rows that were followed have it, or the DDL since."""
        with self._lock:
            if name in self._stopped:
                raise SchemaError(self._stopped[name])
            if (seen := self._seen.get(name)) is not None:
                return parse_table_map(*seen)
            if (definition := self._history.catalogue.find(name)) is not None:
                return definition.schema
            first = self._history.first
        raise SchemaError(f"nothing of table {name} has been seen in the log since {first}: ask again when rows came")

    def last_change_of(self, table: TableName, position: Position, column: str = "") -> SchemaChange | None:
        """Return the last statement at or before a position that changed a table's definition, or that of one of its
        columns, if it is known; what may be a secret in it is masked."""
        with self._lock:
            change = self._history.last_change_of(table, position, column)
            server = self._history.catalogue.server
        if change is None:
            return None
        dialect = SqlDialect(server, change.session)
        return replace(change, text=mask_secrets(change.text, classify_statement_text(change.text, dialect), dialect))

    def declared_types_of(self, block: Block) -> Callable[[int], tuple[str, ...]]:
        """Return a function that maps a table id of the block to the SQL types of its columns, as they were declared,
        or as the log has them where that is not known."""
        with self._lock:
            if self._may_change_within(block):
                return self._declared_types_by_position(block)
            catalogue = self._catalogue_or_none(block.start)
            if self._declared_in is not catalogue or len(self._declared) >= _REMEMBERED:
                self._declared_in, self._declared = catalogue, {}
            known, version, tables = self._declared, block.server_version, block.tables

        def types(number: int) -> tuple[str, ...]:
            key = tables[number], version
            declared = known.get(key)
            if declared is None:
                declared = known[key] = declared_column_types(block.schema_of(number), catalogue, version)
            return declared

        return types

    def restart(
        self, position: Position, catalogue: Catalogue, later: tuple[Position, Catalogue] | None = None
    ) -> None:
        """Resume at a position with these table schemas, of another server or read from the source again."""
        with self._lock:
            self._later = later
            mark_incomplete(self._history.folder, is_so=later is not None)
            self._history.restart(position, catalogue)

    def can_continue_at(self, start: Position) -> bool:
        """Return whether the history has the tables at a position up to which the log was followed."""
        with self._lock:
            return self._later is None and self._history.last <= start

    def continue_at(self, position: Position) -> None:
        """Continue with the same tables at a position of another epoch."""
        with self._lock:
            self._history.restart(position, self._history.catalogue)

    @property
    def epoch(self) -> int:
        """Return the epoch of the log that is followed."""
        with self._lock:
            return self._history.begin_of_part(self._history.last).epoch

    @property
    def server(self) -> ServerProfile:
        """Return the profile of the server whose DDL is followed."""
        with self._lock:
            return self._history.catalogue.server

    def record(self, kind: StatementKind, change: SchemaChange) -> None:
        """Record a statement of a part of the log that was not followed."""
        with self._lock:
            self._record(kind, change)

    def compact(self, lowest: Position) -> None:
        """Forget what a reader that begins at the lowest position does not need."""
        with self._lock:
            if lowest > self._history.first:
                self._history.compact(lowest)

    def follow(self, block: Block) -> Block:
        """Follow the next block of the log, or one that is read again: record its DDL and complete its tables."""
        if not len(block):
            return block
        with self._lock:
            self._followed = block.end if self._followed is None else max(self._followed, block.end)
            for kind, change in self._statements.find(block, self._history.catalogue.server):
                if kind is StatementKind.DATA:
                    self._note_uncaptured(change)
                    continue
                self._adopt_later_tables(change.position)
                self._record(kind, change)
            self._adopt_later_tables(block.end)
            return block if self._needs_no_completion(block) else self._complete_tables(block, is_followed=True)

    def complete(self, block: Block) -> Block:
        """Complete the tables of a block whose DDL was recorded when it was followed. Raises NotCapturedError when it
        was not followed yet, and its tables cannot be known without that."""
        if not block.tables:
            return block
        with self._lock:
            self._check_followed(block)
            return self._complete_tables(block, is_followed=False)

    # -- inside the lock

    def _check_followed(self, block: Block) -> None:
        """Raise NotCapturedError for a block behind all that was followed, whose log does not name its columns: a
        statement that renames them may lie in between."""
        if self._followed is None or block.end <= self._followed:
            return
        for body in block.tables.values():
            if is_nameless(parse_table_map(body, block.server_version)):
                raise NotCapturedError(
                    f"the columns of {table_name(body)} at {block.start} are not known yet: the log does not name them"
                    f" (binlog_row_metadata is not FULL), and its statements are captured up to {self._followed}"
                )

    def _note_uncaptured(self, change: SchemaChange) -> None:
        """Count a change that the log has as a statement and not as rows, and log the 1st, 10th, 100th and so on."""
        self._unseen += 1
        self.last_unseen = f"{change.position}: {change.text[:_SHOWN]}"
        if str(self._unseen).strip("0") == "1":  # 1, 10, 100 …
            log.error(
                "changes not captured destination=%s count=%d position=%s statement=%s: a session has binlog_format"
                " other than ROW; what it changed is not captured, compare the data",
                self._destination, self._unseen, change.position, change.text[:_SHOWN],
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

    def _record(self, kind: StatementKind, change: SchemaChange) -> None:
        """Record a statement in the history, and forget what was remembered of the tables that it changed."""
        position, history, self._plain_in = change.position, self._history, None
        if position <= history.first:
            return  # before it, tables are known by their full metadata or not at all
        try:
            applied = history.record(change)
        except DdlError as error:
            if not _changes_no_table(kind, change, SqlDialect(history.catalogue.server, change.session)):
                raise SchemaError(f"{position}: {error}") from None
            log.warning(
                "DDL statement not applied to the tracked schemas destination=%s position=%s reason=%s",
                self._destination,
                position,
                error,
            )
            return
        if applied.problem:
            names = ", ".join(map(str, sorted(applied.unknown)))
            log.warning(
                "statement not understood destination=%s position=%s tables=%s reason=%s",
                self._destination, position, names, applied.problem,
            )  # fmt: skip
        for name in applied.altered | applied.created | applied.unknown | {new for _, new in applied.renamed}:
            self._seen.pop(name, None)
        for name in applied.dropped | {old for old, _ in applied.renamed}:
            self._seen.pop(name, None)
            self._stopped.pop(name, None)
            self._differences.pop(name, None)

    def _needs_no_completion(self, block: Block) -> bool:
        """Return whether nothing has changed since these tables were last completed, and nothing had to be completed
        then."""
        history = self._history
        if history.first < block.end and block.start < history.last:
            self._plain_in = None  # some change is near: each position in it counts
            return False
        known = history.catalogue if block.start >= history.last else None
        if self._plain_in is None or self._plain_in[0] is not known or self._plain_in[1:] != _server_key(block):
            self._plain, self._plain_in = set(), (known, *_server_key(block))
        return not block.problems and self._plain.issuperset(block.tables.values())

    def _complete_tables(self, block: Block, *, is_followed: bool) -> Block:
        """Return the block with its table maps completed, and with the problems of tables that cannot be."""
        tables, problems, positions = dict(block.tables), dict(block.problems), find_row_positions(block)
        for number, body in block.tables.items():
            first, last = positions.get(number) or (block.start, block.start)
            shape = self._complete_map(body, block.server_version, first, last)
            tables[number] = shape.body
            if shape.problem:
                problems[number] = shape.problem
            if is_followed:
                name = table_name(body)
                self._note_table_state(name, shape, first)
                if self._has_current_schema(name, last):
                    self._seen[name] = shape.body, block.server_version
                if self._plain_in is not None and shape == CompletedMap(body):
                    self._plain.add(body)
        if tables == block.tables and problems == block.problems:
            return block
        return replace(block, tables=tables, problems=problems)

    def _note_table_state(self, name: TableName, shape: CompletedMap, position: Position) -> None:
        """Remember that a table is stopped, or that the history differs from the log, and log each change of that
        once."""
        if not shape.problem:
            self._stopped.pop(name, None)
        elif name not in self._stopped:
            log.warning(
                "table schema unknown, delivery of the table halted destination=%s position=%s reason=%s",
                self._destination,
                position,
                shape.problem,
            )
            self._stopped[name] = f"{position}: {shape.problem}"
        if not shape.difference:
            self._differences.pop(name, None)
        elif self._differences.get(name) != shape.difference:
            log.warning(
                "schema history differs from log destination=%s table=%s position=%s difference=%s: the log is used",
                self._destination, name, position, shape.difference,
            )  # fmt: skip
            self._differences[name] = shape.difference

    def _complete_map(self, body: bytes, version: str, first: Position, last: Position) -> CompletedMap:
        """Return what a table map is completed to, for rows of the block between these positions."""
        name = table_name(body)
        try:
            before, after = (self._catalogue_at(position).get(name) for position in (first, last))
        except SchemaError as error:
            return CompletedMap(body, self._describe_with_hint(error) if lacks_column_names(body, version) else "")
        if before is not after and before != after and lacks_column_names(body, version):
            return CompletedMap(
                body, f"table {name} was altered between {first} and {last}, and these rows have one table map"
            )
        known = self._shapes.get(body)
        if known is None or known[0] is not before or known[1] != version:
            if len(self._shapes) >= _REMEMBERED:
                self._shapes.clear()
            known = self._shapes[body] = before, version, complete_table_map_or_compare(body, before, version)
        return known[2]

    def _describe_with_hint(self, error: SchemaError) -> str:
        """Return the text of an error, with the hint how to avoid it."""
        return f"{error}; {self._hint}" if self._hint else str(error)

    def _has_current_schema(self, name: TableName, position: Position) -> bool:
        """Return whether a table still has the schema that it had at a position."""
        history = self._history
        if position >= history.last:
            return True
        try:
            return history.catalogue_at(position).find(name) == history.catalogue.find(name)
        except SchemaError:
            return False

    def _may_change_within(self, block: Block) -> bool:
        """Return whether tables may differ between the begin and the end of a block."""
        return bool(len(block)) and block.start < self._history.last and self._history.first < block.end

    def _declared_types_by_position(self, block: Block) -> Callable[[int], tuple[str, ...]]:
        """Return the declared types of each table where the block has its first rows: the statement that created the
        table may be in the same block."""
        catalogues = {
            number: self._catalogue_or_none(first) for number, (first, _) in find_row_positions(block).items()
        }
        begin = self._catalogue_or_none(block.start)

        def types(number: int) -> tuple[str, ...]:
            return declared_column_types(block.schema_of(number), catalogues.get(number, begin), block.server_version)

        return types

    def _catalogue_or_none(self, position: Position) -> Catalogue | None:
        """Return the tables at a position; None when they are not known."""
        try:
            return self._catalogue_at(position)
        except SchemaError:
            return None

    def _catalogue_at(self, position: Position) -> Catalogue:
        """Return the tables at a position; raise SchemaError when they are not known."""
        history = self._history
        if history.begin_of_part(position).epoch != position.epoch:
            raise SchemaError(f"what the tables were at {position}, before the source was switched, is not known")
        return history.catalogue if position >= history.last else history.catalogue_at(position)


def _server_key(block: Block) -> tuple[int, str]:
    """Return what identifies the server that wrote a block: epoch and version."""
    return block.epoch, block.server_version


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
