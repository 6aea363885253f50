"""A stream of event bytes → blocks. Knows the log's framing events; does no I/O.

The transport writes bytes into `room(n)`, says how many with `filled(n)`, and takes `blocks()`. A block ends at
`block_bytes`, at the end of a log file, or when the caller flushes because nothing more is waiting. Blocks are
views of the buffer that the transport filled: bytes are written once and never moved, but for an event that lies
across the end of a buffer.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.arrays import distinct
from penstock.binlog.events.block import Block
from penstock.binlog.events.bodies import GtidsBody, parse_body
from penstock.binlog.events.checksum import seal_of
from penstock.binlog.events.event_arrays import EventArrays
from penstock.binlog.events.expand import COMPRESSED_KINDS, decompress_event, open_payload
from penstock.binlog.events.feed import InputBuffer
from penstock.binlog.events.format import has_valid_checksum, parse_format
from penstock.binlog.events.fragments import Fragments
from penstock.binlog.events.index import index_events
from penstock.binlog.events.known_tables import TABLE_ID_BYTES
from penstock.binlog.events.layout import (
    ARTIFICIAL,
    CHECKSUM,
    END_AT,
    FLAGS_AT,
    HEADER,
    RELAYED,
    TYPE_AT,
    Entry,
    EventType,
)
from penstock.binlog.events.problem import EventProblemError, event_error
from penstock.binlog.events.state import (
    ALERT,
    BY_BYTES,
    CHECKSUM_BYTES,
    FRAME_AT,
    FRAME_SHIFT,
    FRAME_SPAN,
    FRAME_TOTAL,
    POSITION,
    TRANSACTION,
    VERIFY,
    IndexState,
)
from penstock.binlog.events.stop import PROBLEMS, StopReason
from penstock.binlog.events.table_map import check_names, table_map_body
from penstock.errors import BinlogError, ConfigurationError
from penstock.model import FileIdentity, GtidSet, Position
from penstock.model.position import ensure_file_number

BLOCK_BYTES = 2 << 20  # what is done once a block then weighs little
_EVENTS = 1 << 16
_OPENING = (EventType.FORMAT_DESCRIPTION, EventType.START_V3, EventType.ROTATE)
_DEEPEST = 3  # payloads in payloads
_MOST_LOOSE = 16  # blocks' worth of events that wait for the one they belong to
_WRAP = 1 << 32  # end positions begin anew there


class BlockReader:
    """Reads one source's log from `position`, which is at a transaction boundary.

    `lenient` lets an INCIDENT pass as an event like others, for looking at a log rather than trusting it. A server
    sends its log `decrypted`, with a word of how its files are. In a relay log, when it is read as a `is_whole_file`,
    positions are those of its own bytes: the headers have positions of the log that was relayed.
    """

    def __init__(
        self,
        position: Position,
        *,
        verify: bool = True,
        lenient: bool = False,
        decrypted: bool = False,
        is_whole_file: bool = False,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._is_decrypted = decrypted
        self._is_whole_file = is_whole_file
        self._file, self._epoch, self._executed = position.file, position.epoch, position.gtids
        self._block_bytes = block_bytes
        self._state = IndexState.start(verify=verify, lenient=lenient)
        self._state.seek(position.offset)
        self._arrays = EventArrays.allocate(_EVENTS)
        self._keeps_loose = False
        self._count = 0  # events indexed and not yet in a block
        self._pieces: list[NDArray[np.uint8]] = []  # bytes of these events that are no longer in the feed's run
        self._sealed = 0  # how many bytes
        self._feed = InputBuffer(np.empty(2 * block_bytes, np.uint8))
        self._fragments = Fragments()
        self.server_version = ""  # known from the first FORMAT_DESCRIPTION on
        self.file_identity: FileIdentity | None = None  # of the file that is read, known with it
        self.is_continued = True  # the file before it says that it goes on there
        self._has_rotated = True

    @property
    def position(self) -> Position:
        """Return the position up to which events have been indexed."""
        return Position(self._file, int(self._state.slots[POSITION]), epoch=self._epoch)

    @property
    def is_between_transactions(self) -> bool:
        """Return whether the last indexed event ends a transaction."""
        return bool(self._state.slots[TRANSACTION] < 0)

    @property
    def rest(self) -> int:
        """Return the number of bytes that were filled in and are not a whole event yet."""
        return self._feed.rest

    def expect_checksum(self, *, is_on: bool) -> None:
        """Say whether events before the first FORMAT_DESCRIPTION carry a checksum."""
        self._state.slots[CHECKSUM_BYTES] = CHECKSUM if is_on else 0

    def room(self, size: int) -> NDArray[np.uint8]:
        """Return at least `size` writable bytes."""
        feed = self._feed
        is_too_large = feed.run == feed.fill and feed.data.size > 4 * self._block_bytes  # grown for one large event
        if is_too_large or feed.data.size - feed.fill < size:
            feed.move(max(2 * self._block_bytes, feed.fill - feed.run + size), more=size)
        return feed.data[feed.fill :]

    def advance(self, size: int) -> None:
        """Note that the transport wrote `size` bytes into `room`."""
        self._feed.fill += size

    def blocks(self, *, flush: bool, keep_loose: bool = False) -> Iterator[Block]:
        """Yield the blocks that are complete; with `flush` also the last, short one. With `keep_loose` no block ends
        with events that mean nothing to a consumer, such as a GTID: they wait for the one that they belong to."""
        self._keeps_loose = keep_loose
        yield from self._index(self._feed, depth=0)
        if not self._count or not (flush or self._pending >= self._block_bytes):
            return
        if self._pending >= _MOST_LOOSE * self._block_bytes or self._loose < self._count:
            yield self._cut(self._feed)

    @property
    def _loose(self) -> int:
        """Return how many of the last events have to wait for the next block."""
        if not self._keeps_loose:
            return 0
        entry, boundary, first = self._arrays.entry, self._arrays.boundary, self._count
        while first and not entry[first - 1] and not boundary[first - 1]:
            first -= 1
        return self._count - first

    @property
    def _pending(self) -> int:
        """Return how many indexed bytes are in no block yet."""
        return self._sealed + self._feed.at - self._feed.run

    def _index(self, feed: InputBuffer, depth: int) -> Iterator[Block]:
        """Index a feed as far as it goes. A block is cut where one must end."""
        while True:
            shift = self._sealed - feed.run
            why, feed.at, self._count = index_events(
                feed.data, feed.at, feed.fill, self._state, self._arrays, self._count, shift
            )
            match why:
                case StopReason.STARVED:
                    return
                case StopReason.FULL:
                    yield self._cut(feed)
                case StopReason.TAGS_FULL:
                    yield from self._cut_all(feed)
                    self._state.forget_tags()
                case StopReason.NEW_TABLE:
                    if self._is_redefined(feed):
                        yield self._cut(feed)
                    try:
                        self._learn_table(feed)
                    except EventProblemError as problem:
                        yield from self._cut_any(feed)
                        raise self._broken(problem, feed.event, *self._locate(feed, depth)) from None
                case StopReason.ATTENTION:
                    yield from self._attend(feed, depth)
                case _:
                    yield from self._cut_any(feed)
                    event = feed.data[feed.at : feed.fill].data
                    table = int.from_bytes(event[HEADER : HEADER + TABLE_ID_BYTES], "little")
                    raise event_error(event[TYPE_AT], PROBLEMS[why].format(table=table), event, position=self.position)

    def _seal(self, feed: InputBuffer, rest: int = 0) -> None:
        """Take what is indexed, but for the last bytes, out of the feed, as a piece of the block to come."""
        piece = feed.take(rest)
        if piece.size:
            self._pieces.append(piece)
            self._sealed += piece.size

    def _cut(self, feed: InputBuffer) -> Block:
        """Return a block of what is indexed, except trailing events that have to wait; of everything when there are no
        others."""
        loose = self._loose
        arrays, count = self._arrays, self._count if loose == self._count else self._count - loose
        rest = self._taken(feed, int(arrays.size[count : self._count].sum()))
        used = distinct(arrays.table_id[:count][arrays.entry[:count] == Entry.ROWS])
        tables = dict(zip(used, self._state.known.maps_of(used), strict=True))
        data = self._pieces[0] if len(self._pieces) == 1 else np.concatenate(self._pieces)
        if self._executed is None:
            self._executed = self._gtids_before(data)
        seal = self._state.take_seal(up_to_entry=bool(rest.size))
        if rest.size:
            are_sealed = bool((arrays.checksum[count : self._count] != 0).all()) and self._state.slots[VERIFY]
            self._state.give_seal(seal_of(rest, arrays.bounds(count, self._count)) if are_sealed else None)
        block = Block.from_arrays(
            self._file, self.server_version, self._state.tag_names, data, arrays, count, tables,
            seal, self._epoch, self._executed,
        )  # fmt: skip
        self._executed = block.executed_before(count)
        arrays.drop(count, self._count)
        self._count -= count
        self._pieces = [rest] if rest.size and feed.run == feed.at else []
        self._sealed = sum(piece.size for piece in self._pieces)
        if not self._count and self.is_between_transactions:
            self._state.known.shrink()
        return block

    def _taken(self, feed: InputBuffer, rest: int) -> NDArray[np.uint8]:
        """Make pieces of all that is indexed but the last bytes, and give these: where they are in the feed they stay
        there."""
        if rest <= feed.at - feed.run:
            self._seal(feed, rest)
            return feed.data[feed.run : feed.at]
        self._seal(feed)
        data = np.concatenate(self._pieces)
        self._pieces = [data[: data.size - rest]]
        return data[data.size - rest :].copy()

    def _gtids_before(self, data: NDArray[np.uint8]) -> GtidSet | None:
        """Return the GTIDs before a file, which its first events say; None when they do not."""
        arrays, first = self._arrays, 0
        kind = int(arrays.kind[first])
        if kind not in (EventType.PREVIOUS_GTIDS, EventType.MARIADB_GTID_LIST):
            return None
        start, size = int(arrays.start[first]), int(arrays.size[first])
        body = data[start + HEADER : start + size - int(arrays.checksum[first])].tobytes()
        try:
            found = parse_body(kind, body)
            text = found.text if isinstance(found, GtidsBody) else ""
            return replace(GtidSet.parse(text), is_mariadb=kind == EventType.MARIADB_GTID_LIST)
        except (BinlogError, ConfigurationError):
            return None  # the events themselves can be read all the same

    def _cut_any(self, feed: InputBuffer) -> Iterator[Block]:
        """Yield a block if anything is indexed."""
        if self._count:
            yield self._cut(feed)

    def _cut_all(self, feed: InputBuffer) -> Iterator[Block]:
        """Yield a block of everything that is indexed: no event waits for the next block."""
        self._keeps_loose, before = False, self._keeps_loose
        yield from self._cut_any(feed)
        self._keeps_loose = before

    def _is_redefined(self, feed: InputBuffer) -> bool:
        """Return whether rows of the block to come use the id of the next table map for another map."""
        number = int.from_bytes(feed.event[HEADER : HEADER + TABLE_ID_BYTES], "little")
        if number not in self._state.known:
            return False
        are_rows = self._arrays.entry[: self._count] == Entry.ROWS
        return bool((self._arrays.table_id[: self._count][are_rows] == number).any())

    def _learn_table(self, feed: InputBuffer) -> None:
        """Check the names of a new table map, and remember it by its table id."""
        body = table_map_body(feed.event, int(self._state.slots[CHECKSUM_BYTES]))
        check_names(body)
        self._state.known.learn(body)

    def _attend(self, feed: InputBuffer, depth: int) -> Iterator[Block]:
        """Handle the event that the kernel left to us, and step over it."""
        event = feed.event
        start, span = self._locate(feed, depth)
        try:
            if event[TYPE_AT] in _OPENING and not depth:
                yield from self._cut_all(feed)
                self._open(event)
            else:
                self._verify(event)
                self._seal(feed)
                if not _is_made_up(event):
                    yield from self._expand(event, start, span, depth)
                elif event[TYPE_AT] == EventType.MARIADB_GTID_LIST and not depth:
                    self._skip_to(self._end_in_header(event))
        except EventProblemError as problem:
            yield from self._cut_any(feed)
            raise self._broken(problem, event, start, span) from None
        if self._state.slots[BY_BYTES] and not depth:
            self._state.slots[POSITION] = start + span
        feed.at += len(event)
        feed.run = feed.at

    def _broken(self, problem: EventProblemError, event: memoryview, start: int, span: int) -> BinlogError:
        """Return the error for a broken event, with its position."""
        position = Position(self._file, start + problem.byte * span // len(event), epoch=self._epoch)
        return event_error(event[TYPE_AT], problem.what, event[problem.byte :], position=position)

    def _open(self, event: memoryview) -> None:
        """Begin a log file, or follow a rotation to its next one."""
        if event[TYPE_AT] in (EventType.FORMAT_DESCRIPTION, EventType.START_V3):
            found = parse_format(event)
            self._state.slots[CHECKSUM_BYTES] = found.checksum
            self._verify(event)
            self.server_version = found.server_version
            identity = FileIdentity(self._file, found.began, found.server_id)
            if identity != self.file_identity:
                self.file_identity, self.is_continued, self._has_rotated = identity, self._has_rotated, False
            if self._is_whole_file and event[FLAGS_AT] & RELAYED:
                self._state.slots[BY_BYTES] = 1
            offset = int.from_bytes(event[END_AT : END_AT + 4], "little")
            if offset and not self._state.slots[BY_BYTES]:
                self._state.seek(offset)
        else:
            self._verify(event)
            self._follow_rotation(event)
            self._has_rotated = self._has_rotated or not _is_made_up(event)
        self._state.known.forget_ids()
        self._fragments.forget()
        self._state.slots[ALERT] = 0

    def _follow_rotation(self, event: memoryview) -> None:
        """Follow a ROTATE event (position 8 bytes, then the file name) to the file that it names."""
        stop = len(event) - int(self._state.slots[CHECKSUM_BYTES])
        file = bytes(event[HEADER + 8 : stop]).decode("utf-8", "replace")
        offset = int.from_bytes(event[HEADER : HEADER + 8], "little")
        if ensure_file_number(file) != file or offset >= 1 << 63:
            raise EventProblemError(PROBLEMS[StopReason.BAD_EVENT])
        if self._state.slots[BY_BYTES]:  # it names a file of the log that is relayed, or the next relay log
            return
        self._file = file
        self._state.seek(offset)

    def _skip_to(self, end: int) -> None:
        """Skip the transactions before the GTIDs that were requested: MariaDB leaves them out, and says where they
        end."""
        self._state.seek(max(end, int(self._state.slots[POSITION])))

    def _verify(self, event: memoryview) -> None:
        """Raise EventProblemError for an event that does not match its checksum."""
        slots = self._state.slots
        if slots[VERIFY] and slots[CHECKSUM_BYTES] and not has_valid_checksum(event):
            raise EventProblemError(PROBLEMS[StopReason.BAD_CHECKSUM])

    def _expand(self, event: memoryview, start: int, span: int, depth: int) -> Iterator[Block]:
        """Yield blocks of the events that an event holds: a compressed transaction, a compressed event, a fragment."""
        kind = event[TYPE_AT]
        held = event[: len(event) - int(self._state.slots[CHECKSUM_BYTES])]
        if self._fragments.is_open and kind != EventType.MARIADB_PARTIAL_ROW_DATA:
            raise self._fragments.missing()
        if kind == EventType.TRANSACTION_PAYLOAD:
            if depth == _DEEPEST:
                raise EventProblemError("it is a payload in a payload in a payload")
            stream, total = open_payload(held)
            yield from self._unfold(stream, total, start, span, depth)
        elif kind in COMPRESSED_KINDS:
            yield from self._unfold_event(decompress_event(held), start, span, depth)
        elif kind == EventType.MARIADB_PARTIAL_ROW_DATA:
            yield from self._join(held, start, span, depth)
        elif kind == EventType.INCIDENT:
            raise EventProblemError(
                "the source says that it may have lost events here; compare the data, then start after it, at"
                f" {self._file}:{start + span}"
            )
        elif kind == EventType.MARIADB_START_ENCRYPTION and not self._is_decrypted:
            raise EventProblemError(
                "the log is encrypted from here on, and only its server has the key: read it from there with --host"
            )

    def _join(self, event: memoryview, start: int, span: int, depth: int) -> Iterator[Block]:
        """Add a fragment of a large event; with the last one, index the whole event."""
        whole = self._fragments.add(event, start)
        self._state.slots[POSITION] = start + span
        self._state.slots[ALERT] = self._fragments.is_open
        if whole is not None:
            if whole[TYPE_AT] in COMPRESSED_KINDS:
                whole = decompress_event(whole)
            first = self._fragments.start
            yield from self._unfold_event(whole, first, start + span - first, depth)

    def _locate(self, feed: InputBuffer, depth: int) -> tuple[int, int]:
        """Return where the next event begins in the file, and how many bytes of the file are its own: an event that was
        inside another has a share of that."""
        slots, size = self._state.slots, feed.event_size
        if depth:
            at, span, total = (int(slots[slot]) for slot in (FRAME_AT, FRAME_SPAN, FRAME_TOTAL))
            inside = feed.at + int(slots[FRAME_SHIFT])
            start = at + inside * span // total
            return start, at + (inside + size) * span // total - start
        return max(int(slots[POSITION]), self._end_in_header(feed.event) - size), size

    def _end_in_header(self, event: memoryview) -> int:
        """Return the end position that an event has in its header, beyond 4 GiB too; 0 when it has none."""
        if self._state.slots[BY_BYTES]:
            return 0
        before, low = int(self._state.slots[POSITION]), int.from_bytes(event[END_AT : END_AT + 4], "little")
        end = before // _WRAP * _WRAP + low
        if end < before - _WRAP // 2:
            end += _WRAP
        return end if low else 0

    @contextmanager
    def _frame(self, start: int, span: int, total: int) -> Generator[None]:
        """Give the events inside of one event a share of its file offsets, in a `with` block that indexes their `total`
        bytes."""
        slots = self._state.slots
        own = (CHECKSUM_BYTES, FRAME_AT, FRAME_SPAN, FRAME_TOTAL, FRAME_SHIFT)
        outside = [int(slots[slot]) for slot in own]
        for slot, value in zip(own, (0, start, span, total, 0), strict=True):
            slots[slot] = value
        yield
        for slot, value in zip(own, outside, strict=True):
            slots[slot] = value
        slots[POSITION] = start + span

    def _unfold_event(self, event: bytearray, start: int, span: int, depth: int) -> Iterator[Block]:
        """Index a decompressed event, with the offsets of the one that held it."""
        inner = InputBuffer(np.frombuffer(event, np.uint8), len(event))
        with self._frame(start, span, len(event)):
            yield from self._index_inner(inner, depth)
        _check_end(inner)

    def _unfold(self, stream: Any, total: int, start: int, span: int, depth: int) -> Iterator[Block]:
        """Index the events in a compressed transaction piece by piece: it may be larger than the memory."""
        done, inner = 0, InputBuffer(np.empty(0, np.uint8))
        with self._frame(start, span, total):
            while done < total:
                if inner.fill == inner.data.size:
                    inner.move(inner.rest + min(total - done, self._block_bytes))
                size = min(total - done, inner.data.size - inner.fill)
                self._state.slots[FRAME_SHIFT] = done - inner.fill
                read = _read(stream, inner.data[inner.fill : inner.fill + size])
                if not read:
                    raise EventProblemError(f"it holds {done} bytes instead of {total}")
                inner.fill += read
                done += read
                yield from self._index_inner(inner, depth)
        if _read(stream, np.empty(1, np.uint8)):
            raise EventProblemError(f"it holds more than the {total} bytes it speaks of")
        _check_end(inner)

    def _index_inner(self, feed: InputBuffer, depth: int) -> Iterator[Block]:
        """Index events that another event held, and yield a block when there is enough of them."""
        yield from self._index(feed, depth + 1)
        self._seal(feed)
        if self._sealed >= self._block_bytes:
            yield self._cut(feed)


def _is_made_up(event: memoryview) -> bool:
    """Return whether the server made an event up for the stream: its bytes are in no file. MariaDB's list of GTIDs
    nevertheless has an end position, that of the events that were left out before it."""
    flags = int.from_bytes(event[FLAGS_AT : FLAGS_AT + 2], "little")
    has_end = any(event[END_AT : END_AT + 4])
    return bool(flags & ARTIFICIAL) and (not has_end or event[TYPE_AT] == EventType.MARIADB_GTID_LIST)


def _read(stream: Any, into: NDArray[np.uint8]) -> int:
    try:
        return stream.readinto(into.data)
    except OSError as error:
        raise EventProblemError(f"it cannot be expanded: {error}") from None


def _check_end(inner: InputBuffer) -> None:
    if inner.rest:
        raise EventProblemError(f"it ends with {inner.rest} bytes that are no event")
