"""What people ask of the snapshots of an instance, and what they are told of them."""

import logging
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.instance.snapshot_requests import RequestStore
from penstock.model import TableName

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _TableProgress:
    """Counts the rows of a table that its snapshot has read."""

    rows: int = 0  # that were planned, by estimate
    estimated_rows: int = 0
    rows_read: int = 0  # since this server runs
    chunks_read: int = 0
    is_complete: bool = False
    since: float = field(default_factory=time.time)
    last: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the progress as `penstock snapshot status` shows it."""
        percent = 100.0 if self.is_complete else min(99.0, 100 * self.rows / max(1, self.estimated_rows))
        return {
            "state": "complete" if self.is_complete else "running",
            "percent": round(percent, 1),
            "rows_read": self.rows_read,
            "estimated_rows": self.estimated_rows,
            "chunks_read": self.chunks_read,
            "since": self.since,
            "last": self.last,
        }


class SnapshotControl:
    """The state of the snapshots of one destination: whether they are paused and which tables are to be read again,
    persisted, so that it holds for another server too; and the progress of each table, in memory. Any thread may call
    it."""

    def __init__(self, destination: str, requests: RequestStore) -> None:
        self._destination, self._requests = destination, requests
        self._lock = threading.Lock()  # of all below, and of what is read and written in one step
        self._progress: dict[TableName, _TableProgress] = {}

    @property
    def is_paused(self) -> bool:
        """Return whether no more chunks are to be planned."""
        return self._requests.load().is_paused

    def set_paused(self, *, is_paused: bool) -> None:
        """Pause or resume snapshots, also for the time after a restart."""
        with self._lock:
            self._requests.save(replace(self._requests.load(), is_paused=is_paused))
        if is_paused:
            log.info("snapshots paused destination=%s", self._destination)
        else:
            log.info("snapshots resumed destination=%s", self._destination)

    def request_resnapshot(self, name: TableName) -> int:
        """Persist a request for a new snapshot of a table, and return the number of the request."""
        with self._lock:
            requests = self._requests.load()
            number = max(time.time_ns() // 1_000_000, max(requests.again.values(), default=0) + 1)
            self._requests.save(replace(requests, again=requests.again | {str(name): number}))
        log.info("new snapshot of a table requested destination=%s table=%s", self._destination, name)
        return number

    def note_plan(self, name: TableName, rows_before: int, estimated_rows: int, *, is_first: bool) -> None:
        """Note that chunks of a table were planned, with this number of rows before them."""
        with self._lock:
            if is_first or name not in self._progress:
                self._progress[name] = _TableProgress()
            progress = self._progress[name]
            progress.rows, progress.estimated_rows = rows_before, max(estimated_rows, rows_before)

    def note_chunk(self, name: TableName, rows: int, *, is_last: bool) -> dict[str, Any]:
        """Note that a chunk was read, and return how far its table is."""
        with self._lock:
            progress = self._progress.setdefault(name, _TableProgress())
            progress.rows_read += rows
            progress.chunks_read += 1
            progress.is_complete = progress.is_complete or is_last
            progress.last = time.time()
            return progress.to_json()

    def report(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        requests = self._requests.load()
        return {"paused": requests.is_paused, "tables": self.progress(), "again": requests.again}

    def progress(self) -> dict[str, Any]:
        """Return how far each table is, by its name."""
        with self._lock:
            return {str(name): progress.to_json() for name, progress in self._progress.items()}
