"""A server that is frozen while Spark's tasks read from it: they read the rest from another one."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.testing import DatabaseServer
from tests.integration.test_frozen_servers import latest_of
from tests.integration.test_frozen_servers import server_processes as server_processes  # noqa: PLC0414 - fixtures
from tests.integration.test_frozen_servers import table as table  # noqa: PLC0414
from tests.support.capture import end_of, execute, poll
from tests.support.serve_process import ServeProcess

ROWS = 60
WAIT_S = 100.0
SPARK_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


def pause_after_first(folder: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a task does with its rows: it says when the first has come, and waits until `go` is there."""

    def pause(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            (folder / "started").touch()
            deadline = time.monotonic() + WAIT_S
            while not (folder / "go").exists():
                if time.monotonic() > deadline:
                    raise TimeoutError("the test does not let the task continue")
                time.sleep(0.05)
            yield batch.select(["id"])

    return pause


def test_tasks_read_the_rest_from_another_server(
    spark: SparkSession, mariadb: DatabaseServer, table: str, server_processes: list[ServeProcess], tmp_path: Path
) -> None:
    start = end_of(mariadb)
    for low in range(0, ROWS, 10):
        rows = ", ".join(f"({low + i}, REPEAT('x', 500000))" for i in range(10))
        execute(mariadb, f"INSERT INTO {table} VALUES {rows}")
    end = end_of(mariadb)
    for process in server_processes:
        assert poll(lambda process=process: latest_of(process) >= end, 60)
    options = {
        "server": ",".join(process.url for process in server_processes),
        "table": table,
        "startingPosition": str(start),
        "endingPosition": str(end),
        "waitForServer": "30",  # a range on which nothing comes is given up after half of it
    }
    frame = spark.read.format("penstock").options(**options).load().select("id", "v")
    spark.conf.set(SPARK_BATCH, "1")  # so that a task has hardly read anything when it pauses
    try:
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(lambda: frame.mapInArrow(pause_after_first(tmp_path), "id INT").collect())
            assert poll((tmp_path / "started").exists, WAIT_S)
            server_processes[0].freeze()
            (tmp_path / "go").touch()
            rows = reading.result(WAIT_S)
    finally:
        spark.conf.unset(SPARK_BATCH)
    assert sorted(row.id for row in rows) == list(range(ROWS))
