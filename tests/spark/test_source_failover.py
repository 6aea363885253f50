"""The source dies in the middle of a stream, and its standby is followed: a mirror is equal to it at the end."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from penstock.config import InstanceSettings, ServerSettings
from penstock.server import Server
from penstock.testing import DatabaseServer
from tests.spark.test_ledger import Mirror
from tests.spark.test_stream_source import run, stream
from tests.support.capture import execute, poll, source_of
from tests.support.following import QUICK
from tests.support.ledger import ACCOUNTS, BALANCE, Ledger
from tests.support.replication import has, pair

TABLE = "replicated.account"


class BrokenMirror(Mirror):
    """A mirror whose sink breaks when it is told to, after it has seen the batch."""

    is_broken = False

    def __call__(self, batch: DataFrame, number: int) -> None:
        super().__call__(batch, number)
        if self.is_broken:
            raise ValueError("the sink is down")


@pytest.mark.mariadb
def test_a_mirror_follows_the_standby_also_with_a_batch_that_was_planned_before(
    spark: SparkSession, private_server: Callable[..., Any], tmp_path: Path
) -> None:
    first, second = pair(private_server, "mariadb")
    ledger, mirror = Ledger(first, TABLE), BrokenMirror()
    ledger.create()
    settings = InstanceSettings(
        source=source_of(first, heartbeat_s=0.5, connect_timeout_s=3),
        standby=source_of(second, heartbeat_s=0.5, connect_timeout_s=3),
        failover=QUICK,
    )
    server = Server(ServerSettings.with_flight_only(settings))
    server.start()
    instance = server.instances["default"]
    try:
        frame = stream(spark, server, table=TABLE, startingPosition="earliest", pollMs="100")

        def has_seen(batches: int, query: Any) -> None:
            assert poll(lambda: len(mirror.sums) >= batches or query.exception() is not None, 60), mirror.sums
            assert query.exception() is None, query.exception()

        query = run(frame, mirror, tmp_path)
        with ledger:
            has_seen(3, query)
            mirror.is_broken = True
            with pytest.raises(StreamingQueryException, match="the sink is down"):
                query.awaitTermination(60)
        end = instance.source_log.end()
        assert poll(lambda: instance.store.latest >= end)
        assert poll(lambda: is_replicated(first, second))
        first.kill()
        execute(second, "STOP SLAVE", "RESET SLAVE ALL")
        assert poll(lambda: instance.store.latest.epoch == 1, 60)
        mirror.is_broken, seen = False, len(mirror.sums)
        query = run(frame, mirror, tmp_path)  # the batch that failed is redelivered, with the same `_seq`s: see Mirror
        with (standby := Ledger(second, TABLE)):
            has_seen(seen + 4, query)
        assert poll(lambda: mirror.balances == standby.balances(), 60), (mirror.balances, standby.balances())
        query.stop()
        assert {sequence >> 54 for changes in mirror.batches.values() for sequence, _ in changes} == {0, 1}
    finally:
        server.stop()
    assert set(mirror.sums) == {ACCOUNTS * BALANCE}


def is_replicated(first: DatabaseServer, second: DatabaseServer) -> bool:
    """Return whether the standby has executed all that the source has in its log."""
    with first.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@gtid_binlog_pos")
        (position,) = cursor.fetchone()
    return has(second, f"SELECT 1 FROM DUAL WHERE @@gtid_slave_pos = '{position}'")
