"""How far `penstock sync` is: rates, lag and dead letters, from the batches that are done."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from penstock.model import Position
from penstock.spark.index_sync import SyncBatch


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What happened since the last report."""

    position: str  # up to which the log is in the indexes
    lag_s: float | None  # between the commit of the newest change and the index that had it
    changes: int
    unused_changes: int  # of columns that no document uses
    documents: int
    from_log: int  # documents that were built from row images, without a read
    changes_per_s: float
    documents_per_s: float
    dead_letters: int  # that there are now

    def __str__(self) -> str:
        lag = "" if self.lag_s is None else f", lag {self.lag_s:.1f} s"
        letters = f", {self.dead_letters} dead letters: see `penstock dlq list`" if self.dead_letters else ""
        return (
            f"at {self.position}: {self.changes_per_s:,.0f} changes/s, {self.documents_per_s:,.0f} documents/s{lag}"
            f"{letters}"
        )

    def fields(self) -> dict[str, Any]:
        """Return the report for programs."""
        return asdict(self)


class SyncProgress:
    """Counts batches between two reports.

    progress = SyncProgress(letters.count)
    progress.add_batch(batch)
    report = progress.take_report("binlog.000007:4711")
    """

    def __init__(self, count_letters: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> None:
        self._count_letters, self._clock = count_letters, clock
        self._began = clock()
        self._changes = self._unused = self._documents = self._from_log = 0
        self._lag_s: float | None = None
        self.batches = 0

    def add_batch(self, batch: SyncBatch) -> None:
        """Count a batch that is done."""
        self.batches += 1
        self._changes += batch.changes
        self._unused += batch.unused
        self._documents += batch.documents
        self._from_log += batch.from_log
        self._lag_s = batch.lag_s

    def take_report(self, position: str) -> SyncReport | None:
        """Return what happened since the last report, and begin the next; None when nothing did."""
        now = self._clock()
        if not self._changes:
            self._began = now
            return None
        seconds = max(now - self._began, 1e-3)
        report = SyncReport(
            position,
            self._lag_s,
            self._changes,
            self._unused,
            self._documents,
            self._from_log,
            self._changes / seconds,
            self._documents / seconds,
            self._count_letters(),
        )
        self._began, self._changes, self._unused, self._documents, self._from_log = now, 0, 0, 0, 0
        return report


def position_of(query: Any) -> Position | None:
    """Return up to where a query has read the log; None before its first batch."""
    progress = query.lastProgress
    sources: Any = progress["sources"] if progress else ()
    offset: Any = sources[0]["endOffset"] if sources else None
    position = json.loads(offset) if isinstance(offset, str) else offset
    return Position.from_json(position) if position else None
