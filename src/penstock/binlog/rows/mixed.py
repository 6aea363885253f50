"""Rows events of many tables, walked together in the order of the log.

Where `locate` lists the fields of one table column by column, this lists those of all tables kind by kind: fields of a
kind lie side by side, whichever table and column they are of, and a cell of an image says which of them it is. So what
is done once costs per kind of value, not per table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.kernel import (
    BYTES,
    I32S,
    I64,
    I64S,
    I64S_2D_IN,
    I64S_IN,
    TRIPLE,
    kernel,
    read_little_endian,
    shared,
)
from penstock.binlog.rows.heads import ENDS_EARLY, PARTIAL_UPDATE, skip_head
from penstock.binlog.rows.located import ABSENT, KIND_OF_EVENT, NULL
from penstock.binlog.rows.programs import KIND, PREFIX, WIDTH, TablePrograms
from penstock.binlog.values.column import DecodeOptions
from penstock.binlog.values.decode import Fields, decode_column
from penstock.model import ChangeKind, Column

_NO_PARTIAL = np.empty(0, np.uint8)
MANY_BYTES = 128 << 10  # of one table in a block
_MIN_TABLES = 2
_MAX_CELLS = 1 << 23  # of one piece: sparse images can have eight for each byte of the log


@shared
def _count_present(data: Any, at: Any, columns: Any) -> Any:
    """Return how many of the first `columns` bits at `at` are set."""
    count = np.int64(0)
    for c in range(columns):
        count += np.int64(data[np.uint64(at + (c >> 3))] >> (c & 7) & 1)
    return count


@kernel(
    TRIPLE(
        BYTES, I64S_IN, I64S_IN, I64S_IN, I64S_IN, I64S_2D_IN, I64, I64S, I32S, I32S, I32S, I32S, I32S, I32S,
    )
)  # fmt: skip
def walk_mixed(
    data: Any,
    starts: Any,
    ends: Any,
    programs: Any,
    bounds: Any,
    columns: Any,
    is_listing: int,
    cursors: Any,
    offsets: Any,
    lengths: Any,
    cells: Any,
    image_event: Any,
    image_start: Any,
    image_cell: Any,
) -> Any:
    """Walk whole rows events of many tables, each by its program, and write where each field and image lies; there is
    no partial update among them.

    The first time it counts: cursors[k] gets the number of fields of kind k. The second time it lists, and cursors[k]
    is where the next field of kind k goes. A cell is the number of a field, NULL or ABSENT; an image has one for each
    column of its table, from image_cell on. Return (0, images, cells) or (error,
    byte, event).
    """
    image, cell = np.int64(0), np.int64(0)
    for e in range(starts.size):
        first = bounds[programs[e]]
        count = bounds[programs[e] + 1] - first
        end, kind = ends[e], data[starts[e] + 4]
        code, at = skip_head(data, starts[e], end, kind, count)
        if code:
            return code, at, e
        is_update = kind in (24, 31)
        bitmap = (count + 7) // 8
        sides = 2 if is_update else 1
        if at + sides * bitmap > end:
            return ENDS_EARLY, end, e
        present_before = at
        at += sides * bitmap
        shown_before = _count_present(data, present_before, count)
        shown_after = _count_present(data, present_before + bitmap, count) if is_update else np.int64(0)
        side, begun = 0, image
        # A row that carries nothing has no bytes. Of an event without any, it is the only one.
        is_empty = shown_before == 0 and not is_update and at == end
        while at < end or (is_empty and image == begun) or (side and shown_after == 0):
            shown = shown_after if side else shown_before
            present = present_before + bitmap if side else present_before
            nulls = at
            at += (shown + 7) // 8
            if at > end or (shown == 0 and not is_empty and shown_before + shown_after == 0):
                return ENDS_EARLY, nulls, e
            if is_listing:
                image_event[image], image_start[image], image_cell[image] = e, nulls, cell
            k = np.int64(0)
            for c in range(count):
                if not data[np.uint64(present + (c >> 3))] >> (c & 7) & 1:
                    if is_listing:
                        cells[np.uint64(cell + c)] = ABSENT
                    continue
                is_null = data[np.uint64(nulls + (k >> 3))] >> (k & 7) & 1
                k += 1
                if is_null:
                    if is_listing:
                        cells[np.uint64(cell + c)] = NULL
                    continue
                line = np.uint64(first + c)
                prefix, size, value_kind = columns[line, PREFIX], columns[line, WIDTH], columns[line, KIND]
                if prefix:
                    if at + prefix > end:
                        return ENDS_EARLY, at, e
                    size = read_little_endian(data, at, prefix)
                    at += prefix
                if size > end - at:
                    return ENDS_EARLY, at, e
                if value_kind >= 0:
                    field = cursors[np.uint64(value_kind)]
                    cursors[np.uint64(value_kind)] = field + 1
                    if is_listing:
                        offsets[np.uint64(field)], lengths[np.uint64(field)] = at, size
                        cells[np.uint64(cell + c)] = field
                elif is_listing:
                    cells[np.uint64(cell + c)] = ABSENT
                at += size
            image += 1
            cell += count
            if is_update:
                side ^= 1
        if side:
            return ENDS_EARLY, end, e
    return 0, image, cell


@dataclass(frozen=True, slots=True, eq=False)
class MixedRows:
    """Row images in the order of the log. Image i is one of event `event[i]` of those that were walked, begins at byte
    `start[i]` of the data, and its cells begin at `cell[i]`."""

    data: NDArray[np.uint8]
    programs: TablePrograms
    program: NDArray[np.int64]  # of each event
    event_kind: NDArray[np.uint8]  # of each event, as the log has it
    event: NDArray[np.int32]
    start: NDArray[np.int32]
    cell: NDArray[np.int32]
    cells: NDArray[np.int32]
    offsets: NDArray[np.int32]
    lengths: NDArray[np.int32]
    kind_bounds: NDArray[np.int64]  # the fields of kind k are kind_bounds[k] … kind_bounds[k + 1] - 1

    def __len__(self) -> int:
        return self.event.size

    @property
    def number(self) -> NDArray[np.int64]:
        """Return the number of each image in its event, from 0."""
        first = np.searchsorted(self.event, np.arange(self.program.size))
        return np.arange(len(self)) - first[self.event]

    @property
    def kind(self) -> NDArray[np.uint8]:
        """Return the ChangeKind of each image."""
        kinds = KIND_OF_EVENT[self.event_kind][self.event]
        are_updates = kinds == ChangeKind.UPDATE_PREIMAGE
        if are_updates.any():
            kinds[are_updates] += (self.number[are_updates] & 1).astype(np.uint8)
        return kinds

    def decode_by_kind(self, choice: DecodeOptions) -> Iterator[tuple[int, Column, Any]]:
        """Yield kind by kind: its number, a column of that kind, and an Arrow array of all its fields, none of them
        null."""
        bounds = self.kind_bounds.tolist()
        for kind in np.flatnonzero(np.diff(self.kind_bounds)).tolist():
            own = slice(bounds[kind], bounds[kind + 1])
            fields = Fields(self.data, self.offsets[own], self.lengths[own], 0, _NO_PARTIAL)
            column = self.programs.kinds[kind]
            yield kind, column, decode_column(column, choice, fields)


def walk_rows(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    programs: TablePrograms,
    program: NDArray[np.int64],
) -> MixedRows | None:
    """Return the rows of the events that lie at data[starts[i]:ends[i]], without checksums, each by its program; None
    where events are broken or too large: decoding each table alone then raises the error."""
    cursors, nothing = np.zeros(len(programs.kinds), np.int64), np.empty(0, np.int32)
    inputs = data, starts, ends, program, programs.bounds, programs.columns
    code, images, cells = walk_mixed(*inputs, 0, cursors, *[nothing] * 6)
    if code or cells > _MAX_CELLS:
        return None
    kind_bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(cursors)])
    fields = int(kind_bounds[-1])
    rows = [np.empty(size, np.int32) for size in (fields, fields, cells, images, images, images)]
    walk_mixed(*inputs, 1, kind_bounds[:-1].copy(), *rows)
    offsets, lengths, all_cells, event, start, first_cell = rows
    return MixedRows(
        data, programs, program, data[starts + 4], event, start, first_cell, all_cells, offsets, lengths, kind_bounds
    )


def should_decode_alone(
    block: Block, events: NDArray[np.int64], table: NDArray[np.int64], count: int
) -> NDArray[np.bool_]:
    """Return a mask of the `count` tables that are better decoded each by itself: those with many rows in the block,
    for which the walk over one table is faster, and those with partial updates. `table[i]` is the table of the rows
    event events[i]."""
    alone = np.bincount(table, block.raw[2][events], count) >= MANY_BYTES
    alone[table[block.column("kind")[events] == PARTIAL_UPDATE]] = True
    return alone if count - np.count_nonzero(alone) >= _MIN_TABLES else np.ones(count, np.bool_)
