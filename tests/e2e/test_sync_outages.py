"""`penstock sync` under load while whatever it talks to is killed, restarted or refuses: nothing is lost, and at rest
each index equals the oracle."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.capture import poll
from tests.support.shop import ShopWriter
from tests.support.sync_pipeline import DATABASE, SyncPipeline, sync_pipeline

FAULTS: dict[str, Callable[[SyncPipeline], None]] = {
    "search server killed": SyncPipeline.restart_search,
    "search server answers 429 for each document": SyncPipeline.refuse_writes,
    "search server answers 503, 429 and 413": SyncPipeline.refuse_requests,
    "database killed": SyncPipeline.restart_database,
    "capture server killed": SyncPipeline.restart_server,
    "driver killed": SyncPipeline.restart_sync,
    "Python workers killed": SyncPipeline.kill_workers,
}
ROUNDS = 12
REST_S = 180.0
# Of the process with its JVM and its Python workers, in KiB.
MOST_MEMORY_KIB = 3 << 20
DISK = "64m"
Servers = Callable[..., Any]


def start_writer(pipeline: SyncPipeline, seed: int) -> ShopWriter:
    writer = ShopWriter(pipeline.database, DATABASE, seed, pause_s=0.02, reconnect_timeout_s=60)
    writer.start()
    assert poll(lambda: writer.transactions > 5, 60)
    return writer


def fill_disk(file: Path) -> None:
    """Write to a file until its disk is full, which is an error."""
    with file.open("wb", buffering=0) as opened:
        while True:
            opened.write(bytes(1 << 16))


@pytest.mark.mariadb
@pytest.mark.opensearch
@pytest.mark.timeout(400)
def test_each_outage_once_under_load(private_server: Servers, tmp_path: Path) -> None:
    with sync_pipeline(tmp_path, private_server("mariadb"), private_server("opensearch")) as pipeline:
        writer = start_writer(pipeline, 41)
        for fault in FAULTS.values():
            fault(pipeline)
        writer.finish()
        assert pipeline.differences_at_rest(REST_S) == {}, pipeline.tail()
        assert writer.transactions > 100
        assert pipeline.peak_memory_kib() < MOST_MEMORY_KIB
        assert pipeline.indexes_of("all-orders") == ["orders"]
        assert pipeline.indexes_of("taken") == ["of-others"]
        assert any("warning: alias 'taken' leads to 'of-others'" in line for line in pipeline.outputs[0])
        pipeline.kill_jvm()
        assert poll(lambda: pipeline.sync.has_ended, 60), pipeline.tail()
        assert poll(lambda: pipeline.sync.has_said("the Java process of Spark is gone"), 10), pipeline.tail()
        assert pipeline.sync.process.returncode == 1


@pytest.mark.campaign
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("source", "search", "seed"),
    [("mariadb", "opensearch", 1), ("mysql80", "elasticsearch", 2), ("mysql9", "opensearch", 3)],
)
def test_random_outages_alone_and_together(
    private_server: Servers, source: str, search: str, seed: int, tmp_path: Path
) -> None:
    choose = random.Random(seed)
    with sync_pipeline(tmp_path, private_server(source), private_server(search)) as pipeline:
        writer = start_writer(pipeline, seed)
        for _ in range(ROUNDS):
            before = writer.transactions
            for name in choose.sample(list(FAULTS), choose.choice((1, 1, 2, 3))):
                FAULTS[name](pipeline)
            assert poll(lambda before=before: writer.transactions > before + 20, 120)
        writer.finish()
        assert pipeline.differences_at_rest(REST_S) == {}, pipeline.tail()


@pytest.mark.mariadb
@pytest.mark.opensearch
@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_a_full_disk_under_the_checkpoint(private_server: Servers, tmp_path: Path) -> None:
    """Its disk is in a mount namespace of sync's own, which is reached through /proc."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a disk of one's own needs root and unshare")

    def on_small_disk(command: list[Any]) -> list[Any]:
        mount = f"mount -t tmpfs -o size={DISK} tmpfs {tmp_path}/state"
        return ["unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sync", *command]

    with sync_pipeline(tmp_path, private_server("mariadb"), private_server("opensearch"), on_small_disk) as pipeline:
        writer = start_writer(pipeline, 43)
        filler = Path(f"/proc/{pipeline.sync.process.pid}/root{tmp_path}/state/filler")
        for _ in range(3):
            with pytest.raises(OSError, match="No space left"):
                fill_disk(filler)
            known = len(pipeline.sync.lines)
            assert poll(
                lambda known=known: any("started again in" in line for line in pipeline.sync.lines[known:]), 60
            ), pipeline.tail()
            filler.unlink()
            before = writer.transactions
            assert poll(lambda before=before: writer.transactions > before + 50, 60)
        writer.finish()
        assert pipeline.differences_at_rest(REST_S) == {}, pipeline.tail()
