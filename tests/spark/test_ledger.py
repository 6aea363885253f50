"""Transfers between accounts, whose sum never changes: a mirror that Spark keeps has that sum after every batch, and is
equal to the source at the end, whatever was killed meanwhile."""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.testing import DatabaseServer
from tests.integration.test_running_lookup import find_running
from tests.services.zookeeper import ZooKeeper
from tests.spark.test_stream_source import run
from tests.support.capture import poll
from tests.support.cluster import servers
from tests.support.ledger import ACCOUNTS, BALANCE, Ledger


class Mirror:
    """What the stream makes of the table, and the sum that it had after each batch."""

    def __init__(self) -> None:
        self.balances: dict[int, int] = {}
        self.sums: list[int] = []
        self.batches: dict[int, list[tuple[int, int]]] = {}  # the changes of each batch, by its number

    def __call__(self, batch: DataFrame, number: int) -> None:
        rows = sorted(batch.toArrow().to_pylist(), key=lambda row: (row["_seq"], row["_row"]))
        changes = [(row["_seq"], row["_row"]) for row in rows]
        assert self.batches.setdefault(number, changes) == changes, "a batch that is read again has other rows"
        for row in rows:
            if row["_change_type"] in {"insert", "update_postimage"}:
                self.balances[row["id"]] = row["balance"]
        if self.balances:
            self.sums.append(sum(self.balances.values()))


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "kind", [pytest.param("mariadb", marks=pytest.mark.mariadb), pytest.param("mysql80", marks=pytest.mark.mysql80)]
)
def test_the_sum_is_right_after_every_batch_whatever_is_killed(
    spark: SparkSession,
    private_server: Callable[..., DatabaseServer],
    zookeeper: ZooKeeper,
    database: Callable[[DatabaseServer], str],
    tmp_path: Path,
    kind: str,
) -> None:
    # Killed, a process loses what it has not written, and no more with these options: its log has what its tables have.
    durable = {"sync_binlog": 1, "innodb_flush_log_at_trx_commit": 1}
    source = private_server(kind, options=durable)
    destination, table = f"d{secrets.token_hex(4)}", f"{database(source)}.account"
    ledger = Ledger(source, table)
    mirror = Mirror()
    with servers(tmp_path, source, [zookeeper.hosts] * 2, [destination], session_s=3.0) as running:
        options = {"zookeeper": zookeeper.hosts, "destination": destination, "table": table, "pollMs": "100"}

        def start() -> Any:
            frame = spark.readStream.format("penstock").options(startingPosition="earliest", **options).load()
            return run(frame, mirror, tmp_path / "checkpoint")

        ledger.create()
        query = start()
        with ledger:

            def wait_for(batches: int) -> None:
                assert poll(lambda: len(mirror.sums) >= batches or query.exception() is not None, 90), mirror.sums
                assert query.exception() is None, query.exception()

            wait_for(3)
            find_running(running, zookeeper.hosts, destination).kill()
            wait_for(len(mirror.sums) + 3)
            query.stop()  # in the middle of whatever it does
            query = start()
            wait_for(len(mirror.sums) + 3)
            source.kill()
            source.start()
            wait_for(len(mirror.sums) + 3)
        assert ledger.transfers > 0
        assert poll(lambda: mirror.balances == ledger.balances(), 60), (mirror.balances, ledger.balances())
        query.stop()
    assert set(mirror.sums) == {ACCOUNTS * BALANCE}
