"""What a store counts is what the process takes, however small the blocks."""

import subprocess
import sys

import pytest

from tests.unit.store import memory_script


@pytest.mark.parametrize(
    ("rows_each", "per_piece", "pieces"),
    [
        pytest.param(0, 1, 6000, id="empty transactions, each a block"),
        pytest.param(1, 1, 6000, id="small transactions, each a block"),
        pytest.param(1, 20, 600, id="blocks of some small transactions"),
        pytest.param(200, 20, 100, id="large blocks"),
    ],
)
def test_the_count_agrees_with_the_process(rows_each: int, per_piece: int, pieces: int) -> None:
    command = [sys.executable, "-m", memory_script.__name__, *map(str, (rows_each, per_piece, pieces))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    counted, taken = map(int, done.stdout.split())
    assert 0.8 < counted / taken < 1.2
