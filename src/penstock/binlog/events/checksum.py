"""CRC32 as zlib computes it, sixteen bytes a step, so that a kernel can verify events without leaving the loop."""

from typing import Any

import numpy as np

from penstock.binlog.kernel import shared, u32


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
def _four(tables: Any, first: int, word: Any) -> Any:
    """What four bytes do to the sum, with the table of the last of them at `first`."""
    return (
        tables[np.uint64(first + 768 + (word & _BYTE))]
        ^ tables[np.uint64(first + 512 + (word >> _8 & _BYTE))]
        ^ tables[np.uint64(first + 256 + (word >> _16 & _BYTE))]
        ^ tables[np.uint64(first + (word >> _24))]
    )


@shared
def crc32(data: Any, at: int, end: int, tables: Any) -> Any:
    crc = np.uint32(0xFFFFFFFF)
    while at + 16 <= end:
        crc = (
            _four(tables, 3072, crc ^ np.uint32(u32(data, at)))
            ^ _four(tables, 2048, np.uint32(u32(data, at + 4)))
            ^ _four(tables, 1024, np.uint32(u32(data, at + 8)))
            ^ _four(tables, 0, np.uint32(u32(data, at + 12)))
        )
        at += 16
    while at < end:
        crc = tables[np.uint64((crc ^ np.uint32(data[np.uint64(at)])) & _BYTE)] ^ crc >> _8
        at += 1
    return np.int64(crc ^ np.uint32(0xFFFFFFFF))
