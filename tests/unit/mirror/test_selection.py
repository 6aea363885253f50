"""The parts of a table that are compared: ids, ranges of keys over chunks, and samples."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigurationError
from penstock.mirror.comparison import RowComparison
from penstock.mirror.mirror_column import MirrorColumn
from penstock.mirror.selection import RowSelection
from penstock.model import Column, WireType
from penstock.model.integer_range import IntegerRange
from penstock.render.key_sample import KeySample, parse_share
from penstock.snapshot.chunks import Chunk

NUMBER = MirrorColumn.of(Column("n", WireType.LONGLONG), pa.int64(), pa.int64())
TEXT = MirrorColumn.of(Column("t", WireType.VARCHAR, size=9, charset="utf8mb4"), pa.string(), pa.string())


@given(st.lists(st.one_of(st.none(), st.text("a:%3AN25", max_size=6)), min_size=1), st.booleans())
def test_an_id_tells_its_key(texts: list[str | None], is_composite: bool) -> None:
    comparison = RowComparison((NUMBER, TEXT), (TEXT, NUMBER) if is_composite else (TEXT,))
    numbers = list(range(len(texts)))
    rows = pa.record_batch({"n": pa.array(numbers, pa.int64()), "t": pa.array(texts, pa.string())})
    ids = comparison.make_ids(rows).to_pylist()
    parsed = [comparison.parse_id(name) for name in ids]
    assert parsed == [[text, str(number)] if is_composite else [text] for number, text in enumerate(texts)]


@given(st.lists(st.integers(-50, 50), max_size=8, unique=True), st.integers(-60, 60), st.integers(0, 60))
def test_a_range_cuts_chunks_so_that_each_key_is_in_one_of_them(limits: list[int], low: int, width: int) -> None:
    keys = IntegerRange(low, low + width)
    bounds = [None, *((str(limit),) for limit in sorted(limits)), None]
    chunks = list(RowSelection(keys).choose_chunks(Chunk(*pair) for pair in pairwise(bounds)))
    for number in range(-70, 130):
        holders = [chunk for chunk in chunks if _has(chunk, number)]
        assert len(holders) == (number in keys)


def _has(chunk: Chunk, number: int) -> bool:
    return (chunk.after is None or number > int(chunk.after[0])) and (
        chunk.until is None or number <= int(chunk.until[0])
    )


@pytest.mark.parametrize("keys", [[1, 5, 100, None], [2**63 + 5, 3, -4, None]])
def test_rows_of_a_range_are_chosen_whatever_the_size_of_their_keys(keys: list[int | None]) -> None:
    kind = pa.decimal128(20, 0)
    pair = MirrorColumn.of(Column("n", WireType.LONGLONG, unsigned=True), pa.uint64(), kind)
    comparison, rows = RowComparison((pair,), (pair,)), pa.record_batch({"n": pa.array(keys, kind)})
    chosen = RowSelection(IntegerRange(3, 2**63 + 9)).filter_rows(rows, comparison).column(0).to_pylist()
    assert chosen == [key for key in keys if key is not None and 3 <= key <= 2**63 + 9]


@given(st.integers(-(2**62), 2**62), st.integers(1, 2**40), st.sampled_from([0.5, 0.1, 0.01, 1.0]))
def test_the_ranges_of_a_sample_have_its_keys_and_no_others(low: int, span: int, share: float) -> None:
    high = low + span
    sample = KeySample.of_integers(share, low, high)
    ranges = list(sample.ranges(low, high))
    assert len(ranges) <= 2 * 64 + 1
    keys = np.array([low, high, *np.random.default_rng(span).integers(low, high, 200)], np.int64)
    inside = [any(int(key) in some for some in ranges) for key in keys]
    assert sample.has_integers(keys).tolist() == inside
    assert sample.has_integers(keys.astype(np.object_)).tolist() == inside


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_a_sample_has_about_its_share(share: float) -> None:
    sample = KeySample.of_integers(share, 1, 1_000_000)
    count = int(sample.has_integers(np.arange(1, 1_000_001)).sum())
    assert 0.6 * share < count / 1e6 < 1.5 * share
    texts = pa.array([f"key {number}" for number in range(50_000)])
    assert 0.8 * share < KeySample(share).has_texts(texts).sum() / 50_000 < 1.2 * share


def test_a_sample_of_texts_is_chosen_by_their_ids() -> None:
    comparison = RowComparison((TEXT,), (TEXT,))
    rows = pa.record_batch({"t": pa.array([f"t{number}" for number in range(1000)])})
    selection = RowSelection(sample=KeySample(0.1))
    chosen = selection.filter_rows(rows, comparison)
    assert 50 < chosen.num_rows < 160
    assert selection.filter_rows(chosen, comparison).num_rows == chosen.num_rows


@pytest.mark.parametrize(("text", "share"), [("1%", 0.01), ("0.25", 0.25), ("100 %", 1.0), ("0.5%", 0.005)])
def test_a_share_is_a_number_or_a_percentage(text: str, share: float) -> None:
    assert parse_share(text) == share


@pytest.mark.parametrize("text", ["0", "-1", "101%", "2", "a", "", "nan", "1%1"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--sample"):
        parse_share(text)


def test_a_range_needs_an_integer_key() -> None:
    key: Any = SimpleNamespace(name="code", is_integer=False)
    table: Any = SimpleNamespace(key=[key], name="shop.t")
    with pytest.raises(ConfigurationError, match=r"begins with an integer, and shop\.t has code first"):
        RowSelection.of_table(table, IntegerRange(1, 2), None, None)
