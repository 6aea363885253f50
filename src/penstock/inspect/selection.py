"""Which events of a log are wanted: by table, by time, by position, by GTID."""

import re
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import compute as pc
from penstock.binlog.arrays import distinct, distinct_values, to_arrow_strings, to_mask
from penstock.binlog.events.annotation import AnnotationPicker
from penstock.binlog.events.block import Block
from penstock.binlog.events.gtid_mask import are_in
from penstock.binlog.events.incident import are_incidents
from penstock.binlog.events.layout import Entry
from penstock.binlog.events.query import are_logged_statements
from penstock.binlog.events.statement import find_statements
from penstock.binlog.events.table_map import table_name
from penstock.binlog.rows.table_changes import transaction_gtids
from penstock.binlog.xa.outcome import XaTransactions
from penstock.errors import ConfigurationError
from penstock.model import GtidSet, Position, TableName
from penstock.model.start_point import LogPoint, Moment

_NAMED = 20


def compile_table_patterns(texts: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Compile regular expressions for `database.table`; a broken one is a ConfigurationError."""
    try:
        return tuple(re.compile(text, re.IGNORECASE) for text in texts)
    except re.error as error:
        raise ConfigurationError(f"--table {error.pattern!r} is no regular expression: {error}") from None


@dataclass(slots=True)
class EventSelection:
    """Picks the wanted events of a log by table, time, position and GTID, block by block, in order.

    It remembers whether the GTID to begin at was reached, and the transaction that continues in the next block.
    """

    tables: tuple[re.Pattern[str], ...] = ()
    since: LogPoint | None = None
    until: LogPoint | None = None
    notes: AnnotationPicker | None = None  # for whom the statements behind rows are wanted too
    xa: XaTransactions = field(default_factory=XaTransactions)
    seen: set[TableName] = field(default_factory=set[TableName])
    matched: set[TableName] = field(default_factory=set[TableName])
    is_over: bool = False  # nothing that comes after is wanted
    _has_begun: bool = False
    _carried: tuple[str, int] = (
        "",
        -1,
    )  # file and begin of a transaction that continues, if something of it was wanted

    def __post_init__(self) -> None:
        if isinstance(self.until, GtidSet):
            raise ConfigurationError(f"--until takes a time or a position, not the GTID {self.until.text}")
        if _is_empty_range(self.since, self.until):
            raise ConfigurationError("--until is not after --since: nothing is between them")

    def pick_events(self, block: Block, *, for_counting: bool = False) -> Block:
        """Return the wanted rows events and statements, and the ends of their transactions; all events, if they are
        only counted and no table is named.
        """
        mask = self._in_range(block)
        entry, table_id = block.column("entry"), block.column("table_id")
        rows = (entry == Entry.ROWS) & mask
        ids = self._wanted_ids(block, distinct(table_id[rows]))
        rows &= np.isin(table_id, ids)
        statements = are_logged_statements(block) & mask
        if self.tables and statements.any():
            statements &= ~self._foreign_statements(block)
        touched = self._find_transactions(block, rows | statements)
        incidents = are_incidents(block) & mask  # whatever the tables: nobody knows of which something is lost
        wanted = rows | statements | incidents | self.xa.follow(block, mask, touched)
        if self.tables:
            wanted |= mask & (entry == Entry.END) & np.isin(block.column("transaction"), touched)
        else:
            wanted |= mask if for_counting else mask & (entry == Entry.END)
        block = replace(block, tables={number: block.tables[number] for number in ids})
        if self.notes is not None:
            return self.notes.pick(block, rows, wanted)
        return block.filter(wanted)

    def _find_transactions(self, block: Block, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the transactions of which something is wanted, in this block or an earlier one."""
        transaction = block.column("transaction")
        transactions = distinct_values(transaction[wanted])
        if self._carried == (block.file, int(transaction[0])):
            transactions = distinct_values(np.concatenate([transactions, transaction[:1]]))
        last = int(transaction[-1])
        self._carried = (block.file, last if last in transactions else -1)
        return transactions

    def wants_table(self, table: TableName) -> bool:
        """Tell whether rows of a table are wanted."""
        return not self.tables or any(pattern.fullmatch(str(table)) for pattern in self.tables)

    def check_matches(self) -> None:
        """Raise at the end of the log for a position or a pattern that matched nothing, since that is likely a
        mistake.
        """
        if isinstance(self.since, GtidSet) and self.since.is_single and not self._has_begun:
            raise ConfigurationError(f"the transaction {self.since.text} is not in this log")
        if self.tables and self.seen and not self.matched:
            names = sorted(map(str, self.seen))
            rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            patterns = ", ".join(pattern.pattern for pattern in self.tables)
            raise ConfigurationError(
                f"no table of this part of the log matches {patterns}: it has rows of {', '.join(names[:_NAMED])}{rest}"
            )

    def _wanted_ids(self, block: Block, ids: list[int]) -> list[int]:
        """Return the table ids whose rows are wanted."""
        wanted: list[int] = []
        for number in ids:
            name = table_name(block.tables[number])
            self.seen.add(name)
            if self.wants_table(name):
                self.matched.add(name)
                wanted.append(number)
        return wanted

    def _foreign_statements(self, block: Block) -> NDArray[np.bool_]:
        """Return a mask of the statements that name another table, or none that can be recognised."""
        foreign = are_logged_statements(block)
        for statement in find_statements(block):
            if statement.table is not None and self.wants_table(statement.table):
                foreign[statement.event] = False
        return foreign

    def _in_range(self, block: Block) -> NDArray[np.bool_]:
        """Return which events lie in the wanted range of the log."""
        after = self._after_start(block)
        match self.until:
            case Moment(us):
                before = block.column("commit_us") < us
                # Clocks and commits are not in perfect order: only a whole block beyond the time ends the search.
                self.is_over = not before.any()
            case Position():
                before = _compare_positions(block, self.until) < 0
                self.is_over = not before[-1]
            case _:
                return after
        return after & before

    def _after_start(self, block: Block) -> NDArray[np.bool_]:
        """Return which events lie after the start of the range."""
        match self.since:
            case Moment(us):
                return block.column("commit_us") >= us
            case Position():
                return _compare_positions(block, self.since) >= 0
            case GtidSet() if self.since.is_single:
                return self._after_gtid(block, self.since)
            case GtidSet():
                return ~are_in(_gtids_of_events(block), self.since)
            case None:
                return np.ones(len(block), np.bool_)

    def _after_gtid(self, block: Block, first: GtidSet) -> NDArray[np.bool_]:
        """Return which events belong to the transaction with this GTID or a later one."""
        if self._has_begun:
            return np.ones(len(block), np.bool_)
        mask = to_mask(pc.equal(_gtids_of_events(block), to_arrow_strings([first.text.lower()])[0]))
        self._has_begun = bool(mask.any())
        return np.maximum.accumulate(mask)


def _is_empty_range(since: LogPoint | None, until: LogPoint | None) -> bool:
    """Tell whether a range begins after its end."""
    match since, until:
        case Moment(first), Moment(stop):
            return first >= stop
        case Position(), Position():
            return since >= until
        case _:
            return False


def _compare_positions(block: Block, position: Position) -> NDArray[np.int64]:
    """Return -1, 0 or 1 for each event that begins before, at or after a position."""
    if block.file != position.file and Position(block.file, 0).file_number != position.file_number:
        return np.full(len(block), np.sign(Position(block.file, 0).file_number - position.file_number), np.int64)
    return np.sign(block.column("position") - position.offset)


def _gtids_of_events(block: Block) -> pa.Array:
    """Return the GTID of each event's transaction."""
    return transaction_gtids(block, np.arange(len(block)))
