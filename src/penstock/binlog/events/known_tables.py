"""Which table map each table id of a log has, in arrays, so that the index kernel looks ids up and adds them by itself.

A server gives a table a new id each time that it opens the table: where it has more tables than it keeps open, nearly
every table map has a new id, and a body that was seen before. Maps are therefore numbered by their bytes without the
id, and many ids may have one map.

    tables  open addressing by id: id + 1 | number of the map
    maps    open addressing by checksum of a map without its id: number + 1 | checksum
    bounds  map n lies at bytes[bounds[n] : bounds[n + 1]], with the id that it came with first
    counts  how many ids | how many maps

What a kernel cannot do by itself it leaves to `learn`: to make room, to give an id another map (rows that were indexed
before may still need the old one), and to check names that are not plain ASCII.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.copying import copy_bytes
from penstock.binlog.events.checksum import TABLES as CRC_TABLES
from penstock.binlog.events.checksum import crc32
from penstock.binlog.kernel import (
    BYTES,
    I64,
    I64S,
    I64S_2D,
    I64S_2D_IN,
    I64S_IN,
    NONE,
    U8S,
    U32S_IN,
    kernel,
    read_little_endian,
    shared,
)

MAX_IDS = 1 << 16  # more of them, or of maps, or of their bytes, are forgotten between two transactions
MAX_MAPS = 1 << 16
MAX_BYTES = 32 << 20
TABLE_ID_BYTES = 6
_IDS, _MAPS = 0, 1  # cells of `counts`
_NAMES_AT = 8  # in a table map: table id 6 | flags 2 | length 1, database, 0 | length 1, table, 0 | …
_NAMES = 2
_FIRST_LINES, _FIRST_BYTES = 64, 1 << 14
_1, _ASCII_END = np.uint64(1), 0x80


@shared
def find_table(tables: Any, number: int) -> Any:
    """Return the line of a table id, or the free one where it belongs."""
    mask = np.uint64(tables.shape[0] - 1)
    line = np.uint64(number ^ number >> 7) & mask
    while tables[line, 0] != 0 and tables[line, 0] != number + 1:
        line = (line + _1) & mask
    return line


@shared
def has_map(data: Any, body: Any, stop: Any, number: Any, bounds: Any, texts: Any) -> Any:
    """Return whether the table map data[body:stop] is, but for its id, that of this number."""
    first = bounds[np.uint64(number)]
    if bounds[np.uint64(number + 1)] - first != stop - body:
        return False
    at, first = body + TABLE_ID_BYTES, first + TABLE_ID_BYTES
    while at + 8 <= stop:
        if read_little_endian(data, at, 8) != read_little_endian(texts, first, 8):
            return False
        at += 8
        first += 8
    while at < stop:
        if data[np.uint64(at)] != texts[np.uint64(first)]:
            return False
        at += 1
        first += 1
    return True


@shared
def _find_map(data: Any, body: Any, stop: Any, checksum: Any, maps: Any, bounds: Any, texts: Any) -> Any:
    """Return the line of a table map, or the free one where it belongs."""
    mask = np.uint64(maps.shape[0] - 1)
    line = np.uint64(checksum) & mask
    while maps[line, 0] != 0 and not (
        maps[line, 1] == checksum and has_map(data, body, stop, maps[line, 0] - 1, bounds, texts)
    ):
        line = (line + _1) & mask
    return line


@shared
def _has_plain_names(data: Any, body: Any, stop: Any) -> Any:
    """Return whether a table map holds its two names, and both are ASCII."""
    at = body + _NAMES_AT
    for _ in range(_NAMES):
        if at >= stop:
            return False
        end = at + 1 + np.int64(data[np.uint64(at)])
        if end + 1 > stop:
            return False
        for k in range(at + 1, end):
            if data[np.uint64(k)] >= _ASCII_END:
                return False
        at = end + 1
    return True


@shared
def learn_table(
    data: Any, body: Any, stop: Any, tables: Any, maps: Any, bounds: Any, texts: Any, counts: Any, crc_tables: Any,
    is_checked: Any,
) -> Any:  # fmt: skip
    """Give the id of the table map data[body:stop] this map. Return whether that was possible: there is room, and the
    names of a map that is new are checked already or need no check."""
    number = read_little_endian(data, body, TABLE_ID_BYTES)
    line = find_table(tables, number)
    is_new_id = tables[line, 0] == 0
    if is_new_id and 2 * (counts[_IDS] + 1) > tables.shape[0]:
        return False
    checksum = crc32(data, body + TABLE_ID_BYTES, stop, crc_tables)
    entry = _find_map(data, body, stop, checksum, maps, bounds, texts)
    if maps[entry, 0] == 0:
        count = counts[_MAPS]
        end = bounds[count] + stop - body
        if 2 * (count + 1) > maps.shape[0] or end > texts.size:
            return False
        if not is_checked and not _has_plain_names(data, body, stop):
            return False
        copy_bytes(texts, bounds[count], data, body, stop - body)
        bounds[count + 1] = end
        maps[entry, 0], maps[entry, 1] = count + 1, checksum
        counts[_MAPS] = count + 1
    tables[line, 0], tables[line, 1] = number + 1, maps[entry, 0] - 1
    if is_new_id:
        counts[_IDS] += 1
    return True


@kernel(I64(BYTES, I64S_2D, I64S_2D, I64S, U8S, I64S, U32S_IN))
def _learn_checked(data: Any, tables: Any, maps: Any, bounds: Any, texts: Any, counts: Any, crc_tables: Any) -> Any:
    """Add a table map whose names were checked; return whether there was room."""
    is_done = learn_table(data, 0, data.size, tables, maps, bounds, texts, counts, crc_tables, 1)
    return np.int64(1 if is_done else 0)


@kernel(NONE(I64S_2D_IN, I64S_2D))
def _move_tables(old: Any, new: Any) -> None:
    for k in range(old.shape[0]):
        if old[k, 0] != 0:
            line = find_table(new, old[k, 0] - 1)
            new[line, 0], new[line, 1] = old[k, 0], old[k, 1]


@kernel(NONE(I64S_2D_IN, I64S_2D))
def _move_maps(old: Any, new: Any) -> None:
    mask = np.uint64(new.shape[0] - 1)
    for k in range(old.shape[0]):
        if old[k, 0] != 0:
            line = np.uint64(old[k, 1]) & mask
            while new[line, 0] != 0:
                line = (line + _1) & mask
            new[line, 0], new[line, 1] = old[k, 0], old[k, 1]


@kernel(NONE(I64S_2D_IN, I64S_IN, I64S))
def _find_maps(tables: Any, numbers: Any, lines: Any) -> None:
    """Write the number of its map for each table id into `found`; -1 where it has none."""
    for k in range(numbers.size):
        line = find_table(tables, numbers[k])
        lines[k] = tables[line, 1] if tables[line, 0] != 0 else np.int64(-1)


class KnownTables:
    """The table ids of one log file and their maps; maps outlive the file."""

    def __init__(self) -> None:
        self.counts = np.zeros(2, np.int64)
        self.forget_maps()

    @property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
        """Return the arrays in the order in which kernels take them; `counts` comes after them."""
        return self._tables, self._maps, self._bounds, self._bytes

    @property
    def room(self) -> tuple[int, int, int]:
        """Return how many ids, maps and bytes of maps fit before `learn` has to make room."""
        return self._tables.shape[0] // 2, self._maps.shape[0] // 2, self._bytes.size

    @property
    def ids(self) -> dict[int, bytes]:
        """Return all known table ids with their maps."""
        numbers = (self._tables[self._tables[:, 0] != 0, 0] - 1).tolist()
        return dict(zip(numbers, self.maps_of(numbers), strict=True))

    def __contains__(self, number: int) -> bool:
        return bool(self._find([number])[0] >= 0)

    def maps_of(self, numbers: Sequence[int]) -> list[bytes]:
        """Return the map of each of these ids, which are known: the same object for all ids that have the same map."""
        for number in range(len(self._bodies), int(self.counts[_MAPS])):
            first, stop = self._bounds[number : number + 2].tolist()
            self._bodies.append(self._bytes[first:stop].tobytes())
        return [self._bodies[number] for number in self._find(numbers).tolist()]

    def learn(self, body: bytes) -> None:
        """Give the id with which a table map begins this map, whatever it had before. Its names were checked."""
        self._make_room(len(body))
        data = np.frombuffer(body, np.uint8)
        if not _learn_checked(data, *self.arrays, self.counts, CRC_TABLES):
            raise AssertionError("there is room for one table map more")

    def forget_ids(self) -> None:
        """Forget the ids, which mean other tables in another file; maps are kept."""
        lines = self._tables.shape[0]
        self._tables = np.zeros((lines if lines <= 4 * MAX_IDS else _FIRST_LINES, 2), np.int64)
        self.counts[_IDS] = 0

    def forget_maps(self) -> None:
        """Forget all ids and maps."""
        self._tables, self._maps = (np.zeros((_FIRST_LINES, 2), np.int64) for _ in range(2))
        self._bounds = np.zeros(_FIRST_LINES // 2 + 1, np.int64)
        self._bytes = np.empty(_FIRST_BYTES, np.uint8)
        self._bodies: list[bytes] = []
        self.counts[:] = 0

    def shrink(self) -> None:
        """Forget all tables if they take too much memory. Call it between two transactions: each begins with its
        own maps."""
        ids, maps = self.counts.tolist()
        if maps > MAX_MAPS or self._bounds[maps] > MAX_BYTES:
            self.forget_maps()
        elif ids > MAX_IDS:
            self.forget_ids()

    def _find(self, numbers: Sequence[int]) -> NDArray[np.int64]:
        lines = np.empty(len(numbers), np.int64)
        _find_maps(self._tables, np.array(numbers, np.int64), lines)
        return lines

    def _make_room(self, size: int) -> None:
        """Grow the arrays until one more id and one more map of this size fit."""
        ids, maps = self.counts.tolist()
        if 2 * (ids + 1) > self._tables.shape[0]:
            old, self._tables = self._tables, np.zeros((4 * self._tables.shape[0], 2), np.int64)
            _move_tables(old, self._tables)
        if 2 * (maps + 1) > self._maps.shape[0]:
            old, self._maps = self._maps, np.zeros((4 * self._maps.shape[0], 2), np.int64)
            _move_maps(old, self._maps)
            self._bounds = np.append(self._bounds, np.zeros(self._maps.shape[0] // 2 + 1 - self._bounds.size, np.int64))
        used = int(self._bounds[maps])
        if used + size > self._bytes.size:
            larger = np.empty(max(4 * self._bytes.size, used + size), np.uint8)
            larger[:used] = self._bytes[:used]
            self._bytes = larger
