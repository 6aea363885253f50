"""Canal's own meta cases, for the managers that need no server.

Canal has the same three for each of its managers: subscriptions, batches, cursor; and for those that keep something, a
second manager on the same storage. What of that is a rule by itself is in test_contract.py: subscriptions once and in
order, batches by rising ids and acked in order, an explicit id that moves the counter, clear, a cursor that is none at
first. What a file has of it after a stop is in test_file_meta.py. Three batches that a second manager sees are those of
ZooKeeper: tests/integration/test_zookeeper_meta.py. Here is each case as a whole, and what is kept when.
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.meta import BatchRange, ClientRecord, Cursor, FileMetaBackend, MetaManager, PersistentMetaManager
from penstock.model import Position

_DEADLINE_S = 20.0
_PERIODS = {"before": None, "soon": 0.0, "period": 0.1}
Make = Callable[[], MetaManager]


@pytest.fixture(params=["memory", *_PERIODS])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def make(kind: str, tmp_path: Path) -> Make:
    if kind == "memory":
        return lambda: MetaManager("example")
    return lambda: PersistentMetaManager("example", FileMetaBackend("example", tmp_path), period_s=_PERIODS[kind])


def cursor(number: int) -> Cursor:
    return Cursor(Position(f"mysql-bin.{number:06}", 106, 1_700_000_000 + number), 1234, ("127.0.0.1", 3306))


def batch(number: int) -> BatchRange:
    return BatchRange(cursor(number).position, cursor(number + 1).position, number)


def subscribe(meta: MetaManager) -> None:
    meta.subscribe(1)
    meta.subscribe(1)
    meta.subscribe(2)
    assert list(meta.subscriptions()) == [1, 2]
    meta.unsubscribe(2)
    meta.subscribe(3)
    assert list(meta.subscriptions()) == [1, 3]


def move(meta: MetaManager) -> Cursor:
    meta.subscribe(1)
    assert meta.cursor(1) is None
    for position in (cursor(1), cursor(2)):
        meta.update_cursor(1, position)
        assert meta.cursor(1) == position
    return cursor(2)


def check_kept(folder: Path, kind: str, is_kept: Callable[[dict[int, ClientRecord]], bool]) -> None:
    """While the manager runs: at once when it keeps before, else in a moment."""
    deadline = time.monotonic() + (0 if kind == "before" else _DEADLINE_S)
    while not is_kept({record.client_id: record for record in FileMetaBackend("example", folder).read_records()}):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_subscribe(make: Make, kind: str, tmp_path: Path) -> None:
    with make() as meta:
        subscribe(meta)
        if kind != "memory":
            check_kept(tmp_path, kind, lambda records: [i for i in records if records[i].is_subscribed] == [1, 3])
    with make() as second:
        assert list(second.subscriptions()) == ([] if kind == "memory" else [1, 3])
        subscribe_again = [*second.subscriptions(), 2]
        for client_id in subscribe_again:
            second.subscribe(client_id)
        assert list(second.subscriptions()) == sorted(subscribe_again)


def test_batches(make: Make, kind: str) -> None:
    """Canal's first id is 0 in ZooKeeper, which its protocol takes for none; here it is 1 everywhere. After a restart
    canal begins with it again, and takes a late ack for one of another batch; here ids continue to rise."""
    with make() as meta:
        meta.subscribe(1)
        assert (meta.first_batch(1), meta.latest_batch(1), meta.batches(1)) == (None, None, {})
        first, second = meta.add_batch(1, batch(1)), meta.add_batch(1, batch(2))
        assert (first, second) == (1, 2)
        assert meta.batches(1) == {first: batch(1), second: batch(2)}
        third = meta.add_batch(1, batch(3), second + 5)
        fourth = meta.add_batch(1, batch(4))
        assert (third, fourth) == (7, 8)
        meta.ack_batch(1, first)
        assert first not in meta.batches(1)
        assert meta.first_batch(1) == (second, batch(2))
        assert meta.latest_batch(1) == (fourth, batch(4))
        assert len(meta.batches(1)) == 3
        assert meta.clear_batches(1) == [batch(2), batch(3), batch(4)]
        assert (meta.first_batch(1), meta.latest_batch(1), meta.batches(1)) == (None, None, {})
        assert meta.add_batch(1, batch(5)) == fourth + 1
    with make() as again:
        again.subscribe(1)
        assert again.batches(1) == {}  # they are not persisted: their entries are redelivered
        later = again.add_batch(1, batch(5))
        assert later == 1 if kind == "memory" else later > fourth + 1


def test_cursor(make: Make, kind: str, tmp_path: Path) -> None:
    with make() as meta:
        last = move(meta)
        if kind != "memory":
            check_kept(tmp_path, kind, lambda records: 1 in records and records[1].cursor == last)
    with make() as second:
        cursor_read = second.cursor(1)
        assert cursor_read == (None if kind == "memory" else last)
        if cursor_read is not None:
            assert (cursor_read.position.timestamp, cursor_read.server_id) == (last.position.timestamp, 1234)


@pytest.mark.parametrize("kind", list(_PERIODS), indirect=True)
def test_what_changed_last_is_kept_at_stop(make: Make, kind: str) -> None:
    """Canal's default manager, that of a period in ZooKeeper, forgets it."""
    with make() as meta:
        move(meta)
        for number in range(3, 50):
            meta.update_cursor(1, cursor(number))
    with make() as second:
        assert second.cursor(1) == cursor(49)
        assert second.lowest_cursor() == cursor(49)
