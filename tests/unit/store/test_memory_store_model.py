"""The memory store against a model of plain lists: nothing lost, nothing twice, never half a transaction."""

import weakref
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.errors import StoreError
from penstock.model import Position
from penstock.store import Batch, MemoryStore
from tests.twins.blocks import block_of
from tests.twins.strategy import examples

FILES = ("binlog.000001", "binlog.000002")
EVENTS = st.lists(st.tuples(st.integers(1, 60), st.sampled_from((False, False, True))), min_size=1, max_size=5)


@dataclass(slots=True)
class Event:
    start: Position
    end: Position
    is_boundary: bool


@dataclass(slots=True)
class Held:
    """A block as the model knows it: how many events, how many bytes, and a watch on its memory."""

    events: list[Event]
    size_bytes: int
    memory: "weakref.ref[Any]"


@dataclass(slots=True)
class Model:
    start: Position
    slots: int
    limit_bytes: int
    log: list[Event] = field(default_factory=list[Event])  # all that was put and not discarded
    held: list[Held] = field(default_factory=list[Held])
    get: int = -1
    ack: int = -1
    origin: Position | None = None
    freed: list["weakref.ref[Any]"] = field(default_factory=list["weakref.ref[Any]"])

    def place(self, sequence: int) -> Position:
        return self.log[sequence].end if sequence >= 0 else self.start

    @property
    def boundary(self) -> int:
        return max((i for i, event in enumerate(self.log) if event.is_boundary), default=-1)

    def has_room(self, size_bytes: int) -> bool:
        if self.boundary <= self.ack:
            return True
        return len(self.held) < self.slots and sum(one.size_bytes for one in self.held) + size_bytes <= self.limit_bytes

    def end_after(self, start: Position, max_bytes: int) -> int | None:
        """Sequence of the last boundary within `max_bytes`, else of the first."""
        total, fitting, first = 0, None, None
        for i, event in enumerate(self.log):
            if event.start >= start:
                total += event.end.offset - event.start.offset
                if event.is_boundary:
                    first = i if first is None else first
                    fitting = i if total <= max_bytes else fitting
        return fitting if fitting is not None else first

    def free(self) -> None:
        while self.held and self.held[0].events[-1].end <= self.place(self.ack):
            self.freed.append(self.held.pop(0).memory)
            self.origin = self.place(self.ack)


class StoreMachine(RuleBasedStateMachine):
    @initialize(slots=st.sampled_from((1, 2, 4)), limit=st.integers(1, 4000))
    def start(self, slots: int, limit: int) -> None:
        begin = Position(FILES[0], 4)
        self.model = Model(begin, slots, limit)
        self.store = MemoryStore(begin, limit, slots=slots)
        self.next = begin  # where capture goes on

    @rule(events=EVENTS, rotates=st.integers(0, 9))
    def put(self, events: list[tuple[int, bool]], rotates: int) -> None:
        model = self.model
        if rotates == 0 and self.next.file == FILES[0]:
            self.next = Position(FILES[1], 4)
        block, raw = block_of(events, file=self.next.file, start=self.next.offset)
        assert self.store.put(block, timeout_s=0) == model.has_room(block.size_bytes)
        if not model.has_room(block.size_bytes):
            return
        found, at = list[Event](), self.next
        for size, is_boundary in events:
            end = Position(at.file, at.offset + size)
            found.append(Event(at, end, is_boundary))
            at = end
        self.next = at
        model.log += found
        model.held.append(Held(found, block.size_bytes, weakref.ref(raw)))

    @rule(max_bytes=st.integers(1, 400))
    def get(self, max_bytes: int) -> None:
        model = self.model
        batch = self.store.get(max_bytes)
        if model.boundary <= model.get:
            assert batch is None
            return
        end = model.end_after(model.place(model.get), max_bytes)
        assert batch is not None
        assert end is not None
        self.same_events(batch, model.get + 1, end)
        assert (batch.start, batch.end, batch.end_sequence) == (model.place(model.get), model.place(end), end)
        model.get = end

    @rule(data=st.data())
    def ack(self, data: st.DataObject) -> None:
        model = self.model
        ends = [event.end for event in model.log]
        end = data.draw(st.sampled_from([model.start, *ends, Position(FILES[1], 9999), Position(FILES[0], 9999)]))
        if end > model.place(model.boundary):
            with pytest.raises(StoreError, match="cannot ack"):
                self.store.ack(end)
            return
        self.store.ack(end)
        done = max((i for i, event in enumerate(model.log) if event.is_boundary and event.end <= end), default=-1)
        model.ack = max(model.ack, done)
        model.get = max(model.get, model.ack)
        model.free()

    @rule()
    def rollback(self) -> None:
        self.store.rollback()
        self.model.get = self.model.ack

    @rule()
    def discard_incomplete(self) -> None:
        model = self.model
        self.next = self.store.discard_incomplete()
        assert self.next == model.place(model.boundary)
        keep = model.boundary + 1
        dropped = len(model.log) - keep
        del model.log[keep:]
        while dropped:
            last = model.held[-1]
            count = min(dropped, len(last.events))
            del last.events[len(last.events) - count :]
            dropped -= count
            if not last.events:
                model.held.pop()
            else:
                last.size_bytes = self.store.size_bytes - sum(one.size_bytes for one in model.held[:-1])
        model.free()

    @rule(data=st.data(), max_bytes=st.integers(1, 400))
    def by_position(self, data: st.DataObject, max_bytes: int) -> None:
        """A consumer with its own place, between two transactions."""
        model = self.model
        places = [model.start, *(event.end for event in model.log if event.is_boundary)]
        start = data.draw(st.sampled_from(places))
        end = self.store.end_after(start, max_bytes)
        if start < self.first:
            assert end == self.first
            assert self.store.read(start, end) is None
            return
        if start >= model.place(model.boundary):
            assert end == start
            return
        expected = model.end_after(start, max_bytes)
        assert expected is not None
        assert end == model.place(expected)
        blocks = self.store.read(start, end)
        assert blocks is not None
        inside = [event for event in model.log if event.start >= start and event.end <= end]
        assert [position for block in blocks for position in self.places(block)] == [event.start for event in inside]

    def places(self, block: Any) -> list[Position]:
        return [Position(block.file, int(offset)) for offset in block.column("position")]

    def same_events(self, batch: Batch, first: int, last: int) -> None:
        found = [place for block in batch.blocks for place in self.places(block)]
        assert found == [event.start for event in self.model.log[first : last + 1]]

    @property
    def first(self) -> Position:
        return self.model.origin or self.model.start

    @invariant()
    def numbers_agree(self) -> None:
        if not hasattr(self, "model"):
            return
        model, (put, get, ack) = self.model, self.store.sequences
        assert (put, get, ack) == (len(model.log) - 1, model.get, model.ack)
        assert ack <= get <= put
        assert self.store.latest == model.place(model.boundary)
        assert self.store.first == self.first
        assert self.store.size_bytes == sum(one.size_bytes for one in model.held)
        assert all(memory() is None for memory in model.freed)

    def teardown(self) -> None:
        if not hasattr(self, "model"):
            return
        watched = [one.memory for one in self.model.held]
        assert all(memory() is not None for memory in watched)
        self.store.discard_incomplete()
        self.store.ack(self.store.latest)
        assert self.store.size_bytes == 0
        assert [memory() for memory in watched] == [None] * len(watched)


TestMemoryStore = StoreMachine.TestCase
TestMemoryStore.settings = settings(examples(80), stateful_step_count=30)
