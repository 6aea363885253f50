"""What entries say of GTIDs: that of their transaction, and the set of all up to it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.gtid import render_gtids
from penstock.binlog.events.layout import EventType
from penstock.binlog.events.query import body_at
from penstock.canal import protobuf
from penstock.model import GtidSet
from penstock.render.canal.tables import joined

# MySQL's GTID event: flags 1 | uuid 16 | number 8 | kind of clock 1 | last committed 8 | sequence number 8
_CLOCK_AT, _LOGICAL, _LAST_AT, _NUMBER_AT, _CLOCK_END = 25, 2, 26, 34, 42
_PROPS, _GTID = 12, 13  # fields of a header


@dataclass(frozen=True, slots=True, eq=False)
class GtidTexts:
    """The GTIDs of the transactions in a block, as the texts that canal's entries have.

    Event i belongs to transaction t = which[i]; its texts lie between bounds[t] and bounds[t + 1] of each array.
    """

    which: NDArray[np.int64]
    abouts: NDArray[np.int64]
    about_texts: NDArray[np.uint8]
    sets: NDArray[np.int64]
    set_texts: NDArray[np.uint8]


class Clocks:
    """Of MySQL's transactions, by the place where each begins; the last one may go on in the next block."""

    def __init__(self) -> None:
        self._last: tuple[str, int, bytes] = ("", -1, b"")

    def texts(self, block: Block, events: NDArray[np.int64]) -> GtidTexts:
        begins, first, which = np.unique(block.column("transaction")[events], return_index=True, return_inverse=True)
        clocks = self._clocks(block)
        lines = block.gtids[events[first]]
        gtids = render_gtids(lines, block.tags).to_pylist()
        abouts, sets = list[bytes](), list[bytes]()
        for begin, gtid, whole in zip(begins.tolist(), gtids, _sets(block, events[first], gtids), strict=True):
            about = protobuf.pair(_PROPS, "curtGtid", gtid) if gtid else b""
            abouts.append(about + clocks.get(begin, b""))
            sets.append(protobuf.text(_GTID, whole))
        return GtidTexts(which.astype(np.int64), *joined(abouts), *joined(sets))

    def _clocks(self, block: Block) -> dict[int, bytes]:
        found = dict[int, bytes]()
        file, begin, about = self._last
        if file == block.file:
            found[begin] = about
        transaction = block.column("transaction")
        for event in np.flatnonzero(block.column("kind") == EventType.GTID).tolist():
            body = body_at(block, event)
            if len(body) >= _CLOCK_END and body[_CLOCK_AT] == _LOGICAL:
                last, number = (int.from_bytes(body[at : at + 8], "little") for at in (_LAST_AT, _NUMBER_AT))
                found[int(transaction[event])] = protobuf.pair(_PROPS, "curtGtidSn", str(number)) + protobuf.pair(
                    _PROPS, "curtGtidLct", str(last)
                )
        last = int(transaction[-1])
        self._last = (block.file, last, found.get(last, b""))
        return found


def _sets(block: Block, events: NDArray[np.int64], gtids: list[str | None]) -> Iterator[str]:
    """After each of these transactions, of which one event each is given, in the order of the log."""
    known: GtidSet | None = None
    source, text = "", ("", "")
    number = 0
    for event, gtid in zip(events.tolist(), gtids, strict=True):
        if block.executed is None or gtid is None:
            yield ""
            continue
        own, at = _split(gtid)
        if own == source and at == number + 1 and text[0]:
            number = at
            yield f"{text[0]}{at}{text[1]}"
            continue
        before = block.executed_before(event)
        known = _adding(before if before is not None else GtidSet({}), gtid)
        source, number = own, at
        whole = known.text
        # Most transactions raise the last number of their source by one: then the rest of the set stays as it is.
        before_number, is_found, after = whole.partition(_place_of(known, gtid, at))
        text = (before_number + _prefix(known, gtid, at), after) if is_found else ("", "")
        yield whole


def _split(gtid: str) -> tuple[str, int]:
    """The source, and the number."""
    mark = ":" if ":" in gtid else "-"
    source, _, number = gtid.rpartition(mark)
    return source + mark, int(number)


def _adding(known: GtidSet, gtid: str) -> GtidSet:
    source, number = _split(gtid)
    if source.endswith(":"):
        return known.with_range(source[:-1], (number, number))
    domain, server = source[:-1].split("-")
    base = known if known.is_mariadb else GtidSet({}, is_mariadb=True)
    return base.with_range(domain, (number, number), int(server))


def _prefix(known: GtidSet, gtid: str, number: int) -> str:
    """What stands before the number, in the part of the set that ends with it."""
    source, _ = _split(gtid)
    if known.is_mariadb:
        return source
    first, last = known.ranges[source[:-1]][-1]
    if last != number or first == last:
        return ""
    earlier = known.ranges[source[:-1]][:-1]
    return ":".join([source[:-1], *(f"{a}-{b}" if a != b else str(a) for a, b in earlier), f"{first}-"])


def _place_of(known: GtidSet, gtid: str, number: int) -> str:
    prefix = _prefix(known, gtid, number)
    return f"{prefix}{number}" if prefix else "\0"
