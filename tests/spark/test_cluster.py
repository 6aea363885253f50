"""A driver, a master and two workers, as people run them: the mirror that a stream keeps is right whatever is lost."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.config import InstanceSettings, ServerSettings, SnapshotSettings
from penstock.instance.snapshots import InstanceSnapshots
from penstock.model import TableName
from penstock.server import Server
from penstock.snapshot.chunks import Chunk
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, poll, source_of
from tests.support.ledger import ACCOUNTS, BALANCE, Ledger
from tests.support.mirror_job import WAIT_S, MirrorJob, is_alive, kill_process
from tests.support.spark_cluster import SparkCluster, spark_cluster
from tests.support.spark_pages import spark_pages
from tests.support.spark_session import MASTER_VARIABLE

TOKEN = "hush-hush"
# What a program expects of the source anywhere, here on the cluster: batch and stream, the three shapes, a restart from
# the checkpoint, also of a query that reads in the driver, a table as it is now, and queries that capture the database
# by themselves (the secret of one is TOKEN, too).
CONTRACT = (
    "test_contract.py::test_a_stream_is_typed_and_resumes_from_its_checkpoint[partitions]",
    "test_contract.py::test_a_stream_is_typed_and_resumes_from_its_checkpoint[low latency]",
    "test_contract.py::test_a_range_is_a_dataframe_of_changes_of_all_tables",
    "test_change_reads.py::test_a_range_of_the_log_is_a_dataframe_in_parts",
    "test_stream_source.py::test_several_tables_are_structs_in_one_order",
    "test_snapshot_source.py::test_a_table_is_a_dataframe_in_parts[mariadb]",
    "test_embedded.py::test_a_query_captures_a_database_by_itself_and_resumes_from_its_checkpoint",
    "test_redaction.py::test_secrets_are_not_shown[password_options]",
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A cluster that the tests of this module share; each leaves both workers running."""
    with spark_cluster(tmp_path_factory.mktemp("spark") / "cluster") as shared:
        yield shared


