"""Commits that are in the log when a batch is planned, and cannot be seen when its chunks are read."""

import threading
from contextlib import ExitStack
from typing import Any

import pytest

from penstock.instance.snapshots import InstanceSnapshots
from penstock.model import TableName
from penstock.snapshot.chunks import Chunk
from penstock.snapshot.reader import ChunkReader
from penstock.source.visibility import LogVisibility
from tests.support.capture import end_of, execute, poll
from tests.support.late_commits import late_commits
from tests.support.random_writers import IDS


class HeldCommits:
    """Lets a change of the next chunk be in the log when a batch is planned, and not be visible when the chunk is read:
    the end of the batch has the change, so the rows of the chunk must have it, too."""

    def __init__(self, source: Any, name: TableName, monkeypatch: pytest.MonkeyPatch) -> None:
        self._source, self._table = source, name
        self._held, self._thread = ExitStack(), threading.Thread()
        self.traps = 0
        plan, read, wait = InstanceSnapshots.plan, ChunkReader.read, LogVisibility.wait

        def watched_plan(snapshots: Any, *arguments: Any, **limits: Any) -> Any:
            planned = plan(snapshots, *arguments, **limits)
            self.release()
            if planned.chunks:
                self._hold(self._statement(planned.chunks[0]), snapshots._instance.store)
            return planned

        def watched_wait(visibility: Any, timeout_s: float) -> None:
            self._release_soon()
            wait(visibility, timeout_s)

        def watched_read(reader: Any, table: Any, chunk: Chunk) -> Any:
            self.traps += self._thread.is_alive()
            try:
                return read(reader, table, chunk)
            finally:
                self.release()

        monkeypatch.setattr(InstanceSnapshots, "plan", watched_plan)
        monkeypatch.setattr(LogVisibility, "wait", watched_wait)
        monkeypatch.setattr(ChunkReader, "read", watched_read)

    def release(self) -> None:
        """Let the commit end."""
        self._held.close()
        if self._thread.ident is not None:
            self._thread.join()

    def _release_soon(self) -> None:
        """Let the commit end a moment later; that of MySQL waits for a second by itself."""
        if not self._source.name.startswith("mysql") and self._thread.is_alive():
            timer = threading.Timer(0.2, execute, (self._source, "SET GLOBAL rpl_semi_sync_master_enabled = OFF"))
            timer.start()
            self._held.callback(timer.join)

    def _hold(self, statement: str, store: Any) -> None:
        """Start a statement whose commit is held back, and wait until it is captured from the log."""
        self._held = ExitStack()
        self._held.enter_context(late_commits(self._source))
        before = end_of(self._source)
        self._thread = threading.Thread(target=execute, args=(self._source, statement), name="held-commit")
        self._thread.start()
        assert poll(lambda: store.latest > before or not self._thread.is_alive())

    def _statement(self, chunk: Chunk) -> str:
        """Return a change of the chunk's first rows; each chunk gets another kind."""
        first = int(chunk.after[0]) + 1 if chunk.after else 0
        first += first % 2
        return (
            f"UPDATE {self._table} SET name = 'held' WHERE id = {first}",
            f"DELETE FROM {self._table} WHERE id = {first}",
            f"INSERT IGNORE INTO {self._table} (id, name) VALUES ({first + 1}, 'held')",
            f"UPDATE IGNORE {self._table} SET id = {(first + IDS // 2) % IDS + 1} WHERE id = {first}",
        )[self.traps % 4]
