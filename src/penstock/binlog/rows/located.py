"""Where the fields of row images lie: what `locate` finds, and the layout of a table that it goes by."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

# As an offset: the value is SQL NULL; the image does not carry the column; it carries differences to a value that the
# before image does not carry, so that nobody can know it.
NULL, ABSENT, UNKNOWN = -1, -2, -3
_INSERTS, _UPDATES = (23, 30), (24, 31, 39)


class Located:
    """The row images of some events, and where the fields of the wanted columns lie in the buffer.

    Most events hold whole images without a NULL in a column of fixed width. Of these only the fields of variable length
    are noted (`offsets` and `lengths` have one line for each such column), and the others follow from the one before.
    """

    def __init__(
        self, layout: "Layout", rows: int, first_rows: NDArray[np.int64], event_kinds: NDArray[np.uint8]
    ) -> None:
        self.rows = rows
        self.is_whole = True  # every image carries every column
        self.missing: NDArray[np.int64] = np.zeros(layout.wanted, np.int64)  # cells of each column: NULL or ABSENT
        self.partial: NDArray[np.uint8] = np.empty((0, rows), np.uint8)  # 1 where the value is a list of differences
        self.start: NDArray[np.int32] = np.empty(0, np.int32)  # of each row image in the buffer
        self._layout = layout
        self._first_rows = first_rows  # of each event
        self._event_kinds = event_kinds
        self._is_dense = False
        self._offsets: NDArray[np.int32] = np.empty((0, 0), np.int32)
        self._lengths: NDArray[np.int32] = np.empty((0, 0), np.int32)
        self._nulls: NDArray[np.int32] = np.empty((2, 0), np.int32)  # of dense images: step, row

    def note(
        self, offsets: NDArray[np.int32], lengths: NDArray[np.int32], start: NDArray[np.int32], *, is_dense: bool
    ) -> None:
        rows = self.rows
        self._offsets, self._lengths, self.start = offsets[:, :rows], lengths[:, :rows], start[:rows]
        self._is_dense = is_dense

    def note_nulls(self, nulls: NDArray[np.int32]) -> None:
        self._nulls = nulls
        counts = np.bincount(nulls[0], minlength=self._layout.steps.shape[0])
        for line, (anchor, delta) in enumerate(self._layout.anchors.tolist()):
            if delta < 0:
                self.missing[line] = counts[anchor]

    def mark_unknown(self) -> None:
        """Differences whose before image does not carry the value."""
        if self.partial.size:
            unknown = (self.partial[:, 1:] != 0) & (self._offsets[:, :-1] < 0)
            if unknown.any():
                self._offsets[:, 1:][unknown] = UNKNOWN
                self.partial[:, 1:][unknown] = 0
                self.missing += np.count_nonzero(unknown, axis=1)
                self.is_whole = False

    def offsets(self, line: int) -> NDArray[np.int32]:
        """Of the values of a wanted column."""
        if not self._is_dense:
            return self._offsets[line]
        anchor, delta = self._layout.anchors[line].tolist()
        if anchor < 0:
            return self.start + np.int32(delta)
        if delta < 0:
            found = self._offsets[anchor]
            if self.missing[line]:
                found = found.copy()
                found[self._nulls[1, self._nulls[0] == anchor]] = NULL
            return found
        return self._offsets[anchor] + self._lengths[anchor] + np.int32(delta)

    def lengths(self, line: int) -> NDArray[np.int32]:
        """Of a wanted column of variable length; nothing for others."""
        if self._is_dense:
            anchor, delta = self._layout.anchors[line].tolist()
            return self._lengths[anchor] if delta < 0 else self.start[:0]
        sized = self._layout.length_lines[line]
        return self._lengths[sized] if sized >= 0 else self.start[:0]

    @cached_property
    def event(self) -> NDArray[np.int64]:
        """Index of each row's event among those given."""
        return np.repeat(np.arange(self._first_rows.size), np.diff(self._first_rows, append=self.rows))

    @cached_property
    def number(self) -> NDArray[np.int64]:
        """Of each image in its event, from 0."""
        return np.arange(self.rows) - self._first_rows[self.event]

    @cached_property
    def kind(self) -> NDArray[np.uint8]:
        """ChangeKind."""
        of_event = np.full(256, 3, np.uint8)
        of_event[list(_INSERTS)], of_event[list(_UPDATES)] = 0, 1
        kinds = of_event[self._event_kinds][self.event]
        if (kinds == 1).any():
            kinds[kinds == 1] += (self.number[kinds == 1] & 1).astype(np.uint8)
        return kinds


@dataclass(frozen=True, slots=True)
class Layout:
    """How the columns of a table lie in a row image, and which of them are wanted."""

    wires: NDArray[np.int64]  # per column: length bytes, width, line in `offsets`, line in `lengths`, is it JSON
    wanted: int
    variable: int  # wanted columns of variable length
    length_lines: NDArray[np.int64]  # line in `lengths` of each wanted column, -1 for a fixed width
    steps: NDArray[np.int64]  # per column of variable length: bytes of fixed fields before it, length bytes, column
    tail: int  # bytes of fixed fields after the last of them
    anchors: NDArray[
        np.int64
    ]  # per wanted column: the step it is or follows, and how many bytes after it; -1: it is it

    @classmethod
    def of(cls, wires: NDArray[np.int64], wanted: NDArray[np.bool_], are_json: NDArray[np.bool_]) -> "Layout":
        """`wires[c]` is (length bytes, width) of column c."""
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
