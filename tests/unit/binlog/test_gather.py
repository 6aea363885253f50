"""Some of many byte strings, beside what Python picks."""

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.gather import gather_bytes, take_texts
from tests.twins.strategy import examples


@given(st.data(), st.lists(st.one_of(st.none(), st.text(max_size=40)), min_size=1, max_size=20), st.integers(0, 3))
@examples(100)
def test_rows_of_texts_with_their_nulls_and_neighbours(
    data: st.DataObject, values: list[str | None], first: int
) -> None:
    array = pa.array(["left out"] * first + values, pa.string()).slice(first)
    some = st.lists(st.integers(0, len(values) - 1), max_size=20)
    rows = data.draw(st.one_of(some, some.map(sorted), st.just(list(range(len(values))))))
    taken = take_texts(array, np.array(rows, np.int64))
    taken.validate(full=True)
    assert taken.type == pa.string()
    assert taken.to_pylist() == [values[row] for row in rows]


@given(st.data(), st.lists(st.binary(max_size=9), min_size=1, max_size=20), st.integers(0, 5))
@examples(100)
def test_pieces_of_bytes_that_do_not_begin_at_the_first(data: st.DataObject, values: list[bytes], before: int) -> None:
    raw = np.frombuffer(bytes(before) + b"".join(values), np.uint8)
    bounds = (before + np.cumsum([0, *map(len, values)])).astype(np.int32)
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20))
    out, out_bounds = gather_bytes(raw, bounds, np.array(rows, np.int64))
    parts = [out[low:high].tobytes() for low, high in itertools.pairwise(out_bounds)]
    assert parts == [values[row] for row in rows]
    assert out.size == sum(map(len, parts))
