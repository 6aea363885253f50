"""One transaction that is far larger than a batch, the store's memory, and the memory of Spark's driver."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import count, count_distinct, max_by, min_by

from penstock.testing import DatabaseServer
from tests.spark.test_stream_source import run
from tests.support.campaign import short_and_long
from tests.support.capture import end_of, execute
from tests.support.serve_process import ServeProcess, serve_process

_LIMIT_BYTES = 4 << 20


def peak_mib(server: ServeProcess) -> int:
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


@pytest.mark.parametrize("kind", ["memory", "mixed"])
@pytest.mark.parametrize("rows", short_and_long(400_000, 10_000_000))
def test_a_huge_transaction_passes_in_batches(
    spark: SparkSession,
    mariadb: DatabaseServer,
    database: Callable[[DatabaseServer], str],
    tmp_path: Path,
    kind: str,
    rows: int,
) -> None:
    """The test session's driver has 1 GB, for the executor as well: that the long form passes shows its promise."""
    table = f"{database(mariadb)}.wide"
    execute(mariadb, f"CREATE TABLE {table} (id INT PRIMARY KEY, v CHAR(32) CHARSET latin1)")
    store = {"kind": kind, "memory": "8MiB"} | ({"segment": "4MiB"} if kind == "mixed" else {})
    seen: list[tuple[int, int, int, int]] = []

    def collect(batch: DataFrame, number: int) -> None:
        ends = min_by("id", "_seq"), max_by("id", "_seq"), count_distinct("_commit_version")
        rows_of_batch, first, last, versions = batch.agg(count("id"), *ends).collect()[0]
        if rows_of_batch:
            seen.append((rows_of_batch, first, last, versions))

    with serve_process(tmp_path, mariadb, store=store, data_dir=str(tmp_path / "data")) as server:
        server.start()
        start, before_mib = end_of(mariadb), peak_mib(server)
        execute(mariadb, f"INSERT INTO {table} SELECT seq, MD5(seq) FROM mysql.seq_1_to_{rows}")
        size = end_of(mariadb).offset - start.offset
        options = {"server": server.url, "table": table, "startingPosition": str(start)}
        limit = _LIMIT_BYTES if rows < 1_000_000 else 16 * _LIMIT_BYTES
        frame = spark.readStream.format("penstock").options(**options, maxBytesPerTrigger=str(limit)).load()
        query = run(frame, collect, tmp_path / "checkpoint", drain=True)
        assert query.awaitTermination(1000)
        grown_mib = peak_mib(server) - before_mib
    firsts, lasts = [batch[1] for batch in seen], [batch[2] for batch in seen]
    assert sum(batch[0] for batch in seen) == rows
    assert firsts == [1, *(last + 1 for last in lasts[:-1])]
    assert lasts[-1] == rows
    assert {batch[3] for batch in seen} == {1}  # batches of one transaction have its commit version
    assert len(seen) >= size // limit
    print(f"{rows} rows, {size >> 20} MiB of log, {len(seen)} batches, server grew by {grown_mib} MiB")
    assert grown_mib < 400
