"""The election of one destination, step by step, with a clock that the test sets."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from penstock.coordinate import Election, ElectionSettings, ElectionState, Fence, claim
from penstock.coordinate.canal import election_nodes, fencing_epoch_path, members_path, running_path
from penstock.errors import FencedError
from tests.support.fake_zookeeper import LEASE_S, SESSION_S, FakeClock, FakeSessions, FakeZooKeeper

RUNNING = running_path("shop")


class Server:
    """One server, without the thread of its election."""

    def __init__(self, zookeeper: FakeZooKeeper, address: str, **settings: float) -> None:
        self.session = FakeSessions(zookeeper)
        self.told: list[str] = []
        self.error: Exception | None = None
        self.held_when_stopped: list[bool] = []
        options = {"settings": ElectionSettings(**settings), "clock": zookeeper.clock}
        self.running = Election(self.session, election_nodes("shop"), address, self._started, self._stopped, **options)
        self.running._callbacks.start()
        self.session.listen(self.running)

    def _started(self, fence: Fence) -> None:
        if self.error is not None:
            raise self.error
        self.told.append(f"running {fence.epoch}")

    def _stopped(self, reason: str) -> None:
        self.held_when_stopped.append(self.running.is_held())
        self.told.append(f"stopped: {reason}")

    def step(self) -> float:
        """Until it wants to wait."""
        for _ in range(20):
            wait_s = self.running.step()
            assert self.running._callbacks.wait(5)
            if wait_s > 0 and not self.running._woken.is_set():
                return wait_s
            self.running._woken.clear()
        pytest.fail("it never rests")

    def pass_to(self, seconds: float) -> None:
        self.session.zookeeper.advance(seconds)
        self.step()

    @property
    def state(self) -> ElectionState:
        return self.running.state


NewServer = Callable[..., Server]


@pytest.fixture
def zookeeper() -> FakeZooKeeper:
    return FakeZooKeeper(FakeClock())


@pytest.fixture
def new_server(zookeeper: FakeZooKeeper) -> Iterator[NewServer]:
    with ExitStack() as stack:

        def make(address: str, **settings: float) -> Server:
            server = Server(zookeeper, address, **settings)
            stack.callback(server.running.close)
            return server

        yield make


@pytest.fixture
def pair(new_server: NewServer) -> tuple[Server, Server]:
    """The first runs, the second stands by."""
    first, second = new_server("a:1"), new_server("b:1")
    first.step()
    second.step()
    assert (first.state, second.state) == (ElectionState.RUNNING, ElectionState.STANDBY)
    return first, second


def test_the_first_is_elected(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    first, second = pair
    assert (first.told, second.told) == (["running 1"], [])
    assert json.loads(zookeeper.nodes[RUNNING].value) == {"active": True, "address": "a:1"}
    assert {f"{members_path('shop')}/a:1", f"{members_path('shop')}/b:1"} <= zookeeper.nodes.keys()
    assert first.running.is_held()
    assert not second.running.is_held()
    assert second.running.owner == "a:1"


def test_a_crash(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    """The others wait a little, for one that would come back."""
    first, second = pair
    session = first.session.current
    assert session is not None
    zookeeper.expire(session.session_id)
    assert second.step() == pytest.approx(1.0)
    assert second.state is ElectionState.STANDBY
    second.pass_to(1.0)
    assert (second.state, second.told) == (ElectionState.RUNNING, ["running 2"])


def test_the_lease_ends_by_the_clock(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    """Before anybody has been told."""
    first, _ = pair
    fence = first.running.fence
    assert fence is not None
    assert fence.check == (fencing_epoch_path("shop"), fence.version)
    zookeeper.clock.now += LEASE_S
    assert not first.running.is_held()
    with pytest.raises(FencedError, match="elected as number 1 has ended"):
        _ = fence.check
    first.session.lose()
    assert first.running._callbacks.wait(5)
    assert first.state is ElectionState.LOST
    assert first.told == ["running 1", "stopped: the session with ZooKeeper was lost"]
    assert first.held_when_stopped == [False]


def test_a_session_that_is_lost_and_another(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    """What the last session left behind is removed, and it runs again at once: as a new election."""
    first, second = pair
    old = first.running.fence
    first.session.lose()
    first.step()
    assert first.state is ElectionState.LOST
    first.session.come_back()
    first.step()
    assert first.told[2:] == ["running 2"]
    assert old is not None
    assert not old.is_held()  # the new session is nothing to it
    assert first.session.current is not None
    assert zookeeper.nodes[f"{members_path('shop')}/a:1"].owner == first.session.current.session_id
    second.step()
    assert second.state is ElectionState.STANDBY


def test_the_other_runs_when_the_first_is_back(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    first, second = pair
    zookeeper.expire(first.session.lose())
    second.step()
    second.pass_to(1.0)
    assert second.state is ElectionState.RUNNING
    first.session.come_back()
    first.step()
    assert (first.state, first.running.owner) == (ElectionState.STANDBY, "b:1")


def test_a_release(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    """It stops first, and may keep its cursors meanwhile; the others need not wait."""
    first, second = pair
    assert not first.running.release(timeout_s=0)
    first.step()
    assert first.told == ["running 1", "stopped: by hand"]
    assert first.held_when_stopped == [True]
    assert not first.running.is_held()
    assert json.loads(zookeeper.nodes[election_nodes("shop").term].value) == {
        "epoch": 1,
        "address": "a:1",
        "session": "0x1",
        "released": True,
    }
    assert first.step() == pytest.approx(10.0)  # there is another
    second.step()
    assert (second.state, second.told) == (ElectionState.RUNNING, ["running 2"])
    first.step()
    assert first.state is ElectionState.STANDBY


def test_a_release_that_nobody_takes(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    first, second = pair
    first.running.release(timeout_s=0)
    first.step()
    first.pass_to(9.9)
    assert first.state is ElectionState.STANDBY
    first.pass_to(0.2)
    assert first.state is ElectionState.RUNNING
    first.running.release(timeout_s=0)
    assert second.session.current is not None
    zookeeper.expire(second.session.current.session_id)
    first.step()
    assert first.told[-1] == "running 3"  # there is nobody to leave it to


def test_a_release_is_not_taken_for_one_later(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    """A crash after an old release is a crash."""
    first, second = pair
    first.running.release(timeout_s=0)
    first.step()
    second.step()
    first.step()
    assert second.session.current is not None
    zookeeper.expire(second.session.lose())
    assert first.step() == pytest.approx(1.0)


def test_a_release_of_what_is_not_ours(pair: tuple[Server, Server]) -> None:
    assert not pair[1].running.release()


def test_a_release_whose_answer_is_lost(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    first, _ = pair
    first.running.release(timeout_s=0)
    zookeeper.put(RUNNING, None)
    assert first.step() == pytest.approx(10.0)
    assert first.state is ElectionState.STANDBY


def test_a_start_that_fails(zookeeper: FakeZooKeeper, new_server: NewServer) -> None:
    """The node is given up, for others; and we wait longer each time."""
    server = new_server("a:1")
    server.error = ValueError("no source")
    for pause_s in (1, 2, 4, 8, 16, 30, 30):
        assert server.step() == pytest.approx(pause_s)
        assert RUNNING not in zookeeper.nodes
        assert server.told == []
        zookeeper.advance(pause_s)
    server.error = None
    server.step()
    assert server.state is ElectionState.RUNNING
    zookeeper.advance(100)
    server.running.fail(ValueError("it broke"))
    assert server.step() == pytest.approx(1)
    assert server.told[1:] == ["stopped: it failed: it broke"]


def test_others_take_what_fails_with_us(new_server: NewServer) -> None:
    first, second = new_server("a:1"), new_server("b:1")
    first.error = ValueError("no source")
    second.session.current, kept = None, second.session.current
    second.step()
    second.session.current = kept
    second.running._membership.join(kept)
    first.step()
    second.step()
    assert second.state is ElectionState.RUNNING


def test_a_pause(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    """It stops, and keeps the node; nobody serves until it is active again."""
    first, second = pair
    paused = zookeeper.nodes[RUNNING].value.replace(b"true", b"false")
    zookeeper.put(RUNNING, paused)
    first.step()
    second.step()
    assert (first.state, second.state) == (ElectionState.PAUSED, ElectionState.STANDBY)
    assert first.told == ["running 1", "stopped: active=false was written into the running node"]
    assert first.held_when_stopped == [True]
    assert not first.running.is_held()
    first.pass_to(100)
    assert first.state is ElectionState.PAUSED
    zookeeper.put(RUNNING, paused.replace(b"false", b"true"))
    first.step()
    assert (first.state, first.told[2:]) == (ElectionState.RUNNING, ["running 2"])


def test_a_pause_that_is_removed(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    first, _ = pair
    zookeeper.put(RUNNING, b'{"active":false,"address":"a:1"}')
    first.step()
    zookeeper.put(RUNNING, None)
    first.step()
    assert first.told[2:] == ["running 2"]


def test_a_pause_that_is_released(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    first, second = pair
    zookeeper.put(RUNNING, b'{"active":false,"address":"a:1"}')
    first.step()
    second.step()
    first.running.release(timeout_s=0)
    first.step()
    second.step()
    assert (first.state, second.state) == (ElectionState.STANDBY, ElectionState.RUNNING)


def test_a_node_that_is_removed(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    """Somebody else may have it already: it stops, and tries again."""
    first, second = pair
    zookeeper.put(RUNNING, None)
    second.step()
    first.step()
    assert first.told == ["running 1", "stopped: the running node was removed", "running 2"]
    assert first.held_when_stopped == [False]


def test_a_node_that_is_removed_from_one_that_does_not_hear_of_it(
    zookeeper: FakeZooKeeper, pair: tuple[Server, Server]
) -> None:
    """Its session lives, so it may think that it runs: the others wait until that is over."""
    first, second = pair
    assert first.session.current is not None
    first.session.current.fails = True
    zookeeper.put(RUNNING, None)
    assert second.step() == pytest.approx(5.0)
    second.pass_to(3.9)
    assert (first.running.is_held(), second.running.is_held()) == (True, False)
    second.pass_to(2.0)
    assert not first.running.is_held()
    second.pass_to(SESSION_S - 5.8)
    assert second.state is ElectionState.RUNNING


def test_a_node_that_is_removed_while_the_stop_hangs(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    """Then it is for the others."""
    first, second = pair
    may_stop = threading.Event()
    first.running._callbacks._on_stopped = lambda _: assert_true(may_stop.wait(10))
    zookeeper.put(RUNNING, None)
    first.running.step()
    assert not first.running.is_held()
    second.step()
    assert second.state is ElectionState.STANDBY
    zookeeper.advance(1.1)
    first.running.step()
    second.step()
    may_stop.set()
    assert (second.state, second.told) == (ElectionState.RUNNING, ["running 2"])


def assert_true(value: object) -> None:
    assert value


def test_a_node_of_another(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    first, _ = pair
    zookeeper.put(RUNNING, None)
    zookeeper.put(RUNNING, b'{"active":true,"address":"c:1"}', 99)
    first.step()
    assert first.told == ["running 1", "stopped: c:1 runs it"]
    assert (first.state, first.running.owner) == (ElectionState.STANDBY, "c:1")


def test_a_node_that_cannot_be_read(zookeeper: FakeZooKeeper, new_server: NewServer) -> None:
    server = new_server("a:1")
    zookeeper.put(RUNNING, b"\xff?", 99)
    server.step()
    assert server.state is ElectionState.STANDBY
    zookeeper.put(RUNNING, None)
    server.step()
    server.pass_to(1.0)
    assert server.state is ElectionState.RUNNING


def test_our_node_of_before(zookeeper: FakeZooKeeper, new_server: NewServer) -> None:
    """Another process had our address, and was killed: we are the former owner."""
    zookeeper.put(RUNNING, b'{"active":true,"address":"a:1"}', 99)
    server = new_server("a:1")
    server.step()
    assert server.state is ElectionState.STANDBY
    zookeeper.put(RUNNING, None)
    server.step()
    assert server.state is ElectionState.RUNNING


def test_somebody_claims_the_epoch(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    """As a command does that changes cursors: what runs is stopped, and begins again with them."""
    first, _ = pair
    claim(zookeeper.begin(), fencing_epoch_path("shop"))
    assert first.step() == pytest.approx(1.0)
    assert first.told[1:] == ["stopped: somebody else has claimed the epoch"]
    first.pass_to(1.0)
    assert first.told[2:] == ["running 3"]


def test_an_epoch_that_is_no_number(zookeeper: FakeZooKeeper, new_server: NewServer) -> None:
    """The node is not kept by one who cannot run."""
    zookeeper.put(fencing_epoch_path("shop"), b"what?", 0)
    server = new_server("a:1")
    server.step()
    assert RUNNING not in zookeeper.nodes
    assert server.told == []


def test_a_cut_connection_is_looked_at_again(zookeeper: FakeZooKeeper, pair: tuple[Server, Server]) -> None:
    first, _ = pair
    assert first.session.current is not None
    first.session.current.fails = True
    assert first.step() < 1
    assert first.running.is_held()  # for as long as the lease lasts
    first.session.current.fails = False
    first.step()
    assert first.told == ["running 1"]


def test_who_runs_much_waits_for_others(zookeeper: FakeZooKeeper, new_server: NewServer) -> None:
    server = new_server("a:1")
    server.running.balancing_delay = lambda: 0.4
    assert server.step() == pytest.approx(0.4)
    server.pass_to(0.4)
    assert server.state is ElectionState.RUNNING
    zookeeper.put(RUNNING, None)
    server.step()
    assert server.told[-1] == "running 2"  # who had it does not wait
