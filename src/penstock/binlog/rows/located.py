"""Where the fields of row images lie: what `locate` finds, and the layout of a table that it goes by."""

from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

# As an offset: the value is SQL NULL; the image does not carry the column; it carries differences to a value that the
# before image does not carry, so that nobody can know it: these lie at UNKNOWN minus the offset.
NULL, ABSENT, UNKNOWN = -1, -2, -3
_INSERTS, _UPDATES = (23, 30), (24, 31, 39)
KIND_OF_EVENT = np.full(256, 3, np.uint8)  # ChangeKind, by the event's type; of an update the image before
KIND_OF_EVENT[list(_INSERTS)], KIND_OF_EVENT[list(_UPDATES)] = 0, 1


class LocatedRows:
    """The row images of some events, and where the fields of the wanted columns lie in the buffer.

    Most events hold whole images without a NULL in a column of fixed width. Of these only the fields of variable length
    are noted (`offsets` and `lengths` have one line for each such column), and the others follow from the one before.
    """

    def __init__(
        self, layout: "RowLayout", rows: int, first: int, first_rows: NDArray[np.int64], event_kinds: NDArray[np.uint8]
    ) -> None:
        """`first` is the index of the first event. Some rows of it may be in a piece before, and `first_rows` then
        begins below zero."""
        self.rows = rows
        self.is_whole = True  # every image carries every column
        self.has_unknown = False  # some carry differences to values that the log does not have
        self.missing: NDArray[np.int64] = np.zeros(layout.wanted, np.int64)  # cells of each column: NULL or ABSENT
        self.partial: NDArray[np.uint8] = np.empty((0, rows), np.uint8)  # 1 where the value is a list of differences
        self.start: NDArray[np.int32] = np.empty(0, np.int32)  # of each row image in the buffer
        self._layout = layout
        self._first = first
        self._first_rows = first_rows  # of each event
        self._event_kinds = event_kinds
        self._is_dense = False
        self._offsets: NDArray[np.int32] = np.empty((0, 0), np.int32)
        self._lengths: NDArray[np.int32] = np.empty((0, 0), np.int32)
        self._nulls: NDArray[np.int32] = np.empty((2, 0), np.int32)  # of dense images: step, row
        self._all: NDArray[np.int32] = np.empty((0, 0), np.int32)  # of dense images: offsets of every wanted column
        self._is_filled: list[bool] = [False] * layout.wanted

    def note(
        self, offsets: NDArray[np.int32], lengths: NDArray[np.int32], start: NDArray[np.int32], *, is_dense: bool
    ) -> None:
        """Note the arrays that a walk has filled; they may have room for more rows."""
        self._offsets, self._lengths, self.start = offsets, lengths, start[: self.rows]
        self._is_dense = is_dense

    def note_nulls(self, nulls: NDArray[np.int32]) -> None:
        """Note the NULL values that a dense walk has listed, and count them by column."""
        self._nulls = nulls
        counts = np.bincount(nulls[0], minlength=self._layout.steps.shape[0])
        for line, (anchor, delta) in enumerate(self._layout.anchors.tolist()):
            if delta < 0:
                self.missing[line] = counts[anchor]

    def mark_unknown(self) -> None:
        """Mark the JSON differences whose before image does not carry the document as unknown."""
        if self.partial.size:
            offsets = self._offsets[:, : self.rows]
            unknown = (self.partial[:, 1:] != 0) & (offsets[:, :-1] < 0)
            if unknown.any():
                sized = self._lengths[np.maximum(self._layout.length_lines, 0), : self.rows]
                # No differences to what nobody knows: it has not changed, and the image does not carry it.
                diff_offsets = offsets[:, 1:][unknown]
                offsets[:, 1:][unknown] = np.where(sized[:, 1:][unknown] == 0, ABSENT, UNKNOWN - diff_offsets)
                self.partial[:, 1:][unknown] = 0
                self.missing += np.count_nonzero(unknown, axis=1)
                self.is_whole = False
                self.has_unknown = True

    def offsets(self, line: int) -> NDArray[np.int32]:
        """Return the offsets of the values of a wanted column."""
        if not self._is_dense:
            return self._offsets[line, : self.rows]
        if not self._all.size:
            self._all = np.empty((self._layout.wanted, self.rows), np.int32)
        offsets = self._all[line]
        if not self._is_filled[line]:
            self._fill(line, offsets)
            self._is_filled[line] = True
        return offsets

    def _fill(self, line: int, offsets: NDArray[np.int32]) -> None:
        anchor, delta = self._layout.anchors[line].tolist()
        if anchor < 0:
            np.add(self.start, np.int32(delta), out=offsets)
        elif delta >= 0:
            np.add(self._offsets[anchor, : self.rows], self._lengths[anchor, : self.rows], out=offsets)
            offsets += np.int32(delta)
        else:
            offsets[:] = self._offsets[anchor, : self.rows]
            if self.missing[line]:
                offsets[self._nulls[1, self._nulls[0] == anchor]] = NULL

    def lengths(self, line: int) -> NDArray[np.int32]:
        """Return the lengths of a wanted column of variable length; nothing for others."""
        sized = self._length_line(line)
        return self._lengths[sized, : self.rows] if sized >= 0 else self.start[:0]

    def _length_line(self, line: int) -> int:
        if self._is_dense:
            anchor, delta = self._layout.anchors[line].tolist()
            return anchor if delta < 0 else -1
        return int(self._layout.length_lines[line])

    @property
    def tables(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """Return the offsets of all wanted columns, the lengths, and the line of the lengths for each column, or -1.
        They may have room for more rows."""
        if not self._is_dense:
            return self._offsets, self._lengths, self._layout.length_lines
        for line in range(self._layout.wanted):
            self.offsets(line)
        sized = [self._length_line(line) for line in range(self._layout.wanted)]
        return self._all, self._lengths, np.array(sized, np.int64)

    def slice_rows(self, first: int, stop: int) -> "LocatedRows":
        """Return the rows first … stop-1."""
        offsets, lengths, lines = self.tables
        other = copy(self)
        other.rows = stop - first
        offsets, lengths = offsets[:, first:stop], lengths[lines[lines >= 0], first:stop]
        other.note(offsets.copy(), lengths.copy(), self.start[first:stop], is_dense=False)
        other.missing, other.partial = np.count_nonzero(offsets < 0, axis=1), self.partial[:, first:stop].copy()
        other.event, other.number = self.event[first:stop], self.number[first:stop]
        other.kind = self.kind[first:stop]
        return other

    @cached_property
    def event(self) -> NDArray[np.int64]:
        """Return the index of each row's event among those given."""
        if self._first_rows.size == 1:
            return np.full(self.rows, self._first, np.int64)
        counts = np.diff(np.maximum(self._first_rows, 0), append=self.rows)
        return np.repeat(np.arange(self._first, self._first + self._first_rows.size), counts)

    @cached_property
    def number(self) -> NDArray[np.int64]:
        """Return the number of each image in its event, from 0."""
        return np.arange(self.rows) - self._first_rows[self.event - self._first]

    @cached_property
    def kind(self) -> NDArray[np.uint8]:
        """Return the ChangeKind of each row image."""
        kinds = KIND_OF_EVENT[self._event_kinds][self.event - self._first]
        if (kinds == 1).any():
            kinds[kinds == 1] += (self.number[kinds == 1] & 1).astype(np.uint8)
        return kinds


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Describes how the columns of a table lie in a row image, and which of them are wanted."""

    wires: NDArray[np.int64]  # per column: length bytes, width, line in `offsets`, line in `lengths`, is it JSON
    wanted: int
    variable: int  # wanted columns of variable length
    length_lines: NDArray[np.int64]  # line in `lengths` of each wanted column, -1 for a fixed width
    steps: NDArray[np.int64]  # per column of variable length: bytes of fixed fields before it, length bytes, column
    tail: int  # bytes of fixed fields after the last of them
    # Per wanted column: the step it is or follows, and how many bytes after it; -1: it is it.
    anchors: NDArray[np.int64]

    @classmethod
    def from_wires(
        cls, wires: NDArray[np.int64], wanted: NDArray[np.bool_], are_json: NDArray[np.bool_]
    ) -> "RowLayout":
        """Return the layout of a table; `wires[c]` is (length bytes, width) of column c."""
        table = np.full((wanted.size, 5), -1, np.int64)
        table[:, :2], table[:, 4] = wires, are_json
        table[wanted, 2] = np.arange(np.count_nonzero(wanted))
        variable = wanted & (wires[:, 0] > 0)
        table[variable, 3] = np.arange(np.count_nonzero(variable))
        steps: list[tuple[int, int, int]] = []
        anchors: list[tuple[int, int]] = []
        before = (wanted.size + 7) // 8
        skipped = 0
        for column, ((prefix, width), is_wanted) in enumerate(zip(wires.tolist(), wanted.tolist(), strict=True)):
            if prefix:
                steps.append((skipped, prefix, column))
                skipped = 0
            if is_wanted:
                delta = -1 if prefix else skipped + (before if not steps else 0)
                anchors.append((len(steps) - 1, delta))
            skipped += 0 if prefix else width
        return cls(
            table,
            int(wanted.sum()),
            int(variable.sum()),
            table[wanted, 3].copy(),
            np.array(steps, np.int64).reshape(-1, 3),
            skipped,
            np.array(anchors, np.int64).reshape(-1, 2),
        )
