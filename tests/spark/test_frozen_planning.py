"""A server that is frozen while Spark plans: the query asks another one, or ends within its bound with a reason."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from penstock.errors import ServerUnavailableError
from penstock.spark.change_log import ChangeLog
from penstock.spark.options import ReadOptions
from penstock.testing import DatabaseServer
from tests.integration.test_frozen_servers import server_processes as server_processes  # noqa: PLC0414 - fixtures
from tests.integration.test_frozen_servers import table as table  # noqa: PLC0414
from tests.spark.test_stream_source import Collected, run
from tests.support.capture import end_of, execute, poll
from tests.support.serve_process import ServeProcess

WAIT_S = 3
FEW_S = 12.0  # a server that answers nothing is asked for five seconds at least, and the machine is busy


def test_planning_ends_within_its_bound_or_goes_to_another_server(
    spark: SparkSession, mariadb: DatabaseServer, table: str, server_processes: list[ServeProcess], tmp_path: Path
) -> None:
    start, got = end_of(mariadb), Collected()
    options = {"table": table, "startingPosition": str(start), "pollMs": "100", "waitForServer": str(WAIT_S)}
    servers = ",".join(process.url for process in server_processes)
    frame = spark.readStream.format("penstock").options(server=servers, **options).load()
    query = run(frame, got, tmp_path / "checkpoint")
    execute(mariadb, f"INSERT INTO {table} VALUES (1, 'a')")
    assert poll(lambda: len(got.rows) == 1, 60), query.exception()
    log = ChangeLog(ReadOptions.of({"server": server_processes[0].url, **options}))
    end = log.source_end()
    server_processes[0].freeze()
    execute(mariadb, f"INSERT INTO {table} VALUES (2, 'b')")
    assert poll(lambda: len(got.rows) == 2 or query.exception() is not None, 60), query.exception()
    query.stop()
    tables = ReadOptions.of({"server": servers, **options}).tables
    reader = spark.readStream.format("penstock").options(server=server_processes[0].url, **options)
    calls: dict[str, Callable[[], Any]] = {
        "plan": lambda: log.plan_batch(start, 100, start),
        "position": lambda: log.resolve("earliest"),
        "parts": lambda: log.tickets(start, end),
        "columns": lambda: log.client.describe_tables(tables),
        "Spark": reader.load,
    }

    def measure(call: Callable[[], Any]) -> float:
        began = time.monotonic()
        with pytest.raises((ServerUnavailableError, AnalysisException), match="answer"):
            call()
        return time.monotonic() - began

    with ThreadPoolExecutor(len(calls)) as pool:
        taken_s = dict(zip(calls, pool.map(measure, calls.values()), strict=True))
    assert max(taken_s.values()) < WAIT_S + FEW_S, taken_s
    began = time.monotonic()
    assert log.report() == end.to_json()  # what is only shown holds nothing up: it is the last that was known
    assert time.monotonic() - began < WAIT_S
