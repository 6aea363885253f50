"""What the tables of a log look like, for who decodes its blocks later.

The log's DDL goes into the schema history. A table map without names is completed from the history at its place; one
with full metadata wins over the history, and a difference is reported. A table whose shape is not known is stopped
alone: its rows stay in the block as they are, with a problem that only who decodes them meets.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.binlog.events.table_map import parse_table_map, table_name
from penstock.errors import BinlogError, SchemaError
from penstock.model import Position, TableName, TableSchema
from penstock.model.table import is_nameless
from penstock.schema.catalogue import Catalogue
from penstock.schema.change import Change
from penstock.schema.complete import completed_body, difference
from penstock.schema.ddl import DdlError, StatementKind, parse
from penstock.schema.declared import declared_by, declared_types
from penstock.schema.dialect import Dialect, Server
from penstock.schema.history import SchemaHistory
from penstock.schema.incomplete import mark_incomplete
from penstock.schema.log_statements import Statements
from penstock.schema.shape import Table

log = logging.getLogger(__name__)

_REMEMBERED = 1 << 16  # table maps
_SHOWN = 200  # characters of a statement
_WITHOUT_SHAPE = {
    StatementKind.CREATE_DATABASE, StatementKind.DROP_DATABASE, StatementKind.CREATE_VIEW, StatementKind.DROP_VIEW,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a table map becomes."""

    body: bytes
    problem: str = ""
    difference: str = ""


