"""Clients at an instance: batches, acks and rollbacks over a store and a meta manager, also when one of them fails."""

import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from penstock.errors import ConfigurationError, CoordinationError, MetaError, PositionLostError, StoreError
from penstock.instance.clients import Clients
from penstock.instance.filter import parse_client_filter
from penstock.meta import BatchRange, ClientRecord, Cursor, FileMetaBackend, MetaManager, PersistentMetaManager
from penstock.model import Position, TableName
from penstock.store import BatchSize, ClientState, EventStore, FileStorage, MemoryStorage, Retention, Start
from tests.support.store_blocks import ALL, BEGIN, END, ROWS, START, blocks_of, transaction
from tests.support.store_log import Log

_DEADLINE_S = 20.0
FIVE = blocks_of(*[transaction()] * 5)


def clients_of(meta: MetaManager | None = None, *, count: int = 5) -> Clients:
    store = EventStore(MemoryStorage(1 << 20), START)
    store.put(FIVE[:count])
    return Clients(store, meta or MetaManager("d"), source=lambda: ("db", 3306))


class Failing:
    """A backend that cannot save."""

    def __init__(self) -> None:
        self.is_broken = False

    def load(self) -> list[ClientRecord]:
        return []

    def save(self, changed: Iterable[ClientRecord]) -> None:
        del changed
        if self.is_broken:
            raise CoordinationError("ZooKeeper cannot be reached")

    def close(self) -> None:
        pass


def one_batch(clients: Clients, size: int = 3, client_id: int = 1) -> tuple[int, Position]:
    got = clients.get(client_id, BatchSize(size))
    assert got is not None
    batch_id, batch = got
    return batch_id, batch.end


def test_a_new_client_begins_with_what_is_there() -> None:
    meta = MetaManager("d")
    clients = clients_of(meta)
    assert clients.subscribe(1) == START
    assert meta.cursor(1) == Cursor(START, source=("db", 3306))
    assert clients.subscribe(2, start=Start.latest()) == FIVE[-1].end
    assert clients.get(2, ALL) is None


def test_an_ack_moves_the_cursor_and_frees() -> None:
    meta = MetaManager("d")
    clients = clients_of(meta)
    clients.subscribe(1)
    assert one_batch(clients) == (1, FIVE[0].end)
    assert one_batch(clients) == (2, FIVE[1].end)
    with pytest.raises(MetaError, match="batch 2 of client 1 is not the first outstanding one: 1 is"):
        clients.ack(1, 2)
    clients.ack(1, 1)
    cursor = meta.cursor(1)
    assert cursor is not None
    assert (cursor.position, cursor.server_id) == (FIVE[0].end, 0)
    clients.ack(1, 2)
    with pytest.raises(MetaError, match="none is outstanding"):
        clients.ack(1, 2)


def test_inside_a_transaction_the_cursor_stays() -> None:
    meta = MetaManager("d")
    clients = clients_of(meta)
    clients.subscribe(1)
    batch_id, _ = one_batch(clients, 2)
    clients.ack(1, batch_id)
    assert meta.cursor(1) == Cursor(START, source=("db", 3306))
    assert one_batch(clients, 1) == (2, FIVE[0].end)


@pytest.mark.parametrize("batch_id", [None, 1])
def test_a_rollback_brings_everything_again(batch_id: int | None) -> None:
    meta = MetaManager("d")
    clients = clients_of(meta)
    clients.subscribe(1)
    one_batch(clients)
    one_batch(clients)
    clients.rollback(1, batch_id)
    assert meta.batches(1) == {}
    assert one_batch(clients) == (3, FIVE[0].end)


def test_only_the_first_can_be_rolled_back() -> None:
    clients = clients_of()
    clients.subscribe(1)
    one_batch(clients)
    one_batch(clients)
    with pytest.raises(MetaError, match="is not the first outstanding one: 1 is"):
        clients.rollback(1, 2)
    clients.ack(1, 1)
    clients.ack(1, 2)


def test_a_client_that_left_resumes_from_its_cursor() -> None:
    clients = clients_of()
    clients.subscribe(1)
    clients.ack(1, one_batch(clients)[0])
    one_batch(clients)
    clients.unsubscribe(1)
    with pytest.raises(MetaError, match="client 1 has not subscribed to d; those that have: none"):
        clients.get(1, ALL)
    assert clients.subscribe(1) == FIVE[0].end
    assert one_batch(clients)[1] == FIVE[1].end


