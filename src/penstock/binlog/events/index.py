"""First pass: where each event of a buffer lies and what it means, as arrays.

The kernel follows transactions: every event gets the file offset at which its transaction began, the
transaction's GTID and commit time, and whether the log is between two transactions after it. It stops at
events that a person or Python must look at (rotation, format, compression, a new table map …): these are rare.

A transaction in the log:

    MySQL    GTID | ANONYMOUS_GTID | GTID_TAGGED,  QUERY "BEGIN",  (TABLE_MAP+ ROWS+)*,  XID | QUERY "COMMIT"
    MariaDB  GTID (not standalone),                                (TABLE_MAP+ ROWS+)*,  XID | QUERY "COMMIT"
    XA       GTID,  QUERY "XA START" (not MariaDB),                (TABLE_MAP+ ROWS+)*,  QUERY "XA END",  XA_PREPARE
    any      GTID (MariaDB: standalone),  QUERY with the statement: a DDL is a transaction of its own

What was compressed in the log is expanded before it comes here. Such events have no position of their own in the file:
they share the `span` of the event that held them, in order, in proportion to their size.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.checksum import TABLES, crc32, extend_block_checksum
from penstock.binlog.events.event_arrays import EventArrays
from penstock.binlog.events.framing import entry_of_statement
from penstock.binlog.events.gtid_event import read_gtid_event
from penstock.binlog.events.known_tables import TABLE_ID_BYTES, find_table, has_map, learn_table
from penstock.binlog.events.layout import (
    ARTIFICIAL,
    END_AT,
    FLAGS_AT,
    HEADER,
    LARGEST_EVENT,
    NO_TABLE,
    SERVER_AT,
    SIZE_AT,
    TYPE_AT,
    Entry,
    EventType,
)
from penstock.binlog.events.roles import BETWEEN, ENDS, FOR_PYTHON, INCIDENT, MAPS, OPENS, ROLE_OF, ROWS, STATEMENT
from penstock.binlog.events.state import (
    ALERT,
    BLOCK_CHECKSUM,
    BY_BYTES,
    CHECKSUM_BYTES,
    COMMIT_US,
    ENTRY_CHECKSUM,
    FRAME_AT,
    FRAME_SHIFT,
    FRAME_SPAN,
    FRAME_TOTAL,
    GTID_BYTES,
    IN_TRANSACTION,
    LENIENT,
    ORDINAL,
    POSITION,
    TRANSACTION,
    VERIFY,
    IndexState,
)
from penstock.binlog.events.stop_reason import (
    ATTENTION,
    BAD_CHECKSUM,
    BAD_EVENT,
    BAD_POSITION,
    BAD_SIZE,
    FULL,
    NEW_TABLE,
    NO_REASON,
    NO_TABLE_MAP,
    STARVED,
    StopReason,
)
from penstock.binlog.kernel import (
    BYTES,
    I64,
    I64S,
    I64S_2D,
    TRIPLE,
    U8S,
    U8S_2D,
    U32S_IN,
    kernel,
    read_little_endian,
    shared,
    u16,
    u32,
)

_OTHER, _BEGIN, _ROWS, _DDL, _END = (
    int(entry) for entry in (Entry.OTHER, Entry.BEGIN, Entry.ROWS, Entry.DDL, Entry.END)
)
_GTID_LIST = int(EventType.MARIADB_GTID_LIST)
# QUERY: thread 4 | seconds 4 | database length 1 | error 2 | variables length 2 | variables | database, 0 | text
_DATABASE_LENGTH, _VARIABLES_LENGTH, _VARIABLES = 8, 11, 13
# TABLE_MAP and rows: table id 6 | flags 2
_TABLE_HEAD = 8
_WRAP, _LOW = np.int64(1) << 32, np.int64(0xFFFFFFFF)  # end positions have 32 bits, and start again from 0 at 4 GiB


@shared
def _find_position(state: Any, at: Any, size: Any, end_position: Any) -> Any:
    """Return where an event begins and ends in the file, and a reason to stop if that cannot be.

    An event lies after the one before it. Its header confirms that, or says how many bytes were left out on the way;
    from MariaDB 11.4 on the events inside a transaction have no end position, and the sizes alone say where they are.
    """
    if state[FRAME_TOTAL]:
        inner = at + state[FRAME_SHIFT]
        first = state[FRAME_AT] + inner * state[FRAME_SPAN] // state[FRAME_TOTAL]
        last = state[FRAME_AT] + (inner + size) * state[FRAME_SPAN] // state[FRAME_TOTAL]
        return first, last, BAD_SIZE if inner + size > state[FRAME_TOTAL] else NO_REASON
    before = state[POSITION]
    if end_position == 0 or state[BY_BYTES]:
        return before, before + size, NO_REASON
    last = before & ~_LOW | end_position
    if last < before - (_WRAP >> 1):
        last += _WRAP
    return last - size, last, BAD_POSITION if last - size < before else NO_REASON


@shared
def _text_of_query(data: Any, body: Any, stop: Any) -> Any:
    """Return where the text of a QUERY event begins; -1 when the event ends before it."""
    if body + _VARIABLES > stop:
        return np.int64(-1)
    text = body + _VARIABLES + u16(data, body + _VARIABLES_LENGTH) + np.int64(data[body + _DATABASE_LENGTH]) + 1
    return text if text <= stop else np.int64(-1)


@kernel(
    TRIPLE(
        BYTES, I64, I64, I64, I64S, U8S, U8S_2D, I64S_2D, I64S_2D, I64S, U8S, I64S, U32S_IN, I64,
        I64S, I64S, I64S, I64S, U8S, U8S, U8S, U8S, I64S, I64S, I64S, I64S, I64S, I64S, U8S_2D,
    )
)  # fmt: skip
def _index_events(
    data: Any,
    at: int,
    end: int,
    shift: int,
    state: Any,
    gtid: Any,
    tags: Any,
    tables: Any,
    maps: Any,
    map_bounds: Any,
    map_bytes: Any,
    table_counts: Any,
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
    """Index the events of data[at:end] into cells from `count` on; return (reason to stop, byte at which it stopped,
    number of filled cells)."""
    while True:
        if at + HEADER > end:
            return STARVED, at, count
        if count == start.size:
            return FULL, at, count
        size = u32(data, at + SIZE_AT)
        if size < HEADER + state[CHECKSUM_BYTES] or size > LARGEST_EVENT:
            return BAD_SIZE, at, count
        if at + size > end:
            return STARVED, at, count
        kind, end_position = data[at + TYPE_AT], u32(data, at + END_AT)
        role = ROLE_OF[kind]
        if (
            role == FOR_PYTHON
            or state[ALERT]
            or (role == INCIDENT and not state[LENIENT])
            or (u16(data, at + FLAGS_AT) & ARTIFICIAL and (end_position == 0 or kind == _GTID_LIST))
        ):
            return ATTENTION, at, count
        stop = at + size - state[CHECKSUM_BYTES]
        if state[VERIFY] and state[CHECKSUM_BYTES] and crc32(data, at, stop, crc_tables) != u32(data, stop):
            return BAD_CHECKSUM, at, count
        position, next_position, why = _find_position(state, at, size, end_position)
        if why != NO_REASON:
            return why, at, count

        timestamp, body = u32(data, at), at + HEADER
        if role == OPENS or state[TRANSACTION] < 0:
            state[TRANSACTION], state[ORDINAL], state[COMMIT_US] = position, 0, timestamp * 1_000_000
            for k in range(GTID_BYTES):
                gtid[k] = 0

        entry, boundary, table, ordinal = _OTHER, 0, np.int64(0), np.int64(0)
        if role == OPENS:
            why = read_gtid_event(data, at, stop, state, gtid, tags)
            if why != NO_REASON:
                return why, at, count
            if state[IN_TRANSACTION]:
                entry = _BEGIN
        elif role == STATEMENT:
            text = _text_of_query(data, body, stop)
            if text < 0:
                return BAD_EVENT, at, count
            entry = entry_of_statement(data, text, stop, state[IN_TRANSACTION])
            if entry == _BEGIN:
                state[IN_TRANSACTION] = 1
        elif role == ENDS:
            entry = _END
        elif role in (MAPS, ROWS):
            if body + _TABLE_HEAD > stop:
                return BAD_EVENT, at, count
            table = read_little_endian(data, body, TABLE_ID_BYTES)
            if role == MAPS or table != NO_TABLE:
                slot = find_table(tables, table)
                is_known = tables[slot, 0] != 0
                if role == ROWS:
                    if not is_known:
                        return NO_TABLE_MAP, at, count
                    entry, ordinal = _ROWS, state[ORDINAL]
                    state[ORDINAL] += 1
                elif is_known:
                    if not has_map(data, body, stop, tables[slot, 1], map_bounds, map_bytes):
                        return NEW_TABLE, at, count
                elif not learn_table(
                    data, body, stop, tables, maps, map_bounds, map_bytes, table_counts, crc_tables, 0
                ):
                    return NEW_TABLE, at, count
        elif role == BETWEEN:
            state[TRANSACTION], boundary = -1, 1
        if entry in (_END, _DDL):
            boundary = 1

        start[count], size_of[count], position_of[count] = at + shift, size, position
        span_of[count], checksum_of[count] = next_position - position, state[CHECKSUM_BYTES]
        if state[BLOCK_CHECKSUM] >= 0:
            is_verified = state[VERIFY] and state[CHECKSUM_BYTES]
            state[BLOCK_CHECKSUM] = (
                extend_block_checksum(state[BLOCK_CHECKSUM], data, stop, crc_tables) if is_verified else np.int64(-1)
            )
        if entry or boundary:
            state[ENTRY_CHECKSUM] = state[BLOCK_CHECKSUM]
        kind_of[count], entry_of[count], boundary_of[count] = kind, entry, boundary
        timestamp_of[count], server_of[count], table_of[count] = timestamp, u32(data, at + SERVER_AT), table
        transaction_of[count] = state[TRANSACTION] if state[TRANSACTION] >= 0 else position
        ordinal_of[count], commit_of[count] = ordinal, state[COMMIT_US]
        for k in range(GTID_BYTES):
            gtid_of[count, k] = gtid[k]
        if boundary:
            state[TRANSACTION], state[IN_TRANSACTION] = -1, 0
        state[POSITION] = next_position
        count += 1
        at += size


def index_events(
    data: NDArray[np.uint8], at: int, end: int, state: IndexState, into: EventArrays, count: int, shift: int = 0
) -> tuple[StopReason, int, int]:
    """Write one row of the event index `into` (offset, position, kind, table ...) for each binlog event in
    data[at:end].

    `count` rows are filled before the call. Return why it stopped, at which byte of the data, and how many rows are
    filled then. The byte `k` of the data is the byte `k + shift` of the block whose index is filled.
    """
    why, where, count = _index_events(
        data,
        at,
        end,
        shift,
        state.slots,
        state.gtid,
        state.tags,
        *state.known.arrays,
        state.known.counts,
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
    return StopReason(why), where, count
