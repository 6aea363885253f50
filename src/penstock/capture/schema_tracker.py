"""Follows the DDL of a log, so that its blocks can be decoded later with the tables of their time.

DDL is recorded in the schema history. A table map without names is completed from the history at its position; one with
full metadata wins over the history, and a difference is reported. A table whose schema is not known is stopped alone:
its rows stay in the block as they are, with a problem that is raised when they are decoded. All state is behind the
lock of the `SchemaTracker`; the classes that it is made of have none.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from penstock.binlog.events.block import Block
from penstock.binlog.events.table_map import parse_table_map, table_name
from penstock.capture.ddl_recorder import DdlRecorder
from penstock.capture.declared_types import DeclaredTypes
from penstock.capture.table_completer import TableCompleter
from penstock.capture.table_states import TableStates
from penstock.errors import NotCapturedError, SchemaError
from penstock.model import Position, TableName, TableSchema
from penstock.model.table import is_nameless
from penstock.schema.catalogue import AppliedStatement, Catalogue
from penstock.schema.change import SchemaChange
from penstock.schema.ddl import StatementKind, classify_statement_text
from penstock.schema.ddl.secret import mask_secrets
from penstock.schema.declared import BlockColumnTypes
from penstock.schema.dialect import ServerProfile, SqlDialect
from penstock.schema.history import SchemaHistory


class SchemaTracker:
    """The schemas of one instance's tables.

    `follow` takes the blocks that are captured: it applies their DDL to the schema history and completes their table
    maps; only the capture thread calls it. `complete` takes blocks that are read again from the binlog: it completes
    their table maps with the schemas of their position, and changes nothing; any thread may call it.

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
        self._lock = threading.Lock()  # of all below, and of the history
        self._history = history
        self._on_close = on_close
        self._recorder = DdlRecorder(history, later, destination=destination)
        self._states = TableStates(destination)
        self._completer = TableCompleter(history, self._states, hint=hint)
        self._declared = DeclaredTypes(history)
        self._followed: Position | None = None  # up to where the log was followed since the start

    def close(self) -> None:
        """Close the schema history."""
        with self._lock:
            self._history.close()
            self._on_close()

    @property
    def differences(self) -> Mapping[TableName, str]:
        """Return how the history differs from the log's full metadata, which counts."""
        with self._lock:
            return dict(self._states.differences)

    @property
    def stopped_tables(self) -> Mapping[TableName, str]:
        """Return the tables whose rows cannot be decoded, and why."""
        with self._lock:
            return dict(self._states.stopped)

    @property
    def uncaptured_count(self) -> int:
        """Return the number of changes that the log has as statements and not as rows: no client receives them."""
        return self._recorder.uncaptured_count

    @property
    def last_uncaptured(self) -> str:
        """Return the position and the text of the last change that the log has as a statement."""
        return self._recorder.last_uncaptured

    @property
    def table_names(self) -> list[TableName]:
        """Return the tables that exist at the position up to which the log was followed."""
        with self._lock:
            return self._history.catalogue.table_names()

    def describe(self, name: TableName) -> TableSchema:
        """Return the schema of a table as the last rows that were followed have it, or the DDL since."""
        with self._lock:
            if name in self._states.stopped:
                raise SchemaError(self._states.stopped[name])
            if (seen := self._states.seen.get(name)) is not None:
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

    def declared_types_of(self, block: Block) -> BlockColumnTypes:
        """Return the SQL types of the columns of a block's tables, as they were declared, or as the log has them where
        that is not known."""
        with self._lock:
            return self._declared.of_block(block)

    def restart(
        self, position: Position, catalogue: Catalogue, later: tuple[Position, Catalogue] | None = None
    ) -> None:
        """Resume at a position with these table schemas, of another server or read from the source again."""
        with self._lock:
            self._recorder.restart(position, catalogue, later)

    def can_continue_at(self, start: Position) -> bool:
        """Return whether the history has the tables at a position up to which the log was followed."""
        with self._lock:
            return self._recorder.is_complete and self._history.last <= start

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
            self._forget_changed(self._recorder.record(kind, change))

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
            for applied in self._recorder.record_all(block):
                self._forget_changed(applied)
            return self._completer.complete_followed(block)

    def complete(self, block: Block) -> Block:
        """Complete the tables of a block whose DDL was recorded when it was followed. Raises NotCapturedError when it
        was not followed yet, and its tables cannot be known without that."""
        if not block.tables:
            return block
        with self._lock:
            self._check_followed(block)
            return self._completer.complete(block)

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

    def _forget_changed(self, applied: AppliedStatement | None) -> None:
        """Forget what was remembered of the tables that a statement changed."""
        self._completer.forget_completed()
        if applied is not None:
            self._states.forget_changed(applied)
