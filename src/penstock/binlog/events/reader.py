"""A stream of event bytes → blocks. Knows the log's framing events; does no I/O.

The transport writes bytes into `room(n)`, says how many with `filled(n)`, and takes `blocks()`. A block ends at
`block_bytes`, at the end of a log file, or when the caller flushes because nothing more is waiting.
"""

import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.index import EventArrays, IndexState, Slot, Stop, index_events
from penstock.binlog.events.layout import ARTIFICIAL, CHECKSUM, HEADER, IN_USE, Entry, EventType, event_name
from penstock.binlog.events.table_map import table_map_body, table_name
from penstock.errors import BinlogError
from penstock.model import Position

BLOCK_BYTES = 1 << 20
_EVENTS = 1 << 16

_NOT_YET = {
    EventType.TRANSACTION_PAYLOAD: "compressed transactions: SET GLOBAL binlog_transaction_compression = OFF",
    EventType.PARTIAL_UPDATE_ROWS: "partial JSON updates: SET GLOBAL binlog_row_value_options = ''",
    EventType.GTID_TAGGED: "tagged GTIDs: commit with GTID_NEXT = AUTOMATIC without a tag",
    EventType.MARIADB_START_ENCRYPTION: "encrypted logs: read them from the server instead of the file",
    EventType.MARIADB_QUERY_COMPRESSED: "compressed events: SET GLOBAL log_bin_compress = OFF",
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1: "compressed events: SET GLOBAL log_bin_compress = OFF",
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V1: "compressed events: SET GLOBAL log_bin_compress = OFF",
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_V1: "compressed events: SET GLOBAL log_bin_compress = OFF",
}
_HARMLESS = {EventType.ROTATE, EventType.FORMAT_DESCRIPTION, EventType.HEARTBEAT, EventType.HEARTBEAT_V2}


