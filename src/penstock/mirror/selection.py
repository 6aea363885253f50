"""Which rows of a table are compared: all, those of a key range, or a sample; the same ones on both sides."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import ConfigurationError
from penstock.mirror.comparison import RowComparison
from penstock.model.integer_range import IntegerRange
from penstock.render.key_sample import KeySample
from penstock.snapshot.chunks import Chunk
from penstock.snapshot.table import SnapshotTable

_SMALL_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class RowSelection:
    """A part of the rows of a table.

    selection = RowSelection(IntegerRange(1000, 1999))
    chunks = selection.choose_chunks(snapshot.plan())
    """

    keys: IntegerRange | None = None
    sample: KeySample | None = None
    bounds: tuple[int, int] | None = None  # of the first key column, an integer; None for a sample by ids
    is_small: bool = False  # all rows of the table are read: that takes less time than many ranges

    @property
    def share(self) -> float:
        """Return which share of the rows is compared, of those in the key range."""
        return 1.0 if self.sample is None else self.sample.share

    @classmethod
    def of_table(
        cls,
        table: SnapshotTable,
        keys: IntegerRange | None,
        share: float | None,
        bounds: tuple[int, int] | None,
        *,
        small_rows: int = _SMALL_ROWS,
    ) -> "RowSelection":
        """Return the selection of a key range and of a share of a table, whose first key column has values between
        `bounds` if it is an integer. Of a table with more than `small_rows` rows, by the server's estimate, only ranges
        of the sample are read. Raises ConfigurationError for a range of another key."""
        if keys is not None and not table.key[0].is_integer:
            raise ConfigurationError(
                f"--range needs a key that begins with an integer, and {table.name} has {table.key[0].name} first:"
                " leave the option out to compare all rows"
            )
        if share is None:
            return cls(keys)
        if bounds is None:
            return cls(keys, KeySample(share))
        if keys is not None:
            low, high = bounds
            bounds = (
                max(low, low if keys.low is None else keys.low),
                min(high, high if keys.high is None else keys.high),
            )
        is_small = table.estimated_rows <= small_rows
        return cls(keys, KeySample.of_integers(share, *bounds), bounds, is_small)

    def choose_chunks(self, plan: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield the chunks, or parts of them, that have rows of the selection."""
        if self.sample is not None and self.bounds is not None and not self.is_small:
            for some in self.sample.ranges(*self.bounds):
                yield Chunk(_behind(some.low), _up_to(some.high))
            return
        for chunk in plan:
            cut = chunk if self.keys is None else _cut_chunk(chunk, self.keys)
            if cut is not None:
                yield cut

    def filter_rows(self, rows: pa.RecordBatch, comparison: RowComparison) -> pa.RecordBatch:
        """Return the rows of the selection."""
        if self.keys is None and self.sample is None:
            return rows
        mask = np.ones(rows.num_rows, np.bool_)
        if self.keys is not None or self.bounds is not None:
            first = comparison.key[0]
            column = rows.column(rows.schema.get_field_index(first.name))
            numbers = _read_integers(first.convert(column))
            if self.keys is not None:
                mask &= _is_inside(numbers, self.keys)
            if self.sample is not None and self.bounds is not None:
                mask &= self.sample.has_integers(numbers)
        if self.sample is not None and self.bounds is None:
            mask &= self.sample.has_texts(comparison.make_ids(rows))
        return rows if mask.all() else rows.filter(pa.array(mask))


def _read_integers(texts: pa.Array) -> NDArray[Any]:
    """Return the numbers of texts, in Python's integers where they need more than 64 bits; a null is 0."""
    try:
        return texts.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return np.array([int(text or 0) for text in texts.to_pylist()], np.object_)


def _is_inside(numbers: NDArray[Any], keys: IntegerRange) -> NDArray[np.bool_]:
    """Return which numbers lie in a range."""
    mask = np.ones(numbers.size, np.bool_)
    if numbers.dtype != np.object_ and any(
        limit is not None and limit >> 63 not in {0, -1} for limit in (keys.low, keys.high)
    ):
        numbers = numbers.astype(np.object_)
    if keys.low is not None:
        mask &= (numbers >= keys.low).astype(np.bool_)
    if keys.high is not None:
        mask &= (numbers <= keys.high).astype(np.bool_)
    return mask


def _cut_chunk(chunk: Chunk, keys: IntegerRange) -> Chunk | None:
    """Return the part of a chunk that has keys of a range; None if it has none."""
    after, until = chunk.after, chunk.until
    if keys.low is not None:
        if until is not None and int(until[0]) < keys.low:
            return None
        if after is None or int(after[0]) < keys.low:
            after = _behind(keys.low)
    if keys.high is not None:
        if after is not None and int(after[0]) > keys.high:
            return None
        if until is None or int(until[0]) > keys.high:
            until = _up_to(keys.high)
    return Chunk(after, until, chunk.estimated_rows)


def _behind(low: int | None) -> tuple[str] | None:
    """Return the limit of a chunk that begins with an integer key."""
    return None if low is None else (str(low - 1),)


def _up_to(high: int | None) -> tuple[str] | None:
    """Return the limit of a chunk that ends with an integer key."""
    return None if high is None else (str(high),)
