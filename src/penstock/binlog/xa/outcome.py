"""XA transactions of a log: prepared at one position, committed or rolled back at another, or still open."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import HEADER, Entry, EventType
from penstock.binlog.events.query import begin_with
from penstock.binlog.xa.xid import GTID_FLAGS, PREPARED_XA, parse_gtid, parse_prepare, parse_statement
from penstock.model import Position


@dataclass(frozen=True, slots=True)
class XaOutcome:
    """The XA COMMIT or XA ROLLBACK of a prepared transaction."""

    xid: str
    is_commit: bool
    prepared: Position | None  # where the transaction begins that it ends, if that was picked

    @property
    def sql(self) -> str:
        """Return the outcome as a statement."""
        return f"XA {'COMMIT' if self.is_commit else 'ROLLBACK'} {self.xid}"


@dataclass(frozen=True, slots=True)
class _PreparedXa:
    begin: Position
    is_picked: bool
    is_in_range: bool


class XaTransactions:
    """Follows XA transactions, block by block, in order. Its fields describe the last block that it saw."""

    def __init__(self) -> None:
        self.xids: dict[int, str] = {}  # where an XA transaction with rows in the block begins → its id
        self.outcomes: dict[int, XaOutcome] = {}  # by where their own transaction begins
        self._prepared: dict[str, _PreparedXa] = {}  # and neither committed nor rolled back yet
        self._file = ""

    def follow(self, block: Block, in_range: NDArray[np.bool_], picked: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Follow a block and return a mask of the outcomes that are wanted. `picked` are the transactions with wanted
        rows."""
        wanted = np.zeros(len(block), np.bool_)
        transaction = block.column("transaction")
        # Only the last transaction of a block continues in the next.
        is_same_file = self._file == block.file
        self.xids = {at: xid for at, xid in self.xids.items() if is_same_file and at == int(transaction[0])}
        self._file, self.outcomes = block.file, {}
        for i in np.flatnonzero(_are_marks(block)).tolist():
            begin = int(transaction[i])
            match block.column("kind")[i]:
                case EventType.MARIADB_GTID:
                    self.xids[begin] = parse_gtid(block, i)
                case EventType.XA_PREPARE:
                    self._prepare(block, i, in_range=bool(in_range[i]), is_picked=begin in picked)
                case _:
                    wanted[i] = self._hear(block, i, in_range=bool(in_range[i]))
        return wanted

    def _prepare(self, block: Block, event: int, *, in_range: bool, is_picked: bool) -> None:
        xid, is_one_phase = parse_prepare(block, event)
        if not is_one_phase:
            begin = Position(block.file, int(block.column("transaction")[event]))
            self._prepared[xid] = _PreparedXa(begin, is_picked, in_range)

    def _hear(self, block: Block, event: int, *, in_range: bool) -> bool:
        """Follow an XA START, XA END or an outcome; return whether it is an outcome that is wanted."""
        word, xid = parse_statement(block, event)
        begin = int(block.column("transaction")[event])
        if word in {"START", "BEGIN"}:
            self.xids[begin] = xid
        if word not in {"COMMIT", "ROLLBACK"}:
            return False
        known = self._prepared.pop(xid, None)
        if not in_range or (known is not None and known.is_in_range and not known.is_picked):
            return False
        self.outcomes[begin] = XaOutcome(xid, word == "COMMIT", known.begin if known and known.is_picked else None)
        return True


def are_outcomes(block: Block) -> NDArray[np.bool_]:
    """Return which events of a picked block are the outcome of an XA transaction."""
    return begin_with(block, block.column("kind") == EventType.QUERY, "XA ")


def _are_marks(block: Block) -> NDArray[np.bool_]:
    """Return which events begin an XA transaction, prepare it, or are its outcome."""
    kind = block.column("kind")
    mask = (kind == EventType.XA_PREPARE) | begin_with(block, kind == EventType.QUERY, "XA ")
    gtids = np.flatnonzero((kind == EventType.MARIADB_GTID) & (block.column("entry") == Entry.BEGIN))
    if gtids.size:
        data, starts, _ = block.raw
        mask[gtids] = data[starts[gtids] + HEADER + GTID_FLAGS] & PREPARED_XA != 0
    return mask
