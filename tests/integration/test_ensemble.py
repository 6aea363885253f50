"""Two servers with three ZooKeepers: one of these may die, the leader too. Without a quorum nobody serves."""

import os
import secrets
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.testing import DatabaseServer, poll_until
from tests.services.zookeeper import Ensemble, EnsembleMember, ZooKeeperService
from tests.support.capture import execute
from tests.support.cluster import SESSION_S, Prober, check_one_at_a_time, probing, servers
from tests.support.cluster_work import OwnReader, Work
from tests.support.server_folders import VARIABLE

pytestmark = [pytest.mark.waits, pytest.mark.zookeeper, pytest.mark.timeout(300)]
LEASE_S = SESSION_S * 2 / 3
SHORT_S = 2.0
OVER_S = SESSION_S + 1  # after which ZooKeeper has ended a session of which it hears nothing: it looks every tick
SETTLED_S = 3.0  # for which a leader that was replaced may still believe that it leads: its syncLimit, and two ticks
# How long nobody may serve when a leader hangs: kazoo waits a third of a session for a host that hangs, once for the
# next session and once for the connection of the cursors; before that one, the server that had the destination is given
# a second to stop. The rest, a third of a session and two seconds, is for the quorum, the start and a busy machine.
TAKEOVER_S = 2 * SESSION_S / 3 + 1 + SESSION_S / 3 + 2


@pytest.fixture
def ensemble() -> Iterator[Ensemble]:
    """Three ZooKeepers whose data is where that of all servers is: on a disk, each commit would wait for it."""
    folder = Path(os.environ[VARIABLE]) / f"ensemble-{secrets.token_hex(6)}"
    ensemble = ZooKeeperService().ensemble(folder)
    try:
        ensemble.start()
        yield ensemble
    finally:
        ensemble.kill()
        shutil.rmtree(folder)


@pytest.fixture
def table(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = f"{database(mariadb)}.t"
    execute(mariadb, f"CREATE TABLE {name} (id INT PRIMARY KEY)")
    return name


def leader_of(ensemble: Ensemble) -> EnsembleMember:
    assert poll_until(lambda: ensemble.leader is not None, 30)
    leader = ensemble.leader
    assert leader is not None
    return leader


def longest_gap_s(probers: list[Prober], since: float) -> float:
    """For which nobody served."""
    last = since
    longest = 0.0
    for begin, end in sorted(span for prober in probers for span in prober.served if span[1] > since):
        longest, last = max(longest, begin - last), max(last, end)
    return longest


def test_each_of_three_is_killed(
    tmp_path: Path,
    mariadb: DatabaseServer,
    ensemble: Ensemble,
    table: str,
    destination: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The leader first; so one of them is the one to which the owner was connected."""
    pauses = list[str]()
    with (
        servers(tmp_path, mariadb, [ensemble.hosts] * 2, [destination]) as processes,
        probing(processes, destination) as probers,
    ):
        work = Work(mariadb, table, OwnReader(ensemble.hosts, destination, table))
        work.start()
        assert poll_until(lambda: len(work.read) > 100, 30), work.problem
        leader = leader_of(ensemble)
        for member in [leader, *(process for process in ensemble.members if process is not leader)]:
            mode, killed = member.mode, time.monotonic()
            member.kill()
            time.sleep(OVER_S)  # nobody's session may end of it
            read_s, served_s = work.longest_pause_s(since=killed), longest_gap_s(probers, killed)
            pauses.append(f"{mode}: none served for {served_s:.2f} s, none read for {read_s:.2f} s")
            assert max(read_s, served_s) < SHORT_S, pauses
            member.start()
        work.finish()
        logs = [process.log for process in processes]
    with capsys.disabled():
        print("", *pauses, sep="\nkilled ")
    work.check()
    assert check_one_at_a_time(probers) == 0
    assert not work.repeated()
    assert not any("session lost" in text for text in logs)


def test_a_leader_hangs_for_longer_than_a_session(
    tmp_path: Path,
    mariadb: DatabaseServer,
    ensemble: Ensemble,
    table: str,
    destination: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The others elect another; the old one still believes that it leads when it continues."""
    with (
        servers(tmp_path, mariadb, [ensemble.hosts] * 2, [destination]) as processes,
        probing(processes, destination) as probers,
    ):
        work = Work(mariadb, table, OwnReader(ensemble.hosts, destination, table))
        work.start()
        assert poll_until(lambda: len(work.read) > 100, 30), work.problem
        leader = leader_of(ensemble)
        assert leader.pid is not None
        stopped = time.monotonic()
        os.kill(leader.pid, signal.SIGSTOP)
        time.sleep(SESSION_S)
        assert poll_until(
            lambda: any(prober.has_served_since(stopped + SESSION_S) for prober in probers), 3 * SESSION_S
        )
        os.kill(leader.pid, signal.SIGCONT)  # only now: who serves does so without it
        time.sleep(SETTLED_S)
        work.finish()
        assert not any(process.has_ended for process in processes), (
            "a server whose session was lost takes part in the next election"
        )
    work.check()
    changes = check_one_at_a_time(probers)
    served_s, read_s = longest_gap_s(probers, stopped), work.longest_pause_s(since=stopped)
    with capsys.disabled():
        print(f"\nhung leader: {changes} changes, none served for {served_s:.2f} s, none read for {read_s:.2f} s")
    assert served_s < TAKEOVER_S


def test_without_a_quorum_nobody_serves(
    tmp_path: Path,
    mariadb: DatabaseServer,
    ensemble: Ensemble,
    table: str,
    destination: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with (
        servers(tmp_path, mariadb, [ensemble.hosts] * 2, [destination]) as processes,
        probing(processes, destination) as probers,
    ):
        work = Work(mariadb, table, OwnReader(ensemble.hosts, destination, table))
        work.start()
        assert poll_until(lambda: len(work.read) > 100, 30), work.problem
        leader = leader_of(ensemble)
        gone = [leader, next(process for process in ensemble.members if process is not leader)]
        lost = time.monotonic()
        for member in gone:
            member.kill()
        time.sleep(OVER_S)
        served = [span[0] - lost for process in probers for span in process.served]
        ensemble.start()
        back = time.monotonic()
        assert poll_until(lambda: work.reads_after(back), 60), work.problem
        time.sleep(1.5)  # longer than another server waits before it takes over
        work.finish()
    again = min(span[0] for process in probers for span in process.served if span[0] > lost + OVER_S) - back
    read_s = min(when for when, _ in work.read if when > back) - back
    with capsys.disabled():
        print(f"\nno quorum: the owner stops after {max(served):.2f} s of {SESSION_S:g} s; back: it is served after")
        print(f"{again:.2f} s, read after {read_s:.2f} s, {len(work.repeated())} rows twice")
    work.check()
    check_one_at_a_time(probers)
    assert max(served) < LEASE_S + 0.5
    assert again < SESSION_S + 3
