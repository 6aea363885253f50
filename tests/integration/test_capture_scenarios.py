"""Whatever happens to a source and to the way to it: what was captured is the server's own log, byte by byte.

Each test lets something happen while transactions of every kind are written, sees that it did happen, and compares all
that a client got with the server's files from start to end: no gap, no duplicate.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import pymysql
import pytest

from penstock.testing import DatabaseServer
from tests.support.campaign import short_and_long
from tests.support.capture import end_of, execute, poll, source_of
from tests.support.following import dump_threads
from tests.support.scenario.captured import Scenario
from tests.support.scenario.proxy import Network
from tests.support.scenario.server_log import copy_by_tool, keep_closed, log_files
from tests.support.scenario.workload import BIG_ROWS

DEADLOCK = 1213

SOURCES = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")
WITH_PAYLOADS = ("mysql9",)  # from 8.0.20 on
WITH_TLS = ("mysql80", "mysql9")  # by themselves
QUICK = {"heartbeat_s": 0.25}  # after a second of silence a source is taken for dead
OPTIONS = {"max_allowed_packet": "64M"}
SAFE = {"sync_binlog": 1, "innodb_flush_log_at_trx_commit": 1}
# Every source and every store; a campaign has each with each.
SHORT_PAIRS = {"mariadb": "memory", "mariadb11": "file", "mysql57": "mixed", "mysql80": "memory", "mysql9": "file"}
SOURCES_AND_STORES = [
    pytest.param(kind, store, marks=[] if SHORT_PAIRS[kind] == store else [pytest.mark.campaign])
    for kind in SOURCES
    for store in ("memory", "file", "mixed")
]

Begin = Callable[..., AbstractContextManager[Scenario]]


@pytest.fixture(scope="module")
def sources(start_shared_server: Callable[..., Any]) -> Callable[[str], DatabaseServer]:
    """Of these tests alone, but shared by them."""
    started: dict[str, DatabaseServer] = {}

    def of(kind: str) -> DatabaseServer:
        if kind not in started:
            started[kind] = start_shared_server(kind, options=OPTIONS)
        return started[kind]

    return of


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest, sources: Callable[[str], DatabaseServer]) -> DatabaseServer:
    return sources(request.param)


@pytest.fixture
def captured(tmp_path: Path) -> Begin:
    seed = random.randrange(1 << 32)
    print(f"the seed of the workload is {seed}")

    def begin(server: DatabaseServer, **settings: Any) -> AbstractContextManager[Scenario]:
        folder = tmp_path / "log"
        folder.mkdir()
        settings = {"source": source_of(server, **QUICK)} | settings
        return Scenario(server, folder, seed, settings).run()

    return begin


@pytest.fixture
def network(server: DatabaseServer) -> Iterator[Network]:
    with Network(server.port, random.randrange(1 << 32)) as network:
        yield network


def through(network: Network, server: DatabaseServer, **changes: Any) -> dict[str, Any]:
    source = source_of(server, **(QUICK | {"tls": "disabled"} | changes))
    return {"source": source.model_copy(update={"port": network.port})}


def break_off(run: Scenario) -> None:
    """The server ends the connection, and there is another one."""
    before = run.connections
    for number in dump_threads(run.server):
        with suppress(pymysql.err.OperationalError):  # it has ended by itself
            execute(run.server, f"KILL {number}")
    assert poll(lambda: run.connections > before)


def test_nothing_special_happens(server: DatabaseServer, captured: Begin, tmp_path: Path) -> None:
    """And the server's own program has the same files."""
    with captured(server) as run:
        run.workload.write(500)
        execute(server, "INSERT INTO d.a (n, x) VALUES (0, REPEAT('more than one packet ', 900000))")
        run.workload.write(200)
    assert run.connections == 1
    copies = tmp_path / "tool"
    copies.mkdir()
    files = [path for path in log_files(run.kept) if path.name != end_of(server).file]
    copy_by_tool(server, [path.name for path in files], copies)
    for path in files:
        assert (copies / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("rounds", short_and_long(5, 20))
def test_the_log_is_rotated(server: DatabaseServer, captured: Begin, rounds: int) -> None:
    with captured(server) as run:
        first = end_of(server)
        for _ in range(rounds):
            execute(server, "FLUSH BINARY LOGS")
            run.workload.write(40)
        execute(server, *["FLUSH BINARY LOGS"] * 5)
    assert end_of(server).file_number >= first.file_number + rounds + 5
    assert run.connections == 1


@pytest.mark.parametrize("rounds", short_and_long(3, 6))
def test_the_connection_is_killed_again_and_again(server: DatabaseServer, captured: Begin, rounds: int) -> None:
    with captured(server) as run:
        for _ in range(rounds):
            break_off(run)
            run.workload.write(120)
    assert run.connections > rounds


@pytest.mark.parametrize("rounds", short_and_long(4, 8))
def test_the_network_cuts_inside_of_events(
    server: DatabaseServer, captured: Begin, network: Network, rounds: int
) -> None:
    network.trouble = lambda source: source.choice((20_000, 100_000, 500_000, 2_000_000)) + source.randrange(20_000)
    with captured(server, **through(network, server)) as run:
        while network.happened < rounds:
            run.workload.write(50)
        network.trouble = None


@pytest.mark.parametrize("kind", WITH_TLS)
def test_the_network_cuts_a_connection_that_is_encrypted(
    request: pytest.FixtureRequest, sources: Callable[[str], DatabaseServer], captured: Begin, kind: str
) -> None:
    server = sources(kind)
    with Network(server.port, random.randrange(1 << 32)) as network:
        network.trouble = lambda source: 300_000 + source.randrange(1_000_000)
        with captured(server, **through(network, server, tls="required")) as run:
            while network.happened < 4:
                run.workload.write(50)
            network.trouble = None


def test_the_network_falls_silent(server: DatabaseServer, captured: Begin, network: Network) -> None:
    """Nobody says that the connection is gone: only time shows it."""
    network.is_silent = True
    with captured(server, **through(network, server)) as run:
        network.trouble = lambda source: 30_000 + source.randrange(2_000_000)
        while network.happened < 4:
            run.workload.write(50)
        network.trouble = None


def test_the_network_is_slow(server: DatabaseServer, captured: Begin, network: Network) -> None:
    network.delay_s = 0.02
    with captured(server, **through(network, server)) as run:
        run.workload.write(500)
        network.delay_s = 0
    assert run.connections == 1


@pytest.mark.parametrize("rounds", short_and_long(1, 3))
@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("kind", SOURCES)
def test_the_server_restarts(
    request: pytest.FixtureRequest,
    private_server: Callable[..., Any],
    captured: Begin,
    kind: str,
    is_killed: bool,
    rounds: int,
) -> None:
    server = private_server(kind, options=OPTIONS | SAFE)
    with captured(server) as run:
        for _ in range(rounds):
            run.workload.write(150)
            before = run.connections
            if is_killed:
                server.kill()
            else:
                server.stop()
            server.start()
            assert poll(lambda before=before: run.connections > before)
        run.workload.write(100)
    assert run.connections > rounds
    assert run.workload.interruptions >= rounds


def test_clients_pause_for_longer_than_the_server_would_wait(server: DatabaseServer, captured: Begin) -> None:
    execute(server, "SET GLOBAL net_write_timeout = 1")
    try:
        with captured(server, store={"memory": "64KiB"}) as run:
            run.workload.write(100)
            with run.taker.paused():
                execute(server, *["INSERT INTO d.a (n, x) VALUES (-1, REPEAT('x', 2000000))"] * 20)
                assert not poll(lambda: run.instance.store.latest >= end_of(server), 2)
                ahead, latest = end_of(server), run.instance.store.latest
                assert (ahead.file, ahead.offset - latest.offset > 30_000_000) == (latest.file, True)
                assert run.instance.failure is None
            run.workload.write(100)
        assert run.connections == 1, "the server has not waited"
    finally:
        execute(server, "SET GLOBAL net_write_timeout = DEFAULT")


def test_files_are_purged_that_are_captured(server: DatabaseServer, captured: Begin) -> None:
    with captured(server) as run:
        for _ in range(5):
            execute(server, "FLUSH BINARY LOGS")
            run.workload.write(60)
            run.catch_up()
            keep_closed(server, run.kept)
            execute(server, f"PURGE BINARY LOGS TO '{run.reading.boundary.file}'")
            break_off(run)
        assert len(log_files(server.data)) < len(log_files(run.kept))
    assert run.connections > 5


def test_checksums_are_turned_off_and_on(server: DatabaseServer, captured: Begin) -> None:
    try:
        with captured(server) as run:
            for algorithm in ("NONE", "CRC32", "NONE"):
                execute(server, f"SET GLOBAL binlog_checksum = '{algorithm}'")
                run.workload.write(100)
                break_off(run)
                run.workload.write(100)
        assert run.connections > 3
    finally:
        execute(server, "SET GLOBAL binlog_checksum = 'CRC32'")


def test_a_transaction_is_larger_than_the_store(server: DatabaseServer, captured: Begin) -> None:
    twice = "d.numbers, (SELECT 1 UNION SELECT 2) t"
    with captured(server, store={"memory": "64KiB"}) as run:
        run.workload.write(50)
        execute(server, *[f"INSERT INTO d.b (n, v) SELECT n, REPEAT('l', 180) FROM {twice}"] * 3)
        run.workload.write(50)
    assert run.reading.parts > 10
    assert run.connections == 1


@pytest.mark.parametrize("rounds", short_and_long(3, 6))
def test_connections_break_inside_of_transactions_of_which_a_part_was_acked(
    server: DatabaseServer, captured: Begin, network: Network, rounds: int
) -> None:
    """The client gets such a transaction again, from its beginning, and nothing else."""
    network.trouble = lambda source: 100_000 + source.randrange(1_500_000)
    with captured(server, store={"memory": "64KiB"}, **through(network, server)) as run:
        while network.happened < rounds or not run.reading.begun_again:
            try:
                execute(server, f"INSERT INTO d.b (n, v) SELECT n, REPEAT('l', 180) FROM d.numbers LIMIT {BIG_ROWS}")
            except pymysql.err.OperationalError as error:
                if error.args[0] != DEADLOCK:  # with the other writers: the next round writes it
                    raise
            run.workload.write(10)
        network.trouble = None


@pytest.mark.parametrize("kind", ["mariadb", "mariadb11", *WITH_PAYLOADS])
def test_the_log_is_compressed(
    request: pytest.FixtureRequest, sources: Callable[[str], DatabaseServer], captured: Begin, kind: str
) -> None:
    server = sources(kind)
    name = "log_bin_compress" if kind.startswith("mariadb") else "binlog_transaction_compression"
    execute(server, f"SET GLOBAL {name} = ON")
    try:
        with captured(server) as run:
            for _ in range(3):
                run.workload.write(150)
                break_off(run)
    finally:
        execute(server, f"SET GLOBAL {name} = OFF")
    assert run.connections > 3


@pytest.mark.parametrize(("kind", "store"), SOURCES_AND_STORES)
def test_the_instance_stops_and_resumes_at_its_cursor(
    request: pytest.FixtureRequest,
    sources: Callable[[str], DatabaseServer],
    captured: Begin,
    tmp_path: Path,
    kind: str,
    store: str,
) -> None:
    """What was acked is not redelivered, and nothing is left out."""
    with captured(sources(kind), store={"kind": store}, data_dir=tmp_path / "data") as run:
        for _ in range(4):
            run.workload.write(80)
            run.stop_instance()
            run.workload.write(40)
            run.start_instance()
        run.workload.write(80)
