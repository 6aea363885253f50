"""A sample of keys that is the same on every side: which keys belong to it is decided by a hash, and by nothing else.

Integer keys are sampled in blocks of neighbours, so that a database reads ranges and not single rows. A block has 2^n
keys, of which n follows from the span of the keys and the share: a table of any size is read in about a hundred ranges,
and growing moves few tables to another n.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import ConfigurationError
from penstock.model.integer_range import IntegerRange
from penstock.render.digest import digest_texts

_RANGES = 64  # about so many ranges of integer keys are read
_ALL = 1 << 64
_STEP, _MIX, _LAST_MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def parse_share(text: str) -> float:
    """Return the share that the value of `--sample` means, such as `1%` or `0.01`. Raises ConfigurationError for
    another text, and for a share that is not above 0 and up to 1."""
    number, percent, rest = text.strip().partition("%")
    try:
        share = math.nan if rest else float(number) / (100 if percent else 1)
    except ValueError:
        share = math.nan
    if not 0 < share <= 1:
        raise ConfigurationError(f"--sample is a share such as 1% or 0.01, above 0 and up to 100 %, not {text!r}")
    return share


@dataclass(frozen=True, slots=True)
class KeySample:
    """A share of all keys, chosen by their hash.

    sample = KeySample.of_integers(0.01, 1, 5_000_000)
    ranges = list(sample.ranges(1, 5_000_000))
    """

    share: float
    shift: int = 0  # integers whose upper bits are equal belong to one block

    @classmethod
    def of_integers(cls, share: float, low: int, high: int) -> "KeySample":
        """Return a sample of integer keys, which lie between two of them."""
        return cls(share, max(0, (high - low).bit_length() - math.ceil(math.log2(_RANGES / share))))

    @property
    def _limit(self) -> int:
        """Return the hash from which on keys do not belong to the sample."""
        return int(self.share * _ALL)

    def has_texts(self, ids: pa.Array) -> NDArray[np.bool_]:
        """Return which ids belong to the sample, where keys are not integers."""
        return self._choose(digest_texts(ids)[:, 1].view(np.uint64))

    def has_integers(self, keys: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which integer keys belong to the sample; an array of Python's integers may have any size."""
        blocks: NDArray[Any] = keys >> self.shift
        if blocks.dtype == np.object_:
            blocks = np.array([int(block) % _ALL for block in blocks], np.uint64)
        return self._choose(_hash(blocks.astype(np.int64).view(np.uint64) if blocks.dtype.kind == "i" else blocks))

    def ranges(self, low: int, high: int) -> Iterator[IntegerRange]:
        """Yield the ranges of keys of the sample between two keys, in their order."""
        first, last = low >> self.shift, high >> self.shift
        blocks = np.array(range(first, last + 1), np.object_) if last >> 63 else np.arange(first, last + 1)
        chosen = np.flatnonzero(KeySample(self.share).has_integers(blocks))
        for run in np.split(chosen, np.flatnonzero(np.diff(chosen) != 1) + 1) if chosen.size else ():
            begin, end = first + int(run[0]), first + int(run[-1]) + 1
            yield IntegerRange(max(low, begin << self.shift), min(high, (end << self.shift) - 1))

    def _choose(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which hashes belong to the sample."""
        return np.ones(hashes.size, np.bool_) if self._limit >= _ALL else hashes < np.uint64(self._limit)


def _hash(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a hash of each number (SplitMix64)."""
    mixed = numbers + _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _LAST_MIX
    return mixed ^ (mixed >> np.uint64(31))
