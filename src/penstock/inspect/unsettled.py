"""Transactions whose rows may not be in the tables: prepared by XA, or ended by ROLLBACK."""

from dataclasses import dataclass, field

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.binlog.events.statement import are_rolled_back
from penstock.binlog.xa.outcome import XaTransactions

_Begin = tuple[str, int]


@dataclass(slots=True)
class UnsettledTransactions:
    """Counts transactions whose rows may not be in the tables: prepared by XA, or ended by ROLLBACK."""

    prepared: set[_Begin] = field(default_factory=set[_Begin])
    rolled_back: int = 0
    _carried: _Begin = ("", -1)  # the transaction of the last rows

    def add_block(self, block: Block, xa: XaTransactions) -> None:
        """Count the unsettled transactions in a block of picked events."""
        transaction = block.column("transaction")
        with_rows = np.unique(transaction[block.column("entry") == Entry.ROWS])
        self.prepared |= {(block.file, begin) for begin in xa.xids if begin in with_rows}
        for begin in transaction[are_rolled_back(block)].tolist():
            self.rolled_back += begin in with_rows or self._carried == (block.file, begin)
        if with_rows.size:
            self._carried = block.file, int(with_rows[-1])

    def __str__(self) -> str:
        counts = {
            "XA transactions, committed or not": len(self.prepared),
            "transactions that end in ROLLBACK": self.rolled_back,
        }
        return ", ".join(f"{outcome}: {count}" for outcome, count in counts.items() if count)
