"""Rows that are kept until their read view is closed."""

import tempfile
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.document.key_spool import spool_rows


def batches_of(sizes: list[int]) -> list[pa.RecordBatch]:
    first, batches = 0, list[pa.RecordBatch]()
    for size in sizes:
        keys = range(first, first + size)
        names = pa.array([f"n{key}" for key in keys], pa.string())
        batches.append(pa.record_batch({"id": pa.array(keys, pa.int64()), "name": names}))
        first += size
    return batches


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, 3_000))
def test_rows_come_back_in_their_order_whatever_is_in_memory(sizes: list[int], most_bytes: int) -> None:
    batches = batches_of(sizes)
    with spool_rows(batches, most_bytes) as spooled:
        rows = [row for batch in spooled for row in batch.to_pylist()]
    assert rows == [row for batch in batches for row in batch.to_pylist()]


def test_all_rows_are_read_before_the_first_is_given_back() -> None:
    read: list[int] = []

    def rows() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches_of([3, 3, 3])):
            yield batch
            read.append(number)

    with spool_rows(rows()) as spooled:
        assert read == [0, 1, 2]
        assert next(spooled).num_rows == 3


def test_rows_beyond_the_limit_are_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    original = tempfile.SpooledTemporaryFile
    monkeypatch.setattr(
        tempfile, "SpooledTemporaryFile", lambda **options: made.append(original(**options)) or made[-1]
    )
    for most_bytes, is_in_file in ((1 << 20, False), (1_000, True)):
        with spool_rows(batches_of([100] * 4), most_bytes) as spooled:
            assert made[-1]._rolled is is_in_file
            assert sum(batch.num_rows for batch in spooled) == 400
        assert made[-1].closed