def test_forgotten_is_new() -> None:
    clients = clients_of()
    clients.subscribe(1)
    clients.subscribe(2)
    clients.ack(1, one_batch(clients)[0])
    clients.forget(1)
    assert clients.subscribe(1, start=Start.latest()) == FIVE[-1].end


def test_after_a_restart_what_was_not_acked_is_redelivered(tmp_path: Path) -> None:
    with PersistentMetaManager("d", FileMetaBackend("d", tmp_path), period_s=None) as meta:
        clients = clients_of(meta)
        clients.subscribe(1, "shop\\..*")
        clients.ack(1, one_batch(clients)[0])
        one_batch(clients)
    with PersistentMetaManager("d", FileMetaBackend("d", tmp_path), period_s=None) as meta:
        clients = clients_of(meta)
        clients.start()
        batch_id, end = one_batch(clients)
        assert end == FIVE[1].end
        with pytest.raises(MetaError, match=f"has no batch 2: the first outstanding one is {batch_id}"):
            clients.ack(1, 2)  # late, and of the process before: it is none of ours


def test_what_cannot_be_kept_does_not_count() -> None:
    backend = Failing()
    meta = PersistentMetaManager("d", backend, period_s=None)
    clients = clients_of(meta)
    clients.subscribe(1)
    batch_id, _ = one_batch(clients)
    backend.is_broken = True
    with pytest.raises(CoordinationError):
        clients.ack(1, batch_id)
    assert meta.cursor(1) == Cursor(START, source=("db", 3306))
    backend.is_broken = False
    clients.ack(1, batch_id)
    assert one_batch(clients) == (2, FIVE[1].end)


def test_a_batch_that_cannot_be_noted_is_redelivered() -> None:
    backend = Failing()
    meta = PersistentMetaManager("d", backend, period_s=None)
    clients = clients_of(meta)
    clients.subscribe(1)
    one_batch(clients)
    backend.is_broken = True
    with pytest.raises(CoordinationError):
        clients.get(1, BatchSize(3))
    backend.is_broken = False
    assert one_batch(clients)[1] == FIVE[0].end  # with all that was outstanding
    clients.rollback(1)
    assert meta.batches(1) == {}


def test_a_rollback_need_not_wait_for_a_get() -> None:
    clients = clients_of(count=1)
    clients.subscribe(1)
    one_batch(clients)
    ends = list[Position]()

    def wait() -> None:
        got = clients.get(1, BatchSize(2), None)
        assert got is not None
        ends.append(got[1].end)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(0.05)
    assert not ends
    clients.rollback(1)
    waiting.join(_DEADLINE_S)
    assert ends == [Position(START.file, 24)]


def test_a_get_that_waits_gives_what_is_there_in_the_end() -> None:
    clients = clients_of(count=1)
    clients.subscribe(1)
    got = clients.get(1, BatchSize(100), 0.02)
    assert got is not None
    assert got[1].end == FIVE[0].end
    assert clients.get(1, BatchSize(100), 0.02) is None


def test_the_source_breaks_inside_of_a_batch() -> None:
    """Its last transaction is redelivered; the ack counts for what is complete."""
    store, meta = EventStore(MemoryStorage(1 << 20), START), MetaManager("d")
    clients = Clients(store, meta)
    clients.subscribe(1)
    first, two = blocks_of(transaction(), [(10, BEGIN), (10, ROWS)])
    store.put([first, two])
    batch_id, end = one_batch(clients, 9)
    assert end == two.end
    assert store.discard_incomplete() == first.end
    clients.ack(1, batch_id)
    assert meta.cursor(1) == Cursor(first.end)
    assert store.sequences("1") == (2, 2, 2)  # and it is freed
    store.put(blocks_of(transaction(), [(10, BEGIN), (10, ROWS), (10, END)])[1])
    got = clients.get(1, ALL)
    assert got is not None
    assert (got[1].start, got[1].end.offset) == (first.end, 64)


def test_a_lost_client_subscribes_again_and_reads_the_log(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path, segment_bytes=1, sync="none", retention=Retention(limit_bytes=1))
    store = EventStore(storage, START, source_log=Log(FIVE))
    meta = MetaManager("d")
    clients = Clients(store, meta)
    clients.subscribe(1)
    store.put(FIVE[0])
    one_batch(clients)
    for block in FIVE[1:]:
        store.put(block)
    assert store.states()["1"] is ClientState.LOST
    with pytest.raises(StoreError, match="client 1 is lost"):
        clients.get(1, ALL)
    assert clients.subscribe(1) == START
    assert meta.batches(1) == {}
    ends = list[Position]()
    while got := clients.get(1, BatchSize(3)):
        clients.ack(1, got[0])
        ends.append(got[1].end)
    assert ends == [block.end for block in FIVE]
    store.stop()


