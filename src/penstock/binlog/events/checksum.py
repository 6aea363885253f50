"""CRC32 as zlib computes it, inside kernels, so that an event is verified without leaving the loop.

Long ranges are folded by carry-less multiplication, 64 bytes a step, where the processor has it. What is left, and
everything on other processors, goes through sixteen tables.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.layout import CHECKSUM
from penstock.binlog.kernel import BYTES, I32S_IN, I64, IS_CHECKED, U32S_IN, kernel, lowered, shared, u32
from penstock.binlog.processor import can_multiply_carryless

IS_FOLDED = not IS_CHECKED and can_multiply_carryless()
_FOLD_FROM = 128  # bytes from which folding pays


def _tables() -> "np.ndarray[Any, np.dtype[np.uint32]]":
    table = np.zeros((16, 256), np.uint32)
    for value in range(256):
        crc = value
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
        table[0, value] = crc
    for k in range(1, 16):
        before = table[k - 1]
        table[k] = before >> 8 ^ table[0, before & 0xFF]
    return table.reshape(-1)


TABLES = _tables()
_BYTE, _8, _16, _24 = np.uint32(0xFF), np.uint32(8), np.uint32(16), np.uint32(24)


@shared
def _no_fold(data: Any, at: int, steps: int) -> Any:  # noqa: ARG001 - stands in for the other
    return np.int64(0), np.int64(0)


_fold_bytes: Any = lowered("fold") if IS_FOLDED else _no_fold


@shared
def _four(tables: Any, first: int, word: Any) -> Any:
    """Return the CRC32 state after four bytes, given as one word, with the table of the last of them at `first`."""
    return (
        tables[np.uint64(first + 768 + (word & _BYTE))]
        ^ tables[np.uint64(first + 512 + (word >> _8 & _BYTE))]
        ^ tables[np.uint64(first + 256 + (word >> _16 & _BYTE))]
        ^ tables[np.uint64(first + (word >> _24))]
    )


@shared
def _sixteen(tables: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Return the CRC32 state after sixteen bytes, given as four words."""
    return (
        _four(tables, 3072, np.uint32(a))
        ^ _four(tables, 2048, np.uint32(b))
        ^ _four(tables, 1024, np.uint32(c))
        ^ _four(tables, 0, np.uint32(d))
    )


@shared
def crc32(data: Any, at: int, end: int, tables: Any) -> Any:
    """Return the CRC32 of data[at:end], as zlib computes it."""
    crc = np.uint32(0xFFFFFFFF)
    if IS_FOLDED and end - at >= _FOLD_FROM:
        steps = (end - at) // 64
        low, high = _fold_bytes(data, at, steps)
        crc = _sixteen(tables, low & 0xFFFFFFFF, low >> 32 & 0xFFFFFFFF, high & 0xFFFFFFFF, high >> 32 & 0xFFFFFFFF)
        at += 64 * steps
    while at + 16 <= end:
        crc = _sixteen(tables, crc ^ np.uint32(u32(data, at)), u32(data, at + 4), u32(data, at + 8), u32(data, at + 12))
        at += 16
    while at < end:
        crc = tables[np.uint64((crc ^ np.uint32(data[np.uint64(at)])) & _BYTE)] ^ crc >> _8
        at += 1
    return np.int64(crc ^ np.uint32(0xFFFFFFFF))


@kernel(I64(BYTES, U32S_IN))
def _checksum(data: Any, tables: Any) -> Any:
    return crc32(data, 0, data.size, tables)


def checksum_of(data: NDArray[np.uint8]) -> int:
    """Return the CRC32 of an array of bytes, as zlib.crc32 does, several times as fast for many bytes."""
    return _checksum(data, TABLES)


@shared
def extend_block_checksum(checksum: Any, data: Any, at: Any, tables: Any) -> Any:
    """Return the block checksum extended by the checksum of the event that ends at `at`; it begins with all ones and
    ends inverted."""
    return np.int64(_four(tables, 0, np.uint32(checksum) ^ np.uint32(u32(data, at))))


@kernel(I64(BYTES, I32S_IN, U32S_IN))
def _block_checksum(data: Any, bounds: Any, tables: Any) -> Any:
    checksum = np.int64(0xFFFFFFFF)
    for event in range(1, bounds.size):
        checksum = extend_block_checksum(checksum, data, np.int64(bounds[event]) - CHECKSUM, tables)
    return checksum ^ np.int64(0xFFFFFFFF)


def block_checksum(data: NDArray[np.uint8], bounds: NDArray[np.int32]) -> int:
    """Return the checksum of a block: one over the checksums with which its events end. Where each event matches its
    own, it covers all their bytes."""
    return _block_checksum(data, bounds, TABLES)


@kernel(I64(BYTES, I32S_IN, U32S_IN))
def _find_invalid(data: Any, bounds: Any, tables: Any) -> Any:
    for event in range(bounds.size - 1):
        at: Any = np.int64(bounds[event])
        stop: Any = np.int64(bounds[event + 1]) - CHECKSUM
        if at < 0 or stop < at or stop + CHECKSUM > data.size or crc32(data, at, stop, tables) != u32(data, stop):
            return np.int64(event)
    return np.int64(-1)


def have_valid_checksums(data: NDArray[np.uint8], bounds: NDArray[np.int32]) -> bool:
    """Return whether each of these events matches the checksum with which it ends."""
    return _find_invalid(data, bounds, TABLES) < 0
