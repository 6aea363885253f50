"""Texts of any charset of the servers → UTF-8, as Arrow buffers.

What the servers cannot convert, what is cut and what is wrong becomes U+FFFD, so that the result is always valid. Bytes
of the UTF-8 family that are UTF-8 stay as they are, also where the charset has less (ascii, utf8mb3): servers do not
store such. The tables of the other charsets come from the servers (tools/make_charsets.py) and are read on first use.
"""

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.values.charset import TABLES, TEXT, UNITS, UTF8
from penstock.binlog.values.problem import TooLongError, ValueProblemError
from penstock.binlog.values.strings import string_bounds
from penstock.binlog.values.utf8 import copy_utf8, repair_utf8

_FILE = Path(__file__).with_name("charsets.npz")
_MAX_PER_BYTE = 3
_NO_TABLE = np.empty(0, np.uint16)


class UnknownCharsetError(ValueProblemError):
    """The decoder does not know the charset of a column."""

    def __init__(self, charset: str) -> None:
        super().__init__(0, f"has charset {charset}, which is not known")


def to_utf8(
    charset: str, data: NDArray[np.uint8], offsets: NDArray[np.int32], lengths: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return Arrow's offsets and bytes of the values at these offsets; a negative offset or length is null, an empty
    span."""
    offsets, lengths = offsets.astype(np.int32, copy=False), lengths.astype(np.int32, copy=False)
    bounds = np.empty(lengths.size + 1, np.int32)
    if charset not in UTF8:
        return bounds, _transcode(charset, data, offsets, lengths, bounds)
    values = np.empty(_checked(string_bounds(offsets, lengths, 0, bounds)), np.uint8)
    if not copy_utf8(data, offsets, lengths, bounds, values):
        room = _room(offsets, lengths)
        values = room[: _checked(repair_utf8(data, offsets, lengths, bounds, room))].copy()
    return bounds, values


def decode_text(charset: str, raw: bytes) -> str:
    """Return one value as text, such as the label of an ENUM; without a charset, or in `binary`, it is taken for UTF-8.
    In an unknown charset only ASCII is certain."""
    if charset in UTF8 or charset in {"", "binary"}:
        return raw.decode("utf-8", "replace")
    if charset not in TEXT:
        return raw.decode("ascii", "replace")
    offsets, sizes = np.zeros(1, np.int32), np.array([len(raw)], np.int32)
    return to_utf8(charset, np.frombuffer(raw, np.uint8), offsets, sizes)[1].tobytes().decode()


def _transcode(
    charset: str,
    data: NDArray[np.uint8],
    offsets: NDArray[np.int32],
    lengths: NDArray[np.int32],
    bounds: NDArray[np.int32],
) -> NDArray[np.uint8]:
    from penstock.binlog.values import transcode  # noqa: PLC0415 - most processes meet no other charset than UTF-8

    room = _room(offsets, lengths)
    if charset in UNITS:
        used = transcode.decode_units(data, offsets, lengths, *UNITS[charset], bounds, room)
    elif charset not in TABLES:
        raise UnknownCharsetError(charset)
    elif TABLES[charset] == 1:
        used = transcode.decode_single(data, offsets, lengths, _single(charset), charset != "swe7", bounds, room)
    else:
        used = transcode.decode_sequences(data, offsets, lengths, *_sequences(charset), bounds, room)
    return room[: _checked(used)].copy()


def _room(offsets: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Return a buffer for the longest possible result; memory that is not written to is not used."""
    total = lengths[(offsets >= 0) & (lengths > 0)].sum(dtype=np.int64)
    return np.empty(_MAX_PER_BYTE * (int(total) + 1), np.uint8)


def _checked(total: int) -> int:
    if total < 0:
        raise TooLongError
    return total


@cache
def _single(charset: str) -> NDArray[np.uint32]:
    """Return the UTF-8 of each byte of a charset, as a number: three bytes, lowest first, then how many of them
    count."""
    encoded = [chr(code).encode() for code in _load(charset).tolist()]
    return np.array([int.from_bytes(text, "little") | len(text) << 24 for text in encoded], np.uint32)


@cache
def _sequences(charset: str) -> tuple[NDArray[np.uint16], NDArray[np.uint16], NDArray[np.uint16]]:
    longest = TABLES[charset]
    pairs, longer = _load(charset), _load(f"{charset}.{longest}") if longest > 2 else _NO_TABLE
    return pairs, longer if longest == 3 else _NO_TABLE, longer if longest == 4 else _NO_TABLE


def _load(name: str) -> NDArray[np.uint16]:
    """Load a charset table, which is stored as differences because these pack better."""
    with np.load(_FILE) as tables:
        return np.cumsum(tables[name], dtype=np.uint16)
