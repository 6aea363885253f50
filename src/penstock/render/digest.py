"""Digests of texts: 128 bits by which two long lists of texts are compared without holding the texts.

Invariant: a text has the same digest in every process and on every machine. Digests are no protection against people
who look for two texts with the same one.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.kernel import BYTES, I64S_2D, I64S_IN, NONE, kernel, read_little_endian
from penstock.render.text import get_bytes

_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_MIX, _LAST_MIX = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_29, _31, _32, _33 = np.uint64(29), np.uint64(31), np.uint64(32), np.uint64(33)


def digest_texts(texts: pa.Array) -> NDArray[np.int64]:
    """Return the digest of each text as two numbers of 64 bits; null and an empty text have the same one."""
    data, bounds = get_bytes(texts)
    out = np.zeros((len(texts), 2), np.int64)
    digest_spans(data, bounds, out)
    return out


@kernel(NONE(BYTES, I64S_IN, I64S_2D))
def digest_spans(data: Any, bounds: Any, out: Any) -> None:
    """Write the digest of data[bounds[i]:bounds[i + 1]] into out[i]: two sums over its words of eight bytes, each of
    which is mixed in by a multiplication of its own; the last word is filled with zeros, and the length comes last."""
    for i in range(out.shape[0]):
        at, end = bounds[i], bounds[i + 1]
        length = np.uint64(end - at)
        first, second = _FIRST, _SECOND
        while at < end:
            width = min(np.int64(8), end - at)
            word = np.uint64(read_little_endian(data, at, width))
            first = (first ^ word) * _MIX
            first ^= first >> _32
            second = (second + word) * _LAST_MIX
            second ^= second >> _29
            at += width
        first = (first ^ length) * _LAST_MIX
        first = (first ^ first >> _33) * _MIX
        second = (second + length) * _MIX
        second = (second ^ second >> _31) * _LAST_MIX
        out[i, 0], out[i, 1] = np.int64(first ^ first >> _29), np.int64(second ^ second >> _32)
