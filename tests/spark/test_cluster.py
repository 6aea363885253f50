"""A driver, a master and two workers, as people run them: the mirror that a stream keeps is right whatever is lost."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.config import InstanceSettings, ServerSettings
from penstock.server import Server
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, poll, source_of
from tests.support.ledger import ACCOUNTS, BALANCE, Ledger
from tests.support.mirror_job import WAIT_S, MirrorJob, is_alive, kill_process
from tests.support.spark_cluster import SparkCluster, ask_json, spark_cluster

TOKEN = "hush-hush"


@pytest.fixture
def served(mariadb: DatabaseServer) -> Iterator[Server]:
    settings = ServerSettings.with_flight_only(InstanceSettings(source=source_of(mariadb)))
    flight = settings.flight.model_validate({"port": 0, "tokens": {"lake": TOKEN}})
    server = Server(settings.model_copy(update={"flight": flight}))
    server.start()
    yield server
    server.stop()


@pytest.mark.timeout(900)
def test_a_mirror_is_right_whatever_is_lost_of_a_cluster(
    mariadb: DatabaseServer, database: Callable[[DatabaseServer], str], served: Server, tmp_path: Path
) -> None:
    """The sum of all accounts is right after every batch, and the mirror is equal to the source at the end.

    One program on one cluster, since each start takes many seconds; each step below is one loss.
    """
    table = f"{database(mariadb)}.account"
    start, ledger = end_of(mariadb), Ledger(mariadb, table)
    options = {"server": served.address, "token": TOKEN, "table": table, "startingPosition": str(start)}
    with spark_cluster(tmp_path / "cluster") as cluster:
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
    seen = [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert [path.name for path in seen] == ["options.json"]  # not in the log of an event, a driver or an executor


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


def spark_pages(ui: str) -> dict[str, str]:
    """Return what Spark's own pages and its REST interface show of a program."""
    (application,) = ask_json(f"{ui}/api/v1/applications", 60)
    rest = f"api/v1/applications/{application['id']}"
    queries = ask_json(f"{ui}/{rest}/sql?details=true&planDescription=true&length=1000", 60)
    paths = [f"{rest}/sql?details=true&planDescription=true&length=1000", f"{rest}/jobs"]
    paths += [
        "environment/",
        "SQL/",
        "StreamingQuery/",
        "jobs/",
        *(f"SQL/execution/?id={one['id']}" for one in queries),
    ]
    return {path: read_page(f"{ui}/{path}") for path in paths} | {"environment": read_page(f"{ui}/{rest}/environment")}


def read_page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - ours, on loopback
        return answer.read().decode()
