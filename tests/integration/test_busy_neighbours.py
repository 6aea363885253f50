"""A Spark query whose server has much to do for other tables: it makes no empty batches and costs little, and loses
nothing when it moves to another server. Batches are run without a JVM."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.client.flight import BatchEnd, FlightClient
from penstock.model import TableName
from penstock.testing import DatabaseServer, poll_until
from tests.support.busy_table import busy_table
from tests.support.campaign import short_and_long
from tests.support.capture import end_of, execute
from tests.support.cluster import find_running, servers
from tests.support.micro_batches import MicroBatches
from tests.support.random_writers import create_table, select_rows, written
from tests.support.serve_process import ServeProcess, serve_process
from tests.support.strict_mirror import StrictMirror

MIB = 1 << 20
FAR_BYTES = 16 * MIB  # of other tables: one batch without rows brings the checkpoint forward then
CPU_OF_A_CORE = 0.25  # together with the thread that writes it is about 0.03
POLL_S = 0.5


@pytest.mark.parametrize("log_bytes", short_and_long(20 * MIB, 400 * MIB))
def test_a_query_of_an_idle_table_makes_no_batches_while_others_write(
    mariadb: DatabaseServer,
    database: Callable[[DatabaseServer], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    log_bytes: int,
) -> None:
    schema = database(mariadb)
    execute(mariadb, f"CREATE TABLE {schema}.idle (id INT PRIMARY KEY)")
    rows, calls, plan_batch = list[int](), list[int](), FlightClient.plan_batch

    def count_call(client: FlightClient, *arguments: Any, **options: Any) -> BatchEnd:
        calls.append(1)
        return plan_batch(client, *arguments, **options)

    monkeypatch.setattr(FlightClient, "plan_batch", count_call)

    def collect(batch: pa.Table, _: int) -> None:
        rows.append(batch.num_rows)

    with serve_process(tmp_path, mariadb) as server:
        server.start()
        start = end_of(mariadb)
        query = MicroBatches(
            server.url, collect, table=f"{schema}.idle", startingPosition=str(start), pollMs=str(int(POLL_S * 1000))
        )
        query.run_batch()  # the connection is open now
        with busy_table(mariadb, f"{schema}.busy", pause_s=0.02) as busy:
            began_s, cpu_s = time.monotonic(), time.process_time()
            while busy.written_bytes < log_bytes:
                query.run_batch()
            taken_s, cpu_s = time.monotonic() - began_s, time.process_time() - cpu_s
        most = 1 + busy.written_bytes // FAR_BYTES + (end_of(mariadb).file_number - start.file_number)
        assert len(rows) <= most, "what others write makes batches"
        assert set(rows) <= {0}
        assert len(calls) < 20 + 4 * taken_s / POLL_S, "the server is asked again and again while others write"
        assert cpu_s < CPU_OF_A_CORE * taken_s, f"{cpu_s:.2f} s of CPU in {taken_s:.2f} s, for {log_bytes / MIB} MiB"
        execute(mariadb, f"INSERT INTO {schema}.idle VALUES (1)")
        query.run_until(lambda: sum(rows) == 1)


@contextmanager
def _two_servers(folder: Path, source: DatabaseServer) -> Iterator[list[ServeProcess]]:
    """Run two servers that capture the same source, for a query that has a list of them."""
    with ExitStack() as stack:
        processes = list[ServeProcess]()
        for name in ("first", "second"):
            (folder / name).mkdir()
            processes.append(stack.enter_context(serve_process(folder / name, source)))
            processes[-1].launch()
        for process in processes:
            assert poll_until(lambda process=process: "serving Arrow Flight" in process.output, 90), process.output
        yield processes


@contextmanager
def _list_of_servers(
    folder: Path, source: DatabaseServer, _: pytest.FixtureRequest
) -> Iterator[tuple[dict[str, str], Callable[[], None]]]:
    """Yield the options of a query, and what kills the server that it asks."""
    with _two_servers(folder, source) as processes:
        yield {"server": ",".join(process.url for process in processes)}, processes[0].kill


@contextmanager
def _elected_servers(
    folder: Path, source: DatabaseServer, request: pytest.FixtureRequest
) -> Iterator[tuple[dict[str, str], Callable[[], None]]]:
    """Yield the options of a query, and what kills the server that ZooKeeper names."""
    zookeeper, destination = (request.getfixturevalue(name) for name in ("zookeeper", "destination"))
    with servers(folder, source, [zookeeper.hosts] * 2, [destination], session_s=3.0) as processes:
        options = {"zookeeper": zookeeper.hosts, "destination": destination}
        yield options, lambda: find_running(processes, zookeeper.hosts, destination).kill()


@pytest.mark.parametrize(
    "open_servers",
    [
        pytest.param(_list_of_servers, id="a list"),
        pytest.param(_elected_servers, id="ZooKeeper", marks=pytest.mark.campaign),
    ],
)
def test_nothing_is_lost_or_doubled_when_the_server_moves_while_another_table_is_written(
    request: pytest.FixtureRequest,
    mariadb: DatabaseServer,
    database: Callable[[DatabaseServer], str],
    tmp_path: Path,
    open_servers: Callable[..., AbstractContextManager[tuple[dict[str, str], Callable[[], None]]]],
) -> None:
    name, mirror = TableName(database(mariadb), "t"), StrictMirror()
    create_table(mariadb, name, "integer")
    with open_servers(tmp_path, mariadb, request) as (options, kill_running):
        options |= {"table": str(name), "startingPosition": "snapshot", "pollMs": "50"}
        query = MicroBatches("", mirror.apply, **options)
        query.run_until(lambda: query.is_complete)
        with (
            busy_table(mariadb, f"{name.schema}.busy", pause_s=0.005) as busy,
            written(mariadb, name, "integer", 0.005) as writers,
            ThreadPoolExecutor(1) as pool,
        ):
            query.run_until(lambda: all(writer.commits > 20 for writer in writers))
            killing = pool.submit(kill_running)  # wherever the query is then: between two batches, or inside of one
            commits, busy_bytes = [writer.commits for writer in writers], busy.written_bytes
            query.run_until(
                lambda: (
                    all(writer.commits > before + 20 for writer, before in zip(writers, commits, strict=True))
                    and busy.written_bytes > busy_bytes + 4 * MIB
                )
            )
            killing.result()
            batches = mirror.batches
            query.restart()  # the last batch is read again, from the other server
            query.run_until(lambda: mirror.batches > batches + 5)
        wanted = select_rows(mariadb, name, "*")
        query.run_until(lambda: mirror.content == wanted)
