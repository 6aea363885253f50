"""First pass: where each event of a buffer lies and what it means, as arrays.

The kernel follows transactions: every event gets the file offset at which its transaction began, the
transaction's GTID and commit time, and whether the log is between two transactions after it. It stops at
events that a person or Python must look at (rotation, format, compression, …): these are rare.

A transaction in the log:

    MySQL    GTID | ANONYMOUS_GTID,  QUERY "BEGIN",  (TABLE_MAP+ ROWS+)*,  XID | QUERY "COMMIT"
    MariaDB  GTID (not standalone),                  (TABLE_MAP+ ROWS+)*,  XID | QUERY "COMMIT"
    either   GTID (MariaDB: standalone),  QUERY with the statement: a DDL is a transaction of its own
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.binlog.events.checksum import TABLES, crc32
from penstock.binlog.events.layout import LARGEST_EVENT
from penstock.binlog.kernel import BYTES, I64, I64S, U8S, U8S_2D, U32S_IN, kernel, little, shared, u16, u32

GTID_BYTES = 25  # flavour 1 (0 none, 1 MySQL, 2 MariaDB) | MySQL: uuid 16 | MariaDB: domain 4, server 4 | number 8


class Stop(IntEnum):
    """Why the kernel returned."""

    STARVED = 0  # the rest of the buffer is no whole event
    FULL = 1  # the arrays are full
    ATTENTION = 2  # the next event is for Python
    BAD_SIZE = 3
    BAD_CHECKSUM = 4
    BAD_EVENT = 5
    BAD_POSITION = 6


class Slot(IntEnum):
    """Cells of the state that lives from call to call."""

    POSITION = 0  # file offset of the next event
    TRANSACTION = 1  # file offset of the current transaction's first event, -1 between two
    COMMIT_US = 2
    IN_TRANSACTION = 3  # a BEGIN was seen: statements belong to it
    CHECKSUM = 4  # bytes of checksum at the end of each event
    VERIFY = 5


@dataclass(slots=True)
class EventArrays:
    """Struct of arrays, one cell per event; `count` cells are filled."""

    start: NDArray[np.int64]
    size: NDArray[np.int64]
    position: NDArray[np.int64]
    kind: NDArray[np.uint8]
    entry: NDArray[np.uint8]
    boundary: NDArray[np.uint8]
    timestamp: NDArray[np.int64]
    server_id: NDArray[np.int64]
    table_id: NDArray[np.int64]
    transaction: NDArray[np.int64]
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
            kind=bytes_(),
            entry=bytes_(),
            boundary=bytes_(),
            timestamp=longs(),
            server_id=longs(),
            table_id=longs(),
            transaction=longs(),
            commit_us=longs(),
            gtid=np.zeros((capacity, GTID_BYTES), np.uint8),
        )


@dataclass(slots=True)
class IndexState:
    """What the kernel remembers between calls."""

    slots: NDArray[np.int64]
    gtid: NDArray[np.uint8]

    @classmethod
    def start(cls, *, verify: bool = True) -> "IndexState":
        slots = np.zeros(len(Slot), np.int64)
        slots[Slot.TRANSACTION] = -1
        slots[Slot.VERIFY] = verify
        return cls(slots, np.zeros(GTID_BYTES, np.uint8))

    def seek(self, offset: int) -> None:
        """The next event begins at `offset`, between two transactions."""
        self.slots[Slot.POSITION] = offset
        self.slots[Slot.TRANSACTION] = -1
        self.slots[Slot.IN_TRANSACTION] = 0
        self.gtid[:] = 0


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
    types.UniTuple(I64, 3)(
        BYTES, I64, I64, I64S, U8S, U32S_IN, I64, I64S, I64S, I64S, U8S, U8S, U8S, I64S, I64S, I64S, I64S, I64S, U8S_2D
    )
)
def _index_events(
    data: Any,
    at: int,
    end: int,
    state: Any,
    state_gtid: Any,
    crc_tables: Any,
    count: int,
    start: Any,
    size_of: Any,
    position_of: Any,
    kind_of: Any,
    entry_of: Any,
    boundary_of: Any,
    timestamp_of: Any,
    server_of: Any,
    table_of: Any,
    transaction_of: Any,
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
        if kind in (4, 15, 26, 27, 39, 40, 41, 42) or 164 <= kind <= 171 or (flags & 0x20 and u32(data, at + 13) == 0):
            return 2, at, count
        stop = at + size - state[4]
        if state[5] and state[4] and crc32(data, at, stop, crc_tables) != u32(data, stop):
            return 4, at, count
        timestamp = u32(data, at)
        server = u32(data, at + 5)
        next_position = (state[0] & ~np.int64(0xFFFFFFFF)) | u32(data, at + 13)
        if next_position < state[0] - 0x80000000:
            next_position += 0x100000000
        position = next_position - size
        if position < state[0]:
            return 6, at, count

        entry, boundary, table, body = 0, 0, np.int64(0), at + 19
        if kind in (33, 34, 162):
            state[1], state[3] = position, 0
            state_gtid[:] = 0
            state[2] = timestamp * 1_000_000
            if kind == 162:
                if body + 13 > stop:
                    return 5, at, count
                state_gtid[0] = 2
                state_gtid[1:5] = data[body + 8 : body + 12]
                state_gtid[5:9] = data[at + 5 : at + 9]
                state_gtid[17:25] = data[body : body + 8]
                entry = 1
                state[3] = 0 if data[body + 12] & 1 else 1
                if not state[3]:
                    entry = 0
            else:
                if body + 25 > stop:
                    return 5, at, count
                if kind == 33:
                    state_gtid[0] = 1
                    state_gtid[1:25] = data[body + 1 : body + 25]
                if body + 49 <= stop and data[body + 25] == 2:
                    commit = little(data, body + 42, 7)
                    state[2] = commit & ~(np.int64(1) << 55)
        elif state[1] < 0:
            state[1] = position
            state[2] = timestamp * 1_000_000
            state_gtid[:] = 0

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
        elif kind == 19 or 23 <= kind <= 25 or 30 <= kind <= 32:
            if body + 8 > stop:
                return 5, at, count
            table = little(data, body, 6)
            if kind != 19:
                entry = 2
        elif kind in (3, 35, 161, 163):
            # They open or close a file, or lie between two transactions: a place to go on from, even in a quiet log.
            state[1], boundary = -1, 1

        start[count], size_of[count], position_of[count] = at, size, position
        kind_of[count], entry_of[count], boundary_of[count] = kind, entry, boundary
        timestamp_of[count], server_of[count], table_of[count] = timestamp, server, table
        transaction_of[count] = state[1] if state[1] >= 0 else position
        commit_of[count] = state[2]
        gtid_of[count, :] = state_gtid
        if boundary:
            state[1], state[3] = -1, 0
        state[0] = next_position
        count += 1
        at += size


def index_events(
    data: NDArray[np.uint8], at: int, end: int, state: IndexState, into: EventArrays, count: int
) -> tuple[Stop, int, int]:
    """Index what lies in data[at:end]; gives why it stopped, at which byte, and the number of filled cells."""
    why, where, count = _index_events(
        data,
        at,
        end,
        state.slots,
        state.gtid,
        TABLES,
        count,
        into.start,
        into.size,
        into.position,
        into.kind,
        into.entry,
        into.boundary,
        into.timestamp,
        into.server_id,
        into.table_id,
        into.transaction,
        into.commit_us,
        into.gtid,
    )
    return Stop(why), where, count
