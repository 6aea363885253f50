"""Decides whether rows that look unequal really are: a change on its way to the mirror is not reported.

A row is read from the database, then from the mirror when that has had the time to get what the first read has seen,
then from the database again:

| database, first | mirror | database, then | verdict                                                        |
|-----------------|--------|----------------|----------------------------------------------------------------|
| A               | A      | any            | equal                                                          |
| A               | B      | B              | equal: the mirror was ahead                                    |
| A               | B      | C              | it changes: look again                                         |
| A               | B      | A              | suspect: a difference if the next rounds find the same A and B |
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from penstock.mirror.comparison import Row, RowComparison
from penstock.mirror.database_table import DatabaseTable
from penstock.mirror.selection import RowSelection
from penstock.model import LogRequirement
from penstock.model.difference_kind import DifferenceKind

_ROUNDS_TO_BE_SURE = 3
_MOST_ROUNDS = 40


class Mirror(Protocol):
    """A copy of a table that a stream keeps equal to it."""

    @property
    def description(self) -> str:
        """Return what it is, for people."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema of its rows."""
        ...

    @property
    def json_columns(self) -> frozenset[str]:
        """Return the columns that are known to hold JSON documents."""
        ...

    def estimate_rows(self) -> int:
        """Return about how many rows it has."""
        ...

    def scan(self, comparison: RowComparison, selection: RowSelection) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a selection. Raises MirrorChangedError if it must be called again."""
        ...

    def read_keys(self, comparison: RowComparison, ids: Sequence[str]) -> list[pa.RecordBatch]:
        """Return the rows with these ids, and maybe others, as they are now."""
        ...

    def close(self) -> None:
        """Release connections."""
        ...


class MirrorProgress(Protocol):
    """Knows how far the changes of the database have reached the mirror."""

    def find_requirement(self) -> LogRequirement | None:
        """Return what the database that is read must have executed; None where that is not known."""
        ...

    def wait_applied(self) -> str:
        """Wait until the mirror has all changes that are in the log now. Return an empty text, or why that did not
        happen in time."""
        ...


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that is not the same in the database and in the mirror."""

    key: Mapping[str, str | None]
    kind: DifferenceKind
    detail: str  # the first column that differs, for people

    def __str__(self) -> str:
        key = ", ".join(f"{name}={value}" for name, value in self.key.items())
        return f"{self.kind} {key}: {self.detail}"


@dataclass(slots=True)
class SettledRows:
    """What is certain about rows that looked unequal."""

    differences: list[RowDifference] = field(default_factory=list[RowDifference])
    unsettled: int = 0
    reason: str = ""  # why some are not settled
    is_behind: bool = False  # the mirror has not got what the database has, and others would wait in vain, too


@dataclass(frozen=True, slots=True)
class _SuspectRow:
    """A row that was found unequal in the same way in so many rounds."""

    source: Row | None
    copies: tuple[Row, ...]
    rounds: int


class RowCheck:
    """Settles which of the rows that look unequal really are.

    settled = RowCheck(comparison, source, mirror, progress).settle(["7", "8"])
    """

    def __init__(
        self,
        comparison: RowComparison,
        source: DatabaseTable,
        mirror: Mirror,
        progress: MirrorProgress,
        *,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._comparison, self._source, self._mirror = comparison, source, mirror
        self._progress, self._pause = progress, pause

    def settle(self, ids: Sequence[str]) -> SettledRows:
        """Return which of these rows differ, and which change so often that nobody can say."""
        settled, suspects = SettledRows(), dict[str, _SuspectRow | None].fromkeys(ids)
        for number in range(_MOST_ROUNDS):
            if number:
                self._pause(min(0.05 * number, 1.0))
            if reason := self._look_again(suspects, settled):
                settled.reason, settled.is_behind = reason, True
                break
            if not suspects:
                break
        settled.unsettled = len(suspects)
        if suspects and not settled.reason:
            settled.reason = "they changed all the time"
        return settled

    def _look_again(self, suspects: "dict[str, _SuspectRow | None]", settled: SettledRows) -> str:
        """Read suspects once more from both sides, and remove those about which all is certain. Return why that is not
        possible, or an empty text."""
        wanted = frozenset(suspects)
        first = self._read_source(wanted)
        if reason := self._progress.wait_applied():
            return reason
        copies = self._comparison.read_rows(self._mirror.read_keys(self._comparison, list(wanted)), wanted)
        then = self._read_source(wanted)
        for name in wanted:
            before, after, stored = first.get(name), then.get(name), tuple(copies.get(name, ()))
            suspect = self._judge(suspects[name], before, stored, after)
            suspects[name] = suspect
            if suspect is None:
                del suspects[name]
            elif suspect.rounds >= _ROUNDS_TO_BE_SURE:
                del suspects[name]
                settled.differences.append(self._describe(name, suspect))
        return ""

    def _read_source(self, wanted: frozenset[str]) -> dict[str, Row]:
        """Read rows from the database."""
        self._source.require(self._progress.find_requirement())
        rows = self._comparison.read_rows(self._source.read_keys(self._comparison, list(wanted)), wanted)
        return {name: copies[0] for name, copies in rows.items()}

    def _judge(
        self, suspect: _SuspectRow | None, before: Row | None, copies: tuple[Row, ...], after: Row | None
    ) -> _SuspectRow | None:
        """Return what is suspected of a row after another round; None if it is equal."""
        if self._is_mirrored(before, copies) or self._is_mirrored(after, copies):
            return None
        if before != after:
            return _SuspectRow(after, copies, 0)
        is_same = suspect is not None and suspect.source == after and suspect.copies == copies
        return _SuspectRow(after, copies, suspect.rounds + 1 if suspect is not None and is_same else 1)

    def _is_mirrored(self, source: Row | None, copies: tuple[Row, ...]) -> bool:
        """Return whether the mirror has exactly what the database has."""
        if source is None:
            return not copies
        return len(copies) == 1 and self._comparison.are_equal(source, copies[0])

    def _describe(self, name: str, suspect: _SuspectRow) -> RowDifference:
        """Return a difference that is certain."""
        source, copies = suspect.source, suspect.copies
        other = None
        if source is not None and copies:
            differences = [self._comparison.find_difference(source, copy) for copy in copies]
            other = None if None in differences else differences[0]
        if source is None:
            kind, detail = DifferenceKind.EXTRA, "the table has no such row"
        elif not copies:
            kind, detail = DifferenceKind.MISSING, "the mirror does not have it"
        elif other is None:
            kind, detail = DifferenceKind.EXTRA, f"the mirror has it {len(copies)} times"
        else:
            column, value, mirrored = other
            kind, detail = DifferenceKind.STALE, f"{column} is {_show(value)}, the mirror has {_show(mirrored)}"
        return RowDifference(self._comparison.describe_key(name), kind, detail)


def _show(value: str | None) -> str:
    """Return a value as a short text."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
