"""Drivers of one pipeline, as threads with a ZooKeeper without a wire: one works, the others stand by."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from penstock.coordinate import ElectionNodes, Fence
from penstock.coordinate.canal import RunningNode
from penstock.errors import ConfigurationError, FencedError, PenstockError
from penstock.spark.sync_election import DriverCandidate, SyncElection
from penstock.spark.sync_output import DriverStatus
from penstock.spark.sync_progress import SyncReport
from penstock.testing import poll_until
from tests.support.fake_zookeeper import FakeClock, FakeSessions, FakeZooKeeper

NODES = ElectionNodes.of_pipeline("orders")


class Sessions(FakeSessions):
    """Sessions that a driver starts and closes."""

    problem = ""

    def start(self) -> None: ...

    def close(self) -> None:
        if self.current is not None:
            self.zookeeper.expire(self.lose())


class Driver:
    """A driver in a thread; its work waits until it is told to stop, or raises what the test says."""

    def __init__(self, zookeeper: FakeZooKeeper, address: str) -> None:
        self.sessions = Sessions(zookeeper)
        self.said: list[str] = []
        self.works: list[int] = []  # terms in which it works now, at most one
        self.ended: int | None = None
        self.error: PenstockError | None = None
        self.failure: PenstockError | None = None  # with which it has ended
        self.can_stop = threading.Event()
        self.can_stop.set()
        candidate = DriverCandidate("zk1:2181", "orders", address, session_s=0.1)
        self.election = SyncElection(candidate, self, lambda: self.ended, self.sessions)  # type: ignore[arg-type]
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.election.run(self._work)
        except PenstockError as error:
            self.failure = error

    def _work(self, fence: Fence, stopped: threading.Event) -> None:
        self.works.append(fence.epoch)
        try:
            while not stopped.wait(0.01):
                if self.error is not None:
                    raise self.error
            assert self.can_stop.wait(30)
        finally:
            self.works.clear()

    def tell(self, text: str) -> None: ...

    def show_load(self, report: object) -> None: ...

    def report(self, report: SyncReport) -> None: ...

    def enter(self, status: DriverStatus) -> None:
        self.said.append(str(status))

    def stop(self) -> None:
        self.can_stop.set()
        self.election.stop()
        self.thread.join(30)
        assert not self.thread.is_alive()


NewDriver = Callable[[str], Driver]


@pytest.fixture
def zookeeper() -> FakeZooKeeper:
    return FakeZooKeeper(FakeClock())


@pytest.fixture
def new_driver(zookeeper: FakeZooKeeper) -> Iterator[NewDriver]:
    with ExitStack() as stack:

        def make(address: str) -> Driver:
            driver = Driver(zookeeper, address)
            stack.callback(driver.stop)
            return driver

        yield make


@pytest.fixture
def pair(new_driver: NewDriver) -> tuple[Driver, Driver]:
    """The first works, the second stands by."""
    first = new_driver("a:1")
    assert poll_until(lambda: first.works == [1], 30)
    second = new_driver("b:2")
    assert poll_until(lambda: bool(second.said), 30)
    return first, second


def test_the_second_says_who_runs_and_takes_over_when_the_first_is_stopped(pair: tuple[Driver, Driver]) -> None:
    first, second = pair
    assert first.said == ["running the pipeline 'orders' as a:1, term 1"]
    assert second.said == ["standing by: a:1 runs the pipeline 'orders'"]
    assert not second.works
    first.stop()
    assert first.failure is None
    assert poll_until(lambda: second.works == [2], 30)
    assert second.said[1:] == ["running the pipeline 'orders' as b:2, term 2"]


def test_what_stops_slowly_is_waited_for(pair: tuple[Driver, Driver]) -> None:
    first, second = pair
    first.can_stop.clear()
    first.election.stop()
    assert not poll_until(lambda: bool(second.works), 0.5)
    assert first.works == [1]
    first.can_stop.set()
    assert poll_until(lambda: second.works == [2], 30)
    assert not first.works


def test_a_session_that_is_lost_ends_the_work_and_another_may_begin(
    pair: tuple[Driver, Driver], zookeeper: FakeZooKeeper
) -> None:
    first, second = pair
    first.can_stop.clear()  # it is slow to stop, and writes nothing
    lost = first.sessions.lose()
    first.sessions.problem = "the last one was lost"
    zookeeper.expire(lost)
    assert poll_until(lambda: second.works == [2], 30)
    first.can_stop.set()
    assert poll_until(
        lambda: "there is no session with ZooKeeper at zk1:2181: the last one was lost" in first.said[-1], 30
    )
    first.sessions.problem = ""
    first.sessions.come_back()
    assert poll_until(lambda: first.said[-1] == "standing by: b:2 runs the pipeline 'orders'", 30)
    second.stop()
    assert poll_until(lambda: first.works == [3], 30)


def test_a_process_is_not_elected_again_before_its_work_has_ended(
    new_driver: NewDriver, zookeeper: FakeZooKeeper
) -> None:
    driver = new_driver("a:1")
    assert poll_until(lambda: driver.works == [1], 30)
    driver.can_stop.clear()
    zookeeper.expire(driver.sessions.lose())
    driver.sessions.come_back()
    assert not poll_until(lambda: NODES.running in zookeeper.nodes, 1.0)  # another one could have it
    driver.can_stop.set()
    assert poll_until(lambda: driver.works == [2], 30)


def test_work_that_fails_after_its_term_has_ended_ends_nothing(
    pair: tuple[Driver, Driver], zookeeper: FakeZooKeeper
) -> None:
    first, second = pair
    session = first.sessions.current
    assert session is not None
    session.lease.end()  # by its own clock: nobody has been told
    first.error = ConfigurationError("the index is closed")
    assert poll_until(lambda: not first.works, 30)
    first.error = None
    zookeeper.expire(first.sessions.lose())
    assert poll_until(lambda: second.works == [2], 30)
    assert first.thread.is_alive()


@pytest.mark.parametrize(
    "error", [ConfigurationError("a person must help"), FencedError("a later term, from elsewhere")]
)
def test_work_that_fails_in_its_term_ends_the_process_and_another_tries(
    pair: tuple[Driver, Driver], error: PenstockError
) -> None:
    first, second = pair
    first.error = error
    assert poll_until(lambda: not first.thread.is_alive(), 30)
    assert first.failure is error
    assert poll_until(lambda: second.works == [2], 30)


def test_a_process_that_is_known_to_have_ended_is_not_waited_for(
    pair: tuple[Driver, Driver], zookeeper: FakeZooKeeper
) -> None:
    first, second = pair
    session = first.sessions.current
    assert session is not None
    session.fails = True  # as if killed: ZooKeeper does not know yet
    second.ended = 7  # of another election
    assert not poll_until(lambda: bool(second.works), 0.5)
    second.ended = 1
    assert poll_until(lambda: second.works == [2], 30)
    assert NODES.member("a:1") not in zookeeper.nodes


def test_an_operator_pauses_it(pair: tuple[Driver, Driver], zookeeper: FakeZooKeeper) -> None:
    first, second = pair
    zookeeper.put(NODES.running, RunningNode("a:1", is_active=False).to_bytes())
    assert poll_until(lambda: not first.works, 30)
    assert poll_until(lambda: "was paused by active=false in /penstock/pipelines/orders/running" in first.said[-1], 30)
    assert not second.works
    zookeeper.put(NODES.running, RunningNode("a:1").to_bytes())
    assert poll_until(lambda: first.works == [2], 30)


def test_a_process_that_is_stopped_while_it_stands_by_just_ends(pair: tuple[Driver, Driver]) -> None:
    first, second = pair
    second.stop()
    assert second.failure is None
    assert first.works == [1]
