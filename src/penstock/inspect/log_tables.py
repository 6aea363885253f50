"""Column names for a log that has none, from the DDL in the log itself.

A table map without names is completed with what the log's DDL says of the table at that position, so that the block can
be decoded alone. DDL is parsed only when a table map without names comes: until then it is set aside, and a log with
names, or without rows, does not load the parser.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry, EventType
from penstock.binlog.events.map_field import MapField
from penstock.binlog.events.problem import EventProblemError
from penstock.binlog.events.query import are_statements
from penstock.binlog.events.table_map import fields_of, table_name
from penstock.errors import BinlogError, SchemaError
from penstock.model import Position, TableName

if TYPE_CHECKING:
    from penstock.schema.log_catalogue import LogCatalogue
    from penstock.schema.log_statements import SchemaStatements
    from penstock.schema.shape import TableDefinition

_REMEMBERED = 1 << 16  # table maps
_MAX_ASIDE = 8 << 20  # bytes of statements
_NAMED = 20


@dataclass(slots=True)
class UnnamedTables:
    """The tables whose columns got no names although the log's DDL or a server could have known them, with the reason;
    and those whose names are uncertain.

        unnamed = UnnamedTables()
        warnings = unnamed.format_warnings(has_server=False)
    """

    by_ddl: dict[TableName, str] = field(default_factory=dict[TableName, str])
    by_server: dict[TableName, str] = field(default_factory=dict[TableName, str])
    doubtful: set[TableName] = field(default_factory=set[TableName])

    def for_table(self, table: TableName | None) -> "UnnamedTables":
        """Return the part of these findings that concerns one table."""

        def select(reasons: dict[TableName, str]) -> dict[TableName, str]:
            return {name: reason for name, reason in reasons.items() if name == table}

        return UnnamedTables(
            select(self.by_ddl), select(self.by_server), {name for name in self.doubtful if name == table}
        )

    def format_warnings(self, *, has_server: bool) -> list[str]:
        """Return a warning for each kind of problem with tables whose columns have no names in the log; with a server,
        names that the log's DDL does not tell were read from there."""
        warnings: list[str] = []
        if reasons := dict(self.by_server if has_server else self.by_ddl):  # another thread may just add to them
            tables = _list_some([f"{name} ({reason})" for name, reason in sorted(reasons.items())])
            warnings.append(f"the columns of these tables have no names and are shown as @1, @2 …: {tables}")
        if self.doubtful:
            warnings.append(
                "the names of columns come from a CREATE TABLE IF NOT EXISTS, which changes nothing where there is a"
                f" table already; make sure of them for {_list_some([str(name) for name in sorted(self.doubtful)])}"
            )
        return warnings


def _list_some(items: list[str]) -> str:
    """Return the first of some items as a text, with a count of the others."""
    suffix = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return f"{', '.join(items[:_NAMED])}{suffix}"


