"""A log of many tables, and the command in a process that may have few files open."""

import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.model import Column, TableName, TableSchema, WireType
from tests.twins.event import MAGIC
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

_FILES = 160  # the command's own hundred, and what libraries and threads need
_RUN = """
import sys
from penstock.cli import app
app(["binlog", *sys.argv[1:]], standalone_mode=False)
# Not ru_maxrss, which begins with what the process that started this one had.
(peak,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) >> 10)
"""


def write_tables(path: Path, tables: int) -> None:
    """shop.t0, shop.t1 and so on: each has a row in each of two transactions."""
    log = LogWriter().open()
    shapes = [
        TableSchema(TableName("shop", f"t{number}"), (Column("id", WireType.LONG),), ("id",))
        for number in range(tables)
    ]
    for turn in range(2):
        log.begin()
        for number, table in enumerate(shapes):
            log.map(10 + number, table)
            log.rows(INSERT, 10 + number, table, [[turn * tables + number]])
        log.commit()
    path.write_bytes(MAGIC + bytes(log.data))


def used_mb(log: Path, folder: Path, kind: str) -> int:
    """Write the tables into a folder; gives the memory that it took at most."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN, log, "--output", kind, "--to", folder],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, _FILES)),
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def first_column(path: Path) -> list[int]:
    match path.suffix:
        case ".csv":
            return [int(line.split(",")[0]) for line in path.read_text().splitlines()[1:]]
        case ".parquet":
            return pq.ParquetFile(path).read(["id"]).column("id").to_pylist()
        case _:
            with pa.ipc.open_file(path) as file:
                return file.read_all().column("id").to_pylist()
