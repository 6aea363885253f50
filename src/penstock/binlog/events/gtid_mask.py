"""Tells which GTIDs of a block are in a set, all at once."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import compute as pc
from penstock.binlog.arrays import to_arrow_strings, to_mask, to_numpy
from penstock.model import GtidSet


def are_in(gtids: pa.Array, wanted: GtidSet) -> NDArray[np.bool_]:
    """Return a mask of the GTIDs, given as text, that are in the set; a null is in none."""
    mask = np.zeros(len(gtids), np.bool_)
    pattern = r"^(?P<source>\d+)-\d+-(?P<number>\d+)$" if wanted.is_mariadb else r"^(?P<source>.*):(?P<number>\d+)$"
    sources, texts_of_numbers = pc.extract_regex(gtids, pattern).flatten()
    numbers = to_numpy(texts_of_numbers.cast(pa.uint64()))
    for source, ranges in wanted.ranges.items():
        is_own = to_mask(pc.equal(pc.utf8_lower(sources), to_arrow_strings([source])[0]))
        for first, last in ranges:
            mask |= is_own & (numbers >= first) & (numbers <= last)
    return mask
