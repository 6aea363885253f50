"""How far `penstock sync` has brought an index, as `verify` needs to know it."""

import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path

from penstock.client import FlightClient
from penstock.coordinate.term_files import find_newest_checkpoint
from penstock.errors import ConfigurationError
from penstock.model import LogRequirement, Position
from penstock.spark.sync_state import SyncState

_LOOK_S = 0.05
_PLAN_BYTES = 64 << 20


class StreamProgress:
    """Knows by the offsets of a stream of Spark which changes are applied; nothing is guessed.

        changes = StreamProgress(client, find_applied, filter, timeout_s=60)

    A stream makes no batch where the log has nothing for it, so its offset may stay behind while nothing is missing:
    the server is asked whether there is anything for these tables in between.
    """

    def __init__(
        self,
        client: FlightClient,
        find_applied: Callable[[], Position | None],
        tables: str,
        *,
        timeout_s: float = 60.0,
        stopped: threading.Event | None = None,
        writer: str = "`penstock sync`",
        statements: bool = True,
    ) -> None:
        """Follow a stream, of which `find_applied` returns up to where its batches are done; `tables` is the filter of
        the tables that the documents depend on, `writer` what messages call the stream; `statements` says whether
        it follows statements, too."""
        self._writer, self._statements = writer, statements
        self._client, self._find_applied, self._tables = client, find_applied, tables
        self._timeout_s, self._stopped = timeout_s, stopped or threading.Event()
        self._reader = f"verify-{secrets.token_hex(8)}"
        self._empty_to: tuple[Position, Position] | None = None  # from an offset to here there is nothing for us

    def source_end(self) -> Position:
        """Return where the log of the database ends now."""
        return self._client.source_end()

    def find_requirement(self) -> LogRequirement:
        """Return what a database must have executed to be the captured one, up to the end of its log."""
        return find_requirement(self._client)

    def wait_applied(self, position: Position) -> str:
        """Wait until all changes before a position are applied; return why they are not, in time."""
        deadline = time.monotonic() + self._timeout_s
        while (applied := self._find_applied()) is None or not self._reaches(applied, position):
            if time.monotonic() > deadline or self._stopped.wait(_LOOK_S):
                return (
                    f"{self._writer} has applied changes up to {applied}, and these wait for what is before"
                    f" {position}: does it run?"
                )
        return ""

    def _reaches(self, applied: Position, position: Position) -> bool:
        """Return whether there is no change for the documents between what is applied and a position."""
        if applied >= position:
            return True
        known, empty_to = self._empty_to or (applied, applied)
        if known != applied:
            empty_to = applied
        while empty_to < position:
            end = self._client.plan_batch(
                empty_to, _PLAN_BYTES, 0, filter=self._tables, statements=self._statements, reader=self._reader
            )
            if end.has_rows or end.position <= empty_to:
                return False
            empty_to = end.position
            self._empty_to = applied, empty_to
        return True


def find_requirement(client: FlightClient) -> LogRequirement:
    """Return what a database must have executed to be the one that a server captures, up to the end of its log."""
    end = client.source_end()
    return LogRequirement.of_position(end, client.file_identity(end))


def open_sync_state(checkpoint: Path, index: str) -> SyncState:
    """Return the state of the sync job of a checkpoint, in its newest term. Raises ConfigurationError for a folder by
    which this index was not loaded."""
    state = SyncState(find_newest_checkpoint(checkpoint))
    if index not in state.loaded:
        raise ConfigurationError(
            f"{checkpoint} is not the checkpoint of a `penstock sync` that has loaded index '{index}': name the folder"
            " that sync has as --checkpoint, or leave the option out"
        )
    return state


def read_applied_to(checkpoint: Path, index: str) -> Position | None:
    """Return up to where the sync job of a checkpoint has applied the changes to an index, in its newest term."""
    return open_sync_state(checkpoint, index).applied_to


class SettleTime:
    """Takes changes for applied after a time, where the checkpoint of sync is not at hand.

    changes = SettleTime(client, settle_s=10, stopped=stopped)
    """

    def __init__(self, client: FlightClient, *, settle_s: float, stopped: threading.Event) -> None:
        self._client, self._settle_s, self._stopped = client, settle_s, stopped

    def source_end(self) -> Position:
        """Return where the log of the database ends now."""
        return self._client.source_end()

    def find_requirement(self) -> LogRequirement:
        """Return what a database must have executed to be the captured one, up to the end of its log."""
        return find_requirement(self._client)

    def wait_applied(self, position: Position) -> str:  # noqa: ARG002 - it is old enough afterwards, whatever it is
        """Wait for as long as a change may take to reach the index."""
        return "it was stopped" if self._stopped.wait(self._settle_s) else ""
