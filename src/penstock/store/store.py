"""The event store: put → get → ack, for one capture thread and many clients.

Sequences count entries from -1. Every client has its own: `ack ≤ get ≤ put`. What all clients have acked is freed. A
put waits while the store is full (backpressure); all of its blocks are added or none. A get cuts a batch by entries or
by memory and may end inside a transaction, except for clients that want whole ones. After a rollback, what a client has
not acked is redelivered. A client that begins before the store does is served from the source's log until it has
caught up.

One lock protects the index and the clients. Blocks are read and written without it.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence

from penstock.binlog.events.block import Block
from penstock.disk import WriteWarnings
from penstock.errors import PenstockError, StoreError, StoreFullError
from penstock.model import Position
from penstock.store.admission import ClientAdmission, ClientOptions
from penstock.store.batch import Batch, BatchSize
from penstock.store.block_info import BlockEntries
from penstock.store.block_storage import BlockStorage
from penstock.store.catch_up import LogReader
from penstock.store.client import ClientState
from penstock.store.client_registry import ClientRegistry
from penstock.store.delivery import ClientDelivery
from penstock.store.eviction import EvictionPolicy, StoreSpace
from penstock.store.position_reader import PositionReader
from penstock.store.rows_filter import TableFilter
from penstock.store.start import Start
from penstock.store.stats import StoreStats, collect_stats
from penstock.store.store_index import StoreIndex
from penstock.store.store_lock import StoreLock

log = logging.getLogger(__name__)

_DISK_RETRY_S = 0.5  # between two attempts to write to a full disk
_IDLE_CHECK_S = 1.0  # between two looks whether the clients that capture waits for have become idle


class EventStore:
    """A ring of blocks between capture and its clients. One thread puts; any thread adds clients, gets, acks and reads.

    store = EventStore(MemoryStorage(64 << 20), start, destination="shop")
    store.add_client("1001", Start.latest())
    batch = store.get("1001", BatchSize(1000), timeout_s=1.0)
    """

    def __init__(
        self,
        storage: BlockStorage,
        start: Position,
        *,
        destination: str = "",
        source_log: LogReader | None = None,
        clock: Callable[[], float] = time.monotonic,
        policy: EvictionPolicy | None = None,
    ) -> None:
        """`start` is where an empty storage begins; `source_log` serves the clients that are behind the store."""
        policy = policy or EvictionPolicy()
        self._storage = storage
        self._lock = StoreLock(clock)
        storage.wake = self._lock.wake
        # Protected by the lock: the index, the registry with its clients, and the space.
        self._index = StoreIndex(storage, start)
        self._registry = ClientRegistry(storage, self._index, clock, absent_after_s=policy.absent_after_s)
        self._space = StoreSpace(
            storage, self._index, self._registry, clock,
            destination=destination, source_log=source_log, policy=policy,
        )  # fmt: skip
        self._reader = PositionReader(self._lock, storage, self._index)
        self._delivery = ClientDelivery(self._lock, storage, self._index, self._registry, self._space)
        self._admission = ClientAdmission(self._lock, storage, self._index, self._registry, source_log)
        self._warnings = WriteWarnings(
            log, f"store not writable destination={destination}", f"store writable again destination={destination}"
        )

    # -- capture's side

    def put(self, blocks: Block | Sequence[Block], timeout_s: float | None = None) -> bool:
        """Add all blocks; return False when there was no room in time. Without a timeout wait for room."""
        all_blocks = [blocks] if isinstance(blocks, Block) else blocks
        entries = [block for block in map(BlockEntries.of, all_blocks) if len(block)]
        deadline = self._lock.deadline(timeout_s)
        while True:
            with self._lock:
                while not self._lock.wait(lambda: not entries or self._has_room(entries), self._next_wait_s(deadline)):
                    if self._lock.remaining_s(deadline) == 0:
                        return False
                numbered = self._index.assign_sequences(entries)
            try:
                self._storage.write(numbered)
            except StoreFullError as error:
                if not self._wait_for_disk(error, deadline):
                    return False
                continue
            with self._lock:
                self._warnings.report_success()
                for info, block in numbered:
                    self._index.add(info, block)
                self._registry.skip_acked()
                self._space.free()
                self._lock.notify()
                return True

    def _has_room(self, entries: Sequence[BlockEntries]) -> bool:
        """Return whether a put has room; called with the lock held."""
        was_full = self._registry.is_full
        if self._space.has_room(entries):
            return True
        self._space.free()
        if self._space.has_room(entries):
            return True
        if not was_full:
            self._lock.notify()  # a client that waits for a full batch gets what there is
        return False

    def _next_wait_s(self, deadline: float | None) -> float:
        """Return how long a put waits before it looks for idle clients again."""
        remaining_s = self._lock.remaining_s(deadline)
        return _IDLE_CHECK_S if remaining_s is None else min(remaining_s, _IDLE_CHECK_S)

    def _wait_for_disk(self, error: StoreFullError, deadline: float | None) -> bool:
        """Wait until acks may have made room on the disk; return False when the deadline has passed."""
        with self._lock:
            self._warnings.report_failure(error)
            while self._space.make_room():
                pass  # what only absent clients need
            self._space.free()  # also what was acked while the write failed
            self._registry.is_full = True
            self._lock.notify()  # a client that waits for a full batch gets what there is
            remaining_s = self._lock.remaining_s(deadline)
            self._lock.pause(0 if remaining_s == 0 else min(_DISK_RETRY_S, remaining_s or _DISK_RETRY_S))
            return remaining_s != 0

    def wait_until_durable(self, timeout_s: float) -> Position | None:
        """Return the last transaction boundary once everything up to it would survive a crash; None when not in time.

        It serves stores that write at once, and those in memory, which need not survive anything.
        """
        with self._lock:
            boundary = self._index.boundary

            def is_durable() -> bool:
                volatile = self._storage.first_volatile
                return volatile is None or volatile > boundary.sequence

            return boundary.position if self._lock.wait(is_durable, timeout_s) else None

    def discard_incomplete(self) -> Position:
        """Drop the entries after the last transaction boundary, and return that boundary: capture resumes there.

        To a client that was beyond it the same entries are delivered when capture has read them again.
        """
        with self._lock:
            before = self._index.boundary
            self._index.discard_incomplete()
            end = self._index.put
            for client in self._registry.clients.values():
                client.rewinds += 1  # what it is just getting may be gone
                has_acked_more = end.sequence < client.acked_boundary.sequence <= before.sequence
                if has_acked_more and client.catch_up is None and not client.lost_reason:
                    client.wait_for_store(client.acked_boundary.position)
                if client.get.sequence > end.sequence:
                    client.move(get=end, ack=min(client.ack, end, key=lambda entry: entry.sequence))
            return end.position

    def restart_at(self, position: Position) -> None:
        """Drop all blocks and begin at `position`; only a store without clients can."""
        with self._lock:
            if self._registry.clients:
                raise StoreError(f"the store cannot begin at {position} while it has clients")
            self._storage.clear()
            self._index.reset(position)

    def continue_at(self, position: Position, translate: Callable[[Position], Position] | None = None) -> None:
        """Continue the store at `position`: of another log with a later epoch, or behind a gap of the same log.

        The acks of clients that have acked more than the store has are translated to the new log.
        """
        with self._lock:
            clients = self._registry.clients.items()
            acks = {name: client.acked_ahead for name, client in clients if client.acked_ahead is not None}
        if translate is not None:
            acks = {name: translate(acked) for name, acked in acks.items()}
        with self._lock:
            put = self._index.put
            if put.sequence != self._index.boundary.sequence or position <= put.position:
                raise StoreError(f"the store cannot continue at {position}: it is at {put.position}")
            self._index.continue_at(position)
            for name, acked in acks.items():
                client = self._registry.clients.get(name)
                if client is not None and client.acked_ahead is not None:
                    client.wait_for_store(acked if acked > position else None)
            self._lock.notify()

    def fail(self, error: PenstockError) -> None:
        """Let every waiting or later put, get and read raise this error; what was delivered can still be acked."""
        self._lock.fail(error)

    def stop(self) -> None:
        """End all waiting, forget the clients and close the storage."""
        self.fail(StoreError("the store was stopped"))
        with self._lock:
            end = self._index.boundary.position
            self._registry.clients.clear()  # nobody gets, acks or frees any more
        # Without the lock: a thread of the storage may be about to wake those that wait for it.
        try:
            self._storage.close()
        finally:
            with self._lock:
                self._index.reset(end)

    # -- clients

    def add_client(
        self,
        name: str,
        start: Start | None = None,
        *,
        table_filter: TableFilter | None = None,
        wants_whole: bool = False,
        reads_log: bool = False,
        evict_after_s: float | None = None,
        persists_later: bool = False,
    ) -> Position:
        """Serve a client from now on, and return its position. A known client stays where it is, with the new options.

        `wants_whole`: batches hold whole transactions, so the store keeps each as a whole; with `reads_log` the client
        reads a transaction that does not fit from the source's log by itself. `evict_after_s`: evict this client when
        it blocks others, or after this many idle seconds; it may join again. `persists_later`: acks are persisted
        asynchronously; a persistent store frees blocks only when `confirm_persisted` says so.
        """
        options = ClientOptions(table_filter, wants_whole, reads_log, evict_after_s, persists_later)
        return self._admission.add(name, start, options)

    def set_connected(self, name: str, *, is_connected: bool) -> None:
        """Note that a client is connected, or that its last connection has ended. A client of which neither was noted
        counts as connected, and so does one that calls after its connection has ended."""
        with self._lock:
            client = self._registry.clients.get(name)
            if client is not None:
                client.absent_since_s = None if is_connected else self._lock.clock()

    def forget_client(self, name: str) -> None:
        """Serve a client no longer, and free what only it needed."""
        with self._lock:
            self._registry.clients.pop(name, None)
            self._space.free()
            self._lock.notify()

    def renew_client(self, name: str) -> bool:
        """Note that a client needs what it has not acked, so that it is not forgotten; return whether it is known.

        It does not count as active by that: a full store evicts it as before.
        """
        with self._lock:
            client = self._registry.clients.get(name)
            if client is None or client.lost_reason:
                return False
            client.renewed_s = self._lock.clock()
            return True

    def forget_idle_clients(self, prefix: str, idle_s: float) -> None:
        """Forget the clients with this prefix in their names that have neither called nor been renewed for
        `idle_s`, and free what only they needed."""
        with self._lock:
            now_s = self._lock.clock()
            names = [
                name
                for name, client in self._registry.clients.items()
                if name.startswith(prefix) and now_s - max(client.seen_s, client.renewed_s) > idle_s
            ]
        for name in names:
            self.forget_client(name)

    def get(
        self, name: str, size: BatchSize, timeout_s: float | None = 0, *, is_ddl_alone: bool = False
    ) -> Batch | None:
        """Return the next batch: what there is at the deadline when that comes first, or None for nothing.

        Without a timeout it waits for a full batch. With `is_ddl_alone` a statement is a batch of its own.
        """
        return self._delivery.get(name, size, timeout_s, is_ddl_alone=is_ddl_alone)

    def wait(self, name: str, size: BatchSize, timeout_s: float | None) -> bool:
        """Wait until a get would not wait; return whether that was in time. Nothing is delivered."""
        return self._delivery.wait(name, size, timeout_s)

    def ack(self, name: str, end: Position, sequence: int | None = None) -> None:
        """Ack everything up to the entry that ends at `end`, which must be delivered and not acked yet."""
        self._delivery.ack(name, end, sequence)

    def release(self, name: str, end: Position) -> None:
        """Ack everything up to the last transaction boundary at or before `end`; nothing when that is acked."""
        self._delivery.release(name, end)

    def confirm_persisted(self, name: str, position: Position) -> None:
        """Note that the client's ack up to `position` is persisted and survives a crash."""
        self._delivery.confirm_persisted(name, position)

    def rollback(self, name: str) -> None:
        """Let the next get of a client start after its last ack."""
        self._delivery.rollback(name)

    def sequences(self, name: str) -> tuple[int, int, int]:
        """Return three sequences: of the last entry that was put, that the client got, and that it has acked."""
        return self._delivery.sequences(name)

    def states(self) -> dict[str, ClientState]:
        """Return the state of every client, by name."""
        with self._lock:
            now_s = self._lock.clock()
            return {name: self._registry.state(client, now_s) for name, client in self._registry.clients.items()}

    # -- reads by position

    @property
    def first(self) -> Position:
        """The oldest position from which `read` can start; inside the only transaction there is, its beginning."""
        return self._reader.first

    def first_for(self, position: Position) -> Position:
        """Return the oldest position from which `read` can start. After a failover the store has events of two binlogs:
        only the one that `position` belongs to counts."""
        return self._reader.first_for(position)

    @property
    def latest(self) -> Position:
        """The last transaction boundary that was put."""
        return self._reader.latest

    def find_batch_end(self, start: Position, max_bytes: int, timeout_s: float = 0) -> Position:
        """Return where a batch that begins at `start` should end; `start` itself when nothing was put in time.

        Before what the store has, that is where the store begins: only the source's log has what lies between.
        """
        return self._reader.find_batch_end(start, max_bytes, timeout_s)

    def read(self, start: Position, end: Position) -> Iterable[Block] | None:
        """Return the entries of (start, end], or None when the store does not have all of them.

        A large range can be iterated over once, and BlocksFreedError says that the rest was freed meanwhile.
        """
        return self._reader.read(start, end)

    # -- status

    @property
    def acked(self) -> Position:
        """The last transaction boundary before which no client needs anything."""
        with self._lock:
            catch_ups = [client.catch_up for client in self._registry.clients.values()]
            boundaries = [catch_up.boundary for catch_up in catch_ups if catch_up is not None]
            boundaries += [client.acked_boundary.position for client in self._registry.holding]
            return min(boundaries, default=self._index.origin.position)

    @property
    def is_full(self) -> bool:
        """Return whether capture waits for room in the store."""
        with self._lock:
            return self._registry.is_full

    @property
    def why_full(self) -> str:
        """The reason why capture waits while the store is full: a client, or the disk."""
        with self._lock:
            if self._storage.problem:
                return self._storage.problem
            now_s = self._lock.clock()
            names = ", ".join(
                sorted(
                    f"{client.name} (not connected)" if self._registry.is_absent(client, now_s) else client.name
                    for client in self._registry.slowest
                )
            )
            return f"the store is full until {names or 'a client'} acks"

    def stats(self) -> StoreStats:
        """Return what the store holds at this moment, and for whom."""
        with self._lock:
            return collect_stats(self._storage, self._index, self._registry, self._lock.clock())

    @property
    def size_bytes(self) -> int:
        """The bytes that the storage counts against its limits."""
        with self._lock:
            return self._storage.size_bytes

    @property
    def problem(self) -> str:
        """The reason why puts wait, when it is not for clients. It is one string that is replaced, so it needs no
        lock."""
        return self._storage.problem
