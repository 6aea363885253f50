"""How many rows a block has: one pass over its rows events that only steps over their fields.

An update counts as one row, as in canal. Names are not needed, so tables whose shape is not known count, too; an event
that is broken counts as none.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.binlog.events.table_map import parse_table_map
from penstock.binlog.kernel import BYTES, I64, I64S, I64S_2D_IN, I64S_IN, kernel, read_little_endian
from penstock.binlog.rows.heads import PARTIAL_UPDATE, has_null, skip_head
from penstock.binlog.values.column import wire_size_of
from penstock.errors import BinlogError, SchemaError
from penstock.model import Column, WireType

_REMEMBERED = 1 << 16  # table maps
_SHAPES = 12_000
_ROWS = int(Entry.ROWS)
_KNOWN = "rows up to each event"
_NO_WIRES = np.empty((0, 3), np.int64)


def count_rows(block: Block) -> int:
    """Return the number of rows in the rows events of a block. Those of a whole block are remembered, for its parts."""
    index = block.index
    tables, known = index.shared.get(_KNOWN, (None, None))
    if known is None or tables is not block.tables:
        events = np.flatnonzero(block.column("entry") == _ROWS)
        counts = count_by_event(block, events)
        if index.count < index.room:
            return int(counts.sum())
        rows = np.zeros(index.room + 1, np.int64)
        rows[events + 1] = counts
        known = np.cumsum(rows)
        index.shared[_KNOWN] = block.tables, known
    return int(known[index.first + index.count] - known[index.first])


def count_by_event(block: Block, events: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of rows in each of these rows events of a block."""
    rows = np.zeros(events.size, np.int64)
    if not events.size or not block.tables:
        return rows
    ids, inverse = np.unique(block.column("table_id")[events], return_inverse=True)
    # Tables that differ in their names only are counted by the same lines.
    numbers, wires = dict[int, int](), list[NDArray[np.int64]]()
    which = np.empty(ids.size, np.int64)
    for k, number in enumerate(ids.tolist()):
        body = block.tables.get(number)
        own = _NO_WIRES if body is None else _wires(body, block.server_version)
        known = numbers.setdefault(id(own), len(wires))
        if known == len(wires):
            wires.append(own)
        which[k] = -1 if body is None else known
    firsts = np.cumsum([0, *map(len, wires)], dtype=np.int64)
    data, starts, sizes = block.raw
    ends = starts[events] + sizes[events] - block.column("checksum")[events]
    flat = np.concatenate(wires) if len(wires) != 1 else wires[0]
    widest = int(np.diff(firsts).max(initial=1))
    room = np.empty(4 * max(widest, 1), np.int64)
    _count(data, starts[events], ends, which[inverse], firsts, flat, room, rows)
    return rows


@lru_cache(_REMEMBERED)
def _wires(table_map: bytes, server_version: str) -> NDArray[np.int64]:
    """Return for each column its length bytes, its width and whether it is JSON; nothing where the table map is not
    understood."""
    try:
        return _wires_of(parse_table_map(table_map, server_version).columns)
    except (BinlogError, SchemaError):
        return _NO_WIRES


@lru_cache(_SHAPES)
def _wires_of(columns: tuple[Column, ...]) -> NDArray[np.int64]:
    wires = [(wire_size_of(column), column.type is WireType.JSON) for column in columns]
    return np.array([(wire.length_bytes, wire.width, is_json) for wire, is_json in wires], np.int64).reshape(-1, 3)


@kernel(I64(BYTES, I64S_IN, I64S_IN, I64S_IN, I64S_IN, I64S_2D_IN, I64S, I64S))
def _count(data: Any, starts: Any, ends: Any, which: Any, firsts: Any, wires: Any, present: Any, rows: Any) -> Any:
    """Write the number of rows of each event, and return their sum.

    `which` is the table of each event, whose columns are wires[firsts[t]:firsts[t + 1]]; -1 for none. `present` is room
    for the numbers of columns that both images of an update carry, and for the way through a row that has all of them:
    of each column without a fixed width, the bytes before it and its length bytes.
    """
    total = np.int64(0)
    half = present.size // 4
    gaps, prefixes = present[2 * half : 3 * half], present[3 * half :]
    for e in range(starts.size):
        rows[e] = 0
        table = which[e]
        if table < 0:
            continue
        first = firsts[table]
        columns = firsts[table + 1] - first
        end, kind = ends[e], data[starts[e] + 4]
        code, at = skip_head(data, starts[e], end, kind, columns)
        is_update = kind in (24, 31, 39)
        sides = 2 if is_update else 1
        bitmap = (columns + 7) // 8
        if code or at + sides * bitmap > end:
            continue
        counts_before, counts_after = np.int64(0), np.int64(0)
        documents = np.int64(0)
        fixed, variable = (
            np.int64(0),
            np.int64(0),
        )  # bytes since the last column without a fixed width; how many of them
        for c in range(columns):
            documents += wires[first + c, 2]
            if wires[first + c, 0]:
                gaps[variable], prefixes[variable] = fixed, wires[first + c, 0]
                variable += 1
                fixed = np.int64(0)
            else:
                fixed += wires[first + c, 1]
            if data[at + (c >> 3)] >> (c & 7) & 1:
                present[counts_before] = c
                counts_before += 1
            if is_update and data[at + bitmap + (c >> 3)] >> (c & 7) & 1:
                present[half + counts_after] = c
                counts_after += 1
        at += sides * bitmap
        images, side = np.int64(0), 0
        # A row that carries nothing has no bytes. Of an event without any, it is the only one.
        if counts_before == 0 and not is_update and at == end:
            rows[e] = 1
            total += 1
            continue
        is_sound = True
        while is_sound and (at < end or (side and counts_after == 0 and kind != PARTIAL_UPDATE)):
            shown = counts_after if side else counts_before
            base = half if side else 0
            if kind == PARTIAL_UPDATE and side:
                options = np.int64(data[at])
                at += 1
                if options > 1:
                    is_sound = False
                    break
                if options:
                    at += (documents + 7) // 8
            nulls = at
            at += (shown + 7) // 8
            if at > end or counts_before + counts_after == 0:
                is_sound = False
                break
            is_null_there = has_null(data, nulls, shown)
            if shown == columns and not is_null_there and (kind != PARTIAL_UPDATE or not side):
                for v in range(variable):
                    at += gaps[v]
                    if at + prefixes[v] > end:
                        is_sound = False
                        break
                    size = read_little_endian(data, at, prefixes[v])
                    at += prefixes[v]
                    if size > end - at:
                        is_sound = False
                        break
                    at += size
                at += fixed
                if at > end:
                    is_sound = False
                images += 1
                if is_update:
                    side ^= 1
                continue
            for i in range(shown):
                if is_null_there and data[nulls + (i >> 3)] >> (i & 7) & 1:
                    continue
                c = first + present[base + i]
                prefix, size = wires[c, 0], wires[c, 1]
                if prefix:
                    if at + prefix > end:
                        is_sound = False
                        break
                    size = read_little_endian(data, at, prefix)
                    at += prefix
                if size > end - at:
                    is_sound = False
                    break
                at += size
            images += 1
            if is_update:
                side ^= 1
        if is_sound and not side:
            rows[e] = images // sides
            total += images // sides
    return total
