"""What a store holds of a log, for consumers that keep their own place in it: they ask by position."""

from contextlib import suppress

from penstock.binlog.events.block import Block
from penstock.errors import StoreError
from penstock.model import Position
from penstock.store.books import Books
from penstock.store.client import Place
from penstock.store.cut import end_after
from penstock.store.gate import Gate
from penstock.store.shelf import BlockGoneError, Shelf

TRIES = 100  # to get what others take away at the same time


class StoredLog:
    """Any thread may ask."""

    def __init__(self, shelf: Shelf, start: Position, gate: Gate) -> None:
        self._shelf, self._gate = shelf, gate
        shelf.wake = gate.wake
        self._books = Books(shelf, start)  # this and the shelf are protected by the gate

    @property
    def first(self) -> Position:
        """The oldest position from which `read` can start; while it has only a part of one transaction, where that
        begins."""
        with self._gate:
            return min(self._books.origin.position, self._books.boundary.position)

    def first_for(self, position: Position) -> Position:
        """The same in the log that a position is of."""
        with self._gate:
            return min(self._books.origin_for(position).position, self._books.boundary.position)

    @property
    def latest(self) -> Position:
        """The last transaction boundary that was put."""
        with self._gate:
            return self._books.boundary.position

    def end_after(self, start: Position, max_bytes: int, timeout_s: float = 0) -> Position:
        """Where a batch that begins at `start` should end; `start` itself when nothing came in time.

        Before what the store holds, that is where the store begins: only the source's log has what lies between.
        """
        for _ in range(TRIES):
            with self._gate:
                self._gate.wait(lambda: self._books.boundary.position > start, timeout_s)
                if self._books.boundary.position <= start:
                    return start
                origin = self._books.origin_for(start).position
                if start < origin:
                    return min(origin, self._books.boundary.position)
                parts = self._books.after(start, max_bytes)
                if not parts:
                    return self._books.boundary.position  # the log goes on elsewhere, and nothing has come yet
            with suppress(BlockGoneError):
                return end_after(start, parts, self._shelf.entries, max_bytes)
        raise StoreError(f"what follows {start} went {TRIES} times while it was looked into")

    def read(self, start: Position, end: Position) -> tuple[Block, ...] | None:
        """The entries of (start, end], or None when they are not, or no longer, all here."""
        with self._gate:
            self._gate.check()
            if start < self._books.origin_for(start).position or end > self._books.boundary.position:
                return None
            held = self._shelf.held
            parts = [one for one in held.since(held.find(lambda one: one.end <= start)) if one.start < end]
        try:
            found = [self._shelf.entries(one).block.between(start, end) for one in parts]
        except BlockGoneError:
            return None  # acked in the meantime
        return tuple(block for block in found if len(block))

    def _origin_for(self, position: Position) -> Place:
        with self._gate:
            return self._books.origin_for(position)

    @property
    def size_bytes(self) -> int:
        with self._gate:
            return self._shelf.size_bytes

    def _load(self, end: Position) -> None:
        """What is about to be looked into comes from the disk while nobody waits for it."""
        if not self._shelf.outlives:
            return
        with self._gate:
            several = self._books.near(end)
        for held in several:
            with suppress(BlockGoneError):
                self._shelf.entries(held)
