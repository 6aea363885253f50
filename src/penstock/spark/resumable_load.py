"""The first load of an index, which resumes behind the last documents that are known to be written."""

import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from penstock.config import SourceSettings
from penstock.document import DocumentSync
from penstock.document.root_range import key_from_json, key_to_json
from penstock.document.sql_text import Key
from penstock.model import LogRequirement, TableName
from penstock.snapshot.table import estimate_rows
from penstock.source import connect
from penstock.source.connection import translate_errors
from penstock.spark.sync_state import SyncState


def estimate_documents(source: SourceSettings, table: TableName) -> int:
    """Return how many rows the root table has by the estimate of its server."""
    with closing(connect(source)) as connection, translate_errors(source), connection.cursor() as cursor:
        return estimate_rows(cursor, table)


@dataclass(slots=True)
class LoadTotals:
    """The documents of a load so far, in all of its tries; the rejected ones of this try only."""

    documents: int = 0
    rejected: int = 0


class LoadStoppedError(Exception):
    """A load was told to stop; it resumes at the next start."""


class ResumableLoad:
    """Loads all documents of an index. What is written is persisted in the state of the job, part by part.

    ResumableLoad(state, "product", spec_hash).run(sync, version, requirement)
    """

    def __init__(
        self,
        state: SyncState,
        index: str,
        spec_hash: str,
        show: Callable[[int, float], None] = lambda _documents, _rate: None,
        stopped: threading.Event | None = None,
    ) -> None:
        """`show` is told how many documents are written, and how many per second in this try. A load with another spec
        begins again."""
        self._state, self._index, self._spec_hash, self._show = state, index, spec_hash, show
        self._stopped = stopped or threading.Event()

    def run(
        self, sync: DocumentSync, version: int, requirement: LogRequirement, *, is_empty: bool = False
    ) -> LoadTotals:
        """Load the rest of the documents; all of them when the index `is_empty`, as one is that was deleted meanwhile.
        Raises LoadStoppedError when told to stop."""
        graph, state, index = sync.graph, self._state, self._index
        saved: dict[str, Any] = state.loaded_until(index) or {}
        is_known = not is_empty and saved.get("spec") == self._spec_hash
        begin = key_from_json(graph, saved.get("key")) if is_known else None
        first = 0 if begin is None else int(saved["documents"])
        totals, began, until = LoadTotals(first), time.monotonic(), [begin]

        def remember(key: Key) -> None:
            until[0] = key

        def progress(done: int) -> None:
            totals.documents = first + done
            if (key := until[0]) is not None:
                part = {"key": key_to_json(graph, key), "documents": totals.documents, "spec": self._spec_hash}
                state.remember_part(index, part)
            self._show(totals.documents, done / max(time.monotonic() - began, 1e-3))
            if self._stopped.is_set():
                raise LoadStoppedError

        counts = sync.load_all(version, progress, requirement, begin=begin, on_part=remember)
        totals.documents, totals.rejected = first + counts.total - counts.rejected, counts.rejected
        return totals
