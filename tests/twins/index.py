"""Twin of the event index: what each event of a buffer is, and why the walk stopped."""

import struct
import zlib
from dataclasses import dataclass, field

STARVED, FULL, ATTENTION, NEW_TABLE, TAGS_FULL = range(5)
BAD_SIZE, BAD_CHECKSUM, BAD_EVENT, BAD_POSITION, NO_TABLE_MAP = range(5, 10)
OTHER, BEGIN, ROWS, DDL, END = range(5)
_FOR_PYTHON = {1, 4, 15, 26, 27, 40, 41, *range(164, 173)}
_ROWS = {23, 24, 25, 30, 31, 32, 39}
_NO_TABLE = 0xFFFFFF
_BETWEEN = {3, 35, 161, 163}  # events that open or close a file, or lie between two transactions
_LARGEST = (1 << 30) + (1 << 20)
_MAX_TAGS = 252


@dataclass(frozen=True, slots=True)
class Indexed:
    start: int
    size: int
    position: int
    span: int
    kind: int
    entry: int
    boundary: int
    checksum: int
    timestamp: int
    server_id: int
    table_id: int
    transaction: int
    ordinal: int
    commit_us: int
    gtid: bytes


@dataclass(slots=True)
class State:
    position: int = 4
    checksum: int = 4
    is_verified: bool = True
    transaction: int | None = None
    commit_us: int = 0
    in_transaction: bool = False
    gtid: bytes = bytes(25)
    ordinal: int = 0  # rows events in the transaction
    tags: list[bytes] = field(default_factory=list[bytes])
    tables: dict[int, bytes] = field(default_factory=dict[int, bytes])  # id → its map without the id
    maps: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])  # without the id → as it first came
    room: tuple[int, int, int] = (32, 32, 1 << 14)  # for ids, maps, bytes of maps

    def learn(self, body: bytes) -> None:
        """What the reader does with a table map that the kernel does not add by itself."""
        self.maps.setdefault(body[6:], body)
        self.tables[int.from_bytes(body[:6], "little")] = body[6:]


def index(data: bytes, at: int, end: int, state: State, capacity: int) -> tuple[int, int, list[Indexed]]:  # noqa: C901, PLR0911 - one answer per reason
    """Why it stopped, where, and what it found."""
    events: list[Indexed] = []
    while True:
        if end - at < 19:
            return STARVED, at, events
        if len(events) == capacity:
            return FULL, at, events
        timestamp, kind, server, size, next_position, flags = struct.unpack_from("<IBIIIH", data, at)
        if size < 19 + state.checksum or size > _LARGEST:
            return BAD_SIZE, at, events
        if size > end - at:
            return STARVED, at, events
        if kind in _FOR_PYTHON or (flags & 0x20 and (next_position == 0 or kind == 163)):
            return ATTENTION, at, events
        body = data[at + 19 : at + size - state.checksum]
        if state.is_verified and state.checksum:
            (crc,) = struct.unpack_from("<I", data, at + size - 4)
            if zlib.crc32(data[at : at + size - 4]) != crc:
                return BAD_CHECKSUM, at, events
        position = _unwrapped(next_position, state.position) - size if next_position else state.position
        if position < state.position:
            return BAD_POSITION, at, events
        _begin(state, kind, body, position, timestamp, server)
        meaning = _meaning(state, kind, body)
        if meaning is None:
            return BAD_EVENT, at, events
        entry, boundary, table = meaning
        why = _tagged(state, body) if kind == 42 else _about_table(state, kind, entry, table, body)
        if why is not None:
            return why, at, events
        ordinal = state.ordinal if entry == ROWS else 0
        state.ordinal += entry == ROWS
        transaction = position if state.transaction is None else state.transaction
        facts = position, size, kind, entry, boundary, state.checksum, timestamp, server, table, transaction, ordinal
        events.append(Indexed(at, size, *facts, state.commit_us, state.gtid))
        if boundary:
            state.transaction, state.in_transaction = None, False
        state.position = position + size
        at += size


def _unwrapped(low: int, before: int) -> int:
    """End positions have 32 bits; the position nearest after, or not far before, the last one is meant."""
    position = before >> 32 << 32 | low
    return position + (1 << 32) if position < before - (1 << 31) else position


def _begin(state: State, kind: int, body: bytes, position: int, timestamp: int, server: int) -> None:
    if kind in {33, 34, 42, 162}:
        state.transaction, state.in_transaction, state.ordinal = position, False, 0
        state.commit_us, state.gtid = timestamp * 1_000_000, bytes(25)
        if kind == 162 and len(body) >= 13:
            state.gtid = b"\x02" + body[8:12] + struct.pack("<I", server) + bytes(8) + body[:8]
            state.in_transaction = not body[12] & 1
        elif kind == 33 and len(body) >= 25:
            state.gtid = b"\x01" + body[1:25]
        if kind in {33, 34} and len(body) >= 49 and body[25] == 2:
            state.commit_us = int.from_bytes(body[42:49], "little") & ~(1 << 55)
    elif state.transaction is None:
        state.ordinal = 0
        state.transaction, state.commit_us, state.gtid = position, timestamp * 1_000_000, bytes(25)


