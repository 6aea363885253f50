"""First pass: where each event of a buffer lies and what it means, as arrays.

The kernel follows transactions: every event gets the file offset at which its transaction began, the
transaction's GTID and commit time, and whether the log is between two transactions after it. It stops at
events that a person or Python must look at (rotation, format, compression, a new table map …): these are rare.

A transaction in the log:

    MySQL    GTID | ANONYMOUS_GTID | GTID_TAGGED,  QUERY "BEGIN",  (TABLE_MAP+ ROWS+)*,  XID | QUERY "COMMIT"
    MariaDB  GTID (not standalone),                                (TABLE_MAP+ ROWS+)*,  XID | QUERY "COMMIT"
    either   GTID (MariaDB: standalone),  QUERY with the statement: a DDL is a transaction of its own

What was compressed in the log is expanded before it comes here. Such events have no place of their own in the file:
they share the `span` of the event that held them, in order, in proportion to their size.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.checksum import TABLES, crc32
from penstock.binlog.events.layout import LARGEST_EVENT, NO_TABLE
from penstock.binlog.kernel import (
    BYTES,
    I64,
    I64S,
    I64S_2D,
    I64S_2D_IN,
    NONE,
    TRIPLE,
    U8S,
    U8S_2D,
    U32S_IN,
    kernel,
    little,
    shared,
    u16,
    u32,
)

GTID_BYTES = 25  # flavour 1 (see Flavour) | MySQL: uuid 16 | MariaDB: domain 4, server 4 | number 8
MOST_TAGS = 252
TAG_BYTES = 33  # length 1, text


class Flavour(IntEnum):
    NONE = 0
    MYSQL = 1
    MARIADB = 2
    TAGGED = 3  # and above: the tag's number is the difference


class Stop(IntEnum):
    """Why the kernel returned."""

    STARVED = 0  # the rest of the buffer is no whole event
    FULL = 1  # the arrays are full
    ATTENTION = 2  # the next event is for Python
    BAD_SIZE = 3
    BAD_CHECKSUM = 4
    BAD_EVENT = 5
    BAD_POSITION = 6
    NEW_TABLE = 7  # the next event is a table map that is not known yet


class Slot(IntEnum):
    """Cells of the state that lives from call to call."""

    POSITION = 0  # file offset of the next event
    TRANSACTION = 1  # file offset of the current transaction's first event, -1 between two
    COMMIT_US = 2
    IN_TRANSACTION = 3  # a BEGIN was seen: statements belong to it
    CHECKSUM = 4  # bytes of checksum at the end of each event
    VERIFY = 5
    ORDINAL = 6  # rows events seen in the transaction
    TAGS = 7  # tags seen
    LENIENT = 8  # incidents are events like others
    # Expanded events: the event that held them, and where the buffer lies in what it held.
    FRAME_AT = 9
    FRAME_SPAN = 10
    FRAME_TOTAL = 11  # bytes of the expanded events; 0 outside
    FRAME_SHIFT = 12


@dataclass(slots=True)
class EventArrays:
    """Struct of arrays, one cell per event; `count` cells are filled."""

    start: NDArray[np.int64]  # in the block
    size: NDArray[np.int64]
    position: NDArray[np.int64]  # in the file
    span: NDArray[np.int64]  # bytes of the file: the size, but for expanded events
    kind: NDArray[np.uint8]
    entry: NDArray[np.uint8]
    boundary: NDArray[np.uint8]
    checksum: NDArray[np.uint8]  # bytes of it at the end of the event
    timestamp: NDArray[np.int64]
    server_id: NDArray[np.int64]
    table_id: NDArray[np.int64]
    transaction: NDArray[np.int64]
    ordinal: NDArray[np.int64]  # of a rows event among those of its transaction
    commit_us: NDArray[np.int64]
    gtid: NDArray[np.uint8]

    @classmethod
    def of(cls, capacity: int) -> "EventArrays":
        def longs() -> NDArray[np.int64]:
            return np.zeros(capacity, np.int64)

        def bytes_() -> NDArray[np.uint8]:
            return np.zeros(capacity, np.uint8)

        return cls(
            start=longs(),
            size=longs(),
            position=longs(),
            span=longs(),
            kind=bytes_(),
            entry=bytes_(),
            boundary=bytes_(),
            checksum=bytes_(),
            timestamp=longs(),
            server_id=longs(),
            table_id=longs(),
            transaction=longs(),
            ordinal=longs(),
            commit_us=longs(),
            gtid=np.zeros((capacity, GTID_BYTES), np.uint8),
        )


@dataclass(slots=True)
class IndexState:
    """What the kernel remembers between calls."""

    slots: NDArray[np.int64]
    gtid: NDArray[np.uint8]
    tags: NDArray[np.uint8]
    tables: NDArray[np.int64]  # open addressing: id + 1, checksum of the table map

    @classmethod
    def start(cls, *, verify: bool = True, lenient: bool = False) -> "IndexState":
        slots = np.zeros(len(Slot), np.int64)
        slots[Slot.TRANSACTION] = -1
        slots[Slot.VERIFY] = verify
        slots[Slot.LENIENT] = lenient
        tags = np.zeros((MOST_TAGS, TAG_BYTES), np.uint8)
        return cls(slots, np.zeros(GTID_BYTES, np.uint8), tags, np.zeros((64, 2), np.int64))

    def seek(self, offset: int) -> None:
        """The next event begins at `offset`, between two transactions."""
        self.slots[Slot.POSITION] = offset
        self.slots[Slot.TRANSACTION] = -1
        self.slots[Slot.IN_TRANSACTION] = 0
        self.gtid[:] = 0

    @property
    def tag_names(self) -> tuple[str, ...]:
        return tuple(
            tag[1 : 1 + tag[0]].tobytes().decode("ascii", "replace") for tag in self.tags[: self.slots[Slot.TAGS]]
        )

    def forget_tables(self) -> None:
        self.tables = np.zeros((64, 2), np.int64)

    def know_table(self, number: int, checksum: int, count: int) -> None:
        """`count` tables are known already."""
        if 2 * (count + 1) > self.tables.shape[0]:
            old, self.tables = self.tables, np.zeros((4 * self.tables.shape[0], 2), np.int64)
            for key, value in old[old[:, 0] != 0].tolist():
                _set_table(self.tables, key - 1, value)
        _set_table(self.tables, number, checksum)


@shared
def _table_slot(tables: Any, number: int) -> Any:
    """Of a table id, or the free one where it belongs."""
    mask = tables.shape[0] - 1
    slot = (number ^ number >> 7) & mask
    while tables[slot, 0] != 0 and tables[slot, 0] != number + 1:
        slot = (slot + 1) & mask
    return slot


@kernel(NONE(I64S_2D, I64, I64))
def _set_table(tables: Any, number: int, checksum: int) -> None:
    slot = _table_slot(tables, number)
    tables[slot, 0], tables[slot, 1] = number + 1, checksum


@shared
def _clear(cells: Any) -> None:
    for k in range(cells.size):
        cells[k] = 0


@shared
def _copy(data: Any, at: Any, out: Any, to: Any, size: Any) -> None:
    for k in range(size):
        out[to + k] = data[at + k]


@shared
def _number(data: Any, at: Any, stop: Any) -> Any:
    """As many more bytes as the first one ends in ones. Gives the value and where it ends, -1 when it is cut."""
    if at >= stop:
        return np.int64(0), np.int64(-1)
    first = np.int64(data[at])
    more = 0
    while more < 8 and first >> more & 1:
        more += 1
    if at + 1 + more > stop:
        return np.int64(0), np.int64(-1)
    if more == 8:
        return little(data, at + 1, 8), at + 9
    value = first >> (more + 1)
    for k in range(more):
        value |= np.int64(data[at + 1 + k]) << (8 * (k + 1) - more - 1)
    return value, at + 1 + more


@shared
def _read_tagged(data: Any, at: Any, stop: Any, state: Any, state_gtid: Any, tags: Any) -> Any:
    """GTID_TAGGED: version, size, last mandatory field, then fields by number. Gives whether it could be read."""
    for _ in range(3):
        _, at = _number(data, at, stop)
        if at < 0:
            return False
    _clear(state_gtid)
    found = 0
    while at < stop and found < 7:
        field, at = _number(data, at, stop)
        if at < 0:
            return False
        found = field
        if field == 1:
            for k in range(16):
                value, at = _number(data, at, stop)
                if at < 0:
                    return False
                state_gtid[1 + k] = value
        elif field == 3:
            size, at = _number(data, at, stop)
            if at < 0 or size < 0 or size >= TAG_BYTES or size > stop - at:
                return False
            for k in range(size):
                if data[at + k] >= 128:
                    return False
            tag = 0
            while tag < state[7]:
                is_same = tags[tag, 0] == size
                for k in range(size):
                    is_same = is_same and tags[tag, 1 + k] == data[at + k]
                if is_same:
                    break
                tag += 1
            if tag == state[7]:
                if tag == MOST_TAGS:
                    return False
                tags[tag, 0] = size
                for k in range(size):
                    tags[tag, 1 + k] = data[at + k]
                state[7] += 1
            state_gtid[0] = 3 + tag
            if size == 0:
                state_gtid[0] = 1
            at += size
        elif field <= 6:
            value, at = _number(data, at, stop)
            if at < 0:
                return False
            if field == 2:
                value >>= 1
                for k in range(8):
                    state_gtid[17 + k] = value >> 8 * k & 0xFF
            elif field == 6:
                state[2] = value
    return state_gtid[0] > 0


@shared
def _is_word(data: Any, at: Any, end: int, word: Any) -> bool:
    if end - at < word.size:
        return False
    for k in range(word.size):  # noqa: SIM110 - kernels have no generators
        if (data[at + k] & 0xDF) != word[k]:
            return False
    return True


def _word(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8) & np.uint8(0xDF)


BEGIN, COMMIT, ROLLBACK, XA_START = _word("BEGIN"), _word("COMMIT"), _word("ROLLBACK"), _word("XA START")


@kernel(
    TRIPLE(
        BYTES, I64, I64, I64, I64S, U8S, U8S_2D, I64S_2D_IN, U32S_IN, I64,
        I64S, I64S, I64S, I64S, U8S, U8S, U8S, U8S, I64S, I64S, I64S, I64S, I64S, I64S, U8S_2D,
    )
)  # fmt: skip
def _index_events(
    data: Any,
    at: int,
    end: int,
    shift: int,
    state: Any,
    state_gtid: Any,
    tags: Any,
    tables: Any,
    crc_tables: Any,
    count: int,
    start: Any,
    size_of: Any,
    position_of: Any,
    span_of: Any,
    kind_of: Any,
    entry_of: Any,
    boundary_of: Any,
    checksum_of: Any,
    timestamp_of: Any,
    server_of: Any,
    table_of: Any,
    transaction_of: Any,
    ordinal_of: Any,
    commit_of: Any,
    gtid_of: Any,
) -> Any:
    """Index events of data[at:end] into cells from `count` on; gives (why, where, count)."""
    while True:
        if at + 19 > end:
            return 0, at, count
        if count == start.size:
            return 1, at, count
        size = u32(data, at + 9)
        if size < 19 + state[4] or size > LARGEST_EVENT:
            return 3, at, count
        if at + size > end:
            return 0, at, count
        kind = data[at + 4]
        flags = u16(data, at + 17)
        if kind in (4, 15, 27, 40, 41) or 164 <= kind <= 172 or (flags & 0x20 and u32(data, at + 13) == 0):
            return 2, at, count
        if kind == 26 and not state[8]:
            return 2, at, count
        stop = at + size - state[4]
        if state[5] and state[4] and crc32(data, at, stop, crc_tables) != u32(data, stop):
            return 4, at, count
        timestamp = u32(data, at)
        server = u32(data, at + 5)
        if state[11]:
            inner = at + state[12]
            if inner + size > state[11]:
                return 3, at, count
            position = state[9] + inner * state[10] // state[11]
            next_position = state[9] + (inner + size) * state[10] // state[11]
        else:
            next_position = (state[0] & ~np.int64(0xFFFFFFFF)) | u32(data, at + 13)
            if next_position < state[0] - 0x80000000:
                next_position += 0x100000000
            position = next_position - size
            if position < state[0]:
                return 6, at, count

        entry, boundary, table, body, ordinal = 0, 0, np.int64(0), at + 19, np.int64(0)
        if kind in (33, 34, 42, 162):
            state[1], state[3], state[6] = position, 0, 0
            _clear(state_gtid)
            state[2] = timestamp * 1_000_000
            if kind == 162:
                if body + 13 > stop:
                    return 5, at, count
                state_gtid[0] = 2
                _copy(data, body + 8, state_gtid, 1, 4)
                _copy(data, at + 5, state_gtid, 5, 4)
                _copy(data, body, state_gtid, 17, 8)
                entry = 1
                state[3] = 0 if data[body + 12] & 1 else 1
                if not state[3]:
                    entry = 0
            elif kind == 42:
                if not _read_tagged(data, body, stop, state, state_gtid, tags):
                    return 5, at, count
            else:
                if body + 25 > stop:
                    return 5, at, count
                if kind == 33:
                    state_gtid[0] = 1
                    _copy(data, body + 1, state_gtid, 1, 24)
                if body + 49 <= stop and data[body + 25] == 2:
                    commit = little(data, body + 42, 7)
                    state[2] = commit & ~(np.int64(1) << 55)
        elif state[1] < 0:
            state[1], state[6] = position, 0
            state[2] = timestamp * 1_000_000
            _clear(state_gtid)

        if kind == 2:
            if body + 13 > stop:
                return 5, at, count
            query = body + 13 + u16(data, body + 11) + np.int64(data[body + 8]) + 1
            if query > stop:
                return 5, at, count
            if (_is_word(data, query, stop, BEGIN) and stop - query == 5) or _is_word(data, query, stop, XA_START):
                entry, state[3] = 1, 1
            elif state[3]:
                if (_is_word(data, query, stop, COMMIT) and stop - query == 6) or (
                    _is_word(data, query, stop, ROLLBACK) and stop - query == 8
                ):
                    entry, boundary = 4, 1
            else:
                entry, boundary = 3, 1
        elif kind in (16, 38):
            entry, boundary = 4, 1
        elif kind == 19:
            if body + 8 > stop:
                return 5, at, count
            table = little(data, body, 6)
            slot = _table_slot(tables, table)
            if tables[slot, 0] == 0 or tables[slot, 1] != crc32(data, body, stop, crc_tables):
                return 7, at, count
        elif 23 <= kind <= 25 or 30 <= kind <= 32 or kind == 39:
            if body + 8 > stop:
                return 5, at, count
            table = little(data, body, 6)
            if table != NO_TABLE:
                entry, ordinal = 2, state[6]
                state[6] += 1
        elif kind in (3, 35, 161, 163):
            # They open or close a file, or lie between two transactions: a place to go on from, even in a quiet log.
            state[1], boundary = -1, 1

        start[count], size_of[count], position_of[count] = at + shift, size, position
        span_of[count], checksum_of[count] = next_position - position, state[4]
        kind_of[count], entry_of[count], boundary_of[count] = kind, entry, boundary
        timestamp_of[count], server_of[count], table_of[count] = timestamp, server, table
        transaction_of[count] = state[1] if state[1] >= 0 else position
        ordinal_of[count], commit_of[count] = ordinal, state[2]
        for k in range(GTID_BYTES):
            gtid_of[count, k] = state_gtid[k]
        if boundary:
            state[1], state[3] = -1, 0
        state[0] = next_position
        count += 1
        at += size


def index_events(
    data: NDArray[np.uint8], at: int, end: int, state: IndexState, into: EventArrays, count: int, shift: int = 0
) -> tuple[Stop, int, int]:
    """Index what lies in data[at:end]; gives why it stopped, at which byte, and the number of filled cells.

    A byte `k` of the data is byte `k + shift` of the block that is being made.
    """
    why, where, count = _index_events(
        data,
        at,
        end,
        shift,
        state.slots,
        state.gtid,
        state.tags,
        state.tables,
        TABLES,
        count,
        into.start,
        into.size,
        into.position,
        into.span,
        into.kind,
        into.entry,
        into.boundary,
        into.checksum,
        into.timestamp,
        into.server_id,
        into.table_id,
        into.transaction,
        into.ordinal,
        into.commit_us,
        into.gtid,
    )
    return Stop(why), where, count