@pytest.fixture(
    params=[
        pytest.param("mariadb", marks=pytest.mark.mariadb),
        pytest.param("mysql80", marks=[pytest.mark.mysql80, pytest.mark.campaign]),
    ]
)
def source(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


@pytest.fixture
def served(source: DatabaseServer) -> Iterator[Server]:
    settings = ServerSettings.with_flight_only(InstanceSettings(source=source_of(source)))
    flight = settings.flight.model_validate({"port": 0, "tokens": {"lake": TOKEN}})
    server = Server(settings.model_copy(update={"flight": flight}))
    server.start()
    yield server
    server.stop()


@pytest.mark.timeout(900)
def test_a_mirror_is_right_whatever_is_lost_of_a_cluster(
    source: DatabaseServer,
    database: Callable[[DatabaseServer], str],
    served: Server,
    cluster: SparkCluster,
    tmp_path: Path,
) -> None:
    """The sum of all accounts is right after every batch, and the mirror is equal to the source at the end.

    One program on one cluster, since each start takes many seconds; each step below is one loss.
    """
    table = f"{database(source)}.account"
    start, ledger = end_of(source), Ledger(source, table)
    options = {"server": served.address, "token": TOKEN, "table": table, "startingPosition": str(start)}
    job = MirrorJob(tmp_path / "job", cluster, options)
    try:
        ledger.create(has_note=True)
        with ledger:
            ledger.add_wide(40)  # so that the first batch has several parts
            speculate(job)
            lose_executor(job, ledger)
            lose_worker(job, ledger, cluster)
            lose_driver(job, cluster)
        finish(job, ledger)
    finally:
        job.kill()
    assert {batch["sum"] for batch in job.batches} == {ACCOUNTS * BALANCE}
    # Not in the log of an event, a driver or an executor.
    assert files_with_token(tmp_path, cluster.folder) == ["options.json"]


@pytest.mark.timeout(600)
def test_a_snapshot_resumes_behind_its_last_chunk_whatever_is_lost(
    source: DatabaseServer,
    database: Callable[[DatabaseServer], str],
    cluster: SparkCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Chunks that were delivered are not read again, and the mirror is equal to the source at the end."""
    table, chunks = f"{database(source)}.account", list[Chunk]()
    read = InstanceSnapshots.read

    def record(self: InstanceSnapshots, name: TableName, chunk: Chunk, *rest: Any) -> Any:
        chunks.append(chunk)
        return read(self, name, chunk, *rest)

    monkeypatch.setattr(InstanceSnapshots, "read", record)
    settings = InstanceSettings(source=source_of(source), snapshot=SnapshotSettings(chunk_rows=2))
    server = Server(ServerSettings.with_flight_only(settings))
    server.start()
    ledger = Ledger(source, table)
    options = {"server": server.address, "table": table, "startingPosition": "snapshot", "maxRowsPerTrigger": "5000"}
    job = MirrorJob(tmp_path / "job", cluster, options)
    try:
        ledger.create(has_note=True)
        with ledger:
            with job.pause("1-*-0"):
                job.start()
                job.wait(lambda: bool(job.attempts(1)))
                lost = job.attempts(1)[0]
                kill_process(lost.jvm)
                assert poll(lambda: not is_alive(lost.jvm))
            job.wait_until_applied(1)
            with job.pause("*-applied"):
                last = job.wait_until_paused()
                before = job.wait_until_applied(last)
                job.kill()
            delivered = chunks[:-1]
            count = len(chunks)
            assert 2 <= len(set(delivered)) < ACCOUNTS / 2, "the driver was killed in the middle"
            job.start()
            after = job.wait_until_applied(last)
            assert (after["rows"], after["digest"]) == (before["rows"], before["digest"])
            job.wait(lambda: any(chunk.until is None for chunk in chunks))
        balances = ledger.balances()
        job.wait(lambda: {number: balance for number, (balance, _) in job.accounts.items()} == balances)
        assert not set(chunks[count:]) & set(delivered) - {chunks[count - 1]}
    finally:
        job.kill()
        server.stop()


def files_with_token(*folders: Path) -> list[str]:
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if TOKEN.encode() in path.read_bytes()]


@pytest.mark.mariadb
@pytest.mark.timeout(400)
def test_the_contract_holds_on_a_cluster(cluster: SparkCluster, tmp_path: Path) -> None:
    """The tests of a local session, in a process whose session is on the cluster."""
    here = Path(__file__).parent
    options = ["-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'contract'}"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *(f"{here}/{name}" for name in CONTRACT), *options],
        env={**os.environ, MASTER_VARIABLE: cluster.master.url, "SPARK_LOCAL_IP": cluster.master.host},
        cwd=here.parents[1],
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-8000:] + ended.stderr[-2000:]
    assert f"{len(CONTRACT)} passed" in ended.stdout
    assert poll(
        lambda: "penstock tests" in [application["name"] for application in cluster.master.state()["completedapps"]]
    )
    assert files_with_token(cluster.folder) == []


def speculate(job: MirrorJob) -> None:
    """A task that hangs gets a second attempt on the other executor, which the batch is made of."""
    with job.pause("0-1-0"):
        job.start()
        first = job.wait_until_applied(0)
        assert first["parts"] >= 3
        tries = [attempt for attempt in job.attempts(0) if attempt.part == 1]
        assert not tries[0].is_done
        assert tries[1].is_done
        assert tries[0].host != tries[1].host


def lose_executor(job: MirrorJob, ledger: Ledger) -> None:
    """What an executor was in the middle of is read again by another one."""
    with job.pause_in_large_batch(ledger, executors=2) as running:
        lost = running[0]
        kill_process(lost.jvm)
        assert poll(lambda: not is_alive(lost.jvm))
    assert job.wait_until_applied(lost.batch)["parts"] >= 3
    again = [attempt for attempt in job.attempts(lost.batch) if attempt.part == lost.part and attempt.is_done]
    assert again
    assert all(attempt.jvm != lost.jvm for attempt in again)


def lose_worker(job: MirrorJob, ledger: Ledger, cluster: SparkCluster) -> None:
    """The worker goes with its executor; the other one does all the work."""
    worker = cluster.workers[0]
    with job.pause_in_large_batch(ledger, executors=2) as running:
        (lost,) = [attempt for attempt in running if attempt.host == worker.host]
        worker.kill()
    job.wait_until_applied(lost.batch)
    done = {attempt.part: attempt.host for attempt in job.attempts(lost.batch) if attempt.is_done}
    assert done[lost.part] == cluster.workers[1].host
    assert len(done) >= 3


def lose_driver(job: MirrorJob, cluster: SparkCluster) -> None:
    """Killed after it has applied a batch, and before Spark knows: from the checkpoint it reads the same rows again."""
    with job.pause("*-applied"):
        last = job.wait_until_paused()
        before = job.wait_until_applied(last)
        job.kill()
    cluster.workers[0].start()
    job.start()
    after = job.wait_until_applied(last)
    assert before["rows"] > 0
    assert (after["rows"], after["digest"]) == (before["rows"], before["digest"])
    job.wait_until_applied(last + 2)
    numbers = [batch["batch"] for batch in job.batches]
    assert numbers == [*range(last + 1), *range(last, numbers[-1] + 1)]


def finish(job: MirrorJob, ledger: Ledger) -> None:
    """Both a mirror and a batch read over the whole range are equal to the source; no page of Spark has the token."""
    balances = ledger.balances()
    job.wait(lambda: {number: balance for number, (balance, _) in job.accounts.items()} == balances)
    (job.folder / "stop").touch()
    whole = job.read_range()
    assert whole["balances"] == balances
    assert whole["parts"] >= 5
    assert whole["rows"] == sum({batch["batch"]: batch["rows"] for batch in job.batches}.values())
    pages = spark_pages(job.ui)
    assert any("penstock" in page for page in pages.values())
    settings = dict(json.loads(pages["environment"])["sparkProperties"])
    assert {key: settings[key] for key in job.SETTINGS} == job.SETTINGS  # those of spark-submit win over ours
    assert settings["spark.python.unix.domain.socket.enabled"] == "true"  # one of ours
    assert [name for name, page in pages.items() if TOKEN in page] == []
    (job.folder / "finish").touch()
    assert poll(job.driver.has_exited, WAIT_S)
