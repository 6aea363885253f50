"""The set of transactions that a log has had up to a place: a set before it, and the GTIDs since."""

import struct
from collections.abc import Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.state import (
    DOMAIN_AT,
    MARIADB,
    NO_GTID,
    NUMBER_AT,
    ORIGIN_AT,
    TAGGED,
    UUID_AT,
    UUID_BYTES,
)
from penstock.model import GtidSet

_MARIADB = struct.Struct("<BII8xQ")


def executed_after(known: GtidSet, gtids: NDArray[np.uint8], tags: Sequence[str]) -> GtidSet:
    """With one more line of GTID_BYTES for each transaction, in the order of the log."""
    if not gtids.shape[0]:
        return known
    # Of one source, as most are.
    flavour = int(gtids[0, 0])
    if flavour == MARIADB and (gtids[:, :ORIGIN_AT] == gtids[0, :ORIGIN_AT]).all():
        return _with_last(known, gtids[-1].tobytes())
    if flavour not in (NO_GTID, MARIADB) and (gtids[:, :NUMBER_AT] == gtids[0, :NUMBER_AT]).all():
        return _with_mysql(known, gtids, tags)
    gtids = gtids[gtids[:, 0] != NO_GTID]
    is_mariadb = gtids[:, 0] == MARIADB
    known = _with_mariadb(known, gtids[is_mariadb])
    others = gtids[~is_mariadb]
    _, which = np.unique(others[:, :NUMBER_AT], axis=0, return_inverse=True) if others.size else (None, np.zeros(0))
    for source in range(int(which.max(initial=-1)) + 1):
        known = _with_mysql(known, others[which == source], tags)
    return known


def _with_mariadb(known: GtidSet, gtids: NDArray[np.uint8]) -> GtidSet:
    """In each domain the last one counts."""
    if not gtids.size:
        return known
    domains = _number(gtids, DOMAIN_AT, "<u4")
    for domain in np.unique(domains).tolist():
        known = _with_last(known, gtids[int(np.flatnonzero(domains == domain)[-1])].tobytes())
    return known


def _with_last(known: GtidSet, gtid: bytes) -> GtidSet:
    _, domain, server, number = _MARIADB.unpack(gtid)
    base = known if known.is_mariadb else GtidSet({}, is_mariadb=True)
    return base.adding(str(domain), (number, number), server)


def _with_mysql(known: GtidSet, gtids: NDArray[np.uint8], tags: Sequence[str]) -> GtidSet:
    """All of one source. Replicas may commit in another order; as a set that is the same."""
    source = str(UUID(bytes=gtids[0, UUID_AT : UUID_AT + UUID_BYTES].tobytes()))
    tag = int(gtids[0, 0]) - TAGGED
    if tag >= len(tags):
        return known  # of a tag that is not known
    numbers = _number(gtids, NUMBER_AT, "<i8")
    low, high = int(numbers.min()), int(numbers.max())
    runs = [(low, high)]
    if high - low + 1 != numbers.size:
        numbers = np.sort(numbers)
        gaps = np.flatnonzero(np.diff(numbers) > 1)
        starts, ends = numbers[np.concatenate([[0], gaps + 1])], numbers[np.concatenate([gaps, [-1]])]
        runs = list(zip(starts.tolist(), ends.tolist(), strict=True))
    for run in runs:
        known = known.adding(source + (f":{tags[tag]}" if tag >= 0 else ""), run)
    return known


def _number(gtids: NDArray[np.uint8], at: int, dtype: str) -> NDArray[np.int64]:
    kind = np.dtype(dtype)
    return np.ascontiguousarray(gtids[:, at : at + kind.itemsize]).view(kind).ravel()
