"""Puts the events of a prepared XA transaction where its XA COMMIT is.

They share the bytes of the XA COMMIT statement, in order, as the events of a compressed payload share the payload's:
the offsets of rows events rise in proportion to their bytes, and the statement itself has the rest. Only bytes of rows
count, so that the same log gives the same offsets to every reader, whatever else it was sent or was cut into.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.event_columns import LONGS, SHORTS, EventColumns
from penstock.binlog.events.layout import Entry, EventType

_JOINED_BYTES = 2 << 20


class CommitPlacement:
    """Places the rows of a prepared transaction at its XA COMMIT, which is event `event` of `block`. Its events come in
    several parts, in their order.

    >>> placement = CommitPlacement(block, event, transaction.row_bytes)
    >>> blocks = [*map(placement.place_events, parts), placement.commit_statement()]
    """

    def __init__(self, block: Block, event: int, row_bytes: int) -> None:
        self._block, self._event = block, event
        self._offset = int(block.column("position")[event])
        self._span = int(block.column("span")[event])
        self._total = row_bytes + max(1, self._span)
        self._done = 0  # bytes of rows that were placed
        self._executed = block.executed_before(event)

    def place_events(self, piece: Block) -> Block:
        """Return the next events of the transaction as events of the XA COMMIT: its file, offsets, GTID and time."""
        block, event, kind = self._block, self._event, piece.column("kind")
        are_rows = piece.column("entry") == Entry.ROWS
        sizes = np.where(are_rows, np.diff(piece.index.bounds).astype(np.int64) - piece.column("checksum"), 0)
        reach = self._done + np.cumsum(sizes)
        first, last = self._offset_at(reach - sizes), self._offset_at(reach)
        self._done = int(reach[-1]) if reach.size else self._done
        columns = {name: piece.column(name) for name in (*LONGS, *SHORTS)}
        own = {
            name: np.full(len(piece), block.column(name)[event]) for name in ("transaction", "commit_us", "timestamp")
        }
        columns |= own | {"position": first, "span": last - first, "boundary": np.zeros(len(piece), np.uint8)}
        columns["entry"] = np.where(kind == EventType.XA_PREPARE, np.uint8(Entry.OTHER), piece.column("entry"))
        gtids = np.broadcast_to(block.gtids[event], (len(piece), block.gtids.shape[1]))
        return replace(
            piece,
            file=block.file,
            epoch=block.epoch,
            tags=block.tags,
            index=EventColumns.from_columns(columns, piece.index.bounds, gtids),
            executed=self._executed,
            checksum=None,
        )

    def commit_statement(self) -> Block:
        """Return the XA COMMIT itself, after the rows."""
        statement = self._block.slice(self._event, self._event + 1)
        if not self._done:
            return statement
        first = int(self._offset_at(np.array([self._done]))[0])
        span = self._offset + self._span - first
        return statement.with_columns(position=np.array([first]), span=np.array([span]))

    def _offset_at(self, reach: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the offset in the file after `reach` bytes of rows."""
        return self._offset + reach * self._span // self._total


def join_blocks(parts: Iterable[Block], size_bytes: int = _JOINED_BYTES) -> Iterator[Block]:
    """Return parts of one log file that follow one another as few blocks, each of about `size_bytes`."""
    waiting: list[Block] = []
    size, tables = 0, dict[int, bytes]()
    for part in parts:
        if not len(part):
            continue
        used = _used_tables(part)
        is_same = not waiting or (_shape(waiting[0]) == _shape(part) and _agree(tables, used))
        if waiting and (not is_same or size >= size_bytes):
            yield Block.concatenate(waiting)
            waiting, size, tables = [], 0, {}
        waiting.append(part.with_tables(used))
        size += part.size_bytes
        tables |= used
    if waiting:
        yield Block.concatenate(waiting)


def _shape(block: Block) -> tuple[object, ...]:
    return block.file, block.epoch, block.server_version, block.tags


def _agree(tables: dict[int, bytes], others: dict[int, bytes]) -> bool:
    """Return whether both mappings have the same table map for each table id that is in both."""
    return all(tables.get(number, body) == body for number, body in others.items())


def _used_tables(block: Block) -> dict[int, bytes]:
    used = np.unique(block.column("table_id")[block.column("entry") == Entry.ROWS]).tolist()
    return {number: block.tables[number] for number in used if number in block.tables}
