"""A source dies, moves, or resets its log: capture resumes, in a later epoch, without a gap."""

import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pydantic import SecretStr

from penstock.capture.gap import Gap
from penstock.config import InstanceSettings
from penstock.errors import ConfigurationError, PositionLostError, SchemaError, SourceConnectionError
from penstock.instance import Instance, InstanceState
from penstock.model import Position
from penstock.store import BatchSize, Start
from penstock.testing import DatabaseServer
from tests.support.capture import changes_until, end_of, execute, is_purged, poll, source_of
from tests.support.client_process import ids_in
from tests.support.following import QUICK, dump_threads, fill, following, is_there, row_ids, seen_after, table
from tests.support.replication import has, pair, start_applying, status, stop_applying
from tests.support.scenario.proxy import Network

KINDS = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")
pytestmark = [getattr(pytest.mark, kind) for kind in KINDS]


def entered(instance: Instance) -> list[InstanceState]:
    return [step.state for step in instance.states.history]


@pytest.mark.parametrize("kind", ["mariadb", "mariadb11", "mysql80", "mysql9"])
def test_the_standby_is_followed_by_gtids_when_the_source_dies(private_server: Callable[..., Any], kind: str) -> None:
    first, second = pair(private_server, kind)
    table(first)
    with following(first, second) as instance:
        start = instance.store.latest
        fill(first, range(20))
        before = changes_until(instance, "replicated.t", 20, start)
        at = instance.store.latest
        assert poll(lambda: is_there(second, 19))
        first.kill()
        fill(second, range(20, 30))
        assert poll(lambda: instance.store.latest.epoch == 1)
        after = changes_until(instance, "replicated.t", 10, at)
        assert row_ids(before + after) == list(range(30)), "nothing is missing, and nothing came twice"
        sequences = [row["_seq"] for row in before + after]
        assert sequences == sorted(set(sequences))
        assert instance.store.latest.epoch == 1
        assert instance.state is InstanceState.FOLLOWING
        assert instance.counters.switches == 1
        assert InstanceState.SWITCHING in entered(instance)
        assert instance.status()["source"] == f"{second.host}:{second.port}"
        again = changes_until(instance, "replicated.t", 30, start)
        assert row_ids(again) == list(range(30)), "who reads from before the switch reads on over it"


@pytest.mark.parametrize("kind", ["mariadb", "mysql9"])
def test_after_a_restart_the_standby_is_followed(private_server: Callable[..., Any], kind: str, tmp_path: Path) -> None:
    """By the GTIDs of cursors that are of the log before."""
    first, second = pair(private_server, kind)
    table(first)
    with following(first, second, data_dir=tmp_path) as instance:
        for client in (1, 2):
            instance.clients.subscribe(client, "", Start.latest())
        fill(first, range(20))
        assert poll(lambda: instance.store.latest.timestamp > 0 and is_there(second, 19))
        seen = {client: client_ids(instance, client, 5 * client) for client in (1, 2)}
        first.kill()
        assert poll(lambda: instance.store.latest.epoch == 1)
    fill(second, range(20, 30))
    with following(first, second, data_dir=tmp_path) as instance:
        assert instance.source_log.source.port == second.port
        for client in (1, 2):
            again = client_ids(instance, client, 29)
            assert again == list(range(again[0], 30))
            assert again[0] in (seen[client][-1], seen[client][-1] + 1), "at most a transaction that was not all acked"
    with following(first, second, data_dir=tmp_path) as instance:
        assert instance.store.latest.epoch == 1, "nothing has changed since"


def client_ids(instance: Instance, client: int, last: int) -> list[int]:
    """Ids of rows up to one, whole transactions, each acked."""
    ids: list[int] = []

    def has_last() -> bool:
        batch = instance.clients.get(client, BatchSize(4), 0.2)
        if batch is not None:
            ids.extend(ids_in(batch[1]))
            instance.clients.ack(client, batch[0])
        return last in ids

    assert poll(has_last), ids[-5:]
    return ids


