"""What a process loads before its first batch; Spark starts many of them."""

import subprocess
import sys
from pathlib import Path

from penstock.model import Column, TableName, TableSchema, WireType
from tests.twins.log import LogWriter
from tests.twins.row import UPDATE

_CODE = """
import pathlib, sys
import numpy as np
from penstock.binlog.events.block import Block
from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.binlog.events.reader import BlockReader
from penstock.model import Position

data = np.fromfile(sys.argv[1], np.uint8)
reader = BlockReader(Position("binlog.000001", 4))
reader.room(data.size)[: data.size] = data
reader.advance(data.size)
(block,) = reader.blocks(flush=True)
table = block.schema_of(7)
(batch,) = decode_changes(block.select_tables({table.name}), table.name, arrow_fields_of_table(table))
print(batch.num_rows, *sorted({"pandas", "pyspark", "pymysql", "pydantic", "numba"} & sys.modules.keys()))
"""


def test_the_first_batch_needs_neither_pandas_nor_a_driver(tmp_path: Path) -> None:
    columns = (
        Column("id", WireType.LONG),
        Column("state", WireType.ENUM, size=1, labels=("a", "b"), charset="utf8mb4"),
        Column("flags", WireType.SET, size=1, labels=("x", "y"), charset="utf8mb4"),
    )
    table = TableSchema(TableName("shop", "orders"), columns)
    log = LogWriter().open()
    log.begin()
    log.map(7, table)
    log.rows(UPDATE, 7, table, [[1, "a", ["x"]], [1, "b", ["x", "y"]]])
    log.commit()
    path = tmp_path / "binlog.000001"
    path.write_bytes(bytes(log.data))
    first, second = (
        subprocess.run([sys.executable, "-c", _CODE, str(path)], capture_output=True, text=True, check=False)
        for _ in range(2)
    )
    assert first.returncode == 0, first.stderr
    # The first may have compiled kernels; after it they are on disk, and numba stays away.
    assert second.stdout.split() == ["2"], second.stdout + second.stderr