class Tables:
    """Of one instance. `follow` is for the one thread that captures, `complete` for any that reads the log again."""

    def __init__(
        self,
        history: SchemaHistory,
        later: tuple[Position, Catalogue] | None = None,
        on_close: Callable[[], None] = lambda: None,
        *,
        hint: str = "",
    ) -> None:
        """`later` is a place that is still to come, and what the tables are there, whatever leads to it. `hint` is for
        who misses a table that the history does not have."""
        self._history = history
        self._later = later
        mark_incomplete(history.folder, is_so=later is not None)
        self._on_close, self._hint = on_close, hint
        self._lock = threading.Lock()  # of all below, and of the history
        self._shapes: dict[bytes, tuple[Table, str, _Shape]] = {}  # by table map: the history's table, server version
        self._differences: dict[TableName, str] = {}
        self._stopped: dict[TableName, str] = {}
        # Table maps to which nothing is to be added, as long as the log comes from this server and is after all changes
        # with these tables, or (None) before all that are known.
        self._plain: set[bytes] = set()
        self._plain_in: tuple[Catalogue | None, int, str] | None = None
        self._declared: dict[tuple[bytes, str], tuple[str, ...]] = {}  # by table map and server version
        self._declared_in: Catalogue | None = None  # as long as the tables are these
        self._statements = Statements()
        self._unseen = 0
        self.last_unseen = ""
        self._seen: dict[TableName, tuple[bytes, str]] = {}  # the last table map, server version

    def close(self) -> None:
        with self._lock:
            self._history.close()
            self._on_close()

    @property
    def differences(self) -> Mapping[TableName, str]:
        """Between the log's full metadata, which counts, and the history."""
        with self._lock:
            return dict(self._differences)

    @property
    def stopped(self) -> Mapping[TableName, str]:
        """Tables whose rows cannot be decoded, and why."""
        with self._lock:
            return dict(self._stopped)

    @property
    def unseen(self) -> int:
        """Changes that the log has as statements, not as rows: nobody gets them."""
        return self._unseen

    @property
    def names(self) -> list[TableName]:
        """Of tables that are there after all that was followed."""
        with self._lock:
            return self._history.catalogue.tables()

    def describe(self, name: TableName) -> TableSchema:
        """As the last rows that were followed have it, or the DDL since."""
        with self._lock:
            if name in self._stopped:
                raise SchemaError(self._stopped[name])
            if (seen := self._seen.get(name)) is not None:
                return parse_table_map(*seen)
            if (found := self._history.catalogue.find(name)) is not None:
                return found.schema
            first = self._history.first
        raise SchemaError(f"nothing of table {name} has been seen in the log since {first}: ask again when rows came")

    def declared(self, block: Block) -> Callable[[int], tuple[str, ...]]:
        """By a table's id in the block, the types of its columns as they were declared, or if that is not known, as the
        log has them."""
        with self._lock:
            if self._has_changes(block):
                return self._declared_by_place(block)
            catalogue = self._catalogue_or_none(block.start)
            if self._declared_in is not catalogue or len(self._declared) >= _REMEMBERED:
                self._declared_in, self._declared = catalogue, {}
            known, version, tables = self._declared, block.server_version, block.tables

        def types(number: int) -> tuple[str, ...]:
            key = tables[number], version
            found = known.get(key)
            if found is None:
                found = known[key] = _declared(block.schema_of(number), catalogue, version)
            return found

        return types

    def restart(self, place: Position, catalogue: Catalogue, later: tuple[Position, Catalogue] | None = None) -> None:
        """Go on there with these tables: those of another server, or read anew."""
        with self._lock:
            self._later = later
            mark_incomplete(self._history.folder, is_so=later is not None)
            self._history.restart(place, catalogue)

    def continues(self, start: Position) -> bool:
        """Whether it says what the tables are at a place up to which the log was followed."""
        with self._lock:
            return self._later is None and self._history.last <= start

    def go_on_at(self, place: Position) -> None:
        """The same tables, in the log of another epoch."""
        with self._lock:
            self._history.restart(place, self._history.catalogue)

    @property
    def epoch(self) -> int:
        """Of the log that it is of."""
        with self._lock:
            return self._history.begin_of(self._history.last).epoch

    @property
    def server(self) -> Server:
        with self._lock:
            return self._history.catalogue.server

    def record(self, kind: StatementKind, change: Change) -> None:
        """A statement of a part of the log that nobody followed."""
        with self._lock:
            self._record(kind, change)

    def compact(self, lowest: Position) -> None:
        """Forget what nobody needs who reads from there on."""
        with self._lock:
            if lowest > self._history.first:
                self._history.compact(lowest)

    def follow(self, block: Block) -> Block:
        """The next block of the log, or one that comes again: its DDL is recorded, its tables are completed."""
        if not len(block):
            return block
        with self._lock:
            for kind, change in self._statements.of(block, self._history.catalogue.server):
                if kind is StatementKind.DATA:
                    self._note_unseen(change)
                    continue
                self._take_later(change.position)
                self._record(kind, change)
            self._take_later(block.end)
            return block if self._are_plain(block) else self._completed(block, is_followed=True)

    def complete(self, block: Block) -> Block:
        """A block whose DDL was recorded when it was followed."""
        if not block.tables:
            return block
        with self._lock:
            return self._completed(block, is_followed=False)

    # -- inside the lock

    def _note_unseen(self, change: Change) -> None:
        self._unseen += 1
        self.last_unseen = f"{change.position}: {change.text[:_SHOWN]}"
        if str(self._unseen).strip("0") == "1":  # 1, 10, 100 …
            log.error(
                "changes that are not rows count=%d position=%s statement=%s: a session has binlog_format other than"
                " ROW; what it changed is not captured, compare the data",
                self._unseen, change.position, change.text[:_SHOWN],
            )  # fmt: skip

    def _take_later(self, place: Position) -> None:
        """Once that is reached. A statement that ends there is in it already, and recorded as one that comes again."""
        if self._later is None or place < self._later[0]:
            return
        (at, catalogue), self._later = self._later, None
        if at >= self._history.last:
            self._history.restart(at, catalogue)
        mark_incomplete(self._history.folder, is_so=False)

    def _record(self, kind: StatementKind, change: Change) -> None:
        place, history, self._plain_in = change.position, self._history, None
        if place <= history.first:
            return  # before it, tables are known by their full metadata or not at all
        try:
            applied = history.record(change)
        except DdlError as error:
            if not _is_harmless(kind, change, Dialect(history.catalogue.server, change.session)):
                raise SchemaError(f"{place}: {error}") from None
            log.warning("statement left out position=%s reason=%s", place, error)
            return
        if applied.problem:
            names = ", ".join(map(str, sorted(applied.unknown)))
            log.warning("statement not followed position=%s tables=%s reason=%s", place, names, applied.problem)
        for name in applied.altered | applied.created | applied.unknown | {new for _, new in applied.renamed}:
            self._seen.pop(name, None)
        for name in applied.dropped | {old for old, _ in applied.renamed}:
            self._seen.pop(name, None)
            self._stopped.pop(name, None)
            self._differences.pop(name, None)

    def _are_plain(self, block: Block) -> bool:
        """Nothing has changed since these tables were looked at, and there was nothing to complete."""
        history = self._history
        if history.first < block.end and block.start < history.last:
            self._plain_in = None  # some change is near: each place in it counts
            return False
        known = history.catalogue if block.start >= history.last else None
        if self._plain_in is None or self._plain_in[0] is not known or self._plain_in[1:] != _of_server(block):
            self._plain, self._plain_in = set(), (known, *_of_server(block))
        return not block.problems and self._plain.issuperset(block.tables.values())

    def _completed(self, block: Block, *, is_followed: bool) -> Block:
        tables, problems, places = dict(block.tables), dict(block.problems), _places_of(block)
        for number, body in block.tables.items():
            first, last = places.get(number) or (block.start, block.start)
            shape = self._shape(body, block.server_version, first, last)
            tables[number] = shape.body
            if shape.problem:
                problems[number] = shape.problem
            if is_followed:
                name = table_name(body)
                self._note(name, shape, first)
                if self._is_present(name, last):
                    self._seen[name] = shape.body, block.server_version
                if self._plain_in is not None and shape == _Shape(body):
                    self._plain.add(body)
        if tables == block.tables and problems == block.problems:
            return block
        return replace(block, tables=tables, problems=problems)

    def _note(self, name: TableName, shape: _Shape, place: Position) -> None:
        """For who asks; once per change in the log of ours."""
        if not shape.problem:
            self._stopped.pop(name, None)
        elif name not in self._stopped:
            log.warning("table stopped position=%s reason=%s", place, shape.problem)
            self._stopped[name] = f"{place}: {shape.problem}"
        if not shape.difference:
            self._differences.pop(name, None)
        elif self._differences.get(name) != shape.difference:
            log.warning("the log counts, not the history: table=%s position=%s %s", name, place, shape.difference)
            self._differences[name] = shape.difference

    def _shape(self, body: bytes, version: str, first: Position, last: Position) -> _Shape:
        """Rows of the block that have this table map lie between these places."""
        name = table_name(body)
        try:
            before, after = (self._catalogue_at(place).known(name) for place in (first, last))
        except SchemaError as error:
            return _Shape(body, self._with_hint(error) if _lacks_names(body, version) else "")
        if before is not after and before != after and _lacks_names(body, version):
            return _Shape(
                body, f"table {name} was altered between {first} and {last}, and these rows have one table map"
            )
        known = self._shapes.get(body)
        if known is None or known[0] is not before or known[1] != version:
            if len(self._shapes) >= _REMEMBERED:
                self._shapes.clear()
            known = self._shapes[body] = before, version, _compared(body, before, version)
        return known[2]

    def _with_hint(self, error: SchemaError) -> str:
        return f"{error}; {self._hint}" if self._hint else str(error)

    def _is_present(self, name: TableName, place: Position) -> bool:
        """Whether a table is still what it was there."""
        history = self._history
        if place >= history.last:
            return True
        try:
            return history.at(place).find(name) == history.catalogue.find(name)
        except SchemaError:
            return False

    def _has_changes(self, block: Block) -> bool:
        """Whether tables may be others at the end of a block than where it begins."""
        return bool(len(block)) and block.start < self._history.last and self._history.first < block.end

    def _declared_by_place(self, block: Block) -> Callable[[int], tuple[str, ...]]:
        """The declared types of each table where the block has its first rows: the statement that made the table may
        be in the same block."""
        catalogues = {number: self._catalogue_or_none(first) for number, (first, _) in _places_of(block).items()}
        begin = self._catalogue_or_none(block.start)

        def types(number: int) -> tuple[str, ...]:
            return _declared(block.schema_of(number), catalogues.get(number, begin), block.server_version)

        return types

    def _catalogue_or_none(self, place: Position) -> Catalogue | None:
        try:
            return self._catalogue_at(place)
        except SchemaError:
            return None

    def _catalogue_at(self, place: Position) -> Catalogue:
        history = self._history
        if history.begin_of(place).epoch != place.epoch:
            raise SchemaError(f"what the tables were at {place}, before the source was switched, is not known")
        return history.catalogue if place >= history.last else history.at(place)


