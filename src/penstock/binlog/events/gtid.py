"""GTIDs of the index → text: MySQL's `uuid:number` or `uuid:tag:number`, MariaDB's `domain-server-number`, or null."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.events.state import (
    DOMAIN_AT,
    MARIADB,
    MYSQL,
    NUMBER_AT,
    ORIGIN_AT,
    TAG_BYTES,
    TAGGED,
    UUID_AT,
    UUID_BYTES,
)
from penstock.binlog.kernel import I32S, I64, I64S, U8S, U8S_2D, kernel, read_little_endian, shared

_LONGEST = 92
_TEN = np.uint64(10)
_HYPHEN, _COLON = 45, 58


@shared
def _write_number(value: int, out: Any, at: int) -> Any:
    """Write an unsigned 64-bit number as digits to out[at], and return where they end."""
    left = np.uint64(value)
    digits = 1
    rest = left // _TEN
    while rest:
        digits += 1
        rest //= _TEN
    for k in range(digits):
        out[at + digits - 1 - k] = np.uint8(48) + np.uint8(left % _TEN)
        left //= _TEN
    return at + digits


@kernel(I64(U8S_2D, U8S_2D, U8S, I32S, I64S))
def _render(gtids: Any, tags: Any, out: Any, bounds: Any, lengths: Any) -> Any:
    """Write the text of each GTID into `out`, and where each ends into `bounds`; with 0 bytes for no GTID."""
    at = 0
    bounds[0] = 0
    hexes = b"0123456789abcdef"
    for i in range(gtids.shape[0]):
        gtid = gtids[i]
        lengths[i] = 0
        tag = np.int64(gtid[0]) - TAGGED
        if gtid[0] == MYSQL or 0 <= tag < tags.shape[0]:
            for k in range(UUID_BYTES):
                if k in (4, 6, 8, 10):
                    out[at] = _HYPHEN
                    at += 1
                byte = gtid[UUID_AT + k]
                out[at] = hexes[byte >> 4]
                out[at + 1] = hexes[byte & 15]
                at += 2
            out[at] = _COLON
            at += 1
            if tag >= 0:
                for k in range(tags[tag, 0]):
                    out[at] = tags[tag, 1 + k]
                    at += 1
                out[at] = _COLON
                at += 1
            at = _write_number(read_little_endian(gtid, NUMBER_AT, 8), out, at)
        elif gtid[0] == MARIADB:
            at = _write_number(read_little_endian(gtid, DOMAIN_AT, 4), out, at)
            out[at] = _HYPHEN
            at = _write_number(read_little_endian(gtid, ORIGIN_AT, 4), out, at + 1)
            out[at] = _HYPHEN
            at = _write_number(read_little_endian(gtid, NUMBER_AT, 8), out, at + 1)
        else:
            lengths[i] = -1
        bounds[i + 1] = at
    return at


def render_gtids(gtids: NDArray[np.uint8], tags: Sequence[str] = ()) -> pa.Array:
    """Return GTIDs as text, given one line of GTID_BYTES per event."""
    count = gtids.shape[0]
    raw = np.zeros((len(tags), TAG_BYTES), np.uint8)
    for i, tag in enumerate(tags):
        raw[i, : len(tag) + 1] = np.frombuffer(bytes([len(tag)]) + tag.encode("ascii"), np.uint8)
    out = np.empty(count * _LONGEST, np.uint8)
    bounds, lengths = np.empty(count + 1, np.int32), np.empty(count, np.int64)
    size = _render(gtids, raw, out, bounds, lengths)
    valid = np.packbits(lengths >= 0, bitorder="little")
    buffers = [pa.py_buffer(valid), pa.py_buffer(bounds), pa.py_buffer(out[:size].tobytes())]
    return pa.Array.from_buffers(pa.string(), count, buffers)
