"""How many rows clients have got and acked, all clients of an instance together."""

import threading
from collections.abc import Iterable

from penstock.binlog.events.block import Block
from penstock.binlog.rows.count import count_rows


class RowCounts:
    """Counts the rows that clients got and acked, for metrics. Any thread may call it. Rows that are redelivered after
    a rollback count again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of all below
        self._got = self._acked = 0
        self._outstanding: dict[tuple[int, int], int] = {}  # rows by client and batch
        self.is_counting = True  # set once, before the first batch

    @property
    def got(self) -> int | None:
        """Return how many rows clients got; None where they are not counted."""
        with self._lock:
            return self._got if self.is_counting else None

    @property
    def acked(self) -> int | None:
        """Return how many rows clients acked; None where they are not counted."""
        with self._lock:
            return self._acked if self.is_counting else None

    def add_batch(self, client_id: int, batch_id: int, blocks: Iterable[Block]) -> None:
        """Count the rows of a batch that a client got."""
        if not self.is_counting:
            return
        rows = sum(map(count_rows, blocks))
        with self._lock:
            self._got += rows
            self._outstanding[client_id, batch_id] = rows

    def ack(self, client_id: int, batch_id: int) -> None:
        """Count the rows of an outstanding batch as acked."""
        with self._lock:
            self._acked += self._outstanding.pop((client_id, batch_id), 0)

    def forget(self, client_id: int) -> None:
        """Drop what is outstanding: it was rolled back, or the client is gone."""
        with self._lock:
            for key in [key for key in self._outstanding if key[0] == client_id]:
                del self._outstanding[key]
