"""How far a query of Spark has brought a mirror of a table, by its checkpoint."""

import threading
from pathlib import Path

from penstock.client import FlightClient
from penstock.errors import ConfigurationError
from penstock.model import LogRequirement, Position, TableName
from penstock.spark.applied_changes import StreamProgress
from penstock.spark.index_sync import table_filter
from penstock.spark.snapshot_state import SnapshotState
from penstock.spark.sync_state import find_last_offset


class QueryProgress:
    """Knows which changes a query of Spark has applied to a mirror; nothing is guessed.

    progress = QueryProgress(client, Path("/lake/orders.chk"), TableName("shop", "orders"))
    """

    def __init__(
        self,
        client: FlightClient,
        checkpoint: Path,
        table: TableName,
        *,
        timeout_s: float = 60.0,
        stopped: threading.Event | None = None,
    ) -> None:
        """Follow the query of a checkpoint, which has one source. Raises ConfigurationError for a folder that is no
        checkpoint."""
        if not (checkpoint / "offsets").is_dir():
            raise ConfigurationError(
                f"{checkpoint} is not the checkpoint of a Spark query: name its checkpointLocation, or leave the option"
                " out"
            )
        self._checkpoint, self._table = checkpoint, table
        self._changes = StreamProgress(
            client,
            self._find_applied,
            table_filter([table]),
            timeout_s=timeout_s,
            stopped=stopped,
            writer=f"the query of {checkpoint}",
            statements=False,
        )

    def find_requirement(self) -> LogRequirement | None:
        """Return what a database must have executed to be the captured one, up to the end of its log."""
        return self._changes.find_requirement()

    def wait_applied(self) -> str:
        """Wait until all changes that are in the log now are applied; return why they are not, in time."""
        return self._changes.wait_applied(self._changes.source_end())

    def _find_applied(self) -> Position | None:
        """Return up to where the batches of the query are done; None before its snapshot of the table is complete."""
        offset = find_last_offset(self._checkpoint)
        if offset is None:
            return None
        snapshot = SnapshotState.from_offset(offset).tables.get(self._table)
        return None if snapshot is not None and not snapshot.is_complete else Position.from_json(offset)
