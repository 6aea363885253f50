"""A stream of event bytes → blocks. Knows the log's framing events; does no I/O.

The transport writes bytes into `room(n)`, says how many with `filled(n)`, and takes `blocks()`. A block ends at
`block_bytes`, at the end of a log file, or when the caller flushes because nothing more is waiting. Blocks are
views of the buffer that the transport filled: bytes are written once and never moved, but for an event that lies
across the end of a buffer.
"""

import re
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.expand import COMPRESSED_KINDS, ExpandError, Fragments, open_payload, plain_event
from penstock.binlog.events.index import EventArrays, IndexState, Slot, Stop, index_events
from penstock.binlog.events.layout import ARTIFICIAL, CHECKSUM, HEADER, IN_USE, Entry, EventType, event_name
from penstock.binlog.events.table_map import table_map_body, table_name
from penstock.errors import BinlogError
from penstock.model import Position

BLOCK_BYTES = 1 << 20
_EVENTS = 1 << 16
_DEEPEST = 3  # payloads in payloads
_LENGTHS = {EventType.QUERY: 13, EventType.TABLE_MAP: 8}  # after the header, since 5.5
_FIRST_WITH_CHECKSUM = (5, 6, 1)


class _Feed:
    """Bytes on their way into blocks: up to `fill` they are there, up to `at` they are indexed."""

    def __init__(self, data: NDArray[np.uint8], fill: int = 0) -> None:
        self.data = data
        self.fill = fill
        self.at = 0
        self.run = 0  # from here on, what is indexed is in no piece of a block yet