@pytest.mark.parametrize("kind", ["mysql57", "mysql80"])
def test_without_gtids_it_is_found_by_time_and_some_comes_twice(private_server: Callable[..., Any], kind: str) -> None:
    first, second = pair(private_server, kind, {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}, by_gtids=False)
    table(first)
    with following(first, second) as instance:
        start = instance.store.latest
        fill(first, range(20))
        before = row_ids(changes_until(instance, "replicated.t", 20, start))
        at = instance.store.latest
        assert poll(lambda: is_there(second, 19))
        first.kill()
        fill(second, range(20, 30))
        assert poll(lambda: instance.store.latest.epoch == 1)
        after = list[int]()

        def has_last() -> bool:
            after[:] = row_ids(changes_until(instance, "replicated.t", len(after) + 1, at))
            return after[-1] == 29

        assert poll(has_last)
        assert set(before + after) == set(range(30))
        assert after == list(range(after[0], 30)), "in order, and all of the window"


@pytest.mark.parametrize("kind", ["mariadb", "mysql9"])
def test_a_standby_that_is_behind_is_waited_for(private_server: Callable[..., Any], kind: str) -> None:
    first, second = pair(private_server, kind)
    table(first)
    with following(first, second, failover=QUICK.model_copy(update={"window_s": 30})) as instance:
        start = instance.store.latest
        fill(first, range(5))
        assert poll(lambda: is_there(second, 4))
        stop_applying(second, kind)
        fill(first, range(5, 10))
        assert row_ids(changes_until(instance, "replicated.t", 10, start)) == list(range(10))
        at = instance.store.latest
        assert poll(lambda: has_received(second, kind, at.offset))
        first.kill()
        assert poll(lambda: "yet, which is captured already" in instance.states.current.reason)
        assert instance.store.latest.epoch == 0
        start_applying(second, kind)
        assert poll(lambda: instance.store.latest.epoch == 1)
        fill(second, range(10, 15))
        assert row_ids(changes_until(instance, "replicated.t", 5, at)) == list(range(10, 15))


def has_received(replica: DatabaseServer, kind: str, offset: int) -> bool:
    replica_status = status(replica, kind)
    return int(replica_status.get("Read_Source_Log_Pos") or replica_status.get("Read_Master_Log_Pos")) >= offset


