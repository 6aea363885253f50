"""What people ask of the snapshots of an instance, and what they are told of them."""

import json
import logging
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.config import InstanceSettings
from penstock.disk import replace_file
from penstock.model import TableName

log = logging.getLogger(__name__)

_FILE = "snapshots.json"


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
        """Return it as `penstock snapshot status` shows it."""
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
    """Remembers whether snapshots are paused and which tables are to be read again, in the instance's folder; and how
    far tables are, until the server ends. Any thread may call it."""

    def __init__(self, settings: InstanceSettings) -> None:
        self._destination = settings.destination
        folder = settings.data_dir
        self._path: Path | None = None if folder is None else folder / settings.destination / _FILE
        self._lock = threading.Lock()  # of all below
        self._progress: dict[TableName, _TableProgress] = {}
        saved: dict[str, Any] = {}
        if self._path is not None and self._path.exists():
            saved = json.loads(self._path.read_bytes())
        self._is_paused: bool = saved.get("paused", False)
        self._requests: dict[str, int] = saved.get("again", {})

    @property
    def is_paused(self) -> bool:
        """Return whether no more chunks are to be planned."""
        with self._lock:
            return self._is_paused

    def set_paused(self, *, is_paused: bool) -> None:
        """Pause or resume snapshots, also for the time after a restart."""
        with self._lock:
            self._is_paused = is_paused
            self._save()
        if is_paused:
            log.info("snapshots paused destination=%s", self._destination)
        else:
            log.info("snapshots resumed destination=%s", self._destination)

    def request_again(self, name: TableName) -> int:
        """Record that a table is to be read again, and return the number of the request."""
        with self._lock:
            number = max(time.time_ns() // 1_000_000, max(self._requests.values(), default=0) + 1)
            self._requests[str(name)] = number
            self._save()
        log.info("table to be snapshotted again, by request destination=%s table=%s", self._destination, name)
        return number

    def note_plan(self, name: TableName, rows_before: int, estimated_rows: int, *, is_first: bool) -> None:
        """Note that chunks of a table were planned behind so many rows."""
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
        with self._lock:
            tables = {str(name): progress.to_json() for name, progress in self._progress.items()}
            return {"paused": self._is_paused, "tables": tables, "again": dict(self._requests)}

    def _save(self) -> None:
        """Save what people have asked for."""
        if self._path is not None:
            replace_file(self._path, json.dumps({"paused": self._is_paused, "again": self._requests}).encode())
