"""The numbers of the picture: what the server's status, the finished batches and the index know already."""

import threading
import time
from collections.abc import Callable
from typing import Any

from penstock.model import Position
from penstock.search.dead_letters import DeadLetters
from penstock.search.index import SearchIndex
from penstock.server.report import ServerReport
from penstock.spark.failure import cause_of
from penstock.spark.index_sync import SyncBatch
from penstock.spark.sync_progress import SyncProgress, position_of

_OLDEST_S = 0.9  # several pages share one look


class PipelineNumbers:
    """Gathers the numbers of all stations between the log and the index. Any thread may call it.

        numbers = PipelineNumbers(server.report, index, letters)
        sync = IndexSync([documents], server=server.address, on_batch=numbers.add_batch)
        numbers.read(query)

    `_lock` protects what batches count, `_looking` the last look, during which no batch waits for Spark.
    """

    def __init__(
        self,
        report: ServerReport,
        index: SearchIndex,
        letters: DeadLetters,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report, self._index, self._letters, self._clock = report, index, letters, clock
        self._lock, self._looking = threading.Lock(), threading.Lock()
        self._progress = SyncProgress(letters.count, clock)
        self._documents = self._changes = 0  # of all batches
        self._last_batch: SyncBatch | None = None
        self._numbers: dict[str, Any] = {}
        self._read_at = float("-inf")

    def add_batch(self, batch: SyncBatch) -> None:
        """Count a batch that is done."""
        with self._lock:
            self._progress.add_batch(batch)
            self._last_batch = batch
            self._changes += batch.changes
            self._documents += batch.documents

    def read(self, query: Any) -> dict[str, Any]:
        """Return the numbers as they are now, or were less than a second ago; `query` is Spark's."""
        with self._looking:
            if self._clock() - self._read_at > _OLDEST_S:
                self._numbers = self._look(query)
                self._read_at = self._clock()
            return self._numbers

    def _look(self, query: Any) -> dict[str, Any]:
        """Return the numbers of each station, in the order of the picture."""
        (instance,) = self._report.status()["instances"]
        latest, position, failure = Position.from_json(instance["latest"]), position_of(query), query.exception()
        with self._lock:
            report, batch = self._progress.take_report(str(position)), self._last_batch
            changes, documents = self._changes, self._documents
        counters, store = instance["counters"], instance["store"]
        is_behind = position is None or position < latest
        return {
            "log": {"file": latest.file, **{key: counters[key] for key in ("transactions", "events")}},
            "capture": {"state": instance["state"], "position": latest.offset, "behind_s": instance["behind_s"]},
            "store": {key: store[key] for key in ("entries", "bytes", "put_sequence")},
            "spark": {
                "position": None if position is None else position.offset,
                "changes_per_s": report.changes_per_s if report else 0.0,
                "batch_ms": None if batch is None else batch.seconds * 1000,
            },
            "documents": {
                "per_s": report.documents_per_s if report else 0.0,
                "changes": changes,
                "documents": documents,
            },
            "index": {
                "documents": self._index.count(),
                # The log of MariaDB has whole seconds, so the lag of a batch is what it is at most.
                "lag_s": 0.0 if not is_behind or batch is None else batch.lag_s,
                "dead_letters": self._letters.count(),
            },
            "problem": "" if failure is None else f"the stream stopped: {cause_of(failure)}",
        }
