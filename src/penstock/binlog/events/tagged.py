"""GTID_TAGGED (MySQL 8.3), in kernels.

version, size, last mandatory field | fields, each: its number, its value; all numbers have a variable length

    0 flags | 1 uuid: 16 numbers | 2 number of the transaction, times 2 | 3 tag: length, text
    | 4, 5 logical times | 6 time of the commit | more, which are not of interest
"""

from typing import Any

import numpy as np

from penstock.binlog.events.state import (
    COMMIT_US,
    MAX_TAGS,
    MYSQL,
    NUMBER_AT,
    TAG_BYTES,
    TAGGED,
    TAGS,
    UUID_AT,
    UUID_BYTES,
)
from penstock.binlog.kernel import read_little_endian, shared

READ, BROKEN, NO_ROOM = range(3)
_UUID, _NUMBER, _TAG, _COMMIT_TIME = 1, 2, 3, 6
_HEAD_NUMBERS = 3
_LONGEST = 8  # bytes after the first
_NOT_ASCII = 128


@shared
def read_tagged(data: Any, at: Any, stop: Any, state: Any, gtid: Any, tags: Any) -> Any:
    """Read a GTID_TAGGED event: write the GTID, which must be all zeros before, and the commit time. Return a reason to
    stop; NO_ROOM when all tags are in use."""
    for _ in range(_HEAD_NUMBERS):
        _, at = _number(data, at, stop)
        if at < 0:
            return BROKEN
    field = np.int64(0)
    while at < stop and field <= _COMMIT_TIME:
        field, at = _number(data, at, stop)
        if at < 0:
            return BROKEN
        if field == _UUID:
            for k in range(UUID_BYTES):
                value, at = _number(data, at, stop)
                if at < 0:
                    return BROKEN
                gtid[UUID_AT + k] = value
        elif field == _TAG:
            size, at = _number(data, at, stop)
            if at < 0 or size < 0 or size >= TAG_BYTES or size > stop - at:
                return BROKEN
            tag = _tag_number(data, at, size, state, tags)
            if tag < 0:
                return BROKEN
            if tag == MAX_TAGS:
                return NO_ROOM
            gtid[0] = TAGGED + tag if size else MYSQL
            at += size
        elif field <= _COMMIT_TIME:
            value, at = _number(data, at, stop)
            if at < 0:
                return BROKEN
            if field == _NUMBER:
                value >>= 1
                for k in range(8):
                    gtid[NUMBER_AT + k] = value >> 8 * k & 0xFF
            elif field == _COMMIT_TIME:
                state[COMMIT_US] = value
    return READ if gtid[0] else BROKEN


@shared
def _tag_number(data: Any, at: Any, size: Any, state: Any, tags: Any) -> Any:
    """Return the number of a tag, which is added if it is new; -1 if it is not a tag, MAX_TAGS if there is no room for
    another."""
    for k in range(size):
        if data[at + k] >= _NOT_ASCII:
            return np.int64(-1)
    for tag in range(state[TAGS]):
        if _is_tag(data, at, size, tags, tag):
            return np.int64(tag)
    tag = state[TAGS]
    if tag < MAX_TAGS:
        tags[tag, 0] = size
        for k in range(size):
            tags[tag, 1 + k] = data[at + k]
        state[TAGS] += 1
    return tag


@shared
def _is_tag(data: Any, at: Any, size: Any, tags: Any, tag: Any) -> bool:
    if tags[tag, 0] != size:
        return False
    for k in range(size):  # noqa: SIM110 - kernels have no generators
        if tags[tag, 1 + k] != data[at + k]:
            return False
    return True


@shared
def _number(data: Any, at: Any, stop: Any) -> Any:
    """Read a number of variable length: the first byte says by its trailing ones how many bytes follow. Return the
    value and where it ends, -1 when it is cut off."""
    if at >= stop:
        return np.int64(0), np.int64(-1)
    first = np.int64(data[at])
    extra_bytes = 0
    while extra_bytes < _LONGEST and first >> extra_bytes & 1:
        extra_bytes += 1
    if at + 1 + extra_bytes > stop:
        return np.int64(0), np.int64(-1)
    if extra_bytes == _LONGEST:
        return read_little_endian(data, at + 1, 8), at + 9
    value = first >> (extra_bytes + 1)
    for k in range(extra_bytes):
        value |= np.int64(data[at + 1 + k]) << (8 * (k + 1) - extra_bytes - 1)
    return value, at + 1 + extra_bytes
