"""What a log has lost is never passed over: each of these once was."""

import re
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql
import pytest

from penstock.binlog.events.layout import Entry
from penstock.errors import PenstockError, PositionLostError
from penstock.instance import Instance, InstanceState
from penstock.store import BatchSize, Start
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute, poll
from tests.support.folder_instance import folder_instance, running
from tests.support.following import QUICK, dump_threads, fill, following, is_there, seen_after, table
from tests.support.replication import pair
from tests.support.scenario.server_log import log_files

XID = 16
NO_GTIDS = {"gtid_mode": "OFF", "enforce_gtid_consistency": "ON"}
Servers = Callable[..., Any]


def filled(server: DatabaseServer, *parts: range) -> None:
    """Each in a log file of its own."""
    execute(server, "CREATE DATABASE replicated")
    table(server)
    for ids in parts:
        fill(server, ids)
        execute(server, "FLUSH BINARY LOGS")


def ends_of_transactions(path: Path) -> list[tuple[int, int]]:
    """First byte of each XID, and the one after it."""
    data, at, ends = path.read_bytes(), 4, list[tuple[int, int]]()
    while at < len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        ends += [(at, at + size)] if data[at + 4] == XID else []
        at += size
    return ends


def copy(server: DatabaseServer, folder: Path) -> list[Path]:
    folder.mkdir(exist_ok=True)
    return [Path(shutil.copyfile(path, folder / path.name)) for path in log_files(server.data)]


def taken(instance: Instance, client: int = 1) -> list[tuple[int, str, int, int]]:
    """Epoch, file, offset and entry of all that the client gets, which it acks."""
    events = list[tuple[int, str, int, int]]()
    while (got := instance.clients.get(client, BatchSize(1000), 0.5)) is not None:
        for block in got[1].blocks:
            pairs = zip(block.column("position").tolist(), block.column("entry").tolist(), strict=True)
            events += [(block.epoch, block.file, at, entry) for at, entry in pairs]
        instance.clients.ack(client, got[0])
    return events


@pytest.mark.parametrize("kind", ["mariadb", "mariadb11", "mysql9"])
@pytest.mark.parametrize("where", [0, 1], ids=["before the end of a transaction", "after it"])
def test_a_copy_that_is_not_complete_is_waited_for(
    private_server: Servers, kind: str, where: int, tmp_path: Path
) -> None:
    server: DatabaseServer = private_server(kind)
    filled(server, range(10), range(10, 15))
    end = end_of(server)  # before the copy: MariaDB adds a checkpoint to the last file when it likes
    folder = tmp_path / "copy"
    victim = next(path for path in copy(server, folder) if len(ends_of_transactions(path)) >= 9)
    whole = victim.read_bytes()
    victim.write_bytes(whole[: ends_of_transactions(victim)[4][where]])
    with running(folder_instance(folder, start="earliest")) as instance:
        instance.clients.subscribe(1, "", Start.stored())
        first = instance.store.first
        assert poll(lambda: "is not all there" in instance.states.current.reason), instance.states.current
        assert instance.store.latest.file == victim.name
        victim.write_bytes(whole)
        assert poll(lambda: instance.store.latest >= end)
        assert seen_after(instance, first) == set(range(15))
        ends = [event for event in taken(instance) if event[3] == Entry.END]
        assert len(ends) == len({*ends}) >= 15


@pytest.mark.parametrize("kind", ["mysql57", "mysql9"])
def test_files_may_come_in_another_order(private_server: Servers, kind: str, tmp_path: Path) -> None:
    server: DatabaseServer = private_server(kind, options=NO_GTIDS if kind == "mysql57" else {})
    filled(server, range(5), range(10, 15), range(20, 25))
    folder = tmp_path / "copy"
    files = copy(server, folder)
    late = [path for path in files if ends_of_transactions(path)][1]
    late.rename(tmp_path / "late")
    with running(folder_instance(folder, start="earliest")) as instance:
        first = instance.store.first
        assert poll(lambda: seen_after(instance, first) >= set(range(5)))
        time.sleep(1)
        assert seen_after(instance, first) == set(range(5))
        (tmp_path / "late").rename(late)
        assert poll(lambda: seen_after(instance, first) == {*range(5), *range(10, 15), *range(20, 25)})


def test_a_hole_is_not_jumped_without_gtids(private_server: Servers, tmp_path: Path) -> None:
    server: DatabaseServer = private_server("mysql57", options=NO_GTIDS)
    filled(server, range(5), range(10, 15), range(20, 25))
    folder = tmp_path / "copy"
    [path for path in copy(server, folder) if ends_of_transactions(path)][1].unlink()
    source = {"path": str(folder), "poll_s": 0.01, "missing_file_timeout_s": 0.2}
    with running(folder_instance(folder, start="earliest", source=source)) as instance:
        assert poll(lambda: instance.failure is not None)
        assert "has no binlog" in str(instance.failure)
        assert "compare the data" in str(instance.failure)


