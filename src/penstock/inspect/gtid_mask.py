"""Which GTIDs of a log are in a set."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.binlog.arrays import texts, view
from penstock.model import GtidSet


def are_in(gtids: pa.Array, wanted: GtidSet) -> NDArray[np.bool_]:
    """Of these texts; a null is not."""
    found = np.zeros(len(gtids), np.bool_)
    pattern = r"^(?P<source>\d+)-\d+-(?P<number>\d+)$" if wanted.is_mariadb else r"^(?P<source>.*):(?P<number>\d+)$"
    sources, texts_of_numbers = pc.extract_regex(gtids, pattern).flatten()
    numbers = view(texts_of_numbers.cast(pa.uint64()))
    for source, ranges in wanted.ranges.items():
        is_own = truths(pc.equal(pc.utf8_lower(sources), texts([source])[0]))
        for first, last in ranges:
            found |= is_own & (numbers >= first) & (numbers <= last)
    return found


def truths(array: pa.Array) -> NDArray[np.bool_]:
    """Of an array of booleans; null is false. (Arrow's own way imports pandas.)"""
    found = np.ones(len(array), np.bool_)
    for buffer in array.buffers():
        if buffer is not None:
            bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
            found &= bits[array.offset : array.offset + len(array)].astype(np.bool_)
    return found
