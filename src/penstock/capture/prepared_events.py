"""The events of one XA transaction while the log is read: in memory, beyond a limit in a file, or only counted."""

from collections.abc import Iterable

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.binlog.rows.decode import decode_rows
from penstock.binlog.xa.resolver import copy_events
from penstock.capture.prepared_files import PreparedFiles
from penstock.errors import BinlogError, SchemaError
from penstock.model import ChangeKind, Position


class PreparedEvents:
    """Collects the binlog events of the XA transaction that begins at `begin`: in memory, beyond `limit` bytes in a
    file, or only counts its rows."""

    def __init__(self, begin: Position, limit: int, files: PreparedFiles | None = None) -> None:
        self.rows: int | None = None  # counted while there are too many to be held
        self._begin, self._limit, self._files = begin, limit, files
        self._size = 0
        self._blocks: list[Block] | None = []

    def add(self, block: Block) -> None:
        """Add the next binlog events of the XA transaction."""
        self._size += block.size_bytes
        if self._blocks is not None and self._size <= self._limit:
            self._blocks.append(copy_events(block))
            return
        if not self._limit:
            self._blocks = None
            return
        pieces = [*(self._blocks or ()), block]
        if self._blocks is not None:
            self._blocks, self.rows = None, 0
            if self._files is not None:
                self._files.remove(self._begin)
        if self.rows is not None:
            added = count_rows(pieces)
            self.rows = self.rows + added if added is not None else None
        if self._files is not None and not self._files.append(self._begin, pieces):
            self._files.remove(self._begin)
            self._files = None

    def blocks(self) -> tuple[Block, ...] | None:
        """Return the transaction's events if they are in memory; None when they are in a file, or were only counted."""
        if self._blocks is None and self._files is not None and self._limit:
            self._files.finish_append(self._begin)
        return tuple(self._blocks) if self._blocks is not None else None

    def discard(self) -> None:
        """Remove the events that were written to a file, because the XA transaction was not prepared."""
        if self._blocks is None and self._files is not None:
            self._files.remove(self._begin)


def count_rows(blocks: Iterable[Block]) -> int | None:
    """Return the total number of rows that the blocks insert, update or delete; None when the columns of one of their
    tables are not known."""
    total = 0
    try:
        for block in blocks:
            events = np.flatnonzero(block.column("entry") == Entry.ROWS)
            ids = block.column("table_id")[events]
            for number in np.unique(ids).tolist():
                for rows in decode_rows(block, events[ids == number], block.schema_of(number), []):
                    total += int(np.count_nonzero(rows.located.kind != ChangeKind.UPDATE_PREIMAGE))
    except (BinlogError, SchemaError):
        return None
    return total