def _meaning(state: State, kind: int, body: bytes) -> tuple[int, int, int] | None:  # noqa: PLR0911 - one per type
    """Entry, boundary and table id; None when the event is shorter than its fixed part."""
    smallest = {33: 25, 34: 25, 162: 13, 2: 13, 19: 8} | dict.fromkeys(_ROWS, 8)
    if len(body) < smallest.get(kind, 0):
        return None
    if kind == 162:
        return (BEGIN if state.in_transaction else OTHER), 0, 0
    if kind == 2:
        at = 13 + struct.unpack_from("<H", body, 11)[0] + body[8] + 1
        return (*_statement(state, body[at:]), 0) if at <= len(body) else None
    if kind in {16, 38}:
        return END, 1, 0
    if kind == 19 or kind in _ROWS:
        table = int.from_bytes(body[:6], "little")
        return (ROWS if kind in _ROWS and table != _NO_TABLE else OTHER), 0, table
    if kind in _BETWEEN:
        state.transaction = None
        return OTHER, 1, 0
    return OTHER, 0, 0


def _statement(state: State, text: bytes) -> tuple[int, int]:
    # Letters without their case; the kernel takes a zero byte for a blank as well.
    plain = bytes(byte & 0xDF for byte in text)
    if plain == b"BEGIN" or plain.startswith(b"XA\x00START"):
        state.in_transaction = True
        return BEGIN, 0
    if not state.in_transaction:
        return DDL, 1
    if plain in {b"COMMIT", b"ROLLBACK"}:
        return END, 1
    return (BEGIN if plain.startswith(b"XA\x00END") else OTHER), 0


def _about_table(state: State, kind: int, entry: int, table: int, body: bytes) -> int | None:
    if entry == ROWS and table not in state.tables:
        return NO_TABLE_MAP
    if kind != 19:
        return None
    if table in state.tables:
        return None if state.tables[table] == body[6:] else NEW_TABLE
    ids, maps, size = state.room
    if len(state.tables) >= ids:
        return NEW_TABLE
    used = sum(map(len, state.maps.values()))
    if body[6:] not in state.maps and (
        len(state.maps) >= maps or used + len(body) > size or not _has_plain_names(body[8:])
    ):
        return NEW_TABLE
    state.learn(body)
    return None


def _has_plain_names(rest: bytes) -> bool:
    for _ in range(2):
        if not rest or len(rest) < rest[0] + 2 or not rest[1 : 1 + rest[0]].isascii():
            return False
        rest = rest[rest[0] + 2 :]
    return True


def _tagged(state: State, body: bytes) -> int | None:  # noqa: C901 - a branch per field
    """GTID_TAGGED: three numbers, then fields by number; the sixth is the last we want. Gives why it cannot be read."""
    numbers = _Numbers(body)
    fields: dict[int, bytes | int] = {}
    try:
        for _ in range(3):
            numbers.take()
        number = 0
        while not numbers.is_done and number < 7:
            number = numbers.take()
            if number == 1:
                fields[1] = bytes(numbers.take() & 0xFF for _ in range(16))
            elif number == 3:
                tag = fields[3] = numbers.text()
                if tag not in state.tags and len(state.tags) == _MAX_TAGS:
                    return TAGS_FULL
                if tag not in state.tags:
                    state.tags.append(tag)
            elif number <= 6:
                fields[number] = numbers.take()
                if number == 6:
                    state.commit_us = _signed(numbers.last)
    except EOFError:
        return BAD_EVENT
    tag = fields.get(3)
    if not isinstance(tag, bytes):
        return BAD_EVENT
    uuid, gno = fields.get(1, bytes(16)), fields.get(2, 0)
    assert isinstance(uuid, bytes)
    assert isinstance(gno, int)
    flavour = 3 + state.tags.index(tag) if tag else 1
    state.gtid = bytes([flavour]) + uuid + (_signed(gno) >> 1 & (1 << 64) - 1).to_bytes(8, "little")
    return None


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


class _Numbers:
    """Of variable length: as many more bytes as the first one ends in ones."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self.last = data, 0, 0

    @property
    def is_done(self) -> bool:
        return self._at >= len(self._data)

    def _bytes(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise EOFError
        self._at += size
        return self._data[self._at - size : self._at]

    def take(self) -> int:
        first = self._bytes(1)
        extra = next((k for k in range(8) if not first[0] >> k & 1), 8)
        rest = self._bytes(extra)
        self.last = int.from_bytes(rest if extra == 8 else first + rest, "little") >> (0 if extra == 8 else extra + 1)
        return _signed(self.last)

    def text(self) -> bytes:
        size = self.take()
        if not 0 <= size < 33:
            raise EOFError
        raw = self._bytes(size)
        if not raw.isascii():
            raise EOFError
        return raw
