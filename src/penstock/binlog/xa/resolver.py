"""Delivers the rows of XA transactions when they are committed, and never when they are rolled back.

The log has the rows of an XA transaction where it was prepared. The resolver takes them out of the stream of blocks
there and leaves a boundary; at the XA COMMIT it puts them in again, as a part of that transaction:

    log        GTID 1, XA START, rows, XA END, XA_PREPARE | … | GTID 2, XA COMMIT
    delivered  GTID 1, (boundary)                         | … | GTID 2, XA START, rows, XA END, XA COMMIT

An XA transaction that is committed in one phase stays where it is. Which events are delivered where follows from the
log alone, whatever position a reader began at and wherever blocks were cut.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry, EventType
from penstock.binlog.xa.placement import CommitPlacement, join_blocks
from penstock.binlog.xa.transaction import EventCollector, PreparedRegistry, PreparedTransaction
from penstock.binlog.xa.xa_events import find_xa_events
from penstock.binlog.xa.xid import has_prepared_flag, parse_prepare, parse_statement
from penstock.model import GtidSet, Position

_STARTS = {"START", "BEGIN"}


@dataclass(slots=True)
class _OpenXa:
    """An XA transaction whose end was not read yet."""

    begin: Position
    first: Position  # of its first event that was taken: after MySQL's GTID
    executed: GtidSet | None  # before it
    events: EventCollector
    row_bytes: int = 0

    def add(self, block: Block) -> None:
        """Add events of the transaction, and count the bytes of its rows."""
        are_rows = block.column("entry") == Entry.ROWS
        sizes = np.diff(block.index.bounds).astype(np.int64) - block.column("checksum")
        self.row_bytes += int(sizes[are_rows].sum())
        self.events.add(block)


class XaResolver:
    """Delivers the rows of prepared XA transactions at their XA COMMIT, and drops those that are rolled back, in a
    stream of blocks of binlog events that begins between two transactions. `registry` remembers what is prepared.

    >>> resolver = XaResolver(registry)
    >>> delivered = [part for block in stream for part in resolver.resolve(block)]
    """

    def __init__(self, registry: PreparedRegistry) -> None:
        self._registry = registry
        self._open: _OpenXa | None = None

    @property
    def is_inside(self) -> bool:
        """Return whether the stream is inside an XA transaction whose end was not read yet."""
        return self._open is not None

    def resolve(self, block: Block) -> Iterator[Block]:
        """Yield the events to deliver for the next block: the block itself when no event of it is of an XA
        transaction."""
        if not len(block):
            return
        if self._open is not None and self._open.begin != _begin_of(block, 0):
            self._open.events.discard()  # the server was killed while it wrote it: its end never came
            self._open = None
        marks = find_xa_events(block)
        if self._open is None and not marks.size:
            yield block
            return
        yield from join_blocks(self._parts(block, marks))

    def _parts(self, block: Block, marks: NDArray[np.int64]) -> Iterator[Block]:
        at, boundaries = 0, block.boundaries
        while at < len(block):
            if self._open is not None:
                which = int(np.searchsorted(boundaries, at))
                stop = int(boundaries[which]) + 1 if which < boundaries.size else len(block)
                self._open.add(block.slice(at, stop))
                if which < boundaries.size:
                    yield from self._close(block, stop - 1)
                at = stop
                continue
            which = int(np.searchsorted(marks, at))
            mark = int(marks[which]) if which < marks.size else len(block)
            yield block.slice(at, mark)
            at = mark
            if mark < len(block):
                at += yield from self._handle_mark(block, mark)

    def _handle_mark(self, block: Block, event: int) -> Generator[Block, None, int]:
        """Handle a mark; the generator's value is how many events are done with it."""
        word, xid = ("START", "") if has_prepared_flag(block, event) else parse_statement(block, event)
        if word in _STARTS:
            begin, first = _begin_of(block, event), block.slice(event, event + 1).start
            self._open = _OpenXa(begin, first, block.executed_before(event), self._registry.collect(begin))
            return 0
        if word == "COMMIT" and not xid.endswith(" one phase"):
            yield from self._commit(block, event, xid)
            return 1
        if word == "ROLLBACK":
            self._registry.close(xid, block.end_of_event(event))
        yield block.slice(event, event + 1)
        return 1

    def _close(self, block: Block, event: int) -> Iterator[Block]:
        """End the open transaction with this event: as prepared, or as any other ends."""
        transaction, self._open = self._open, None
        assert transaction is not None  # noqa: S101 - the caller has looked
        blocks = transaction.events.blocks()
        if block.column("kind")[event] == EventType.XA_PREPARE:
            xid, is_one_phase = parse_prepare(block, event)
            if not is_one_phase:
                end, since = block.end_of_event(event), int(block.column("timestamp")[event])
                positions = transaction.begin, transaction.first, end
                counted = transaction.row_bytes, blocks, transaction.events.rows
                self._registry.add(PreparedTransaction(xid, *positions, since, *counted))
                boundary = block.slice(event, event + 1)
                yield boundary.with_columns(entry=np.array([Entry.OTHER], np.uint8))
                return
        transaction.events.discard()
        for piece in blocks if blocks is not None else self._read_again(transaction, block.end_of_event(event)):
            yield replace(piece, executed=transaction.executed)

    def _read_again(self, transaction: _OpenXa, end: Position) -> Iterator[Block]:
        for block in self._registry.read_log(transaction.begin, end):
            yield copy_events(block.between(transaction.first, end))

    def _commit(self, block: Block, event: int, xid: str) -> Iterator[Block]:
        outcome = block.end_of_event(event)
        transaction = self._registry.find(xid, outcome)
        placement = CommitPlacement(block, event, transaction.row_bytes if transaction is not None else 0)
        if transaction is not None:
            for piece in self._registry.read_events(transaction):
                yield placement.place_events(piece)
        yield placement.commit_statement()
        self._registry.close(xid, outcome)


def copy_events(block: Block) -> Block:
    """Return a copy of the block that owns its memory, with only the table maps that it uses."""
    used = set(block.column("table_id")[block.column("entry") == Entry.ROWS].tolist())
    tables = {number: body for number, body in block.tables.items() if number in used}
    return block.take(np.arange(len(block))).with_tables(tables)


def _begin_of(block: Block, event: int) -> Position:
    return Position(block.file, int(block.column("transaction")[event]), epoch=block.epoch)