class LogTableCompleter:
    """Completes the table maps of a log's blocks, in order, with column names from the log's own DDL.

    Where files are missing between two blocks it starts over, since the DDL in them is not known.

        tables = LogTableCompleter(UnnamedTables(), log.earlier)
        block = tables.complete(block)
    """

    def __init__(self, unnamed: UnnamedTables, earlier: Callable[[], Iterable[Block]] = tuple) -> None:
        """Prepare for a log; `earlier` reads the part before the first block if possible, and is called only when names
        are missing.
        """
        self._unnamed = unnamed
        self._earlier: Callable[[], Iterable[Block]] | None = earlier
        self._aside: list[Block] = []
        self._aside_bytes = 0
        self._first_file = self._file = ""
        self._named: set[bytes] = set()  # table maps that need nothing
        self._catalogue: LogCatalogue | None = None
        self._statements: SchemaStatements | None = None
        self._completed: dict[bytes, tuple[Sequence[TableDefinition], bytes]] = {}  # by table map: as DDL has the table

    def complete(self, block: Block) -> Block:
        """Return the block with column names in its table maps, where the log's DDL up to there has them."""
        if not len(block):
            return block
        self._first_file = self._first_file or block.file
        self._check_gap(block.file)
        nameless = [number for number, body in block.tables.items() if not self._has_names(body)]
        has_statements = are_statements(block)
        if not nameless:
            self._defer_statements(block, has_statements)
            return block
        self._apply_deferred()
        steps = self._apply_statements(block) if has_statements.any() or self._ends_in_gtid(block) else []
        return self._add_names(block, nameless, steps)

    def _check_gap(self, file: str) -> None:
        """Start over if log files are missing between the last block and this file."""
        if file == self._file:
            return
        if self._file and Position(file, 0).file_number != Position(self._file, 0).file_number + 1:
            self._clear()
        self._file = file

    def _clear(self) -> None:
        """Drop all that is known of tables."""
        self._aside, self._aside_bytes, self._earlier = [], 0, None
        self._catalogue, self._statements = None, None
        self._completed.clear()

    def _has_names(self, body: bytes) -> bool:
        """Tell whether a table map has column names."""
        if body in self._named:
            return True
        try:
            has_names = MapField.NAMES in fields_of(body)
        except EventProblemError:
            has_names = True  # who decodes it meets the problem
        if has_names:
            if len(self._named) >= _REMEMBERED:
                self._named.clear()
            self._named.add(body)
        return has_names

    def _defer_statements(self, block: Block, has_statements: NDArray[np.bool_]) -> None:
        """Keep the statements in case names are missing later, each with the GTID before it."""
        kept = has_statements.copy()
        gtids = block.column("kind") == EventType.MARIADB_GTID
        kept[:-1] |= has_statements[1:] & gtids[:-1]
        kept[-1] |= gtids[-1]
        if not kept.any():
            return
        part = replace(block.filter(kept), tables={})
        self._aside.append(part)
        self._aside_bytes += part.size_bytes
        if self._aside_bytes > _MAX_ASIDE:
            self._apply_deferred()

    def _apply_deferred(self) -> None:
        """Apply the DDL before this block."""
        aside, self._aside, self._aside_bytes = self._aside, [], 0
        earlier, self._earlier = self._earlier, None
        if earlier is not None:
            self._apply_earlier(earlier())
        for block in aside:
            self._apply_statements(block)

    def _apply_earlier(self, blocks: Iterable[Block]) -> None:
        """Apply the DDL before the first block; if a part cannot be read, nothing is known afterwards."""
        present, self._file = self._file, ""
        try:
            for block in blocks:
                self._check_gap(block.file)
                if are_statements(block).any() or self._ends_in_gtid(block):
                    self._apply_statements(block)
        except BinlogError:
            self._clear()
        self._check_gap(self._first_file)
        self._file = present

    @staticmethod
    def _ends_in_gtid(block: Block) -> bool:
        """Tell whether the last event of a block is a GTID."""
        return bool(len(block)) and bool(block.column("kind")[-1] == EventType.MARIADB_GTID)

    def _apply_statements(self, block: Block) -> "list[tuple[int, LogCatalogue]]":
        """Apply the DDL of a block, and return the tables after each statement with the number of its event."""
        from penstock.schema.ddl import StatementKind  # noqa: PLC0415 - only for logs without names
        from penstock.schema.log_catalogue import LogCatalogue  # noqa: PLC0415
        from penstock.schema.log_statements import SchemaStatements  # noqa: PLC0415

        version = block.server_version
        catalogue = (
            LogCatalogue.for_server(version) if self._catalogue is None else self._catalogue.with_server(version)
        )
        self._statements = self._statements or SchemaStatements()
        steps = [(-1, catalogue)]
        for event, kind, change in self._statements.find_with_events(block, catalogue.sides[0].server):
            if kind is not StatementKind.DATA:
                catalogue = catalogue.apply(kind, change)
                steps.append((event, catalogue))
        self._catalogue = catalogue
        return steps

    def _add_names(self, block: Block, nameless: list[int], steps: "list[tuple[int, LogCatalogue]]") -> Block:
        """Return the block with its nameless table maps completed."""
        if self._catalogue is None:
            return block
        steps = steps or [(-1, self._catalogue)]
        tables = dict(block.tables)
        rows = block.column("entry") == Entry.ROWS
        for number in nameless:
            events = np.flatnonzero(rows & (block.column("table_id") == number))
            if events.size:
                first, last = (_tables_at(steps, int(event)) for event in (events[0], events[-1]))
                tables[number] = self._complete_table_map(tables[number], block.server_version, first, last)
        return replace(block, tables=tables)

    def _complete_table_map(self, body: bytes, version: str, first: "LogCatalogue", last: "LogCatalogue") -> bytes:
        """Return a table map completed with the tables that exist between two positions of the log."""
        name = table_name(body)
        tables = first.find(name)
        known = self._completed.get(body)
        is_same = first is last or _are_same_tables(tables, last.find(name))
        if known is not None and is_same and tables and _are_same_tables(known[0], tables):
            return known[1]
        completed = body
        try:
            completed = first.complete(body, version) or body
            if not is_same and completed != last.complete(body, version):
                completed = body
                reason = f"it is altered between rows that have one table map, in {self._file}"
                self._unnamed.by_ddl.setdefault(name, reason)
        except (BinlogError, SchemaError) as error:
            self._unnamed.by_ddl.setdefault(name, str(error))
        if completed is not body and first.is_doubtful(name):
            self._unnamed.doubtful.add(name)
        if len(self._completed) >= _REMEMBERED:
            self._completed.clear()
        if is_same:
            self._completed[body] = tables, completed
        return completed


def _are_same_tables(tables: "Sequence[TableDefinition]", others: "Sequence[TableDefinition]") -> bool:
    """Tell whether two lists of tables have the same columns."""
    return len(tables) == len(others) and all(map(is_, tables, others))


def _tables_at(steps: "list[tuple[int, LogCatalogue]]", event: int) -> "LogCatalogue":
    """Return the tables as they are at an event."""
    return next(catalogue for after, catalogue in reversed(steps) if after < event)
