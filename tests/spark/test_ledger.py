"""Transfers between accounts, whose sum never changes: a mirror that Spark keeps has that sum after every batch, and is
equal to the source at the end, whatever was killed meanwhile."""

import random
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.testing import DatabaseServer
from tests.integration.test_running_lookup import find_running
from tests.services.zookeeper import ZooKeeper
from tests.spark.test_stream_source import run
from tests.support.capture import execute, poll
from tests.support.cluster import servers

ACCOUNTS, BALANCE = 20, 1000


class Ledger:
    """One thread moves money all the time: each transaction takes from one account what it gives to another one."""

    def __init__(self, source: DatabaseServer, table: str) -> None:
        self._source, self._table = source, table
        self._ended, self._thread = threading.Event(), threading.Thread(target=self._transfer)
        self.transfers = 0

    def _transfer(self) -> None:
        draw = random.Random(7)
        with self._source.connect(autocommit=False) as connection, connection.cursor() as cursor:
            while not self._ended.wait(0.005):
                one, other = draw.sample(range(ACCOUNTS), 2)
                amount = draw.randint(1, 50)
                cursor.execute(f"UPDATE {self._table} SET balance = balance - {amount} WHERE id = {one}")
                cursor.execute(f"UPDATE {self._table} SET balance = balance + {amount} WHERE id = {other}")
                connection.rollback() if draw.random() < 0.1 else connection.commit()
                self.transfers += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(30)

    def balances(self) -> dict[int, int]:
        with self._source.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT id, balance FROM {self._table}")
            return {int(number): int(balance) for number, balance in cursor.fetchall()}


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
@pytest.mark.parametrize("kind", ["mariadb", "mysql80"])
def test_the_sum_is_right_after_every_batch_whatever_is_killed(
    spark: SparkSession,
    request: pytest.FixtureRequest,
    zookeeper: ZooKeeper,
    database: Callable[[DatabaseServer], str],
    tmp_path: Path,
    kind: str,
) -> None:
    source: DatabaseServer = request.getfixturevalue(kind)
    destination, table = f"d{secrets.token_hex(4)}", f"{database(source)}.account"
    execute(source, f"CREATE TABLE {table} (id INT PRIMARY KEY, balance INT NOT NULL)")
    mirror = Mirror()
    with servers(tmp_path, source, [zookeeper.hosts] * 2, [destination], session_s=3.0) as several:
        options = {"zookeeper": zookeeper.hosts, "destination": destination, "table": table, "pollMs": "100"}

        def start() -> Any:
            frame = spark.readStream.format("penstock").options(startingPosition="earliest", **options).load()
            return run(frame, mirror, tmp_path / "checkpoint")

        rows = ", ".join(f"({number}, {BALANCE})" for number in range(ACCOUNTS))
        execute(source, f"INSERT INTO {table} VALUES {rows}")
        query = start()
        with Ledger(source, table) as ledger:

            def wait_for(batches: int) -> None:
                assert poll(lambda: len(mirror.sums) >= batches or query.exception() is not None, 90), mirror.sums
                assert query.exception() is None, query.exception()

            wait_for(3)
            find_running(several, zookeeper, destination).kill()
            wait_for(len(mirror.sums) + 3)
            query.stop()  # in the middle of whatever it does
            query = start()
            wait_for(len(mirror.sums) + 3)
        assert ledger.transfers > 0
        assert poll(lambda: mirror.balances == ledger.balances(), 60), (mirror.balances, ledger.balances())
        query.stop()
    assert set(mirror.sums) == {ACCOUNTS * BALANCE}