def test_a_last_file_that_is_away_for_a_moment_comes_once(private_server: Servers, tmp_path: Path) -> None:
    server: DatabaseServer = private_server("mysql9")
    filled(server, range(10))
    fill(server, range(10, 15))
    folder = tmp_path / "copy"
    last = copy(server, folder)[-1]
    with running(folder_instance(folder, start="earliest", on_purged="latest")) as instance:
        instance.clients.subscribe(1, "", Start.stored())
        end = end_of(server)
        assert poll(lambda: instance.store.latest >= end)
        last.rename(tmp_path / "away")
        assert poll(lambda: "waiting for what is missing" in instance.states.current.reason)
        (tmp_path / "away").rename(last)
        assert poll(lambda: instance.state is InstanceState.FOLLOWING)
        events = taken(instance)
        assert len(events) == len({*events})
        assert {event[0] for event in events} == {0}


@pytest.mark.parametrize("kind", ["mysql57", "mysql80"])
def test_gtids_that_begin_later_prove_nothing(private_server: Servers, kind: str) -> None:
    server: DatabaseServer = private_server(kind, options=NO_GTIDS)
    filled(server, range(0))
    with following(server) as instance:
        fill(server, range(5))
        end = end_of(server)
        assert poll(lambda: instance.store.latest >= end)
        instance.pause()
        assert poll(lambda: instance.state is InstanceState.PAUSED)
        fill(server, range(5, 10))
        execute(server, *(f"SET GLOBAL gtid_mode = {mode}" for mode in ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")))
        execute(server, "FLUSH BINARY LOGS")
        execute(server, f"PURGE BINARY LOGS TO '{end_of(server).file}'")
        fill(server, range(20, 23))
        instance.resume()
        assert poll(lambda: instance.failure is not None)
        assert isinstance(instance.failure, PositionLostError)
        assert "no longer has what follows" in str(instance.failure)


def age_s(instance: Instance) -> float:
    """Return how long ago the last captured transaction was committed, by a clock of whole seconds."""
    return time.time() - instance.store.latest.timestamp


def test_a_standby_whose_log_begins_later_is_not_followed_by_time(private_server: Servers) -> None:
    first, second = pair(private_server, "mysql57", NO_GTIDS, by_gtids=False)
    table(first)
    with following(first, second, failover=QUICK.model_copy(update={"window_s": 1})) as instance:
        fill(first, range(5))
        end = end_of(first)
        assert poll(lambda: instance.store.latest >= end)
        instance.pause()
        assert poll(lambda: instance.state is InstanceState.PAUSED)
        assert poll(lambda: age_s(instance) > 2), "what comes now is outside of the window"
        fill(first, range(5, 10))
        assert poll(lambda: is_there(second, 9))
        execute(second, "RESET MASTER")
        first.kill()
        fill(second, range(20, 23))
        instance.resume()
        assert poll(lambda: instance.failure is not None), instance.states.current
        assert "what came between the two is gone" in str(instance.failure)


@pytest.mark.parametrize("kind", ["mysql80", "mariadb"])
@pytest.mark.parametrize("policy", ["stop", "latest"])
def test_a_log_that_lost_its_end_is_met_by_policy(
    private_server: Servers, kind: str, policy: str, tmp_path: Path
) -> None:
    """A crash takes the last transaction, and its GTID is given again."""
    server: DatabaseServer = private_server(kind, options={"sync_binlog": 0})
    filled(server, range(0))
    with following(server, data_dir=tmp_path, on_purged=policy) as instance:
        start = instance.store.latest
        fill(server, range(20))
        end = end_of(server)
        assert poll(lambda: instance.store.latest >= end)
        instance.pause()
        server.kill()
        path = log_files(server.data)[-1]
        path.write_bytes(path.read_bytes()[: ends_of_transactions(path)[-2][1]])
        server.start()
        fill(server, range(50, 53))
        instance.resume()
        if policy == "stop":
            assert poll(lambda: instance.failure is not None)
            assert isinstance(instance.failure, PositionLostError)
            assert "compare the data" in str(instance.failure)
        else:
            assert poll(lambda: instance.store.latest.epoch == 1)
            assert poll(lambda: seen_after(instance, instance.store.first_for(instance.store.latest)) >= {50, 51, 52})
            assert instance.store.latest > start


def test_a_part_of_a_transaction_that_a_crash_left_is_taken_back(private_server: Servers, tmp_path: Path) -> None:
    """MySQL trims its log; MariaDB's replicas roll such a part back."""
    server: DatabaseServer = private_server("mariadb", options={"sync_binlog": 0})
    filled(server, range(0))
    with following(server, data_dir=tmp_path) as instance:
        instance.clients.subscribe(1, "", Start.latest())
        fill(server, range(3))
        end = end_of(server)
        assert poll(lambda: instance.store.latest >= end)
        taken(instance)
    fill(server, range(3, 5))
    server.kill()
    path = log_files(server.data)[-1]
    path.write_bytes(path.read_bytes()[: ends_of_transactions(path)[-1][0]])
    server.start()
    fill(server, range(10, 12))
    with following(server, data_dir=tmp_path) as instance:
        end = end_of(server)
        assert poll(lambda: instance.store.latest >= end)
        entries = [entry for *_, entry in taken(instance) if entry in (Entry.BEGIN, Entry.ROWS, Entry.END)]
        assert entries == [Entry.BEGIN, Entry.ROWS, Entry.END] * 3


def test_a_domain_that_was_deleted_is_no_loss(private_server: Servers) -> None:
    server: DatabaseServer = private_server("mariadb")
    filled(server, range(0))
    with following(server) as instance:
        start = instance.store.latest
        execute(server, "SET SESSION gtid_domain_id = 7", "INSERT INTO replicated.t VALUES (1, 'a')")
        execute(server, "FLUSH BINARY LOGS")
        fill(server, range(5, 7))
        last = end_of(server).file
        assert poll(lambda: instance.store.latest.file == last)
        assert poll(lambda: is_purged_to(server, last), 20)
        execute(server, "FLUSH BINARY LOGS DELETE_DOMAIN_ID = (7)")
        execute(server, *(f"KILL {thread}" for thread in dump_threads(server)))
        fill(server, range(7, 9))
        assert poll(lambda: seen_after(instance, start) == {1, 5, 6, 7, 8}), instance.states.current


def is_purged_to(server: DatabaseServer, file: str) -> bool:
    execute(server, f"PURGE BINARY LOGS TO '{file}'")
    return log_files(server.data)[0].name == file


def test_a_time_before_the_log_is_named(private_server: Servers, caplog: pytest.LogCaptureFixture) -> None:
    server: DatabaseServer = private_server("mysql80")
    filled(server, range(3))
    with following(server, start="-2h"):
        assert "start is before the oldest binlog" in caplog.text
        assert "oldest=binlog.000001:4" in caplog.text


def test_a_source_that_came_back_during_a_pause_is_kept(
    private_server: Servers, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pair(private_server, "mysql80")
    table(first)
    with following(first, second) as instance:
        fill(first, range(3))
        end = end_of(first)
        assert poll(lambda: instance.store.latest >= end)
        instance.pause()
        assert poll(lambda: instance.state is InstanceState.PAUSED)
        first.kill()
        assert poll(lambda: f"failures={QUICK.retries} " in caplog.text), "the source was not taken for dead"
        first.start()
        source, answered = instance.components.log.binlog_source, threading.Event()
        ask = source.check_answers
        monkeypatch.setattr(source, "check_answers", lambda *given: (ask(*given), answered.set()))
        assert answered.wait(30), "nobody asked whether the source is there again"
        instance.resume()
        fill(first, range(3, 5))
        end = end_of(first)
        assert poll(lambda: instance.store.latest >= end)
        assert instance.counters.switches == 0


def test_an_instance_that_runs_is_not_started_again(private_server: Servers, tmp_path: Path) -> None:
    server: DatabaseServer = private_server("mysql80")
    filled(server, range(0))
    with following(server, data_dir=tmp_path) as instance:
        with pytest.raises(PenstockError, match="runs already"):
            instance.start()
        fill(server, range(2))
        end = end_of(server)
        assert poll(lambda: instance.store.latest >= end)
        assert instance.state is InstanceState.FOLLOWING
        assert poll(lambda: age_s(instance) > 1)
        assert instance.status()["behind_s"] == 0, "nothing more is there"
    instance.start()
    instance.stop()


@pytest.mark.parametrize("kind", ["mariadb", "mariadb11", "mysql57", "mysql80", "mysql9"])
def test_an_incident_stops_it_and_names_the_position_after_it(private_server: Servers, kind: str) -> None:
    """Rows of MyISAM that do not fit into the cache of the log are in the table, and not in the log."""
    server: DatabaseServer = private_server(kind, options={"max_binlog_stmt_cache_size": 4096})
    filled(server, range(0))
    execute(server, "CREATE TABLE replicated.m (id INT, v VARCHAR(255)) ENGINE = MyISAM")
    with following(server) as instance:
        fill(server, range(3))
        many = ", ".join(f"({number}, REPEAT('x', 200))" for number in range(300))
        with pytest.raises(pymysql.err.MySQLError, match="max_binlog_stmt_cache_size"):
            execute(server, f"INSERT INTO replicated.m VALUES {many}")
        fill(server, range(10, 13))
        assert poll(lambda: instance.failure is not None)
        after = re.search(r"INCIDENT: .* compare the data, then start after it, at (\S+?);", str(instance.failure))
        assert after is not None, instance.failure
    with following(server, start=after[1]) as instance:
        first = instance.store.first
        assert poll(lambda: seen_after(instance, first) == {10, 11, 12})
