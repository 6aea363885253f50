"""Finds XA transactions that were prepared in a log before the position at which a reader of it began."""

import logging
from collections.abc import Iterator, Sequence
from typing import Protocol

from penstock.binlog.events.block import Block
from penstock.binlog.xa.resolver import XaResolver
from penstock.binlog.xa.transaction import PreparedTransaction
from penstock.capture.prepared_events import PreparedEvents
from penstock.errors import PositionLostError
from penstock.model import Position
from penstock.source.binlog_source import FIRST

log = logging.getLogger(__name__)


class LogAccess(Protocol):
    """Reads other parts of the log that a reader is following."""

    def read_raw(self, begin: Position, end: Position) -> Iterator[Block]:
        """Read a part of the log as it is there; both ends lie between two transactions."""
        ...

    def files(self) -> Sequence[str]:
        """Return the names of the log's files, in their order."""
        ...


class PreparedSearch:
    """Searches the log backwards from `start` for prepared XA transactions, file by file and each file once, as far as
    it is asked to."""

    def __init__(
        self, access: LogAccess, start: Position, floor: Position | None = None, destination: str = ""
    ) -> None:
        """`floor` is a position before `start` that a caller may stop at."""
        self._access, self._start, self._floor, self._destination = access, start, floor, destination
        self._left: list[tuple[Position, Position]] | None = None  # parts that were not read yet, the last one first
        self._read: list[tuple[Position, dict[str, PreparedTransaction]]] = []  # by where a part begins

    def find(self, xid: str, *, down_to: Position | None = None) -> PreparedTransaction | None:
        """Return the transaction that was prepared last under an XA id; None when the log has none after `down_to`."""
        for begin, prepared in self._read:
            if down_to is not None and begin < down_to:
                return None
            if xid in prepared:
                return prepared[xid]
        if self._left is None:
            self._left = list(self._parts_backwards())
        while self._left and (down_to is None or self._left[0][0] >= down_to):
            begin, end = self._left.pop(0)
            try:
                prepared = self._scan_part(begin, end)
            except PositionLostError as error:
                log.info(
                    "search for prepared XA transactions stopped at purged binlog files destination=%s reason=%s",
                    self._destination,
                    error,
                )
                self._left = []
                return None
            self._read.append((begin, prepared))
            if xid in prepared:
                return prepared[xid]
        return None

    def _parts_backwards(self) -> Iterator[tuple[Position, Position]]:
        """Yield the parts of the log before the start, the last one first."""
        start, floor = self._start, self._floor
        end = start
        for file in reversed(self._access.files()):
            begin = Position(file, FIRST, epoch=start.epoch)
            if begin >= end:
                continue
            if floor is not None and begin < floor < end:
                yield floor, end
                end = floor
            yield begin, end
            end = begin

    def _scan_part(self, begin: Position, end: Position) -> dict[str, PreparedTransaction]:
        """Return the XA transactions that are prepared at the end of a part of the log, by XA id."""
        log.info(
            "searching the binlog for prepared XA transactions destination=%s from=%s to=%s",
            self._destination,
            begin,
            end,
        )
        scanned = _ScannedTransactions()
        resolver = XaResolver(scanned)
        for block in self._access.read_raw(begin, end):
            for _ in resolver.resolve(block):
                pass
        return scanned.by_xid


class _ScannedTransactions:
    """Notes, while a part of the log is scanned, which XA transactions are prepared at its end: their positions,
    without their rows."""

    def __init__(self) -> None:
        self.by_xid: dict[str, PreparedTransaction] = {}

    def collect(self, begin: Position) -> PreparedEvents:
        """Return a collector of an XA transaction's events that stores none of them."""
        return PreparedEvents(begin, 0)

    def add(self, transaction: PreparedTransaction) -> None:
        """Note a prepared XA transaction."""
        self.by_xid[transaction.xid] = transaction

    def find(self, xid: str, outcome: Position) -> None:
        """Return None, so that no rows are delivered at an XA COMMIT: the log is only scanned for XA transactions that
        are still prepared."""

    def close(self, xid: str, outcome: Position) -> None:
        """Remove an XA transaction that was committed or rolled back in the scanned part."""
        del outcome
        self.by_xid.pop(xid, None)

    def read_events(self, transaction: PreparedTransaction) -> Iterator[Block]:
        """Return no events: the scan notes positions of XA transactions only."""
        del transaction
        return iter(())

    def read_log(self, begin: Position, end: Position) -> Iterator[Block]:
        """Return no events: the scan notes positions of XA transactions only."""
        del begin, end
        return iter(())
