"""A lease: once over, over."""

import pytest

from penstock.coordinate import Fence
from penstock.coordinate.lease import Lease, LeaseGuard, boot_clock
from penstock.errors import FencedError
from tests.support.fake_zookeeper import FakeClock


def test_it_ends_by_the_clock() -> None:
    clock = FakeClock()
    lease = Lease(clock)
    lease.renew(clock() + 4)
    clock.now += 3.9
    assert lease.is_held()
    assert lease.left_s == pytest.approx(0.1)
    lease.renew(clock() + 4)
    clock.now += 3.9
    assert lease.is_held()
    clock.now += 0.1
    assert not lease.is_held()
    assert lease.left_s == 0


def test_a_late_answer_does_not_bring_it_back() -> None:
    clock = FakeClock()
    lease = Lease(clock)
    lease.renew(clock() + 4)
    clock.now += 4
    lease.renew(clock() + 4)  # nobody had asked meanwhile
    assert not lease.is_held()
    clock.now -= 4
    assert not lease.is_held()


def test_an_older_answer_does_not_shorten_it() -> None:
    clock = FakeClock()
    lease = Lease(clock)
    lease.renew(clock() + 4)
    lease.renew(clock() + 2)
    assert lease.until == clock() + 4


def test_a_hold_ends_before_its_lease_or_with_it() -> None:
    clock = FakeClock()
    lease = Lease(clock)
    lease.renew(clock() + 4)
    first, other = LeaseGuard(lease), LeaseGuard(lease)
    first.end()
    assert (first.is_held(), other.is_held()) == (False, True)
    lease.end()
    assert not other.is_held()


def test_a_fence_without_a_hold_is_held() -> None:
    assert Fence(1, "/epoch", 3).check == ("/epoch", 3)


def test_a_fence_refuses_when_its_hold_has_ended() -> None:
    hold = LeaseGuard(Lease(FakeClock()))
    fence = Fence(1, "/epoch", 3, hold)
    assert fence.is_held()
    hold.end()
    with pytest.raises(FencedError):
        fence.require()


def test_the_clock_runs_while_the_machine_sleeps() -> None:
    assert 0 < boot_clock() <= boot_clock()
