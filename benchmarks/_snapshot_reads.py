"""Ways to read one table: snapshots of ours, Spark's JDBC source, and PyMySQL; and Spark's own Parquet reader, as the
limit of what any source can do that Spark writes to Parquet."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pymysql
from pymysql.cursors import SSCursor

from benchmarks._server_run import connection_of
from penstock.testing import DatabaseServer

DRIVER = "org.mariadb.jdbc:mariadb-java-client:3.5.3"
_TICKS = os.sysconf("SC_CLK_TCK")
_FETCH_SIZE = {"fetchsize": "10000"}  # else the driver holds the whole result of a query in memory
_TEXT_PROTOCOL = "&useServerPrepStmts=false"

Target = Literal["parquet", "noop"]
"""Where Spark writes what it reads: Parquet files, or nowhere."""


@dataclass(frozen=True, slots=True)
class TableRead:
    """One read of the table: how long it took, and what it cost the source."""

    rows: int
    seconds: float
    source_cpu_s: float
    peak_mib: float = 0.0

    @property
    def rows_per_s(self) -> float:
        return self.rows / self.seconds

    @property
    def source_cpu_per_million(self) -> float:
        return self.source_cpu_s / self.rows * 1e6


class TableReads:
    """Reads the table `shop.t` of a server in different ways. Spark writes it to Parquet, or nowhere; the command
    writes Parquet; PyMySQL makes tuples."""

    def __init__(self, source: DatabaseServer, folder: Path, table: str, rows: int) -> None:
        self._source, self._folder, self._table, self._rows = source, folder, table, rows

    def spark_snapshot(self, spark: Any, partitions: int, target: Target) -> TableRead:
        """Read with `format("penstock_snapshot")`, in about so many chunks."""
        options = {**connection_of(self._source), "table": self._table, "chunkRows": str(self._rows // partitions)}
        return self._write(lambda: spark.read.format("penstock_snapshot").options(**options).load(), target)

    def jdbc(self, spark: Any, partitions: int, target: Target, *, is_tuned: bool = True) -> TableRead:
        """Read with `format("jdbc")`, over one connection or in equal ranges of the key; tuned, or as it is without
        options."""
        source = connection_of(self._source)
        flags = "?permitMysqlScheme" + (_TEXT_PROTOCOL if is_tuned else "")
        options = {
            "url": f"jdbc:mysql://{source['host']}:{source['port']}/{flags}",
            "driver": "org.mariadb.jdbc.Driver",
            "dbtable": self._table,
            "user": source["user"],
            "password": source["password"],
        } | (_FETCH_SIZE if is_tuned else {})
        if partitions > 1:
            ends = {"partitionColumn": "id", "lowerBound": "1", "upperBound": str(self._rows)}
            options |= {**ends, "numPartitions": str(partitions)}
        return self._write(lambda: spark.read.format("jdbc").options(**options).load(), target)

    def copy_parquet(self, spark: Any, partitions: int) -> TableRead:
        """Let Spark write to Parquet what it reads from as many Parquet files: no source can be faster."""
        copied = self._folder / "copied.parquet"
        if not copied.exists():
            self.spark_snapshot(spark, partitions, "parquet")
            self._written.rename(copied)
        return self._write(lambda: spark.read.parquet(str(copied)), "parquet")

    @property
    def _written(self) -> Path:
        return self._folder / "written.parquet"

    def _write(self, load: Callable[[], Any], target: Target) -> TableRead:
        """Write a DataFrame, and check that Parquet files have all rows."""
        shutil.rmtree(self._written, ignore_errors=True)
        before, began = self._source_cpu_s(), time.perf_counter()
        if target == "parquet":
            load().write.parquet(str(self._written))
        else:
            load().write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - began
        if target == "parquet":
            self._check(self._written)
        return TableRead(self._rows, seconds, self._source_cpu_s() - before)

    def command(self, rows: int, connections: int, table: str = "") -> TableRead:
        """Run `penstock snapshot`, the whole process with its start."""
        source, target = connection_of(self._source), self._folder / "command"
        shutil.rmtree(target, ignore_errors=True)
        connection_options = ["--host", source["host"], "--port", str(source["port"]), "--user", source["user"]]
        arguments = ["snapshot", table or self._table, *connection_options, "--output", "parquet", "--to", str(target)]
        command = [
            sys.executable,
            "-c",
            "from penstock.cli import main; main()",
            *arguments,
            "--connections",
            str(connections),
        ]
        environment = {**os.environ, "PENSTOCK_PASSWORD": str(source["password"])}
        before, began = self._source_cpu_s(), time.perf_counter()
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            message = process.stderr.read() if process.stderr is not None else ""
        seconds = time.perf_counter() - began
        if process.returncode:
            raise RuntimeError(f"penstock snapshot failed: {message}")
        if not table:
            self._check(target)
        return TableRead(rows, seconds, self._source_cpu_s() - before, usage.ru_maxrss / 1024)

    def pymysql(self) -> TableRead:
        """Read all rows as tuples, and drop them."""
        source = connection_of(self._source)
        before, began = self._source_cpu_s(), time.perf_counter()
        count = 0
        with closing(pymysql.connect(**source, cursorclass=SSCursor)) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {self._table}")
            while rows := cursor.fetchmany(10_000):
                count += len(rows)
        if count != self._rows:
            raise RuntimeError(f"PyMySQL has read {count} rows of {self._rows}")
        return TableRead(count, time.perf_counter() - began, self._source_cpu_s() - before)

    def _check(self, target: Path) -> None:
        """Raise when a folder of Parquet files does not have all rows."""
        from pyarrow import dataset  # noqa: PLC0415 - takes its time to load

        count = dataset.dataset(target, format="parquet", exclude_invalid_files=True).count_rows()
        if count != self._rows:
            raise RuntimeError(f"{target} has {count} rows of {self._rows}")

    def _source_cpu_s(self) -> float:
        fields = Path(f"/proc/{self._source.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
