"""One call after another, and each start that succeeded has its end."""

import threading
from collections.abc import Iterator

import pytest

from penstock.coordinate import Fence
from penstock.coordinate.callbacks import Callbacks
from penstock.coordinate.canal import election_nodes
from penstock.coordinate.lease import Lease, LeaseGuard
from tests.support.fake_zookeeper import FakeClock


class Heard:
    def __init__(self) -> None:
        self.calls: list[object] = []
        self.may_start = threading.Event()
        self.may_start.set()
        self.error: Exception | None = None
        self.callbacks = Callbacks(
            election_nodes("shop"), self._start, self.calls.append, lambda _, error: self.calls.append(error)
        )
        self.callbacks.start()

    def _start(self, fence: Fence) -> None:
        self.calls.append(fence.epoch)
        assert self.may_start.wait(10)
        if self.error is not None:
            raise self.error


@pytest.fixture
def heard() -> Iterator[Heard]:
    heard = Heard()
    yield heard
    heard.may_start.set()
    heard.callbacks.close()


def test_an_end_waits_for_its_start(heard: Heard) -> None:
    heard.may_start.clear()
    heard.callbacks.begin(Fence(1, "", 0))
    heard.callbacks.end("lost")
    assert not heard.callbacks.is_idle()
    assert not heard.callbacks.wait(0.01)
    heard.may_start.set()
    assert heard.callbacks.wait(10)
    assert heard.calls == [1, "lost"]


def test_a_start_that_fails_has_no_end(heard: Heard) -> None:
    heard.error = ValueError("no")
    heard.callbacks.begin(Fence(1, "", 0))
    heard.callbacks.end("lost")
    assert heard.callbacks.wait(10)
    assert heard.calls == [1, heard.error]


def test_what_has_ended_meanwhile_is_not_started(heard: Heard) -> None:
    hold = LeaseGuard(Lease(FakeClock()))
    hold.end()
    heard.callbacks.begin(Fence(1, "", 0, hold))
    heard.callbacks.end("lost")
    assert heard.callbacks.wait(10)
    assert heard.calls == []
