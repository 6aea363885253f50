"""Completes the tables of whole blocks from the schema history, and remembers what they are completed to.

A table map without names is completed from the history at the position of its rows; one with full metadata wins over
the history. A table whose schema is not known gets a problem, which is raised when its rows are decoded.

A block may have thousands of tables. Where the rows of each of them lie counts only if a statement changes tables
within the block, or if there is something to report; else one catalogue holds for all of it.
"""

from collections.abc import Sequence
from dataclasses import replace

from penstock.binlog.events.block import Block
from penstock.binlog.events.table_map import table_name
from penstock.capture.table_map_completion import (
    CompletedMap,
    complete_table_map_or_compare,
    find_row_positions,
    lacks_column_names,
)
from penstock.capture.table_states import TableStates
from penstock.capture.tracked_catalogue import catalogue_at, catalogue_or_none, is_uniform
from penstock.errors import SchemaError
from penstock.model import Position, TableName
from penstock.schema.catalogue import Catalogue
from penstock.schema.history import SchemaHistory
from penstock.schema.shape import TableDefinition

_REMEMBERED = 1 << 16  # table maps


class TableCompleter:
    """Completes the tables of blocks. Called with the lock of the tracker that owns it.

    completer = TableCompleter(history, TableStates("shop"))
    block = completer.complete(block)
    """

    def __init__(self, history: SchemaHistory, states: TableStates, *, hint: str = "") -> None:
        """`hint` is added to the error about a table that the history does not have."""
        self._history, self._states, self._hint = history, states, hint
        self._shapes: dict[
            bytes, tuple[TableDefinition, str, CompletedMap]
        ] = {}  # by table map: the history's table, server version
        # What table maps are completed to, most of them to themselves, as long as the log comes from this server and is
        # after all changes with these tables, or (None) before all that are known.
        self._completed: dict[bytes, bytes] = {}
        self._completed_in: tuple[Catalogue | None, int, str] | None = None

    def forget_completed(self) -> None:
        """Forget what table maps are completed to, because a statement changes tables."""
        self._completed_in = None

    def complete_followed(self, block: Block) -> Block:
        """Complete the tables of the next block that is followed, as `complete` does, and note their states."""
        return self._complete(block, self._completed_for(block), is_followed=True)

    def complete(self, block: Block) -> Block:
        """Return the block with its table maps completed, and with the problems of tables that cannot be. The states
        of the tables stay as they are."""
        return self._complete(block, {}, is_followed=False)

    def _completed_for(self, block: Block) -> dict[bytes, bytes]:
        """Return what is remembered of completed table maps and holds for a block; what is added is remembered."""
        history = self._history
        if history.first < block.end and block.start < history.last:
            self._completed_in = None  # some change is near: each position in it counts
            return {}
        known = history.catalogue if block.start >= history.last else None
        context = self._completed_in
        is_same = context is not None and context[0] is known and context[1:] == _server_key(block)
        if not is_same or len(self._completed) >= _REMEMBERED:
            self._completed, self._completed_in = {}, (known, *_server_key(block))
        return self._completed

    def _complete(self, block: Block, completed: dict[bytes, bytes], *, is_followed: bool) -> Block:
        """Complete the tables of a block. `completed` is what is known of its table maps; what is found is added."""
        new = [body for body in dict.fromkeys(block.tables.values()) if body not in completed]
        if new and is_uniform(self._history, block):
            self._complete_new_maps(block, new, completed, is_followed=is_followed)
        tables, problems = {number: completed.get(body, body) for number, body in block.tables.items()}, block.problems
        if rest := {body for body in new if body not in completed}:
            problems = dict(problems)
            self._complete_by_position(block, rest, tables, problems, is_followed=is_followed)
        if tables == block.tables and problems == block.problems:
            return block
        return replace(block, tables=tables, problems=problems)

    def _complete_new_maps(
        self, block: Block, bodies: Sequence[bytes], completed: dict[bytes, bytes], *, is_followed: bool
    ) -> None:
        """Complete the table maps of a block within which no table changes, as far as there is nothing to report."""
        history, states, version = self._history, self._states, block.server_version
        catalogue, is_current = catalogue_or_none(history, block.start), block.start >= history.last
        for body in bodies:
            name, own = table_name(body), body
            table = catalogue.find(name) if catalogue is not None else None
            if table is not None:
                shape = self._complete_by_definition(body, table, version)
                if shape.problem or shape.difference:
                    continue
                own = shape.body
            elif lacks_column_names(body, version):
                continue
            completed[body] = own
            if is_followed:
                states.stopped.pop(name, None)
                states.differences.pop(name, None)
                if is_current or (table is not None and table == history.catalogue.find(name)):
                    states.seen[name] = own, version

    def _complete_by_position(
        self,
        block: Block,
        bodies: set[bytes],
        tables: dict[int, bytes],
        problems: dict[int, str],
        *,
        is_followed: bool,
    ) -> None:
        """Complete these table maps of a block each by the definition that its table has where its rows are."""
        positions, version = find_row_positions(block), block.server_version
        for number, body in block.tables.items():
            if body not in bodies:
                continue
            first, last = positions.get(number) or (block.start, block.start)
            shape = self._complete_map(body, version, first, last)
            tables[number] = shape.body
            if shape.problem:
                problems[number] = shape.problem
            if is_followed:
                name = table_name(body)
                self._states.note(name, shape, first)
                if self._has_current_schema(name, last):
                    self._states.seen[name] = shape.body, version

    def _complete_map(self, body: bytes, version: str, first: Position, last: Position) -> CompletedMap:
        """Return what a table map is completed to, for rows of the block between these positions."""
        name = table_name(body)
        try:
            before, after = (catalogue_at(self._history, position).get(name) for position in (first, last))
        except SchemaError as error:
            return CompletedMap(body, self._describe_with_hint(error) if lacks_column_names(body, version) else "")
        if before is not after and before != after and lacks_column_names(body, version):
            return CompletedMap(
                body, f"table {name} was altered between {first} and {last}, and these rows have one table map"
            )
        return self._complete_by_definition(body, before, version)

    def _complete_by_definition(self, body: bytes, table: TableDefinition, version: str) -> CompletedMap:
        """Return what a table map is completed to by the definition of its table."""
        known = self._shapes.get(body)
        if known is None or known[0] is not table or known[1] != version:
            if len(self._shapes) >= _REMEMBERED:
                self._shapes.clear()
            known = self._shapes[body] = table, version, complete_table_map_or_compare(body, table, version)
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


def _server_key(block: Block) -> tuple[int, str]:
    """Return what identifies the server that wrote a block: epoch and version."""
    return block.epoch, block.server_version
