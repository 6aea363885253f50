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
from penstock.canal.schema import number_of
from penstock.model import GtidSet
from penstock.render.canal.tables import join_bytes

# MySQL's GTID event: flags 1 | uuid 16 | number 8 | kind of clock 1 | last committed 8 | sequence number 8
_CLOCK_AT, _LOGICAL, _LAST_AT, _NUMBER_AT, _CLOCK_END = 25, 2, 26, 34, 42
_PROPS, _GTID = number_of("Header", "props"), number_of("Header", "gtid")


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


class LogicalClocks:
    """Keeps the logical clock (last_committed, sequence_number) of a MySQL transaction that continues in the next
    block.
    """

    def __init__(self) -> None:
        self._last: tuple[str, int, bytes] = ("", -1, b"")

    def collect_gtid_texts(self, block: Block, events: NDArray[np.int64]) -> GtidTexts:
        """Return the GTID, the executed GTID set and the logical clock of the transaction of each event."""
        begins, first, which = np.unique(block.column("transaction")[events], return_index=True, return_inverse=True)
        clocks = self._read_clocks(block)
        lines = block.gtids[events[first]]
        gtids = render_gtids(lines, block.tags).to_pylist()
        abouts, sets = list[bytes](), list[bytes]()
        for begin, gtid, whole in zip(begins.tolist(), gtids, _executed_sets(block, events[first], gtids), strict=True):
            properties = protobuf.encode_pair(_PROPS, "curtGtid", gtid) if gtid else b""
            abouts.append(properties + clocks.get(begin, b""))
            sets.append(protobuf.encode_text(_GTID, whole))
        return GtidTexts(which.astype(np.int64), *join_bytes(abouts), *join_bytes(sets))

    def _read_clocks(self, block: Block) -> dict[int, bytes]:
        """Return the encoded logical clock of each transaction, by the offset at which it begins."""
        clocks = dict[int, bytes]()
        file, begin, properties = self._last
        if file == block.file:
            clocks[begin] = properties
        transaction = block.column("transaction")
        for event in np.flatnonzero(block.column("kind") == EventType.GTID).tolist():
            body = body_at(block, event)
            if len(body) >= _CLOCK_END and body[_CLOCK_AT] == _LOGICAL:
                last, number = (int.from_bytes(body[at : at + 8], "little") for at in (_LAST_AT, _NUMBER_AT))
                clocks[int(transaction[event])] = protobuf.encode_pair(
                    _PROPS, "curtGtidSn", str(number)
                ) + protobuf.encode_pair(_PROPS, "curtGtidLct", str(last))
        last = int(transaction[-1])
        self._last = (block.file, last, clocks.get(last, b""))
        return clocks


def _executed_sets(block: Block, events: NDArray[np.int64], gtids: list[str | None]) -> Iterator[str]:
    """Yield the executed GTID set after each transaction, of which one event each is given, in the order of the log."""
    known: GtidSet | None = None
    source, text = "", ("", "")
    number = 0
    for event, gtid in zip(events.tolist(), gtids, strict=True):
        if block.executed is None or gtid is None:
            yield ""
            continue
        own, at = _split_gtid(gtid)
        if own == source and at == number + 1 and text[0]:
            number = at
            yield f"{text[0]}{at}{text[1]}"
            continue
        before = block.executed_before(event)
        known = _add_gtid(before if before is not None else GtidSet({}), gtid)
        source, number = own, at
        whole = known.text
        # Most transactions raise the last number of their source by one: then the rest of the set stays as it is.
        before_number, is_found, after = whole.partition(_interval_text(known, gtid, at))
        text = (before_number + _text_before_number(known, gtid, at), after) if is_found else ("", "")
        yield whole


def _split_gtid(gtid: str) -> tuple[str, int]:
    """Split a GTID into its source, with the separator, and its number."""
    mark = ":" if ":" in gtid else "-"
    source, _, number = gtid.rpartition(mark)
    return source + mark, int(number)


def _add_gtid(known: GtidSet, gtid: str) -> GtidSet:
    """Return the GTID set with one more GTID."""
    source, number = _split_gtid(gtid)
    if source.endswith(":"):
        return known.with_range(source[:-1], (number, number))
    domain, server = source[:-1].split("-")
    base = known if known.is_mariadb else GtidSet({}, is_mariadb=True)
    return base.with_range(domain, (number, number), int(server))


def _text_before_number(known: GtidSet, gtid: str, number: int) -> str:
    """Return the text of the interval that ends in `number` up to that number; empty if there is none."""
    source, _ = _split_gtid(gtid)
    if known.is_mariadb:
        return source
    first, last = known.ranges[source[:-1]][-1]
    if last != number or first == last:
        return ""
    earlier = known.ranges[source[:-1]][:-1]
    return ":".join([source[:-1], *(f"{a}-{b}" if a != b else str(a) for a, b in earlier), f"{first}-"])


def _interval_text(known: GtidSet, gtid: str, number: int) -> str:
    """Return the text of the interval that ends in `number`, or a text that no set contains."""
    prefix = _text_before_number(known, gtid, number)
    return f"{prefix}{number}" if prefix else "\0"
