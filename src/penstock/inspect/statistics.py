"""What is in a log, counted: per table and kind, the largest transactions, and over time.

Everything is counted block by block with arrays; a transaction that continues in the next block is carried over.
"""

import heapq
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.commit_time import are_valid_times, valid_time_or_none
from penstock.binlog.events.incident import are_incidents
from penstock.binlog.events.layout import Entry, EventType
from penstock.binlog.events.query import are_logged_statements
from penstock.binlog.rows.decode import decode_rows
from penstock.binlog.rows.table_changes import RowChangeKind, transaction_gtids
from penstock.model import ChangeKind, Position, TableName

LARGEST = 10
_BETWEEN = [
    EventType.STOP,
    EventType.PREVIOUS_GTIDS,
    EventType.MARIADB_BINLOG_CHECKPOINT,
    EventType.MARIADB_GTID_LIST,
]  # fmt: skip - belong to no transaction
# An event of another type belongs to a transaction only where it is inside of one.
_KNOWN = [int(kind) for kind in EventType if kind not in {EventType.IGNORABLE, EventType.INCIDENT}]
_MAX_STEPS = 4096
_KINDS = {
    ChangeKind.INSERT: RowChangeKind.INSERT,
    ChangeKind.UPDATE_POSTIMAGE: RowChangeKind.UPDATE,
    ChangeKind.DELETE: RowChangeKind.DELETE,
}


@dataclass(slots=True)
class TableStatistics:
    """Rows, bytes and transactions of one table, by kind of change."""

    rows: dict[RowChangeKind, int] = field(default_factory=lambda: dict.fromkeys(RowChangeKind, 0))
    bytes: dict[RowChangeKind, int] = field(default_factory=lambda: dict.fromkeys(RowChangeKind, 0))
    transactions: dict[RowChangeKind, int] = field(default_factory=lambda: dict.fromkeys(RowChangeKind, 0))
    all_transactions: int = 0  # one may have changes of several kinds

    @property
    def all_rows(self) -> int:
        """Return the rows of all kinds of change."""
        return sum(self.rows.values())

    @property
    def all_bytes(self) -> int:
        """Return the bytes of all kinds of change."""
        return sum(self.bytes.values())


TableAndKind = tuple[TableName, RowChangeKind | None]  # a table, and a table with changes of a kind


@dataclass(frozen=True, slots=True, order=True)
class TransactionSize:
    """The size of one transaction, with its position, commit time and GTID."""

    bytes: int
    rows: int
    position: Position = field(compare=False)
    commit_us: int | None = field(compare=False)
    gtid: str | None = field(compare=False)