def test_a_bad_filter_changes_nothing() -> None:
    clients = clients_of()
    clients.subscribe(1)
    with pytest.raises(ConfigurationError, match=r"the filter '\(' is no regular expression"):
        clients.subscribe(1, "(")
    assert one_batch(clients) == (1, FIVE[0].end)


@pytest.mark.parametrize(
    ("text", "table", "is_wanted"),
    [
        ("", "shop.a", True),
        ("shop\\..*", "shop.a", True),
        ("shop\\..*", "SHOP.A", True),
        ("shop\\..*", "workshop.a", False),
        ("shop.a , crm.b", "crm.b", True),
        ("shop.a|crm.b,x.y", "x.y", True),
        ("shop.a{1,2}", "shop.aa", True),
        ("shop.a{1,2}", "shop.aaa", False),
        ("shop.a{2,},x.y", "shop.aaa", True),
        ("foooo,f.*t", "f.t", True),
        ("(?i)shop\\..*,x.y", "SHOP.A", True),
        ("shop.[a,b]", "shop.b", True),
        ("shop.[a,b]", "shop.c", False),
        ("shop\\.a\\,b", "shop.a,b", True),
    ],
)
def test_filters_are_canals(text: str, table: str, is_wanted: bool) -> None:
    client_filter = parse_client_filter(text)
    assert (client_filter is None or client_filter(TableName.parse(table))) == is_wanted


def test_a_start_that_is_refused_leaves_nothing() -> None:
    meta = MetaManager("d")
    clients = clients_of(meta)
    with pytest.raises(PositionLostError):
        clients.subscribe(1, start=Start.after_gtid("0-1-99"))
    assert meta.subscriptions() == {}
    assert clients.subscribe(1, start=Start.latest()) == FIVE[-1].end


def test_a_subscription_that_cannot_be_kept_leaves_nothing() -> None:
    backend = Failing()
    meta = PersistentMetaManager("d", backend, period_s=None)
    store = EventStore(MemoryStorage(1 << 20), START)
    clients = Clients(store, meta)
    backend.is_broken = True
    with pytest.raises(CoordinationError):
        clients.subscribe(1)
    assert (store.states(), meta.subscriptions()) == ({}, {})


def test_a_cursor_that_the_log_does_not_have_is_refused() -> None:
    def check(client_id: int, position: Position) -> None:
        raise PositionLostError(f"{client_id} {position}")

    meta = MetaManager("d")
    meta.subscribe(1, "", Cursor(START))
    clients = Clients(EventStore(MemoryStorage(1 << 20), START), meta, check_cursor=check)
    with pytest.raises(PositionLostError, match=r"1 binlog\.000001:4"):
        clients.subscribe(1)


@pytest.mark.parametrize("period_s", [None, 3600.0])
def test_files_go_when_an_ack_is_kept(tmp_path: Path, period_s: float | None) -> None:
    """With a period they stay until then: after a crash the client resumes with the cursor that was persisted."""
    storage = FileStorage(tmp_path / "store", segment_bytes=1, sync="none")
    store = EventStore(storage, START)
    with PersistentMetaManager("d", FileMetaBackend("d", tmp_path), period_s=period_s) as meta:
        clients = Clients(store, meta)
        clients.subscribe(1)
        store.put(FIVE)
        for _ in range(2):
            clients.ack(1, one_batch(clients)[0])
        count = len(list((tmp_path / "store").glob("*.blocks")))
        assert count == (3 if period_s is None else 5)
        meta.flush()
        assert len(list((tmp_path / "store").glob("*.blocks"))) == 3
        clients.ack(1, one_batch(clients)[0])
    assert len(list((tmp_path / "store").glob("*.blocks"))) == 2
    store.stop()


def test_batches_of_the_process_before_are_gone() -> None:
    class Keeping(Failing):
        def load(self) -> list[ClientRecord]:
            record = ClientRecord(1, is_subscribed=True, cursor=Cursor(START))
            record.batches[7] = BatchRange(START, FIVE[0].end, 2, Cursor(FIVE[0].end))
            return [record]

    meta = PersistentMetaManager("d", Keeping(), period_s=None)
    meta.start()
    clients = clients_of(meta)
    clients.start()
    assert meta.batches(1) == {}
    with pytest.raises(MetaError, match="none is outstanding"):
        clients.ack(1, 7)
