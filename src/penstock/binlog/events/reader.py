"""Turns a stream of event bytes into blocks. Knows the events that begin and end a log file; does no I/O.

The transport writes bytes into `room(n)`, says how many with `advance(n)`, and takes `blocks()`. A block ends at
`block_bytes`, at the end of a log file, or when the caller flushes because nothing more is waiting. Blocks are
views of the buffer that the transport filled: bytes are written once and never moved, but for an event that lies
across the end of a buffer.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.block_builder import BlockBuilder
from penstock.binlog.events.event_offsets import end_in_header, is_artificial, locate_event
from penstock.binlog.events.format import has_valid_checksum, parse_format
from penstock.binlog.events.index import index_events
from penstock.binlog.events.input_buffer import InputBuffer
from penstock.binlog.events.known_tables import TABLE_ID_BYTES
from penstock.binlog.events.layout import CHECKSUM, END_AT, FLAGS_AT, HEADER, RELAYED, TYPE_AT, EventType
from penstock.binlog.events.nested_events import EventLocation, NestedEvents
from penstock.binlog.events.problem import EventProblemError, event_error
from penstock.binlog.events.state import BY_BYTES, CHECKSUM_BYTES, POSITION, TRANSACTION, VERIFY, IndexState
from penstock.binlog.events.stop_reason import PROBLEMS, StopReason
from penstock.binlog.events.table_map import check_names, table_map_body
from penstock.errors import BinlogError
from penstock.model import FileIdentity, Position
from penstock.model.position import ensure_file_number

BLOCK_BYTES = 2 << 20  # what is done once a block then weighs little
_OPENING = (EventType.FORMAT_DESCRIPTION, EventType.START_V3, EventType.ROTATE)
_MAX_TRAILING = 16  # blocks' worth of events that wait for the one they belong to


class BlockReader:
    """Reads one source's log from `position`, which is at a transaction boundary.

    With `lenient`, an INCIDENT event is passed on like any other; otherwise it is an error, because the server may have
    lost events there. `decrypted` is set for what a server sends: it announces that its files are encrypted, but sends
    plain events. With `is_whole_file`, positions in a relay log are those of its own bytes: its headers have positions
    of the binlog that was relayed.

        reader = BlockReader(Position("binlog.000007", 4))
        reader.room(len(data))[: len(data)] = data
        reader.advance(len(data))
        blocks = list(reader.blocks(flush=True))
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
        self._is_whole_file = is_whole_file
        self._block_bytes = block_bytes
        self._state = IndexState.start(verify=verify, lenient=lenient)
        self._state.seek(position.offset)
        self._builder = BlockBuilder(position, self._state)
        self._buffer = InputBuffer(np.empty(2 * block_bytes, np.uint8))
        self._nested = NestedEvents(self._state, self._builder, is_decrypted=decrypted, block_bytes=block_bytes)
        self.file_identity: FileIdentity | None = None  # of the file that is read, known with its format
        self.is_continued = True  # the file before it says that the log continues there
        self._has_rotated = True

    @property
    def server_version(self) -> str:
        """Return the version of the server that wrote the log; empty before the first FORMAT_DESCRIPTION."""
        return self._builder.server_version

    @property
    def position(self) -> Position:
        """Return the position up to which events have been indexed."""
        return Position(self._builder.file, int(self._state.slots[POSITION]), epoch=self._builder.epoch)

    @property
    def is_between_transactions(self) -> bool:
        """Return whether the last indexed event ends a transaction."""
        return bool(self._state.slots[TRANSACTION] < 0)

    @property
    def rest(self) -> int:
        """Return the number of bytes that were filled in and are not a whole event yet."""
        return self._buffer.rest

    def expect_checksum(self, *, is_on: bool) -> None:
        """Set whether events before the first FORMAT_DESCRIPTION carry a checksum."""
        self._state.slots[CHECKSUM_BYTES] = CHECKSUM if is_on else 0

    def room(self, size: int) -> NDArray[np.uint8]:
        """Return at least `size` writable bytes."""
        buffer = self._buffer
        is_too_large = buffer.run == buffer.fill and buffer.data.size > 4 * self._block_bytes  # grown for one event
        if is_too_large or buffer.data.size - buffer.fill < size:
            buffer.move(max(2 * self._block_bytes, buffer.fill - buffer.run + size), margin=size)
        return buffer.data[buffer.fill :]

    def advance(self, size: int) -> None:
        """Note that the transport wrote `size` bytes into `room`."""
        self._buffer.fill += size

    def blocks(self, *, flush: bool, hold_trailing: bool = False) -> Iterator[Block]:
        """Yield the blocks that are complete; with `flush` also the last, short one. With `hold_trailing` no block ends
        with events that mean nothing to a consumer, such as a GTID: they wait for the one that they belong to."""
        builder = self._builder
        builder.holds_trailing = hold_trailing
        yield from self._index(self._buffer, depth=0)
        pending = builder.pending_bytes(self._buffer)
        if not builder.count or not (flush or pending >= self._block_bytes):
            return
        if pending >= _MAX_TRAILING * self._block_bytes or builder.trailing_count < builder.count:
            yield builder.cut(self._buffer)

    def _index(self, buffer: InputBuffer, depth: int) -> Iterator[Block]:
        """Index a buffer as far as it goes. A block is cut where one must end."""
        builder = self._builder
        while True:
            shift = builder.taken_bytes - buffer.run
            reason, buffer.at, builder.count = index_events(
                buffer.data, buffer.at, buffer.fill, self._state, builder.arrays, builder.count, shift
            )
            match reason:
                case StopReason.STARVED:
                    return
                case StopReason.FULL:
                    yield builder.cut(buffer)
                case StopReason.TAGS_FULL:
                    yield from builder.cut_all(buffer)
                    self._state.forget_tags()
                case StopReason.NEW_TABLE:
                    if self._is_redefined(buffer):
                        yield builder.cut(buffer)
                    try:
                        self._learn_table(buffer)
                    except EventProblemError as problem:
                        yield from builder.cut_any(buffer)
                        location = locate_event(self._state, buffer, depth)
                        raise self._broken(problem, buffer.event, *location) from None
                case StopReason.ATTENTION:
                    yield from self._handle(buffer, depth)
                case _:
                    yield from builder.cut_any(buffer)
                    event = buffer.data[buffer.at : buffer.fill].data
                    table = int.from_bytes(event[HEADER : HEADER + TABLE_ID_BYTES], "little")
                    problem_text = PROBLEMS[reason].format(table=table)
                    raise event_error(event[TYPE_AT], problem_text, event, position=self.position)

    def _is_redefined(self, buffer: InputBuffer) -> bool:
        """Return whether rows of the block to come use the id of the next table map for another map."""
        table_id = int.from_bytes(buffer.event[HEADER : HEADER + TABLE_ID_BYTES], "little")
        return table_id in self._state.known and self._builder.has_rows_of(table_id)

    def _learn_table(self, buffer: InputBuffer) -> None:
        """Check the names of a new table map, and remember it by its table id."""
        body = table_map_body(buffer.event, int(self._state.slots[CHECKSUM_BYTES]))
        check_names(body)
        self._state.known.learn(body)

    def _handle(self, buffer: InputBuffer, depth: int) -> Iterator[Block]:
        """Handle the event that the kernel left to us, and step over it."""
        event = buffer.event
        start, span = locate_event(self._state, buffer, depth)
        try:
            if event[TYPE_AT] in _OPENING and not depth:
                yield from self._builder.cut_all(buffer)
                self._open_file(event)
            else:
                self._verify(event)
                self._builder.take(buffer)
                if not is_artificial(event):
                    yield from self._nested.expand(event, EventLocation(start, span, depth), self._index)
                elif event[TYPE_AT] == EventType.MARIADB_GTID_LIST and not depth:
                    self._skip_to(end_in_header(self._state, event))
        except EventProblemError as problem:
            yield from self._builder.cut_any(buffer)
            raise self._broken(problem, event, start, span) from None
        if self._state.slots[BY_BYTES] and not depth:
            self._state.slots[POSITION] = start + span
        buffer.at += len(event)
        buffer.run = buffer.at

    def _broken(self, problem: EventProblemError, event: memoryview, start: int, span: int) -> BinlogError:
        """Return the error for a broken event, with its position."""
        offset = start + problem.byte * span // len(event)
        position = Position(self._builder.file, offset, epoch=self._builder.epoch)
        return event_error(event[TYPE_AT], problem.what, event[problem.byte :], position=position)

    def _open_file(self, event: memoryview) -> None:
        """Begin a log file, or follow a rotation to its next one."""
        if event[TYPE_AT] in (EventType.FORMAT_DESCRIPTION, EventType.START_V3):
            log_format = parse_format(event)
            self._state.slots[CHECKSUM_BYTES] = log_format.checksum
            self._verify(event)
            self._builder.server_version = log_format.server_version
            identity = FileIdentity(self._builder.file, log_format.began, log_format.server_id)
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
            self._has_rotated = self._has_rotated or not is_artificial(event)
        self._state.known.forget_ids()
        self._nested.forget_fragments()

    def _follow_rotation(self, event: memoryview) -> None:
        """Follow a ROTATE event (position 8 bytes, then the file name) to the file that it names."""
        stop = len(event) - int(self._state.slots[CHECKSUM_BYTES])
        file = bytes(event[HEADER + 8 : stop]).decode("utf-8", "replace")
        offset = int.from_bytes(event[HEADER : HEADER + 8], "little")
        if ensure_file_number(file) != file or offset >= 1 << 63:
            raise EventProblemError(PROBLEMS[StopReason.BAD_EVENT])
        if self._state.slots[BY_BYTES]:  # it names a file of the log that is relayed, or the next relay log
            return
        self._builder.file = file
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