@dataclass(slots=True)
class Timeline:
    """Rows, transactions and bytes per step of time; the step doubles when there are too many."""

    step_s: int = 1
    counts: dict[int, list[int]] = field(default_factory=dict[int, list[int]])  # step → rows, transactions, bytes

    def add(self, seconds: NDArray[np.int64], *columns: NDArray[np.int64]) -> None:
        """Add counts at these seconds since 1970."""
        if not seconds.size:
            return
        steps, which = np.unique(seconds // self.step_s, return_inverse=True)
        sums = [np.bincount(which, column, steps.size).astype(np.int64).tolist() for column in columns]
        for step, *sums_of_step in zip(steps.tolist(), *sums, strict=True):
            cell = self.counts.setdefault(step, [0] * len(columns))
            cell[:] = [a + b for a, b in zip(cell, sums_of_step, strict=True)]
        while len(self.counts) > _MAX_STEPS:
            self._coarsen(2)

    def _coarsen(self, factor: int) -> None:
        """Merge each `factor` steps into one."""
        old, self.counts = self.counts, {}
        self.step_s *= factor
        for step, counts in old.items():
            cell = self.counts.setdefault(step // factor, [0] * len(counts))
            cell[:] = [a + b for a, b in zip(cell, counts, strict=True)]

    def bars(self, most: int) -> tuple[int, dict[int, list[int]]]:
        """Return at most `most` bars of equal width without gaps: the seconds per bar, and the counts by the start of
        each.
        """
        if not self.counts:
            return self.step_s, {}
        first, last = min(self.counts), max(self.counts)
        width = next(w for w in _bar_widths() if w >= self.step_s and ((last + 1 - first) * self.step_s) / w <= most)
        bars: dict[int, list[int]] = {}
        start = first * self.step_s // width
        for number in range(start, last * self.step_s // width + 1):
            bars[number * width] = [0] * len(next(iter(self.counts.values())))
        for step, counts in self.counts.items():
            cell = bars[step * self.step_s // width * width]
            cell[:] = [a + b for a, b in zip(cell, counts, strict=True)]
        return width, bars


def _bar_widths() -> "list[int]":
    """Return the widths in seconds that a bar may have."""
    small = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200]
    return small + [86400 * 2**k for k in range(20)]


@dataclass(slots=True)
class LogStatistics:
    """Counts what a log contains, block by block: per table and kind, the largest transactions, and over time.

    statistics = LogStatistics()
    for block in blocks: statistics.add_block(block)
    """

    bytes: int = 0
    events: int = 0
    statements: int = 0
    load_data_statements: int = 0  # in statement format: their rows are not in the log as rows
    incidents: int = 0
    transactions: int = 0
    first_us: int | None = None
    last_us: int | None = None
    start: Position | None = None
    end: Position | None = None
    tables: dict[TableName, TableStatistics] = field(default_factory=dict[TableName, TableStatistics])
    timeline: Timeline = field(default_factory=Timeline)
    _largest: list[TransactionSize] = field(default_factory=list[TransactionSize])  # a heap
    _open_transaction: TransactionSize | None = None
    _touched: set[TableAndKind] = field(default_factory=set[TableAndKind])  # by the carried transaction

    @property
    def rows(self) -> int:
        """Return the rows of all tables."""
        return sum(count.all_rows for count in self.tables.values())

    @property
    def largest(self) -> list[TransactionSize]:
        """Return the largest transactions, the largest one first."""
        carried = [self._open_transaction] if self._open_transaction else []
        return sorted([*self._largest, *carried], reverse=True)[:LARGEST]

    def add_block(self, block: Block) -> None:
        """Count a block of picked events: rows, statements and the ends of transactions."""
        if not len(block):
            return
        sizes = block.column("span")
        moments = block.column("commit_us")
        self.events += len(block)
        self.bytes += int(sizes.sum())
        is_statement = are_logged_statements(block)
        is_load = is_statement & (block.column("kind") == EventType.EXECUTE_LOAD_QUERY)
        self.statements += int(np.count_nonzero(is_statement))
        self.load_data_statements += int(np.count_nonzero(is_load))
        self.incidents += int(np.count_nonzero(are_incidents(block)))
        self.start, self.end = self.start or block.start, block.end
        moments = moments[are_valid_times(moments)]
        if moments.size:
            low, high = int(moments.min()), int(moments.max())
            self.first_us = low if self.first_us is None else min(self.first_us, low)
            self.last_us = high if self.last_us is None else max(self.last_us, high)
        inside = self._are_inside(block)
        if inside.any():
            block = block.filter(inside)
            transactions, which = np.unique(block.column("transaction"), return_inverse=True)
            rows = self._count_tables(block, transactions)
            self._count_transactions(block, transactions, which, rows)

    def _are_inside(self, block: Block) -> NDArray[np.bool_]:
        """Return which events belong to a transaction."""
        kind, transaction = block.column("kind"), block.column("transaction")
        inside = ~np.isin(kind, _BETWEEN)
        is_known = np.isin(kind, _KNOWN)
        if is_known.all():
            return inside
        begun = np.unique(transaction[inside & is_known])
        if self._is_carried(block, int(transaction[0])):
            begun = np.union1d(begun, transaction[:1])
        return inside & np.isin(transaction, begun)

    def _count_tables(self, block: Block, transactions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the tables of a block, and return the rows of each event."""
        counted = np.zeros(len(block), np.int64)
        events = np.flatnonzero(block.column("entry") == Entry.ROWS)
        ids = block.column("table_id")[events]
        continues = self._open_transaction is not None and self._is_carried(block, int(transactions[0]))
        touched: set[TableAndKind] = set(self._touched) if continues and transactions.size == 1 else set()
        for number in np.unique(ids).tolist():
            table_events = events[ids == number]
            table = block.schema_of(number)
            count = self.tables.setdefault(table.name, TableStatistics())
            located = [rows.located for rows in decode_rows(block, table_events, table, [])]
            event, kinds = (
                np.concatenate(part) for part in zip(*((images.event, images.kind) for images in located), strict=True)
            )
            for code, kind in _KINDS.items():
                rows = np.bincount(event[kinds == code], minlength=table_events.size)
                counted[table_events] += rows
                count.rows[kind] += int(rows.sum())
                count.bytes[kind] += int(block.column("span")[table_events][rows > 0].sum())
                count.transactions[kind] += self._count_new_transactions(
                    (table.name, kind),
                    block.column("transaction")[table_events[rows > 0]],
                    transactions,
                    touched,
                    continues=continues,
                )
            count.all_transactions += self._count_new_transactions(
                (table.name, None),
                block.column("transaction")[table_events],
                transactions,
                touched,
                continues=continues,
            )
        self._touched = touched
        return counted

    def _count_new_transactions(
        self,
        table_and_kind: TableAndKind,
        touching: NDArray[np.int64],
        transactions: NDArray[np.int64],
        touched: set[TableAndKind],
        *,
        continues: bool,
    ) -> int:
        """Return how many transactions touch a table and kind, without one that did so in an earlier block already."""
        if not touching.size:
            return 0
        distinct = np.unique(touching)
        is_known = continues and int(distinct[0]) == int(transactions[0]) and table_and_kind in self._touched
        if int(distinct[-1]) == int(transactions[-1]):
            touched.add(table_and_kind)
        return distinct.size - is_known

    def _is_carried(self, block: Block, transaction: int) -> bool:
        """Tell whether this transaction of the block began in an earlier block."""
        carried = self._open_transaction
        return carried is not None and carried.position.file == block.file and carried.position.offset == transaction

    def _count_transactions(
        self, block: Block, transactions: NDArray[np.int64], which: NDArray[np.int64], counted: NDArray[np.int64]
    ) -> None:
        """Count the transactions of a block, and carry over the last one."""
        sizes = np.bincount(which, block.column("span")).astype(np.int64)
        rows = np.bincount(which, counted).astype(np.int64)
        first = np.unique(which, return_index=True)[1]
        moments = block.column("commit_us")[first]
        is_new = np.ones(transactions.size, np.int64)
        if self._open_transaction is not None and self._is_carried(block, int(transactions[0])):
            is_new[0] = 0
        self.transactions += int(is_new.sum())
        is_known = are_valid_times(moments)
        self.timeline.add(moments[is_known] // 1_000_000, rows[is_known], is_new[is_known], sizes[is_known])
        if not is_new[0] and self._open_transaction is not None:
            sizes[0] += self._open_transaction.bytes
            rows[0] += self._open_transaction.rows
        elif self._open_transaction is not None:
            self._add_largest(self._open_transaction)
        names = transaction_gtids(block, first)

        def transaction(i: int) -> TransactionSize:
            begin = Position(block.file, int(transactions[i]))
            return TransactionSize(
                int(sizes[i]), int(rows[i]), begin, valid_time_or_none(int(moments[i])), names[i].as_py()
            )

        last = transactions.size - 1
        for i in np.argsort(-sizes[:last], kind="stable")[:LARGEST].tolist():
            self._add_largest(transaction(i))
        self._open_transaction = transaction(last)

    def _add_largest(self, transaction: TransactionSize) -> None:
        """Add a transaction to the largest ones, and drop the smallest of them if there are too many."""
        heapq.heappush(self._largest, transaction)
        if len(self._largest) > LARGEST:
            heapq.heappop(self._largest)
