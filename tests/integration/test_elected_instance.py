"""Two servers that elect which of them runs an instance: it resumes at the cursor, and the older one writes nothing."""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from penstock.coordinate import Election, Fence, SessionManager
from penstock.coordinate.canal import election_nodes
from penstock.errors import FencedError
from penstock.instance import Instance, InstanceState
from penstock.store import BatchSize, Start
from penstock.testing import poll_until
from tests.services.zookeeper import ZooKeeper
from tests.support.folder_instance import ids_in, settings_of
from tests.support.shop_log import PRODUCT, written
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

pytestmark = pytest.mark.waits
CLIENT = 1001


class Server:
    def __init__(self, session: SessionManager, address: str, settings: Any) -> None:
        self.session, self.settings = session, settings
        self.instance: Instance | None = None
        self.epochs: list[int] = []
        self.running = Election(session, election_nodes(settings.destination), address, self._start, self._stop)

    def _start(self, fence: Fence) -> None:
        instance = Instance(self.settings, jitter=lambda: 0)
        instance.start(fence)
        self.epochs.append(fence.epoch)
        self.instance = instance

    def _stop(self, _: str) -> None:
        assert self.instance is not None
        self.instance.stop()

    def get(self) -> tuple[int, list[int]]:
        assert self.instance is not None
        self.instance.clients.subscribe(CLIENT, "shop.product", Start.stored())
        got = self.instance.clients.get(CLIENT, BatchSize(3), 30)
        assert got is not None
        return got[0], [number for block in got[1].blocks for number in ids_in(block)]


@pytest.fixture(params=["zookeeper", "period-mixed"])
def servers(request: pytest.FixtureRequest, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[list[Server]]:
    log = LogWriter().open()
    for number in (1, 2, 3):
        log.begin()
        log.map(7, PRODUCT)
        log.rows(INSERT, 7, PRODUCT, [[number, "x", None]])
        log.commit()
    written(log, tmp_path)
    options = {"destination": f"d{secrets.token_hex(4)}", "zookeeper": zookeeper.hosts, "meta": {"kind": request.param}}
    settings = settings_of(tmp_path, **options)
    with ExitStack() as stack:

        def server(address: str) -> Server:
            session = SessionManager(zookeeper.hosts, session_s=3.0)
            stack.callback(session.close)
            session.start()
            made = Server(session, address, settings)
            stack.callback(made.running.close)
            made.running.start()
            return made

        first = server("a:1")
        assert poll_until(lambda: first.instance is not None, 60)
        second = server("b:1")
        assert poll_until(lambda: second.running.owner == "a:1", 60)
        yield [first, second]


def test_the_other_resumes_where_the_first_was(servers: list[Server]) -> None:
    first, second = servers
    batch_id, rows = first.get()
    assert first.instance is not None
    first.instance.clients.ack(CLIENT, batch_id)
    assert first.running.release()
    assert poll_until(lambda: second.instance is not None, 60)
    assert (first.epochs, second.epochs) == ([1], [2])  # one claim for each election
    assert first.instance.state is InstanceState.STOPPED
    assert rows
    assert second.get()[1][0] == rows[-1] + 1  # what was acked, is kept at the stop at the latest


def test_one_whose_lease_is_out_acks_nothing(servers: list[Server]) -> None:
    first, _ = servers
    batch_id, _ = first.get()
    assert first.instance is not None
    fence = first.running.fence
    assert fence is not None
    assert fence.guard is not None
    fence.guard.end()  # as if the clock had said so
    clients = first.instance.clients
    if first.instance.settings.meta_kind == "zookeeper":
        with pytest.raises(FencedError, match="has ended, another may run by now"):
            clients.ack(CLIENT, batch_id)
    else:
        clients.ack(CLIENT, batch_id)
    assert poll_until(lambda: first.instance is not None and first.instance.state is InstanceState.FAILED, 30)
    assert isinstance(first.instance.failure, FencedError)


def test_the_server_that_takes_over_knows_what_was_asked_of_snapshots(servers: list[Server]) -> None:
    first, second = servers
    assert first.instance is not None
    snapshots = first.instance.snapshots
    snapshots.pause()
    number = snapshots.request_resnapshot(PRODUCT.name)
    wanted = {"paused": True, "tables": {}, "again": {str(PRODUCT.name): number}}
    assert snapshots.report() == wanted
    assert first.running.release()
    assert poll_until(lambda: second.instance is not None, 60)
    assert second.instance is not None
    assert second.instance.snapshots.report() == wanted