class BlockReader:
    """Reads one source's log from `position`, which is at a transaction boundary.

    `lenient` lets an INCIDENT pass as an event like others, for looking at a log rather than trusting it.
    """

    def __init__(
        self, position: Position, *, verify: bool = True, lenient: bool = False, block_bytes: int = BLOCK_BYTES
    ) -> None:
        self._file = position.file
        self._block_bytes = block_bytes
        self._state = IndexState.start(verify=verify, lenient=lenient)
        self._state.seek(position.offset)
        self._arrays = EventArrays.of(_EVENTS)
        self._count = 0  # events indexed and not yet in a block
        self._pieces: list[NDArray[np.uint8]] = []  # bytes of these events that are no longer in the feed's run
        self._sealed = 0  # how many bytes
        self._feed = _Feed(np.empty(2 * block_bytes, np.uint8))
        self._tables: dict[int, bytes] = {}
        self._fragments = Fragments()
        self.server_version = ""  # known from the first FORMAT_DESCRIPTION on

    @property
    def position(self) -> Position:
        """End of what has been indexed."""
        return Position(self._file, int(self._state.slots[Slot.POSITION]))

    @property
    def is_between_transactions(self) -> bool:
        return bool(self._state.slots[Slot.TRANSACTION] < 0)

    @property
    def rest(self) -> int:
        """Bytes that were filled in and are no whole event yet."""
        return self._feed.fill - self._feed.at

    def expect_checksum(self, *, is_on: bool) -> None:
        """Whether events before the first FORMAT_DESCRIPTION carry one."""
        self._state.slots[Slot.CHECKSUM] = CHECKSUM if is_on else 0

    def room(self, size: int) -> NDArray[np.uint8]:
        """At least `size` writable bytes."""
        feed = self._feed
        is_too_large = feed.run == feed.fill and feed.data.size > 4 * self._block_bytes  # grown for one large event
        if is_too_large or feed.data.size - feed.fill < size:
            kept = feed.data[feed.run : feed.fill]
            data = np.empty(max(2 * self._block_bytes, 2 * kept.size + size), np.uint8)
            data[: kept.size] = kept
            feed.data, feed.at, feed.fill, feed.run = data, feed.at - feed.run, kept.size, 0
        return feed.data[feed.fill :]

    def filled(self, size: int) -> None:
        self._feed.fill += size

    def blocks(self, *, flush: bool) -> Iterator[Block]:
        """Whole blocks of what was filled in; with `flush` also the last, short one."""
        yield from self._index(self._feed, depth=0)
        if self._count and (flush or self._pending >= self._block_bytes):
            yield self._cut()

    @property
    def _pending(self) -> int:
        return self._sealed + self._feed.at - self._feed.run

    def _index(self, feed: _Feed, depth: int) -> Iterator[Block]:
        """Index a feed as far as it goes. A block is cut where one must end."""
        while True:
            shift = self._sealed - feed.run
            why, feed.at, self._count = index_events(
                feed.data, feed.at, feed.fill, self._state, self._arrays, self._count, shift
            )
            if why is Stop.STARVED:
                return
            if why is Stop.FULL:
                yield self._cut(feed)
            elif why is Stop.NEW_TABLE:
                if self._is_redefined(feed):
                    yield self._cut(feed)
                try:
                    self._learn_table(feed)
                except BinlogError:
                    if self._count:
                        yield self._cut(feed)
                    raise
            elif why is Stop.ATTENTION:
                yield from self._attend(feed, depth)
            else:
                if self._count:
                    yield self._cut(feed)
                raise self._broken(why, feed)

    def _seal(self, feed: _Feed) -> None:
        """Take what is indexed out of the feed, as a piece of the block to come."""
        if feed.at > feed.run:
            self._pieces.append(feed.data[feed.run : feed.at])
            self._sealed += feed.at - feed.run
        feed.run = feed.at

    def _cut(self, feed: _Feed | None = None) -> Block:
        feed = feed or self._feed
        self._seal(feed)
        arrays, count = self._arrays, self._count
        rows = arrays.entry[:count] == Entry.ROWS
        used = np.unique(arrays.table_id[:count][rows]).tolist()
        missing = [number for number in used if number not in self._tables]
        if missing:
            first = int(np.argmax(rows & (arrays.table_id[:count] == missing[0])))
            raise BinlogError(
                f"{Position(self._file, int(arrays.position[first]))} rows of table id {missing[0]} came before its"
                " table map: capture did not start at a transaction boundary"
            )
        tables = {number: self._tables[number] for number in used}
        data = self._pieces[0] if len(self._pieces) == 1 else np.concatenate(self._pieces)
        block = Block.of_arrays(self._file, self.server_version, self._state.tag_names, data, arrays, count, tables)
        self._count, self._pieces, self._sealed = 0, [], 0
        return block

    def _event(self, feed: _Feed) -> bytes:
        """The event that is next."""
        size = int.from_bytes(feed.data[feed.at + 9 : feed.at + 13].tobytes(), "little")
        return feed.data[feed.at : feed.at + size].tobytes()

    def _is_redefined(self, feed: _Feed) -> bool:
        number = int.from_bytes(self._event(feed)[HEADER : HEADER + 6], "little")
        used = self._arrays.table_id[: self._count]
        return number in self._tables and bool((used == number).any())

    def _learn_table(self, feed: _Feed) -> None:
        body = table_map_body(self._event(feed), int(self._state.slots[Slot.CHECKSUM]))
        try:
            table_name(body)
        except BinlogError as error:
            raise BinlogError(f"{self.position} {error}") from None
        number = int.from_bytes(body[:6], "little")
        self._state.know_table(number, zlib.crc32(body), len(self._tables))
        self._tables[number] = body

    def _forget_tables(self) -> None:
        self._tables = {}
        self._state.forget_tables()

    def _attend(self, feed: _Feed, depth: int) -> Iterator[Block]:
        """Handle the event that the kernel left to us, and step over it."""
        event = self._event(feed)
        kind, flags = event[4], int.from_bytes(event[17:19], "little")
        is_made_up = flags & ARTIFICIAL and not any(event[13:17])
        if kind in (EventType.FORMAT_DESCRIPTION, EventType.ROTATE) and not depth:
            if self._count:
                yield self._cut(feed)
            self._open(event, feed)
        else:
            self._verify(event, feed)
            self._seal(feed)
            if not is_made_up:
                try:
                    yield from self._expand(event, *self._place(event, feed, depth), depth)
                except ExpandError as error:
                    if self._count:
                        yield self._cut(feed)
                    raise BinlogError(f"{self.position} {event_name(kind)}: {error}") from None
        feed.at += len(event)
        feed.run = feed.at

    def _open(self, event: bytes, feed: _Feed) -> None:
        if event[4] == EventType.FORMAT_DESCRIPTION:
            self._learn_format(event, feed)
        else:
            self._verify(event, feed)
            self._follow_rotation(event, feed)

    def _expand(self, event: bytes, start: int, span: int, depth: int) -> Iterator[Block]:
        kind, checksum = event[4], int(self._state.slots[Slot.CHECKSUM])
        body = event[HEADER : len(event) - checksum]
        if kind == EventType.TRANSACTION_PAYLOAD:
            if depth == _DEEPEST:
                raise ExpandError("it is a payload in a payload in a payload")
            stream, total = open_payload(body)
            yield from self._unfold(stream, total, start, span, depth)
        elif kind in COMPRESSED_KINDS:
            yield from self._unfold_event(plain_event(event, checksum), start, span, depth)
        elif kind == EventType.MARIADB_PARTIAL_ROW_DATA:
            whole = self._fragments.add(body, start)
            self._state.slots[Slot.POSITION] = start + span
            if whole is not None:
                if whole[4] in COMPRESSED_KINDS:
                    whole = plain_event(whole, 0)
                first = self._fragments.start
                yield from self._unfold_event(whole, first, start + span - first, depth)
        elif kind == EventType.INCIDENT:
            raise ExpandError(
                "the source says that it may have lost events here;"
                " compare the data, then start from a position after it"
            )
        elif kind == EventType.MARIADB_START_ENCRYPTION:
            raise ExpandError(
                "the log is encrypted from here on, and only its server has the key: read it from there with --host"
            )

    def _place(self, event: bytes, feed: _Feed, depth: int) -> tuple[int, int]:
        """Where the next event begins in the file, and how many bytes of it are its own: if it was inside another, a
        share of that."""
        slots = self._state.slots
        if depth:
            at, span, total = (int(slots[slot]) for slot in (Slot.FRAME_AT, Slot.FRAME_SPAN, Slot.FRAME_TOTAL))
            inside = feed.at + int(slots[Slot.FRAME_SHIFT])
            start = at + inside * span // total
            return start, at + (inside + len(event)) * span // total - start
        before = int(slots[Slot.POSITION])
        low = int.from_bytes(event[13:17], "little") - len(event) & 0xFFFFFFFF
        if low == before & 0xFFFFFFFF or not any(event[13:17]):
            return before, len(event)
        return max(before, before & ~0xFFFFFFFF | low), len(event)

    def _unfold_event(self, event: bytes, start: int, span: int, depth: int) -> Iterator[Block]:
        yield from self._unfold(pa.BufferReader(event), len(event), start, span, depth)

    def _unfold(self, stream: Any, total: int, start: int, span: int, depth: int) -> Iterator[Block]:
        """Index the events that one event of the file held."""
        slots = self._state.slots
        outside = slots.copy()
        slots[Slot.CHECKSUM], slots[Slot.FRAME_AT], slots[Slot.FRAME_SPAN], slots[Slot.FRAME_TOTAL] = (
            0,
            start,
            span,
            total,
        )
        done = 0
        inner = _Feed(np.empty(0, np.uint8))
        while done < total:
            kept = inner.data[inner.at : inner.fill]
            data = np.empty(kept.size + min(total - done, max(self._block_bytes, kept.size)), np.uint8)
            data[: kept.size] = kept
            try:
                size = stream.readinto(data[kept.size :].data)
            except OSError as error:
                raise ExpandError(f"it cannot be expanded: {error}") from None
            if not size:
                raise ExpandError(f"it holds {done} bytes instead of {total}")
            inner = _Feed(data, kept.size + size)
            slots[Slot.FRAME_SHIFT] = done - kept.size
            done += size
            yield from self._index(inner, depth + 1)
            self._seal(inner)
            if self._sealed >= self._block_bytes:
                yield self._cut(inner)
        if _has_more(stream):
            raise ExpandError(f"it holds more than the {total} bytes it speaks of")
        if inner.at != inner.fill:
            raise ExpandError(f"it ends with {inner.fill - inner.at} bytes that are no event")
        for slot in (Slot.CHECKSUM, Slot.FRAME_AT, Slot.FRAME_SPAN, Slot.FRAME_TOTAL, Slot.FRAME_SHIFT):
            slots[slot] = outside[slot]
        slots[Slot.POSITION] = start + span

    def _learn_format(self, event: bytes, feed: _Feed) -> None:
        """Version 2 | server version 50 | created 4 | header length 1 | lengths | checksum algorithm 1 | checksum 4."""
        body = event[HEADER:]
        if len(body) < 57 + EventType.DELETE_ROWS_V1:
            raise self._broken(Stop.BAD_EVENT, feed)
        version = body[2:52].rstrip(b"\0").decode("ascii", "replace")
        for kind, length in _LENGTHS.items():
            if body[56] != HEADER or body[56 + kind] != length:
                raise BinlogError(
                    f"{self.position} FORMAT_DESCRIPTION: {event_name(kind)} events of server {version} have a head of"
                    f" {body[56 + kind]} bytes instead of {length}: logs of servers before 5.5 are not read"
                )
        is_on = _knows_checksums(version) and event[-5] == 1
        self._state.slots[Slot.CHECKSUM] = CHECKSUM if is_on else 0
        # The mark is set while the file is written and was not there when the checksum was computed.
        self._verify(event[:17] + bytes([event[17] & ~IN_USE]) + event[18:], feed)
        self.server_version = version
        self._forget_tables()
        end_position = int.from_bytes(event[13:17], "little")
        if end_position:
            self._state.seek(end_position)

    def _follow_rotation(self, event: bytes, feed: _Feed) -> None:
        """Position 8 | file name."""
        checksum = int(self._state.slots[Slot.CHECKSUM])
        file = event[HEADER + 8 : len(event) - checksum].decode("utf-8", "replace")
        offset = int.from_bytes(event[HEADER : HEADER + 8], "little")
        if not file.rpartition(".")[2].isdecimal() or offset >= 1 << 63:
            raise self._broken(Stop.BAD_EVENT, feed)
        self._forget_tables()
        self._file = file
        self._state.seek(offset)

    def _verify(self, event: bytes, feed: _Feed) -> None:
        slots = self._state.slots
        if slots[Slot.VERIFY] and slots[Slot.CHECKSUM]:
            stop = len(event) - CHECKSUM
            if zlib.crc32(event[:stop]) != int.from_bytes(event[stop:], "little"):
                raise self._broken(Stop.BAD_CHECKSUM, feed)

    def _broken(self, why: Stop, feed: _Feed) -> BinlogError:
        what = {
            Stop.BAD_SIZE: "the event's size is not one that an event can have",
            Stop.BAD_CHECKSUM: "the event does not match its checksum",
            Stop.BAD_EVENT: "the event does not hold what its type asks for",
            Stop.BAD_POSITION: "the event says that it lies before the one before it",
        }[why]
        extract = feed.data[feed.at : min(feed.at + 24, feed.fill)].tobytes().hex(" ")
        return BinlogError(f"{self.position} {event_name(int(feed.data[feed.at + 4]))}: {what}; bytes there: {extract}")


def _has_more(stream: Any) -> bool:
    try:
        return bool(stream.read(1))
    except OSError as error:
        raise ExpandError(f"it cannot be expanded: {error}") from None


def _knows_checksums(server_version: str) -> bool:
    """MySQL before 5.6.1 did not; its format event ends without the algorithm."""
    numbers = tuple(map(int, re.findall(r"\d+", server_version)[:3]))
    return "MariaDB" in server_version or numbers >= _FIRST_WITH_CHECKSUM
