"""What a store counts is what the process takes, however small the blocks."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from penstock.model import Column, TableName, TableSchema, WireType
from tests.support import store_memory_script
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

_COLUMNS = (Column("id", WireType.LONG), Column("note", WireType.BLOB, size=4, charset="binary"))
_TABLE = TableSchema(TableName("shop", "orders"), _COLUMNS, ("id",))


@pytest.mark.parametrize(
    ("rows_each", "note", "per_piece", "pieces"),
    [
        pytest.param(0, b"", 1, 15000, id="empty transactions, each a block"),
        pytest.param(1, b"", 1, 15000, id="small transactions, each a block"),
        pytest.param(1, b"", 20, 2000, id="blocks of some small transactions"),
        pytest.param(4, b"x" * 250, 20, 800, id="large blocks"),
    ],
)
def test_the_count_agrees_with_the_process(
    tmp_path: Path, rows_each: int, note: bytes, per_piece: int, pieces: int
) -> None:
    log = LogWriter().open()
    cuts = [len(log.data)]
    for number in range(pieces * per_piece):
        log.begin()
        if rows_each:
            log.map(7, _TABLE)
            log.rows(INSERT, 7, _TABLE, [[number, note]] * rows_each)
        log.commit()
        if number % per_piece == per_piece - 1:
            cuts.append(len(log.data))
    (tmp_path / "log").write_bytes(log.data)
    np.array(cuts).tofile(tmp_path / "cuts")
    command = [sys.executable, "-m", store_memory_script.__name__, str(tmp_path / "log"), str(tmp_path / "cuts")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    counted, taken = map(int, done.stdout.split())
    assert 0.8 < counted / taken < 1.2
