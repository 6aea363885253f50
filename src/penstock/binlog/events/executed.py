"""The set of transactions that a log has had up to a position: a set before it, and the GTIDs since."""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.state import (
    DOMAIN_AT,
    GTID_BYTES,
    MARIADB,
    NO_GTID,
    NUMBER_AT,
    ORIGIN_AT,
    TAGGED,
)
from penstock.binlog.kernel import BYTES, PAIR, brief_kernel, u32
from penstock.model import GtidSet

_MARIADB = struct.Struct("<BII8xQ")
_MYSQL = struct.Struct("<B16sq")


def executed_after(
    known: GtidSet, gtids: NDArray[np.uint8], boundary: NDArray[np.uint8], tags: Sequence[str]
) -> GtidSet:
    """Return the executed GTID set `known`, extended by the GTIDs of the transactions that end in a block.

    For each event, in the order of the log: `gtids` has one row of GTID_BYTES bytes, the GTID of its transaction, and
    `boundary` is 1 if the event ends that transaction.
    """
    first, last = _run(gtids.reshape(-1), boundary)
    if last < 0:
        return known
    if first >= 0:  # of one source, one after the other, as most are
        line = gtids[last].tobytes()
        if line[0] == MARIADB:
            return _with_last(known, line)
        flavour, uuid, low = _MYSQL.unpack(gtids[first].tobytes())
        _, _, high = _MYSQL.unpack(line)
        tag = flavour - TAGGED
        return known.with_range(_source(uuid, tags[tag] if tag >= 0 else ""), (low, high)) if tag < len(tags) else known
    gtids = gtids[boundary.view(np.bool_)]
    gtids = gtids[gtids[:, 0] != NO_GTID]
    is_mariadb = gtids[:, 0] == MARIADB
    known = _with_mariadb(known, gtids[is_mariadb])
    others = gtids[~is_mariadb]
    _, which = np.unique(others[:, :NUMBER_AT], axis=0, return_inverse=True) if others.size else (None, np.zeros(0))
    for source in range(int(which.max(initial=-1)) + 1):
        known = _with_mysql(known, others[which == source], tags)
    return known


@brief_kernel(PAIR(BYTES, BYTES))
def _run(gtids: Any, boundary: Any) -> Any:
    """Return the first and the last event that end a transaction with a GTID; -1 twice when none does, and -1 for the
    first when they are not all of one source, or MySQL's numbers do not rise by one."""
    first, last, number = np.int64(-1), np.int64(-1), np.int64(0)
    for event in range(boundary.size):
        at = event * GTID_BYTES
        flavour = gtids[at]
        if not boundary[event] or flavour == NO_GTID:
            continue
        before = number
        number = np.int64(u32(gtids, at + NUMBER_AT)) | np.int64(u32(gtids, at + NUMBER_AT + 4)) << 32
        if first < 0:
            first = np.int64(event)
        else:
            size = ORIGIN_AT if flavour == MARIADB else NUMBER_AT
            for k in range(size):
                if gtids[at + k] != gtids[first * GTID_BYTES + k]:
                    return np.int64(-1), np.int64(event)
            if flavour != MARIADB and number != before + 1:
                return np.int64(-1), np.int64(event)
        last = np.int64(event)
    return first, last


@lru_cache(64)
def _source(uuid: bytes, tag: str) -> str:
    return str(UUID(bytes=uuid)) + (f":{tag}" if tag else "")


def _with_mariadb(known: GtidSet, gtids: NDArray[np.uint8]) -> GtidSet:
    """Return the set with MariaDB's GTIDs: in each domain the last one counts."""
    if not gtids.size:
        return known
    domains = _number(gtids, DOMAIN_AT, "<u4")
    for domain in np.unique(domains).tolist():
        known = _with_last(known, gtids[int(np.flatnonzero(domains == domain)[-1])].tobytes())
    return known


def _with_last(known: GtidSet, gtid: bytes) -> GtidSet:
    _, domain, server, number = _MARIADB.unpack(gtid)
    base = known if known.is_mariadb else GtidSet({}, is_mariadb=True)
    return base.with_range(str(domain), (number, number), server)


def _with_mysql(known: GtidSet, gtids: NDArray[np.uint8], tags: Sequence[str]) -> GtidSet:
    """Return a set with these GTIDs added, which are all of one source. Replicas may commit in another order; as a set
    that is the same."""
    flavour, uuid, _ = _MYSQL.unpack(gtids[0].tobytes())
    tag = flavour - TAGGED
    if tag >= len(tags):
        return known  # of a tag that is not known
    numbers = np.sort(_number(gtids, NUMBER_AT, "<i8"))
    gaps = np.flatnonzero(np.diff(numbers) > 1)
    starts, ends = numbers[np.concatenate([[0], gaps + 1])], numbers[np.concatenate([gaps, [-1]])]
    for run in zip(starts.tolist(), ends.tolist(), strict=True):
        known = known.with_range(_source(uuid, tags[tag] if tag >= 0 else ""), run)
    return known


def _number(gtids: NDArray[np.uint8], at: int, dtype: str) -> NDArray[np.int64]:
    kind = np.dtype(dtype)
    return np.ascontiguousarray(gtids[:, at : at + kind.itemsize]).view(kind).ravel()
