"""How the chunks of a table are divided into the tasks of `penstock_snapshot`, and the rows per second with them."""

from typing import Any

import pytest

from penstock.snapshot.chunks import Chunk
from penstock.spark import snapshot_source
from penstock.spark.snapshot_options import SnapshotReadOptions
from penstock.spark.snapshot_source import SnapshotBatchReader

_CHUNKS = [Chunk((str(number),), (str(number + 1),)) for number in range(100)]


class _Table:
    """Stands for the description of a table, and for its snapshot."""

    warnings = ()
    name = "shop.orders"

    def plan(self) -> list[Chunk]:
        return _CHUNKS


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        ({}, 100),
        ({"maxConnections": "8"}, 8),
        ({"maxRowsPerSecond": "1000"}, 4),
        ({"maxRowsPerSecond": "1000", "maxConnections": "2"}, 2),
    ],
)
def test_rows_per_second_are_shared_by_a_few_tasks(
    options: dict[str, str], tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that waits for a core has its share of them as well: with one task per chunk, hardly any would be used."""
    table: Any = _Table()
    monkeypatch.setattr(snapshot_source, "_open_snapshot", lambda _: table)
    read_options = SnapshotReadOptions.of({"host": "db1", "table": "shop.orders", **options})
    parts = SnapshotBatchReader(read_options, table).partitions()
    assert [part.tasks for part in parts] == [tasks] * tasks
    assert [chunk for part in parts for chunk in part.chunks] == _CHUNKS
