"""What every meta manager does, with canal's own cases among them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import MetaError
from penstock.meta import Cursor, FileMetaBackend, MetaManager, PersistentMetaManager
from tests.support.meta_values import at, batch

Make = Callable[[], MetaManager]


@pytest.fixture(params=["memory", "before", "soon", "period"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    def kept(period_s: float | None) -> PersistentMetaManager:
        return PersistentMetaManager("example", FileMetaBackend("example", tmp_path), period_s=period_s)

    return {
        "memory": lambda: MetaManager("example"),
        "before": lambda: kept(None),
        "soon": lambda: kept(0),
        "period": lambda: kept(1),
    }[request.param]


def test_subscriptions_are_listed_once_and_in_order(make: Make) -> None:
    with make() as meta:
        for client_id, table_filter in ((1002, "shop\\..*"), (1001, ""), (1001, "shop.a")):
            meta.subscribe(client_id, table_filter)
        assert meta.subscriptions() == {1001: "shop.a", 1002: "shop\\..*"}
        assert meta.has_subscribed(1001)
        meta.unsubscribe(1001)
        meta.unsubscribe(1001)
        assert list(meta.subscriptions()) == [1002]
        with pytest.raises(MetaError, match="client 1001 has not subscribed to example; there is 1002"):
            meta.add_batch(1001, batch(4, 10))


def test_batches(make: Make) -> None:
    with make() as meta:
        meta.subscribe(1)
        assert meta.first_batch(1) is None
        assert meta.latest_batch(1) is None
        ids = [meta.add_batch(1, batch(4 * i, 4 * i + 4)) for i in range(3)]
        assert ids == [1, 2, 3]
        assert meta.first_batch(1) == (1, batch(0, 4))
        assert meta.latest_batch(1) == (3, batch(8, 12))
        assert meta.batches(1)[2] == batch(4, 8)
        with pytest.raises(MetaError, match="batch 2 of client 1 is not the first outstanding one: 1 is"):
            meta.ack_batch(1, 2)
        with pytest.raises(MetaError, match="client 1 has no batch 9: the first outstanding one is 1"):
            meta.rollback_batch(1, 9)
        assert meta.ack_batch(1, 1) == batch(0, 4)
        assert meta.rollback_batch(1, 2) == batch(4, 8)
        assert meta.clear_batches(1) == [batch(8, 12)]
        with pytest.raises(MetaError, match="client 1 has no batch 3: none is outstanding"):
            meta.ack_batch(1, 3)
        assert meta.add_batch(1, batch(12, 16), 10) == 10
        assert meta.add_batch(1, batch(16, 20)) == 11
        with pytest.raises(MetaError, match="batch 11 of client 1 cannot come after batch 11"):
            meta.add_batch(1, batch(20, 24), 11)


def test_ids_are_of_one_client(make: Make) -> None:
    with make() as meta:
        meta.subscribe(1)
        meta.subscribe(2)
        assert (meta.add_batch(1, batch(0, 4)), meta.add_batch(2, batch(0, 4))) == (1, 1)


def test_a_cursor_never_goes_back_by_itself(make: Make) -> None:
    with make() as meta:
        meta.subscribe(1)
        assert meta.cursor(1) is None
        meta.update_cursor(1, Cursor(at(100)))
        meta.update_cursor(1, Cursor(at(100)))
        meta.update_cursor(1, Cursor(at(4, file=8)))
        for earlier in (Cursor(at(100)), Cursor(at(3, file=8))):
            with pytest.raises(MetaError, match=r"is at binlog\.000008:4 and does not go back to .* by itself"):
                meta.update_cursor(1, earlier)
        meta.update_cursor(1, Cursor(at(4, file=1, epoch=1)))  # another log
        with pytest.raises(MetaError, match=r"is at binlog\.000001:4 \(epoch 1\)"):
            meta.update_cursor(1, Cursor(at(4, file=9)))
        meta.update_cursor(1, Cursor(at(4, file=1)), backwards=True)
        assert meta.cursor(1) == Cursor(at(4, file=1))


def test_capture_begins_at_the_lowest_cursor_of_those_who_are_there(make: Make) -> None:
    with make() as meta:
        assert meta.lowest_cursor() is None
        for client_id, offset in ((1, 300), (2, 200), (3, 100)):
            meta.subscribe(client_id)
            meta.update_cursor(client_id, Cursor(at(offset)))
        meta.unsubscribe(3)
        meta.subscribe(4)
        assert meta.lowest_cursor() == Cursor(at(200))
        meta.forget(2)
        assert meta.lowest_cursor() == Cursor(at(300))
        assert meta.cursor(3) == Cursor(at(100))  # it resumes there when it subscribes again
        meta.forget(3)
        assert meta.cursor(3) is None
