"""The statements behind rows, which canal's clients get as entries of their own: only those of rows that they get.

A note stands before the rows of its statement. When a block ends between the two, the note waits for the block that has
the rows, and is an entry of that one, or of none. Blocks may be redelivered after a rollback, also from the middle of a
transaction on, so what waits is remembered by where its block ended.
"""

from collections import OrderedDict
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.annotation import find_annotations
from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry, EventType

_REMEMBERED = 1024  # blocks that ended inside of a transaction
_ROWS_KINDS = np.zeros(256, np.bool_)
_ROWS_KINDS[[int(kind) for kind in EventType if "_ROWS_" in kind.name or kind is EventType.PARTIAL_UPDATE_ROWS]] = True
_Transaction = tuple[int, str, int]  # epoch, file, offset of its first event


class PendingNotes:
    """Keeps the statements that wait for their rows in a later block, for one client of one log."""

    def __init__(self) -> None:
        # By transaction and the place where a block of it ended: the note that waited there, if one did.
        self._ended: OrderedDict[tuple[_Transaction, int], Block | None] = OrderedDict()

    def prepend_pending(self, block: Block) -> Block:
        """Return the block with the pending statement of its first rows in front; the block itself if there is none."""
        if not len(block):
            return block
        note = self._find_pending(block)
        joined = block if note is None else replace(block.prepend(note), executed=block.executed_before(0))
        self._remember_pending(joined)
        return joined

    def _find_pending(self, block: Block) -> Block | None:
        """Return the pending statement that belongs to the first rows of the block."""
        first = int(block.column("position")[0])
        if not self._ended or first == block.column("transaction")[0]:
            return None
        transaction = _transaction_at(block, 0)
        ends = [end for known, end in self._ended if known == transaction and end <= first]
        return self._ended[transaction, max(ends)] if ends else None

    def _remember_pending(self, block: Block) -> None:
        """Remember the statement at the end of the block whose rows have not come yet."""
        if block.column("boundary")[-1]:
            return
        transaction = _transaction_at(block, -1)
        waiting = np.flatnonzero(are_pending_notes(block))
        self._ended[transaction, block.end.offset] = block.take(waiting[-1:]) if waiting.size else None
        if len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)


def _transaction_at(block: Block, event: int) -> _Transaction:
    """Return the epoch, file and offset of the transaction that an event belongs to."""
    return block.epoch, block.file, int(block.column("transaction")[event])


def are_shown_notes(block: Block) -> NDArray[np.bool_]:
    """Return which events are statements (Rows_query or Annotate_rows) of rows that are shown."""
    notes, part = _group_by_note(block)
    if part is None:
        return notes
    has_shown = np.bincount(part, block.column("entry") == Entry.ROWS, part[-1] + 1) > 0
    return notes & has_shown[part]


def are_pending_notes(block: Block) -> NDArray[np.bool_]:
    """Return which event is a statement all of whose rows come in a later block: at most the last one."""
    notes, part = _group_by_note(block)
    if part is None or block.column("boundary")[-1]:
        return np.zeros(len(block), np.bool_)
    has_any = np.bincount(part, _ROWS_KINDS[block.column("kind")], part[-1] + 1) > 0
    return notes & (part == part[-1]) & ~has_any[part]


def _group_by_note(block: Block) -> tuple[NDArray[np.bool_], NDArray[Any] | None]:
    """Return which events are notes, and for each event the number of the note or transaction that it belongs to."""
    notes = find_annotations(block)
    if not notes.any():
        return notes, None
    transaction = block.column("transaction")
    return notes, np.cumsum(notes | np.concatenate([[False], transaction[1:] != transaction[:-1]]))