@pytest.mark.parametrize("kind", ["mariadb", "mysql80"])
def test_a_log_that_was_reset_is_not_taken_for_the_old_one(
    private_server: Callable[..., Any], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its files have the names, and soon the sizes, of those that were."""
    server: DatabaseServer = private_server(kind)
    execute(server, "CREATE DATABASE replicated")
    table(server)
    with following(server) as instance:
        start = instance.store.latest
        fill(server, range(5))
        assert row_ids(changes_until(instance, "replicated.t", 5, start)) == list(range(5))
        reset(server, kind)
        fill(server, range(5, 30))
        assert poll(lambda: instance.state is InstanceState.FAILED)
        assert isinstance(instance.failure, PositionLostError)
        assert "was reset" in str(instance.failure)
    with following(server, on_purged="latest") as instance, caplog.at_level(logging.ERROR):
        fill(server, range(30, 35))
        assert poll(lambda: instance.state is InstanceState.FOLLOWING)
        reset(server, kind)
        assert poll(lambda: instance.store.latest.epoch == 1)
        at = instance.store.latest
        assert "changes skipped destination=" in caplog.text
        fill(server, range(40, 45))
        assert row_ids(changes_until(instance, "replicated.t", 5, at)) == list(range(40, 45))


def reset(server: DatabaseServer, kind: str) -> None:
    time.sleep(1.1)  # a file is told from another of its name by the second in which it began
    if kind == "mysql9":
        execute(server, "RESET BINARY LOGS AND GTIDS")
        return
    assert poll(lambda: is_reset(server))


def is_reset(server: DatabaseServer) -> bool:
    """MariaDB refuses while somebody reads its log."""
    execute(server, *(f"KILL {thread}" for thread in dump_threads(server)))
    try:
        execute(server, "RESET MASTER")
    except pymysql.err.MySQLError:
        return False
    return True


@pytest.mark.parametrize("policy", ["stop", "latest", "repair"])
@pytest.mark.parametrize("kind", ["mariadb", "mysql80"])
def test_what_was_purged_is_met_by_policy(private_server: Callable[..., Any], kind: str, policy: str) -> None:
    server: DatabaseServer = private_server(kind)
    execute(server, "CREATE DATABASE replicated")
    table(server)
    gaps = list[Gap]()
    settings = InstanceSettings(source=source_of(server, heartbeat_s=0.5), on_purged=policy)  # pyright: ignore[reportArgumentType]
    instance = Instance(settings, repair=gaps.append)
    instance.start()
    try:
        start = instance.store.latest
        fill(server, range(5))
        assert row_ids(changes_until(instance, "replicated.t", 5, start)) == list(range(5))
        instance.pause("a test purges")
        assert poll(lambda: instance.state is InstanceState.PAUSED)
        fill(server, range(5, 10))
        execute(server, "FLUSH BINARY LOGS")
        fill(server, range(10, 15))
        execute(server, "FLUSH BINARY LOGS")
        assert poll(lambda: is_purged(server))
        at = instance.store.latest
        instance.resume()
        if policy == "stop":
            assert poll(lambda: instance.state is InstanceState.FAILED)
            text = str(instance.failure)
            assert f"no longer has what follows {at}" in text
            assert "missing are files 1 to 2" in text
            assert "GTIDs" in text
            assert "the time from 20" in text
            return
        assert poll(lambda: instance.store.latest.file_number > at.file_number)
        fill(server, range(15, 20))
        assert row_ids(changes_until(instance, "replicated.t", 5, at))[-5:] == list(range(15, 20))
        assert len(gaps) == (policy == "repair")
    finally:
        instance.stop()


@pytest.mark.parametrize("kind", ["mariadb", "mysql80"])
def test_files_without_transactions_may_go(private_server: Callable[..., Any], kind: str) -> None:
    """GTIDs prove that nothing is missing."""
    server: DatabaseServer = private_server(kind)
    execute(server, "CREATE DATABASE replicated")
    table(server)
    with following(server) as instance:
        start = instance.store.latest
        fill(server, range(5))
        assert row_ids(changes_until(instance, "replicated.t", 5, start)) == list(range(5))
        at = instance.store.latest
        instance.pause()
        assert poll(lambda: instance.state is InstanceState.PAUSED)
        execute(server, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
        assert poll(lambda: is_purged(server))
        instance.resume()
        fill(server, range(5, 10))
        assert row_ids(changes_until(instance, "replicated.t", 5, at)) == list(range(5, 10))


@pytest.mark.parametrize("kind", ["mariadb", "mysql80"])
def test_an_address_that_moved_is_noticed(private_server: Callable[..., Any], kind: str) -> None:
    """Behind it is another server now; its log has a file of the same name."""
    first, second = pair(private_server, kind)
    table(first)
    with Network(first.port, 1) as address:
        behind = source_of(first, heartbeat_s=0.5).model_copy(
            update={"port": address.port, "user": "mover", "password": SecretStr("let-me-in")}
        )
        execute(
            first,
            "CREATE USER mover IDENTIFIED BY 'let-me-in'",
            "GRANT ALL ON *.* TO mover" if kind.startswith("mariadb") else "GRANT ALL PRIVILEGES ON *.* TO mover",
        )
        instance = Instance(InstanceSettings(source=behind, failover=QUICK))
        instance.start()
        try:
            start = instance.store.latest
            fill(first, range(10))
            before = changes_until(instance, "replicated.t", 10, start)
            at = instance.store.latest
            assert poll(lambda: is_there(second, 9))
            address.move_to(second.port)
            fill(second, range(10, 20))
            assert poll(lambda: instance.store.latest.epoch == 1)
            after = changes_until(instance, "replicated.t", 10, at)
            assert row_ids(before + after) == list(range(20))
            assert InstanceState.SWITCHING in entered(instance)
        finally:
            instance.stop()


@pytest.mark.parametrize("kind", ["mariadb"])
def test_it_starts_with_the_standby_when_the_source_is_down(private_server: Callable[..., Any], kind: str) -> None:
    first, second = pair(private_server, kind)
    table(first)
    assert poll(lambda: has(second, "SHOW TABLES FROM replicated LIKE 't'"))
    first.kill()
    with following(first, second) as instance:
        start = instance.store.latest
        fill(second, range(3))
        assert row_ids(changes_until(instance, "replicated.t", 3, start)) == [0, 1, 2]
        assert instance.source_log.source.port == second.port
    second.kill()
    with pytest.raises(SourceConnectionError, match=f"cannot reach a database at {first.host}:{first.port}"):
        Instance(instance.settings).start()


@pytest.mark.parametrize("kind", ["mariadb"])
def test_there_is_a_floor_between_switches(private_server: Callable[..., Any], kind: str) -> None:
    first, second = pair(private_server, kind)
    table(first)
    with following(first, second, failover=QUICK.model_copy(update={"floor_s": 600})) as instance:
        fill(first, range(3))
        assert poll(lambda: is_there(second, 2) and instance.store.latest.timestamp > 0)
        first.kill()
        assert poll(lambda: instance.store.latest.epoch == 1)
        first.start()
        second.kill()
        assert poll(lambda: instance.state is InstanceState.RECONNECTING)
        assert not poll(lambda: instance.counters.switches > 1, 3)
        second.start()
        assert poll(lambda: instance.state is InstanceState.FOLLOWING)


@pytest.mark.parametrize("kind", ["mariadb", "mysql80"])
def test_the_position_moves_also_when_nothing_is_wanted(
    private_server: Callable[..., Any], kind: str, tmp_path: Path
) -> None:
    """A quiet table's cursor must not age out of the log."""
    server: DatabaseServer = private_server(kind)
    execute(server, "CREATE DATABASE replicated")
    table(server)
    execute(server, "CREATE TABLE replicated.quiet (id INT PRIMARY KEY)")
    wanted = {"allow": ["replicated.quiet"]}
    with following(server, filter=wanted, data_dir=tmp_path) as instance:
        instance.clients.subscribe(1, "", Start.latest())
        before = instance.store.latest
        fill(server, range(10))
        assert poll(lambda: instance.store.latest.gtids == end_of(server).gtids)
        size = instance.counters.events
        assert instance.counters.kept_events < size / 2
        execute(server, "FLUSH BINARY LOGS")
        assert poll(lambda: instance.store.latest.file_number > before.file_number)

        def has_acked_all() -> bool:
            got = instance.clients.get(1, BatchSize(100), 0.2)
            if got is not None:
                assert not any(block.tables for block in got[1].blocks), "no row of another table comes"
                instance.clients.ack(1, got[0])
            return instance.store.acked.file_number > before.file_number

        assert poll(has_acked_all)
        assert poll(lambda: is_purged(server))
        execute(server, "INSERT INTO replicated.quiet VALUES (1)")
        assert poll(lambda: instance.clients.get(1, BatchSize(100), 0.2) is not None)
    with following(server, filter=wanted, data_dir=tmp_path) as instance:
        assert instance.state is InstanceState.FOLLOWING


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rotates", [True, False], ids=["rotated", "in one file"])
def test_a_log_that_is_reset_under_a_live_reader(private_server: Callable[..., Any], kind: str, rotates: bool) -> None:
    """The server continues to send from the file it has deleted, and then from the next of the new ones."""
    server: DatabaseServer = private_server(kind)
    execute(server, "CREATE DATABASE replicated")
    table(server)
    with following(server) as instance:
        start = instance.store.latest
        fill(server, range(10))
        assert row_ids(changes_until(instance, "replicated.t", 10, start)) == list(range(10))
        watchdog: Any = instance.components.watchdog
        time.sleep(1.1)  # as in `reset`
        execute(server, "RESET BINARY LOGS AND GTIDS" if kind == "mysql9" else "RESET MASTER")
        fill(server, range(10, 11))
        if rotates:
            execute(server, "FLUSH BINARY LOGS")
            fill(server, range(11, 13))
        else:
            watchdog.check_end()
        assert poll(lambda: instance.state is InstanceState.FAILED)
        assert "was reset" in str(instance.failure)
        assert instance.store.latest.epoch == 0


@pytest.mark.parametrize("kind", ["mariadb", "mysql57"])
def test_a_standby_that_does_not_log_what_it_replicates_is_refused(
    private_server: Callable[..., Any], kind: str
) -> None:
    first: DatabaseServer = private_server(kind)
    second: DatabaseServer = private_server(kind, options={"server_id": 2, "log_slave_updates": "OFF"})
    with pytest.raises(ConfigurationError, match="log_slave_updates is OFF: needed is ON"), following(first, second):
        pass


@pytest.mark.parametrize("kind", ["mariadb"])
def test_a_standby_that_went_its_own_way_is_followed_by_time(
    private_server: Callable[..., Any], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It never got the last transactions of the source, and has others under their numbers."""
    first, second = pair(private_server, kind)
    table(first)
    with following(first, second, failover=QUICK.model_copy(update={"window_s": 4})) as instance:
        start = instance.store.latest
        fill(first, range(5))
        assert poll(lambda: is_there(second, 4))
        execute(second, "STOP SLAVE")
        fill(first, range(5, 10))
        assert row_ids(changes_until(instance, "replicated.t", 10, start)) == list(range(10))
        at = instance.store.latest
        first.kill()
        fill(second, range(100, 120))
        assert poll(lambda: instance.store.latest.epoch == 1)
        assert poll(lambda: seen_after(instance, at) >= set(range(100, 120)))
        assert "compare the target with the source" in caplog.text


@pytest.mark.parametrize("kind", ["mysql57"])
def test_a_time_in_the_future_is_not_trusted(private_server: Callable[..., Any], kind: str) -> None:
    first, second = pair(private_server, kind, {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}, by_gtids=False)
    table(first)
    with following(first, second) as instance:
        start = instance.store.latest
        execute(first, "SET TIMESTAMP = UNIX_TIMESTAMP() + 86400", "INSERT INTO replicated.t VALUES (1, 'late')")
        assert row_ids(changes_until(instance, "replicated.t", 1, start)) == [1]
        at = instance.store.latest
        assert poll(lambda: is_there(second, 1))
        first.kill()
        fill(second, range(10, 15))
        assert poll(lambda: instance.store.latest.epoch == 1)
        assert poll(lambda: seen_after(instance, at) >= set(range(10, 15)))


@pytest.mark.parametrize("kind", ["mariadb", "mysql9"])
@pytest.mark.parametrize("store", ["memory", "file", "mixed"])
def test_a_client_far_behind_loses_nothing_by_a_restart_after_a_switch(
    private_server: Callable[..., Any], kind: str, store: str, tmp_path: Path
) -> None:
    """Nothing of the new log has come into the store before it stops."""
    first, second = pair(private_server, kind)
    table(first)
    settings: dict[str, Any] = {"data_dir": tmp_path, "store": {"kind": store}}
    with following(first, second, **settings) as instance:
        for client in (1, 2):
            instance.clients.subscribe(client, "", Start.latest())
        fill(first, range(20))
        client_ids(instance, 1, 19)
        seen = client_ids(instance, 2, 1)
        assert poll(lambda: is_there(second, 19))
        first.kill()
        assert poll(lambda: instance.source_log.epoch == 1)
    with following(first, second, **settings) as instance:
        fill(second, range(20, 25))
        again = client_ids(instance, 2, 24)
        assert again == list(range(again[0], 25))
        assert again[0] <= seen[-1] + 1
        assert client_ids(instance, 1, 24)[-5:] == list(range(20, 25))


SWAP = "ALTER TABLE replicated.t DROP COLUMN a, ADD COLUMN a INT AFTER b"


def rows_of(instance: Instance, start: Position, count: int) -> list[tuple[int, int, int]]:
    return [(row["id"], row["a"], row["b"]) for row in changes_until(instance, "replicated.t", count, start)]


def test_statements_that_ran_while_it_was_down_are_known(private_server: Callable[..., Any], tmp_path: Path) -> None:
    """Its log does not name columns, and it begins behind them."""
    server: DatabaseServer = private_server("mysql57")
    execute(server, "CREATE DATABASE replicated", "CREATE TABLE replicated.t (id INT PRIMARY KEY, a INT, b INT)")
    with following(server, data_dir=tmp_path) as instance:
        start = instance.store.latest
        execute(server, "INSERT INTO replicated.t (id, a, b) VALUES (1, 10, 20)")
        assert rows_of(instance, start, 1) == [(1, 10, 20)]
    execute(server, SWAP, "INSERT INTO replicated.t (id, a, b) VALUES (2, 10, 20)", "FLUSH BINARY LOGS")
    with following(server, data_dir=tmp_path) as instance:
        start = instance.store.latest
        execute(server, "INSERT INTO replicated.t (id, a, b) VALUES (3, 10, 20)")
        assert rows_of(instance, start, 1) == [(3, 10, 20)]
        assert instance.status()["stopped_tables"] == {}


def test_names_are_right_on_both_sides_of_a_switch(private_server: Callable[..., Any], tmp_path: Path) -> None:
    """A cursor of the log before it, and a statement after the cursor, in a log that does not name columns."""
    first, second = pair(private_server, "mysql57")
    execute(first, "CREATE TABLE replicated.t (id INT PRIMARY KEY, a INT, b INT)")
    with following(first, second, data_dir=tmp_path) as instance:
        instance.clients.subscribe(1, "", Start.latest())
        start = instance.store.latest
        execute(first, "INSERT INTO replicated.t (id, a, b) VALUES (1, 10, 20)", SWAP)
        execute(first, "INSERT INTO replicated.t (id, a, b) VALUES (2, 10, 20)")
        assert poll(lambda: is_there(second, 2) and instance.store.latest.gtids == end_of(first).gtids)
        first.kill()
        assert poll(lambda: instance.store.latest.epoch == 1)
        at = instance.store.latest
        execute(second, "INSERT INTO replicated.t (id, a, b) VALUES (3, 10, 20)")
        assert rows_of(instance, at, 1) == [(3, 10, 20)], "the statements before the switch count on"
        assert rows_of(instance, start, 3) == [(1, 10, 20), (2, 10, 20), (3, 10, 20)], "from the store"
    with following(first, second, data_dir=tmp_path) as instance:
        execute(second, "INSERT INTO replicated.t (id, a, b) VALUES (4, 10, 20)")
        assert poll(lambda: instance.store.latest.gtids == end_of(second).gtids)
        rows = list[tuple[int, int, int]]()
        with contextlib.suppress(SchemaError):
            rows += rows_of(instance, instance.store.first, 4)
        assert all(row[1:] == (10, 20) for row in rows), "right, or not known"


@pytest.mark.parametrize("kind", ["mariadb", "mysql80"])
def test_numbers_of_a_log_that_was_reset_are_not_those_of_the_old(
    private_server: Callable[..., Any], kind: str, tmp_path: Path
) -> None:
    """A cursor of the old log has GTIDs that the new one has given to other transactions."""
    server: DatabaseServer = private_server(kind)
    execute(server, "CREATE DATABASE replicated")
    table(server)
    settings: dict[str, Any] = {"on_purged": "latest", "data_dir": tmp_path}
    with following(server, **settings) as instance:
        instance.clients.subscribe(1, "", Start.latest())
        fill(server, range(5))
        client_ids(instance, 1, 4)
        reset(server, kind)
        fill(server, range(10, 30))
        assert poll(lambda: instance.store.latest.epoch == 1)
    with following(server, **settings) as instance:
        assert client_ids(instance, 1, 29) == list(range(10, 30))
