"""Who runs a destination, with a real ZooKeeper and servers that are killed, stopped, cut off: never two at a time."""

import signal
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from penstock.coordinate.lease import boot_clock
from penstock.testing import free_port
from tests.services.zookeeper import ZooKeeper
from tests.support.election_processes import ElectionProcesses, Process, until
from tests.support.scenario.proxy import Network

pytestmark = [pytest.mark.waits, pytest.mark.timeout(240)]


def path_of(election: ElectionProcesses) -> str:
    return f"/otter/canal/destinations/{election.destination}/running"


def pair(election: ElectionProcesses, **first: Any) -> tuple[Process, Process]:
    """The first runs, the second stands by."""
    former = election.add(**first)
    until(lambda: former.runs(election.destination), election)
    other = election.add()
    until(lambda: other.known_owner(election.destination) == former.address, election)
    return former, other


def since(process: Process, election: ElectionProcesses, moment: float, kind: str = "running") -> float:
    """Until it said so, in seconds."""

    def said() -> list[float]:
        return [line["at"] for line in process.lines(kind, election.destination) if line["at"] > moment]

    until(lambda: bool(said()), election)
    return said()[0] - moment


def when_gone(canal: Any, path: str) -> Callable[[], float]:
    """When the node vanished."""
    times: list[float] = []
    gone = threading.Event()

    def look(_: object = None) -> None:
        if canal.exists(path, watch=look) is None:
            times.append(boot_clock())
            gone.set()

    look()

    def wait() -> float:
        assert gone.wait(60)
        return times[0]

    return wait


def test_a_server_that_is_killed(zookeeper: ZooKeeper, canal: Any) -> None:
    with ElectionProcesses(zookeeper.hosts, session_s=4.0) as election:
        first, second = pair(election)
        gone = when_gone(canal, path_of(election))
        killed = boot_clock()
        first.signal(signal.SIGKILL)
        took_s = since(second, election, killed)
        after_s = killed + took_s - gone()
        print(f"kill -9: runs again after {took_s:.2f} s, {after_s:.2f} s after the session ended")
        assert after_s < 3
        assert took_s < 7


def test_a_server_that_is_stopped_for_longer_than_its_session(zookeeper: ZooKeeper) -> None:
    """It continues as if nothing had happened, and must not."""
    with ElectionProcesses(zookeeper.hosts) as election:
        first, second = pair(election)
        stopped = boot_clock()
        first.signal(signal.SIGSTOP)
        took_s = since(second, election, stopped)
        resumed = boot_clock()  # before the signal: it may know at once
        first.signal(signal.SIGCONT)
        told_s = since(first, election, resumed, "stopped")
        print(f"SIGSTOP: the other runs after {took_s:.2f} s; SIGCONT: it knows after {told_s * 1000:.0f} ms")
        until(
            lambda: bool(first.lines("fenced", election.destination)) or not first.runs(election.destination), election
        )
        assert not [line for line in first.lines("wrote") if line["asked"] > resumed]
        second.signal(signal.SIGKILL)
        since(first, election, resumed)  # and it stands by as before


def test_a_server_that_is_stopped_now_and_then(zookeeper: ZooKeeper) -> None:
    """For about as long as its lease."""
    with ElectionProcesses(zookeeper.hosts, session_s=1.5) as election:
        pair(election)
        election.add()
        pause = threading.Event()
        for round_number in range(8):
            until(lambda: any(process.runs(election.destination) for process in election.processes), election)
            victim = next(
                (process for process in election.processes if process.runs(election.destination)), election.processes[0]
            )
            victim.signal(signal.SIGSTOP)
            pause.wait(0.9 + 0.15 * round_number)
            victim.signal(signal.SIGCONT)
        until(lambda: any(process.runs(election.destination) for process in election.processes), election)


@pytest.mark.parametrize("failure_kind", ["cut", "silent"])
def test_a_server_that_is_cut_off(zookeeper: ZooKeeper, failure_kind: str) -> None:
    with Network(zookeeper.port, seed=1) as network, ElectionProcesses(zookeeper.hosts) as election:
        first, second = pair(election, hosts=f"127.0.0.1:{network.port}")
        cut = boot_clock()
        if failure_kind == "cut":
            network.move_to(free_port())
        else:
            network.trouble, network.is_silent = (lambda _: 1), True
        told_s = since(first, election, cut, "stopped")
        took_s = since(second, election, cut)
        print(f"{failure_kind}: it stops after {told_s:.2f} s, the other runs after {took_s:.2f} s")
        assert told_s < took_s
        network.trouble, network.is_silent = None, False
        network.move_to(zookeeper.port)
        until(lambda: first.known_owner(election.destination) == second.address, election)
        second.tell(f"release {election.destination}")
        since(first, election, cut)


