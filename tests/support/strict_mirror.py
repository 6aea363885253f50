"""What a stream that begins with a snapshot makes of a table, change by change."""

from typing import Any

import pyarrow as pa

from penstock.model import TableName
from penstock.testing import DatabaseServer
from tests.support.capture import poll
from tests.support.random_writers import select_rows


class StrictMirror:
    """A table that a stream builds: an insert and a row of a snapshot must find no row of its key, an update and a
    delete the row as it was. A batch that is read again must have the same rows."""

    def __init__(self, struct: str | None = None) -> None:
        self.rows: dict[Any, str] = {}
        self.repeats = False  # a row of a snapshot may find one
        self.snapshot_rows = 0
        self._struct = struct
        self._batches: dict[int, list[tuple[Any, ...]]] = {}

    def __call__(self, batch: Any, number: int) -> None:
        """Apply a batch, given as a DataFrame."""
        self.apply(batch.toArrow(), number)

    def apply(self, batch: pa.Table, number: int) -> None:
        """Apply a batch."""
        rows = batch.to_pylist()
        own = ((row["_seq"], row["_row"], row["_change_type"], *self._values(row)) for row in rows)
        changes = sorted(change for change in own if change[3] is not None)
        if number in self._batches:
            assert changes == self._batches[number], "a batch that is read again has other rows"
            return
        self._batches[number] = changes
        for sequence, _, kind, key, text in changes:
            self.snapshot_rows += kind == "snapshot"
            if kind in {"delete", "update_preimage"}:
                assert self.rows.pop(key, None) == text, (sequence, kind, key, text)
            else:
                assert key not in self.rows or (self.repeats and kind == "snapshot"), (sequence, kind, key, text)
                self.rows[key] = text

    @property
    def batches(self) -> int:
        """Return how many batches there were."""
        return len(self._batches)

    def _values(self, row: dict[str, Any]) -> tuple[Any, Any]:
        own = row if self._struct is None else row[self._struct] or {}
        key = own.get("id")
        return (key, own["part"]) if "part" in own else key, own.get("name")

    @property
    def content(self) -> set[tuple[Any, ...]]:
        return {(*(key if isinstance(key, tuple) else (key,)), text) for key, text in self.rows.items()}


def equals(query: Any, mirror: StrictMirror, server: DatabaseServer, name: TableName) -> None:
    """Wait until a mirror equals its table, of which nobody writes."""
    wanted = select_rows(server, name)
    assert poll(lambda: mirror.content == wanted or query.exception() is not None, 60), (
        len(wanted - mirror.content),
        len(mirror.content - wanted),
    )
    assert query.exception() is None, query.exception()
