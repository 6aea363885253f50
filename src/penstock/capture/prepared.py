"""The prepared XA transactions of a log, for one reader of it, until their outcome is known.

Their events are held in memory up to a limit; with files those that stay prepared are saved as well. What is in
neither is read again from the log, where each transaction is known by its position. A transaction that was prepared
before the reader began is looked for in the log before that.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from penstock.binlog.events.block import Block
from penstock.binlog.xa.resolver import copy_events
from penstock.binlog.xa.transaction import PreparedTransaction
from penstock.capture.look_back import LogAccess, PreparedSearch
from penstock.capture.prepared_events import PreparedEvents, count_rows
from penstock.capture.prepared_files import PreparedFiles
from penstock.errors import PositionLostError
from penstock.model import Position

log = logging.getLogger(__name__)

MEMORY_BYTES = 64 << 20  # of events of prepared transactions, of one instance
READER_BYTES = 16 << 20  # for one reader of a part of the log
_MAX_CLOSED = 10_000  # transactions with a known outcome that are remembered, for readers of the same range
_SAVED_AFTER_S = 1.0  # a transaction that was prepared longer ago is saved
_WRITTEN_EVERY_S = 10.0  # at least, while something is prepared: from there on the log is searched after a crash
_SHOWN = 20


class PreparedTransactions:
    """The prepared XA transactions of a log. One thread reads the log with it; any thread may call `find_closed` and
    `report`.

    >>> prepared = PreparedTransactions(source_log)
    >>> prepared.resume(start)
    >>> resolver = XaResolver(prepared)
    """

    def __init__(
        self,
        access: LogAccess,
        *,
        memory_bytes: int = MEMORY_BYTES,
        files: PreparedFiles | None = None,
        is_eager: bool = False,
        shared: "PreparedTransactions | None" = None,
        on_lost: Callable[[PositionLostError], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        destination: str = "",
    ) -> None:
        """`is_eager` saves a transaction before the position after it counts as reached. `shared` are those of the
        reader that follows the log, which knows what was closed. `on_lost` is called for a transaction that the log no
        longer has: it raises, or its rows are left out."""
        self._access, self.files, self._shared, self._clock = access, files, shared, clock
        self._destination = destination
        self._memory_bytes, self._is_eager, self._on_lost = memory_bytes, is_eager, on_lost
        self._look_back: PreparedSearch | None = None
        self._floor: Position | None = None  # the log between there and the start was not read
        self._through: Position | None = None  # up to there the log was read
        self._unsaved: dict[PreparedTransaction, float] = {}  # since when
        self.held_bytes, self._is_dirty = 0, False
        self._tended_at = self._written_at = 0.0
        self._lock = threading.Lock()  # of the two below
        self._open: dict[str, PreparedTransaction] = {}  # by id, in the order in which they were prepared
        # By id and where the outcome ends, in the order of outcomes.
        self._closed: dict[tuple[str, Position], PreparedTransaction] = {}
        if files is not None:
            self._through, transactions = files.load()
            self._open = {transaction.xid: transaction for transaction in transactions if transaction.outcome is None}
            self._closed = {
                (transaction.xid, transaction.outcome): transaction
                for transaction in transactions
                if transaction.outcome is not None
            }

    # -- where the reader is

    def resume(self, start: Position) -> None:
        """Prepare for reading the log from `start`, which is a transaction boundary."""
        through = self._through
        if through is None or through.epoch != start.epoch:
            self.switch_to(None, None)
            through = None
        is_behind = through is not None and start > through
        self._floor = through if is_behind else None
        self._look_back = PreparedSearch(self._access, start, self._floor, self._destination)
        self._through = start if through is None or is_behind else through

    def set_resolved(self, position: Position) -> None:
        """Note that everything up to a transaction boundary was resolved."""
        if self._through is None or position > self._through:
            self._through = position

    def switch_to(self, before: Position | None, position: Position | None) -> None:
        """Continue with another log, which resumes at `position` after what came up to `before` in this one. With None
        for `before`, nothing is known of what is prepared there. What is neither in memory nor saved is looked for in
        that log."""
        with self._lock:
            transactions = [*self._open.values(), *self._closed.values()]
            known = {
                xid: transaction
                for xid, transaction in self._open.items()
                if before is not None and transaction.end <= before
            }
            retained = {xid: transaction for xid, transaction in known.items() if self._has_events(transaction)}
            self._open, self._closed = retained, {}
        for transaction in transactions:
            if retained.get(transaction.xid) is not transaction:
                self._forget(transaction)
        self._through, self._floor = position, None
        self._is_dirty |= bool(transactions)

    # -- for the resolver

    def collect(self, begin: Position) -> PreparedEvents:
        """Return a collector for the events of the transaction that begins at `begin`."""
        return PreparedEvents(begin, max(1, self._memory_bytes // 4), self.files)

    def add(self, transaction: PreparedTransaction) -> None:
        """Remember a transaction that was prepared. One with the same XA id is replaced."""
        with self._lock:
            before = self._open.pop(transaction.xid, None)
            self._open[transaction.xid] = transaction
        if before is not None:
            self._forget(before, is_saved=before.begin == transaction.begin)
        self.held_bytes += _memory_size(transaction)
        self._unsaved[transaction] = self._clock()
        self._is_dirty = True
        if self._is_eager:
            self._save_transaction(transaction)
            self._write_list()
        self._evict_to_limit()

    def find(self, xid: str, outcome: Position) -> PreparedTransaction | None:
        """Return the transaction that the statement which ends at `outcome` commits: from memory, from files, or found
        in the log. None when its rows were purged and may be left out."""
        transaction = self.find_closed(xid, outcome)
        if transaction is None:
            with self._lock:
                transaction = self._find_open(xid, outcome)
        if transaction is None and self._shared is not None:
            transaction = self._shared.find_closed(xid, outcome)
        if self._look_back is not None and transaction is None:
            transaction = self._look_back.find(xid)
        elif (
            self._look_back is not None
            and transaction is not None
            and self._floor is not None
            and transaction.end <= self._floor
        ):
            transaction = self._look_back.find(xid, down_to=self._floor) or transaction
        if transaction is None:
            self._report_lost(f"XA COMMIT {xid} ends at {outcome}, and the log no longer has the rows that it commits")
        return transaction

    def find_closed(self, xid: str, outcome: Position) -> PreparedTransaction | None:
        """Return the prepared transaction that was committed or rolled back by the statement that ends at `outcome`;
        None if there was none, or it is forgotten: only the last ones are remembered."""
        with self._lock:
            return self._closed.get((xid, outcome))

    def close(self, xid: str, outcome: Position) -> None:
        """Record that the statement which ends at `outcome` committed a prepared transaction, or rolled it back."""
        with self._lock:
            closed = self._find_open(xid, outcome)
            if closed is not None:
                closed.outcome = outcome
                self._closed[xid, outcome] = self._open.pop(xid)
            excess = max(0, len(self._closed) - _MAX_CLOSED)
            forgotten = [self._closed.pop(key) for key in [*islice(self._closed, excess)]]
        if closed is not None:
            self._unsaved.pop(closed, None)
            self._is_dirty = True
        for transaction in forgotten:
            self._forget(transaction)

    def _find_open(self, xid: str, outcome: Position) -> PreparedTransaction | None:
        """Find a transaction, under the lock. One that was prepared after the outcome, which may be redelivered, is
        another one."""
        transaction = self._open.get(xid)
        return transaction if transaction is not None and transaction.end < outcome else None

    def read_events(self, transaction: PreparedTransaction) -> Iterator[Block]:
        """Return the events of a transaction: from memory, from its file, or from the log."""
        blocks = transaction.blocks
        if blocks is not None:
            return iter(blocks)
        files = self.files or (self._shared.files if self._shared is not None else None)
        saved = files.read(transaction.begin) if files is not None else None
        return saved if saved is not None else self._read_from_log(transaction)

    def _read_from_log(self, transaction: PreparedTransaction) -> Iterator[Block]:
        """Yield the events of a transaction from the log."""
        has_begun = False
        try:
            for block in self.read_log(transaction.begin, transaction.end):
                has_begun = True
                yield copy_events(block.between(transaction.first, transaction.end))
        except PositionLostError as error:
            if has_begun:
                raise
            self._report_lost(
                f"the rows of XA transaction {transaction.xid}, prepared at {transaction.end}, are gone: {error}"
            )

    def read_log(self, begin: Position, end: Position) -> Iterator[Block]:
        """Read a part of the log again, with both ends between two transactions."""
        return self._access.read_raw(begin, end)

    def _report_lost(self, text: str) -> None:
        """Report rows that the log no longer has, or raise PositionLostError."""
        error = PositionLostError(f"{text}: compare the data, then say with on_purged: latest that they are left out")
        if self._on_lost is None:
            raise error
        self._on_lost(error)

    # -- memory and files

    def save_and_forget(self, acked: Callable[[], Position]) -> None:
        """Save what has been prepared for a while, and forget what a reader that begins at `acked()` does not need."""
        now = self._clock()
        if now - self._tended_at < _SAVED_AFTER_S:
            return
        self._tended_at = now
        lowest = acked()
        with self._lock:
            gone = [self._closed.pop(key) for key in [*self._closed] if key[1] <= lowest]
            self._is_dirty |= bool(self._open) and now - self._written_at >= _WRITTEN_EVERY_S
        for transaction in gone:
            self._forget(transaction)
        for transaction in [
            transaction for transaction, since in self._unsaved.items() if now - since >= _SAVED_AFTER_S
        ]:
            self._save_transaction(transaction)
        self._is_dirty |= bool(gone)
        self._write_list()

    def save(self) -> None:
        """Save all that is prepared, and what was committed and may be read again, before the process ends."""
        with self._lock:
            transactions = [*self._open.values(), *self._closed.values()]
        self._is_dirty |= bool(transactions)
        for transaction in transactions:
            self._save_transaction(transaction)
        self._write_list()

    def _save_transaction(self, transaction: PreparedTransaction) -> None:
        """Write the events of a transaction to its file, if it has none."""
        self._unsaved.pop(transaction, None)
        if transaction.blocks is None:
            return
        if transaction.rows is None:
            transaction.rows = count_rows(transaction.blocks)
        if self.files is not None and not self.files.has(transaction.begin):
            self.files.save(transaction.begin, transaction.blocks)

    def _write_list(self) -> None:
        """Write the list of prepared transactions, if it has changed."""
        if self.files is None or not self._is_dirty:
            return
        with self._lock:
            transactions = [*self._open.values(), *self._closed.values()]
        self._written_at = self._clock()
        self._is_dirty = not self.files.write_list(self._through, transactions)

    def _has_events(self, transaction: PreparedTransaction) -> bool:
        """Return whether the events of a transaction are in memory or in a file."""
        return transaction.blocks is not None or (self.files is not None and self.files.has(transaction.begin))

    def _forget(self, transaction: PreparedTransaction, *, is_saved: bool = False) -> None:
        """Drop the events of a transaction, and its file unless another transaction has the same."""
        self._unsaved.pop(transaction, None)
        self.held_bytes -= _memory_size(transaction)
        if self.files is not None and not is_saved:
            self.files.remove(transaction.begin)

    def _evict_to_limit(self) -> None:
        """Hold no more in memory than the limit: closed transactions are dropped first, then those prepared first."""
        if self.held_bytes <= self._memory_bytes:
            return
        with self._lock:
            transactions = [*self._closed.values(), *self._open.values()]
        for transaction in transactions:
            if self.held_bytes <= self._memory_bytes * 3 // 4:
                return
            if transaction.blocks is not None:
                self._save_transaction(transaction)
                self.held_bytes -= _memory_size(transaction)
                transaction.blocks = None

    # -- what a status shows of it

    def report(self) -> dict[str, Any]:
        """Return how many transactions are prepared, since when the first of them is, and which they are."""
        with self._lock:
            transactions = sorted(self._open.values(), key=lambda transaction: transaction.since)
        return {
            "count": len(transactions),
            "since": transactions[0].since if transactions else None,
            "transactions": [
                {
                    "xid": transaction.xid,
                    "since": transaction.since,
                    "rows": transaction.rows,
                    "position": transaction.end.to_json(),
                }
                for transaction in transactions[:_SHOWN]
            ],
        }


def _memory_size(transaction: PreparedTransaction) -> int:
    """Return the size of a transaction's events in memory."""
    return sum(block.size_bytes for block in transaction.blocks or ())