def _declared(logged: TableSchema, catalogue: Catalogue | None, server_version: str) -> tuple[str, ...]:
    table = catalogue.find(logged.name) if catalogue is not None else None
    if table is None or catalogue is None or difference(logged, table.schema):
        return declared_types(logged, server_version)
    return declared_by(table, catalogue.server)


def _of_server(block: Block) -> tuple[int, str]:
    return block.epoch, block.server_version


def _compared(body: bytes, table: Table, version: str) -> _Shape:
    if _lacks_names(body, version):
        try:
            return _Shape(completed_body(body, table, version))
        except SchemaError as error:
            return _Shape(body, str(error))
    try:
        return _Shape(body, difference=difference(parse_table_map(body, version), table.schema))
    except (BinlogError, SchemaError):
        return _Shape(body)  # who decodes it meets the problem


def _lacks_names(body: bytes, version: str) -> bool:
    try:
        return is_nameless(parse_table_map(body, version))
    except (BinlogError, SchemaError):
        return False


def _places_of(block: Block) -> dict[int, tuple[Position, Position]]:
    """By table id, where its first and its last rows are in a block."""
    events = np.flatnonzero(block.column("entry") == Entry.ROWS)
    ids, offsets = block.column("table_id")[events], block.column("position")[events]
    numbers, first = np.unique(ids, return_index=True)
    _, last = np.unique(ids[::-1], return_index=True)

    def place(offset: int) -> Position:
        return Position(block.file, offset, epoch=block.epoch)

    ends = zip(offsets[first].tolist(), offsets[::-1][last].tolist(), strict=True)
    return {number: (place(one), place(other)) for number, (one, other) in zip(numbers.tolist(), ends, strict=True)}


def _is_harmless(kind: StatementKind, change: Change, dialect: Dialect) -> bool:
    """Of one that cannot be followed: it is about a view, or a database that is there already, or is not known."""
    if kind in _WITHOUT_SHAPE:
        return True
    try:
        parse(change.text, kind, dialect, change.database)
    except DdlError:
        return False
    return kind is StatementKind.ALTER_DATABASE