@pytest.mark.zookeeper
@pytest.mark.parametrize("down_s", [0.0, 1.0])
def test_a_zookeeper_that_restarts(private_server: Callable[..., Any], down_s: float) -> None:
    """Away for less than a lease nobody notices; else all stop, and one runs again."""
    server: ZooKeeper = private_server("zookeeper")
    with ElectionProcesses(server.hosts) as election:
        first, second = pair(election)
        down = boot_clock()
        server.kill()
        if down_s:
            since(first, election, down, "stopped")
            threading.Event().wait(down_s)
        server.start()
        up = boot_clock()
        until(lambda: first.runs(election.destination) or second.runs(election.destination), election)
        print(f"ZooKeeper away for {up - down:.1f} s: somebody runs {boot_clock() - up:.2f} s after that")
        for process in (first, second):
            expected = process.report().count("session lost") + 1
            until(
                lambda process=process, expected=expected: process.report().count("session opened") == expected,
                election,
            )
        until(lambda: first.runs(election.destination) != second.runs(election.destination), election)
        runs, other = (first, second) if first.runs(election.destination) else (second, first)
        killed = boot_clock()
        runs.signal(signal.SIGKILL)
        since(other, election, killed)


def test_a_release(zookeeper: ZooKeeper) -> None:
    with ElectionProcesses(zookeeper.hosts) as election:
        first, second = pair(election)
        for owner, other in ((first, second), (second, first)):
            asked = boot_clock()
            owner.tell(f"release {election.destination}")
            took_s = since(other, election, asked)
            print(f"release: the other runs after {took_s * 1000:.0f} ms")
            assert took_s < 1
            until(lambda owner=owner: bool(owner.lines("released")), election)
            assert owner.lines("released")[-1]["done"]
        asked = boot_clock()
        first.tell("close")
        took_s = since(second, election, asked)
        print(f"shutdown: the other runs after {took_s * 1000:.0f} ms")
        assert took_s < 1
        first.wait_closed()


def test_an_operator_pauses_it(zookeeper: ZooKeeper, canal: Any) -> None:
    with ElectionProcesses(zookeeper.hosts) as election:
        first, second = pair(election)
        active, _ = canal.get(path_of(election))
        assert active == b'{"active":true,"address":"10.0.0.1:11111"}'
        paused = boot_clock()
        canal.set(path_of(election), active.replace(b"true", b"false"))
        since(first, election, paused, "stopped")
        threading.Event().wait(1.5)  # longer than another server waits after a crash
        assert not first.runs(election.destination)
        assert not second.runs(election.destination)
        asked = boot_clock()
        canal.set(path_of(election), active)
        since(first, election, asked)
        asked = boot_clock()
        canal.delete(path_of(election))
        since(first, election, asked)


def test_a_start_that_fails_is_left_to_others(zookeeper: ZooKeeper) -> None:
    with ElectionProcesses(zookeeper.hosts) as election:
        first = election.add(fails=True)
        until(lambda: "it cannot start" in first.report(), election)
        second = election.add()
        until(lambda: second.runs(election.destination), election)
        first.tell(f"repair {election.destination}")
        killed = boot_clock()
        second.signal(signal.SIGKILL)
        since(first, election, killed)


def test_destinations_are_spread(zookeeper: ZooKeeper, canal: Any) -> None:
    """Over three servers; over two when one is killed; over three when it is back."""
    balance = {"settle_s": 1.0, "poll_s": 0.2}

    with ElectionProcesses(zookeeper.hosts, session_s=4.0, destinations=6) as election:

        def loads() -> list[int]:
            runs = Counter(
                process.address
                for process in election.processes
                for name in election.destinations
                if process.runs(name)
            )
            return sorted(runs.values())

        for _ in range(3):
            election.add(balance=balance)
        until(lambda: loads() == [2, 2, 2], election)
        assert {process.address for process in election.processes} <= set(canal.get_children("/otter/canal/cluster"))
        killed = boot_clock()
        election.processes[1].signal(signal.SIGKILL)
        until(lambda: loads() == [3, 3], election)
        print(f"one of three killed: the others have its share after {boot_clock() - killed:.1f} s")
        back = boot_clock()
        election.add(balance=balance, address=election.processes[1].address)
        until(lambda: loads() == [2, 2, 2], election)
        print(f"it is back: it has its share after {boot_clock() - back:.1f} s")
        starts = [len(process.lines("running")) for process in election.processes]
        threading.Event().wait(2.5)  # twice as long as a server waits before it moves one
        assert [len(process.lines("running")) for process in election.processes] == starts
