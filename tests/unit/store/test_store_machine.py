"""Every store against the model: random puts, gets, acks and rollbacks of several clients."""

import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.binlog.events.block import Block
from penstock.binlog.events.event_columns import EVENT_INDEX_BYTES
from penstock.binlog.events.layout import Entry
from penstock.errors import StoreError
from penstock.model import Position
from penstock.store import BatchSize, EventStore, FileStorage, MemoryStorage, Start, TieredStorage
from penstock.store.block_storage import BlockStorage
from tests.support.store_model import Item, Model, ModelBlock, are_bytes_right
from tests.twins.blocks import block_of

NAMES = ("one", "two", "three")
EVENTS = st.lists(st.tuples(st.integers(1, 60), st.sampled_from(list(Entry))), min_size=1, max_size=6)
SIZES = st.one_of(
    st.builds(BatchSize, st.integers(1, 8)),
    st.builds(BatchSize, st.integers(1, 600), st.just("memory"), st.sampled_from((1, 64))),
)


class StoreMachine(RuleBasedStateMachine):
    put_timeout_s = 0.0

    @initialize(slots=st.sampled_from((2, 8, 32)), limit=st.integers(1, 30_000))
    def start(self, slots: int, limit: int) -> None:
        self.at = Position("binlog.000001", 4)
        self.model = self.made(slots, limit)
        self.store = EventStore(self.storage, self.at)

    def made(self, slots: int, limit: int) -> Model:
        self.storage: BlockStorage = MemoryStorage(limit, slots=slots)
        return Model(self.at, slots, limit)

    @rule(groups=st.lists(EVENTS, min_size=1, max_size=3), rotates=st.booleans())
    def put(self, groups: list[list[tuple[int, int]]], rotates: bool) -> None:
        at = Position(f"binlog.{self.at.file_number + 1:06}", 4) if rotates else self.at
        blocks, items, expected_blocks = list[Block](), list[Item](), list[ModelBlock]()
        for events in groups:
            block, raw = block_of(events, file=at.file, start=at.offset)
            own = items_of(events, at)
            if own:
                items += own
                expected_blocks.append(ModelBlock(self.model.put + len(items), own, weakref.ref(raw)))
            blocks.append(block)
            at = block.end
        expected = not items or self.model.has_room(expected_blocks)
        assert self.store.put(blocks, timeout_s=self.put_timeout_s) == expected
        if expected:
            self.model.log += items
            self.model.blocks += expected_blocks
            self.model.skip_acked()
            self.model.free()
            self.at = at

    @rule(name=st.sampled_from(NAMES), whole=st.booleans())
    def add(self, name: str, whole: bool) -> None:
        origin = self.model.origin
        position = self.store.add_client(name, wants_whole=whole)
        (self.model.whole.add if whole else self.model.whole.discard)(name)
        if name not in self.model.clients:
            self.model.starts[name] = origin
        get, _ = self.model.clients.setdefault(name, [origin, origin])
        assert position == self.model.position_of(get)

    def some_client(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.model.clients)))

    @precondition(lambda self: self.model.clients)
    @rule(data=st.data(), size=SIZES, alone=st.booleans())
    def get(self, data: st.DataObject, size: BatchSize, alone: bool) -> None:
        name, model = self.some_client(data), self.model
        first, end = model.clients[name][0] + 1, model.end_of_batch(name, size, is_ddl_alone=alone)
        batch = self.store.get(name, size, is_ddl_alone=alone)
        if end is None:
            assert batch is None
            return
        assert batch is not None
        assert (batch.first_sequence, batch.end_sequence) == (first, end)
        assert (batch.start, batch.end) == (model.position_of(first - 1), model.position_of(end))
        assert batch.ack == model.ack_of(first, end)
        entries = [entry for block in batch.blocks for entry in block.column("entry").tolist() if entry]
        assert entries == [item.entry for item in model.log[first : end + 1]]
        assert all(are_bytes_right(block) for block in batch.blocks)
        model.clients[name][0] = end

    @precondition(lambda self: self.model.clients)
    @rule(data=st.data(), by_sequence=st.booleans(), count=st.integers(0, 12))
    def ack(self, data: st.DataObject, by_sequence: bool, count: int) -> None:
        name = self.some_client(data)
        get, ack = self.model.clients[name]
        if self.model.put < 0:
            return
        # How much a kill leaves of a mixed store is a matter of time: nothing is drawn by that.
        sequence = min(max(0, ack - 1) + count, get + 2, self.model.put)
        end = self.model.position_of(sequence)
        if ack < sequence <= get:
            self.store.ack(name, end, sequence if by_sequence else None)
            self.model.clients[name][1] = sequence
            self.model.free()
        else:
            with pytest.raises(StoreError, match=f"client {name} cannot ack"):
                self.store.ack(name, end, sequence if by_sequence else None)

    @precondition(lambda self: self.model.clients)
    @rule(data=st.data())
    def rollback(self, data: st.DataObject) -> None:
        name = self.some_client(data)
        self.store.rollback(name)
        self.model.clients[name][0] = self.model.clients[name][1]

    @precondition(lambda self: self.model.clients)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        name = self.some_client(data)
        self.store.forget_client(name)
        del self.model.clients[name]
        self.model.whole.discard(name)
        self.model.ahead.pop(name, None)
        self.model.free()

    @rule()
    def the_connection_breaks(self) -> None:
        """Capture resumes after the last transaction."""
        self.model.discard_incomplete()
        self.at = self.model.position_of(self.model.boundary)
        assert self.store.discard_incomplete() == self.at

    @invariant()
    def sequences_are_the_models(self) -> None:
        if not hasattr(self, "model"):
            return
        model = self.model
        for name, (get, ack) in model.clients.items():
            assert self.store.sequences(name) == (model.put, get, ack)
            assert ack <= get <= model.put
        assert self.store.latest == model.position_of(model.boundary)
        assert self.store.first == min(model.position_of(model.origin), model.position_of(model.boundary))
        self.check_size()

    def check_size(self) -> None:
        assert self.store.size_bytes == sum(block.size for block in self.model.blocks)


