"""Values of MariaDB's COMPRESSED columns → plain bytes.

empty: the empty value | head 0: the rest is plain | head 0x80 + n: size when expanded, n bytes big-endian, then a
zlib stream, or raw deflate when bit 0x08 of the head is set
"""

import zlib

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.values.problem import TooLongError, ValueProblemError

_RAW, _WRAPPED = -15, 15
_MAX_BYTES = 0x7FFFFFFF  # of one or two values
_MANY_BYTES = 1 << 28  # of more: they can go into several batches
_FEW = 2


def decompress_values(
    data: NDArray[np.uint8], offsets: NDArray[np.int32], lengths: NDArray[np.int32]
) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]]:
    """Return a buffer of the plain values, their offsets and lengths. zlib is called once, and makes one object, per
    value."""
    pieces: list[bytes] = []
    value_offsets, sizes = offsets.copy(), lengths.copy()
    total = 0
    for row in np.flatnonzero(offsets >= 0).tolist():
        at = int(offsets[row])
        value = _plain(data[at : at + int(lengths[row])].tobytes(), row)
        value_offsets[row], sizes[row] = total, len(value)
        total += len(value)
        if total > (_MAX_BYTES if len(pieces) < _FEW else _MANY_BYTES):
            raise TooLongError(row)
        pieces.append(value)
    return np.frombuffer(b"".join(pieces), np.uint8), value_offsets, sizes


def _plain(raw: bytes, row: int) -> bytes:
    if not raw or raw[0] == 0:
        return raw[1:]
    head, width = raw[0], raw[0] & 7
    size = int.from_bytes(raw[1 : 1 + width], "big")
    if head & 0xF0 != 0x80 or not 1 <= width <= 4 or size > 1 << 30:
        raise ValueProblemError(row, f"has no known head of a compressed value: {raw[:8].hex(' ')}")
    try:
        inflater = zlib.decompressobj(_RAW if head & 8 else _WRAPPED)
        value = inflater.decompress(raw[1 + width :], size + 1)
    except zlib.error as error:
        raise ValueProblemError(row, f"cannot be expanded: {error}") from None
    if len(value) != size:
        raise ValueProblemError(row, f"expands to {len(value)} bytes instead of {size}")
    return value