class BlockReader:
    """Reads one source's log from `position`, which is at a transaction boundary."""

    def __init__(self, position: Position, *, verify: bool = True, block_bytes: int = BLOCK_BYTES) -> None:
        self._file = position.file
        self._block_bytes = block_bytes
        self._state = IndexState.start(verify=verify)
        self._state.seek(position.offset)
        self._arrays = EventArrays.of(_EVENTS)
        self._count = 0  # events indexed and not yet in a block
        self._data: NDArray[np.uint8] = np.empty(2 * block_bytes, np.uint8)
        self._indexed = 0  # bytes of _data that are indexed
        self._fill = 0  # bytes of _data that are there
        self._tables: dict[int, bytes] = {}
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
        return self._fill - self._indexed

    def expect_checksum(self, *, is_on: bool) -> None:
        """Whether events before the first FORMAT_DESCRIPTION carry one."""
        self._state.slots[Slot.CHECKSUM] = CHECKSUM if is_on else 0

    def room(self, size: int) -> NDArray[np.uint8]:
        """At least `size` writable bytes; what is not yet in a block is kept."""
        first = int(self._arrays.start[0]) if self._count else self._indexed
        if first == self._fill and self._data.size > 4 * self._block_bytes:  # grown for one large event
            self._data = np.empty(2 * self._block_bytes, np.uint8)
            first = self._indexed = self._fill = 0
        if self._data.size - self._fill < size and first:
            kept = self._fill - first
            self._data[:kept] = self._data[first : self._fill].copy()
            self._arrays.start[: self._count] -= first
            self._indexed -= first
            self._fill = kept
        if self._data.size - self._fill < size:
            larger = np.empty(max(2 * self._data.size, self._fill + size), np.uint8)
            larger[: self._fill] = self._data[: self._fill]
            self._data = larger
        return self._data[self._fill :]

    def filled(self, size: int) -> None:
        self._fill += size

    def blocks(self, *, flush: bool) -> Iterator[Block]:
        """Whole blocks of what was filled in; with `flush` also the last, short one."""
        while True:
            why, where, count = index_events(
                self._data, self._indexed, self._fill, self._state, self._arrays, self._count
            )
            self._learn_tables(count)
            self._indexed, self._count = where, count
            pending = where - int(self._arrays.start[0]) if count else 0
            if why is Stop.STARVED:
                if pending >= self._block_bytes or (flush and count):
                    yield self._cut()
                return
            if count:
                yield self._cut()
            if why is Stop.ATTENTION:
                self._attend(where)
            elif why is not Stop.FULL:
                raise self._broken(why, where)

    def _cut(self) -> Block:
        arrays, count = self._arrays, self._count
        rows = arrays.entry[:count] == Entry.ROWS
        used = {int(number) for number in np.unique(arrays.table_id[:count][rows])}
        missing = used - self._tables.keys()
        if missing:
            number = missing.pop()
            first = int(np.argmax(rows & (arrays.table_id[:count] == number)))
            raise BinlogError(
                f"{Position(self._file, int(arrays.position[first]))} rows of table id {number} came before its table"
                " map: capture did not start at a transaction boundary"
            )
        tables = {number: self._tables[number] for number in used}
        checksum = int(self._state.slots[Slot.CHECKSUM])
        block = Block.of_arrays(self._file, self.server_version, checksum, self._data, arrays, count, tables)
        self._count = 0
        return block

    def _learn_tables(self, count: int) -> None:
        arrays = self._arrays
        maps = self._count + np.flatnonzero(arrays.kind[self._count : count] == EventType.TABLE_MAP)
        numbers, first = np.unique(arrays.table_id[maps], return_index=True)
        checksum = int(self._state.slots[Slot.CHECKSUM])
        for number, i in zip(numbers.tolist(), maps[first].tolist(), strict=True):
            if number not in self._tables:
                at, size = int(arrays.start[i]), int(arrays.size[i])
                body = table_map_body(self._data[at : at + size].tobytes(), checksum)
                try:
                    table_name(body)
                except BinlogError as error:
                    raise BinlogError(f"{Position(self._file, int(arrays.position[i]))} {error}") from None
                self._tables[number] = body

    def _attend(self, at: int) -> None:
        """Handle the event at `at` that the kernel left to us, and step over it."""
        size = int.from_bytes(self._data[at + 9 : at + 13].tobytes(), "little")
        event = self._data[at : at + size].tobytes()
        kind, flags = event[4], int.from_bytes(event[17:19], "little")
        is_made_up = flags & ARTIFICIAL and not any(event[13:17])
        if kind == EventType.FORMAT_DESCRIPTION:
            self._learn_format(event, at)
        else:
            self._verify(event, at)
        if kind == EventType.ROTATE:
            self._follow_rotation(event, at)
        elif kind == EventType.INCIDENT:
            raise BinlogError(
                f"{self.position} INCIDENT: the source says that it may have lost events here;"
                " compare the data, then start from a position after it"
            )
        elif kind not in _HARMLESS and not is_made_up:
            hint = next((hint for code, hint in _NOT_YET.items() if code == kind), "leave it out of the log")
            raise BinlogError(f"{self.position} {event_name(kind)} is not decoded yet: {hint}")
        self._indexed = at + size

    def _learn_format(self, event: bytes, at: int) -> None:
        """Version 2 | server version 50 | created 4 | header length 1 | lengths | checksum algorithm 1 | checksum 4."""
        if len(event) < HEADER + 57 + 1 + CHECKSUM:
            raise self._broken(Stop.BAD_EVENT, at)
        is_on = event[-5] == 1
        self._state.slots[Slot.CHECKSUM] = CHECKSUM if is_on else 0
        # The mark is set while the file is written and was not there when the checksum was computed.
        self._verify(event[:17] + bytes([event[17] & ~IN_USE]) + event[18:], at)
        self.server_version = event[HEADER + 2 : HEADER + 52].rstrip(b"\0").decode("ascii", "replace")
        self._tables.clear()
        end_position = int.from_bytes(event[13:17], "little")
        if end_position:
            self._state.seek(end_position)

    def _follow_rotation(self, event: bytes, at: int) -> None:
        """Position 8 | file name."""
        checksum = int(self._state.slots[Slot.CHECKSUM])
        file = event[HEADER + 8 : len(event) - checksum].decode("utf-8", "replace")
        offset = int.from_bytes(event[HEADER : HEADER + 8], "little")
        if not file.rpartition(".")[2].isdecimal() or offset >= 1 << 63:
            raise self._broken(Stop.BAD_EVENT, at)
        self._tables.clear()
        self._file = file
        self._state.seek(offset)

    def _verify(self, event: bytes, at: int) -> None:
        slots = self._state.slots
        if slots[Slot.VERIFY] and slots[Slot.CHECKSUM]:
            stop = len(event) - CHECKSUM
            if zlib.crc32(event[:stop]) != int.from_bytes(event[stop:], "little"):
                raise self._broken(Stop.BAD_CHECKSUM, at)

    def _broken(self, why: Stop, at: int) -> BinlogError:
        what = {
            Stop.BAD_SIZE: "the event's size is not one that an event can have",
            Stop.BAD_CHECKSUM: "the event does not match its checksum",
            Stop.BAD_EVENT: "the event does not hold what its type asks for",
            Stop.BAD_POSITION: "the event says that it lies before the one before it",
        }[why]
        extract = self._data[at : min(at + 24, self._fill)].tobytes().hex(" ")
        return BinlogError(f"{self.position} {event_name(int(self._data[at + 4]))}: {what}; bytes there: {extract}")
