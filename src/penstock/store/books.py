"""What the store holds, in numbers: where it begins, where it ends, and what lies where. Locks are the store's."""

from collections.abc import Sequence
from itertools import islice

import numpy as np

from penstock.errors import StoreError, StoreFullError
from penstock.model import Position
from penstock.store.batch import BatchSize
from penstock.store.client import Client, Place
from penstock.store.held import Entries, Held
from penstock.store.shelf import Shelf


class Books:
    def __init__(self, shelf: Shelf, start: Position) -> None:
        self.shelf = shelf
        self.begin(start)

    def begin(self, start: Position) -> None:
        """With what the shelf holds; with nothing, at `start`."""
        shelf = self.shelf
        self.origin = Place(-1, start, 0)  # the first place from which one can read: everything before it is gone
        self.boundary = self.origin  # the last place between two transactions
        self.put = self.origin
        self.is_origin_open = False  # it lies inside a transaction whose end has not come
        if len(shelf.held):
            oldest, newest = shelf.held[shelf.held.head], shelf.held[shelf.held.tail - 1]
            self.origin = self.boundary = Place(oldest.first - 1, oldest.after, oldest.base)
            self.put = _end(newest)
            if not oldest.is_begin:
                self._set_origin()
            ended = self._last_ended()
            if ended is not None:
                self.boundary = _boundary_in(ended, shelf.entries(ended), ended.boundary)

    def go_on_at(self, position: Position) -> None:
        """The place after all that was put, in the log of another epoch."""
        self.put = self.boundary = Place(self.put.sequence, position, self.put.bytes)

    def origin_for(self, position: Position) -> Place:
        """The first place from which one can read on in the log that a position is of: after a switch of the source,
        the store begins for the new log where that one was gone on with."""
        if position.epoch <= self.origin.position.epoch:
            return self.origin
        held = self.shelf.held
        number = held.find(lambda one: one.after.epoch < position.epoch)
        if number == held.tail:
            return self.put
        return Place(held[number].first - 1, held[number].after, held[number].base)

    def covers(self, position: Position) -> bool:
        """Whether a place of a log that is no longer followed lies in what is held of it."""
        held = self.shelf.held
        number = held.find(lambda one: one.after.epoch <= position.epoch)
        end = held[number - 1].end if number > held.head else self.origin.position
        return self.origin_for(position).position <= position <= end

    def number(self, several: Sequence[Entries]) -> list[tuple[Held, Entries]]:
        """What they will be when they are added next."""
        found: list[tuple[Held, Entries]] = []
        sequence, base, after = self.put.sequence + 1, self.put.bytes, self.put.position
        is_begin = self.boundary.sequence == self.put.sequence
        for entries in several:
            held = Held.of(entries, sequence, base, after, is_begin=is_begin)
            sequence, base, after = held.last + 1, base + held.size, held.end
            is_begin = held.boundary == held.last
            found.append((held, entries))
        return found

    def add(self, held: Held, entries: Entries) -> None:
        self.shelf.add(held, entries)
        self.put = _end(held)
        if held.boundary >= 0:
            self.boundary = _boundary_in(held, entries, held.boundary)
            if self.is_origin_open:
                self.origin, self.is_origin_open = _first_boundary(held, entries), False
        elif self.is_origin_open:
            self.origin = self.put

    def discard_incomplete(self) -> None:
        """Drop the entries after the last boundary."""
        shelf = self.shelf
        while len(shelf.held) and shelf.held[shelf.held.tail - 1].last > self.boundary.sequence:
            held, entries = shelf.held[shelf.held.tail - 1], shelf.drop_last()
            keep = self.boundary.sequence + 1 - held.first
            if keep > 0:
                kept = Entries.of(entries.part(0, keep))
                shorter = Held.of(kept, held.first, held.base, held.after, is_begin=held.is_begin)
                try:
                    shelf.write([(shorter, kept)])
                except StoreFullError as error:
                    self._step_back(held, error)
                    continue
                self.add(shorter, kept)
                break
        self.put = self.boundary
        if self.origin.sequence > self.put.sequence:
            self.origin, self.is_origin_open = self.put, False

    def _step_back(self, dropped: Held, error: StoreFullError) -> None:
        """A block could not be put back: to the boundary before it, from where capture reads it again."""
        ended = self._last_ended()
        if ended is not None:
            self.boundary = _boundary_in(ended, self.shelf.entries(ended), ended.boundary)
        elif dropped.is_begin:
            self.boundary = Place(dropped.first - 1, dropped.after, dropped.base)
        else:
            raise StoreError(
                f"the store has lost the transaction that ends at {self.boundary.position} ({error}), and does not have"
                " its beginning: make room, empty the store's folder, and start again from the clients' cursors"
            ) from None

    def _last_ended(self) -> Held | None:
        """The last block in which a transaction ends."""
        held = self.shelf.held
        several = (held[number] for number in range(held.tail - 1, held.head - 1, -1))
        return next((one for one in several if one.boundary >= 0), None)

    def free(self, sequence: int) -> Held | None:
        """Give back what nobody needs up to there; gives the last block that went.

        One can read from the first boundary in what is left.
        """
        dropped = self.shelf.free(sequence)
        if dropped is None:
            return None
        self.is_origin_open = False
        if dropped.last == self.boundary.sequence:
            self.origin = self.boundary
        elif dropped.boundary == dropped.last:
            self.origin = _end(dropped)
        else:
            self._set_origin()
        return dropped

    def _set_origin(self) -> None:
        """To the first boundary there is, or to the end while none has come."""
        for held in self.shelf.held:
            if held.boundary >= 0:
                self.origin = _first_boundary(held, self.shelf.entries(held))
                return
        self.origin, self.is_origin_open = self.put, True

    def parts(self, client: Client, size: BatchSize) -> list[Held]:
        """Blocks with the entries that the client's next batch can have."""
        held, after, found = self.shelf.held, client.get, list[Held]()
        has_end = not client.wants_whole
        for one in held.since(held.find(lambda one: one.last <= after.sequence)):
            found.append(one)
            has_end = has_end or one.boundary > after.sequence
            is_full = one.last - after.sequence >= size.count
            if size.unit == "memory":
                has_bytes = one.base + one.size - after.bytes
                is_full = has_bytes >= size.bytes or size.is_enough(has_bytes)
            if is_full and has_end:
                break
        return found

    def got(self, client: Client, end: Position, sequence: int | None) -> Place:
        """The entry that ends at `end`, among those that the client got and has not acked."""
        held = self.shelf.held
        low, high = client.ack.sequence + 1, client.get.sequence
        if sequence is not None:
            if not low <= sequence <= high:
                raise StoreError(
                    f"client {client.name} cannot ack sequence {sequence}: it has acked {low - 1} and got {high}"
                )
            low = high = sequence
        for one in held.since(held.find(lambda one: one.last < low)):
            if one.first > high:
                break
            if one.end < end or one.start >= end:
                continue
            entries = self.shelf.entries(one)
            at = entries.ends
            same = one.first + np.flatnonzero(at == end.offset) if one.end.file_key == end.file_key else at[:0]
            same = same[(same >= low) & (same <= high)]
            if same.size:
                return _place_in(one, entries, int(same[-1]))
        raise StoreError(
            f"client {client.name} cannot ack {end}: no entry that it got and has not acked ends there"
            f" (acked {client.ack.position}, got {client.get.position})"
        )

    def last_boundary(self, after: Place, sequence: int) -> Place:
        """The last boundary from a place, which is one, to a sequence."""
        held = self.shelf.held
        for number in range(min(held.find(lambda one: one.last < sequence), held.tail - 1), held.head - 1, -1):
            one = held[number]
            if one.last <= after.sequence:
                break
            if one.boundary >= 0:
                marks = np.flatnonzero(self.shelf.entries(one).are_boundaries[: sequence + 1 - one.first])
                if marks.size:
                    found = _boundary_in(one, self.shelf.entries(one), one.first + int(marks[-1]))
                    return max(after, found, key=lambda place: place.sequence)
        return after

    def boundary_at(self, end: Position) -> Place | None:
        """The last boundary that is not after `end`."""
        held = self.shelf.held
        for number in range(min(held.find(lambda one: one.end <= end), held.tail - 1), held.head - 1, -1):
            one = held[number]
            if one.boundary < 0:
                continue
            entries = self.shelf.entries(one)
            inside = len(entries.block.between(one.start, end))
            marks = np.flatnonzero(entries.are_boundaries & (entries.events < inside))
            if marks.size:
                return _boundary_in(one, entries, one.first + int(marks[-1]))
        return None

    def near(self, end: Position) -> list[Held]:
        """The block that has the entry which ends there, and the last one before it with a boundary."""
        held = self.shelf.held
        number = held.find(lambda one: one.end < end)
        found = [held[number]] if number < held.tail else []
        before = (held[earlier] for earlier in range(number - 1, held.head - 1, -1))
        return found + list(islice((one for one in before if one.boundary >= 0), 1))

    def after(self, start: Position, max_bytes: int) -> list[Held]:
        """Blocks with the log after `start`, up to a boundary and so many bytes."""
        found, size, has_end = list[Held](), 0, False
        held = self.shelf.held
        for one in held.since(held.find(lambda one: one.end <= start)):
            found.append(one)
            # That of the first block may be `start` itself.
            has_end = has_end or (one.boundary >= 0 and one.start >= start)
            size += one.end.offset - max(one.start, start).offset
            if has_end and size >= max_bytes:
                break
        return found


def _end(held: Held) -> Place:
    return Place(held.last, held.end, held.base + held.size)


def _place_in(held: Held, entries: Entries, sequence: int) -> Place:
    if sequence == held.last:
        return _end(held)
    entry = sequence - held.first
    return Place(sequence, entries.end_of(entry), held.base + int(entries.reach[entry]))


def _boundary_in(held: Held, entries: Entries, sequence: int) -> Place:
    """With the GTIDs up to there."""
    entry = sequence - held.first
    return Place(sequence, entries.boundary_after(entry), held.base + int(entries.reach[entry]))


def _first_boundary(held: Held, entries: Entries) -> Place:
    return _boundary_in(held, entries, held.first + int(np.argmax(entries.are_boundaries)))