class FileStoreMachine(StoreMachine):
    """A block per segment, so that files go as blocks in memory do."""

    limit = 0

    def made(self, slots: int, limit: int) -> Model:
        del slots
        self.folder, self.limit = TemporaryDirectory(), limit
        self.storage = self.opened()
        return self.model_at(self.at)

    def model_at(self, start: Position) -> Model:
        return Model(start, 1 << 40, 1 << 40, by_transactions=True)

    def opened(self) -> BlockStorage:
        return FileStorage(Path(self.folder.name), segment_bytes=1, sync="none")

    @rule(is_clean=st.booleans())
    def restart(self, is_clean: bool) -> None:
        """Cleanly, or as a kill leaves it; then as an instance starts: the clients return with their cursors."""
        model = self.model
        cursors = {name: model.ahead.get(name) or model.position_of(model.safe(name)) for name in model.clients}
        lowest, whole = min(cursors.values(), default=None), model.whole
        if is_clean:
            self.store.stop()
        else:
            crash(self.storage)
        self.storage = self.opened()
        last = self.storage.blocks[self.storage.blocks.tail - 1].last if len(self.storage.blocks) else -1
        if is_clean or isinstance(self.storage, FileStorage):
            assert last == (model.blocks[-1].last if model.blocks else -1)
        self.store = EventStore(self.storage, lowest or model.position_of(model.boundary))
        is_behind = lowest is not None and self.store.latest < lowest
        if lowest is not None and is_behind:
            self.store.restart_at(lowest)
        if is_behind or last < 0:
            self.model = self.model_at(self.store.first)
        else:
            blocks = [block for block in model.blocks if block.last <= last]
            self.model = replace(self.model_at(model.start), log=model.log[: last + 1], blocks=blocks, left=model.left)
        self.model.discard_incomplete()
        self.at = self.store.discard_incomplete()
        assert self.at == self.model.position_of(self.model.boundary)
        for name, cursor in cursors.items():
            self.rejoin(name, cursor, is_whole=name in whole)

    def rejoin(self, name: str, cursor: Position, *, is_whole: bool) -> None:
        model = self.model
        ends = [i for i, item in enumerate(model.log) if item.end <= cursor and item.is_boundary]
        position = max([model.origin, *ends])
        assert self.store.add_client(name, Start.cursor(cursor), wants_whole=is_whole) == model.position_of(position)
        model.clients[name], model.starts[name] = [position, position], position
        if is_whole:
            model.whole.add(name)
        if cursor > model.position_of(model.boundary):
            model.ahead[name] = cursor

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.storage.close()
            self.folder.cleanup()

    def check_size(self) -> None:
        files = sorted(Path(self.folder.name).glob("*.blocks"))
        assert self.store.size_bytes == sum(path.stat().st_size for path in files)
        assert len(files) == len(self.model.blocks)


class MixedStoreMachine(FileStoreMachine):
    """Hardly anything has room in memory, so that blocks move to files all the time."""

    put_timeout_s = 20.0

    def opened(self) -> BlockStorage:
        return TieredStorage(self.limit, FileStorage(Path(self.folder.name), segment_bytes=1, sync="none"))

    def check_size(self) -> None:
        assert self.store.size_bytes <= sum(block.size for block in self.model.blocks)


def crash(storage: BlockStorage) -> None:
    """What a kill does: nothing more is written, and the system takes back what was open."""
    files: Any = storage
    if isinstance(storage, TieredStorage):
        mixed: Any = storage
        with mixed._lock:
            mixed._is_closing = True
            mixed._filled.notify_all()
        mixed._mover.join()
        files = mixed._files
    files._release_folder()


def items_of(events: Sequence[tuple[int, int]], at: Position) -> list[Item]:
    """The entries among the events of a block, with the bytes of the others before them, and the last with the rest."""
    items, begin, size = list[Item](), at, 0
    for length, entry in events:
        size += length + EVENT_INDEX_BYTES
        at = Position(at.file, at.offset + length)
        if entry != Entry.OTHER:
            items.append(Item(begin, at, entry, size))
            begin, size = at, 0
    if items:
        items[-1] = replace(items[-1], size=items[-1].size + size)
    return items


_SETTINGS = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestMemoryStore = StoreMachine.TestCase
TestMemoryStore.settings = _SETTINGS
TestFileStore = FileStoreMachine.TestCase
TestFileStore.settings = _SETTINGS
TestMixedStore = MixedStoreMachine.TestCase
TestMixedStore.settings = _SETTINGS
