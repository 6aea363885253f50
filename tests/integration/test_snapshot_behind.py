"""A query that is far behind the source's log when a table is to be read: it catches up first, because each chunk is
brought to the end of its batch by all of the log in between. Batches are run without a JVM."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from penstock.client import FlightClient
from penstock.model import Position, TableName
from penstock.spark import stream_reader
from penstock.testing import DatabaseServer
from tests.support.capture import execute
from tests.support.micro_batches import MicroBatches, serving
from tests.support.random_writers import create_table, select_rows
from tests.support.strict_mirror import StrictMirror

FAR_BYTES = 256 << 10


class _Behind:
    """A query whose table was delivered, and is to be read again while much is written that it has not read yet."""

    def __init__(self, source: DatabaseServer, schema: str, address: str) -> None:
        self.source, self.name, self.busy = source, TableName(schema, "t"), f"{schema}.busy"
        create_table(source, self.name, "integer")
        execute(source, f"CREATE TABLE {self.busy} (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)")
        self.mirror, self.client = StrictMirror(), FlightClient(address)
        options = {"startingPosition": "snapshot", "maxBytesPerTrigger": str(FAR_BYTES // 4), "pollMs": "50"}
        self.query = MicroBatches(address, self.mirror.apply, table=str(self.name), **options)
        self.query.run_until(lambda: self.query.is_complete)
        self.first_rows, self.mirror.repeats = self.mirror.snapshot_rows, True
        self.client.control_snapshots("again", table=str(self.name))
        execute(source, f"UPDATE {self.name} SET name = 'before' WHERE id % 7 = 0")
        self.fill_log()
        execute(source, f"UPDATE {self.name} SET name = 'behind' WHERE id % 5 = 0")

    def fill_log(self) -> None:
        """Write more than a query may be behind when it reads a table, into another one."""
        rows = ", ".join(["(REPEAT('x', 8000))"] * 20)
        execute(self.source, *[f"INSERT INTO {self.busy} (v) VALUES {rows}"] * 8)

    @property
    def state(self) -> dict[str, Any]:
        """What the last batch says of the table's snapshot."""
        return self.query.offset.get("snapshot", {}).get(str(self.name), {})

    def run_batch(self) -> tuple[int, bool]:
        """Run a batch; return how far behind it began, and whether there was one."""
        behind_bytes = self.client.bytes_behind(Position.from_json(self.query.offset))
        return behind_bytes, self.query.run_batch()


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_reader, "_BEHIND_BYTES", FAR_BYTES)
    monkeypatch.setattr(stream_reader, "_REQUESTS_S", 0.0)


@pytest.mark.usefixtures("limits")
def test_a_table_is_read_when_its_query_has_caught_up(
    mariadb: DatabaseServer, database: Callable[[DatabaseServer], str], caplog: pytest.LogCaptureFixture
) -> None:
    with serving(mariadb) as server, caplog.at_level(logging.INFO):
        behind = _Behind(mariadb, database(mariadb), server.address)
        waits, distances = 0, list[int]()
        while not (behind.state.get("complete") and distances):
            behind_bytes, _ = behind.run_batch()
            waits += bool(behind.state.get("catching_up"))
            assert not (behind.state.get("catching_up") and behind.state.get("chunks"))
            if behind.state.get("chunks"):
                distances.append(behind_bytes)
        assert waits >= 3
        assert max(distances) <= FAR_BYTES, "a chunk was read with all the log that the query had not read"
        behind.query.restart()
        wanted = select_rows(mariadb, behind.name, "*")
        behind.query.run_until(lambda: behind.mirror.content == wanted)
        assert behind.mirror.snapshot_rows == 2 * behind.first_rows
        messages = [record.getMessage() for record in caplog.records if record.name == stream_reader.__name__]
        told = [text for text in messages if text.startswith(("snapshot waits until", "snapshot resumes"))]
        assert [text.split(" destination")[0] for text in told] == [
            "snapshot waits until the query has caught up",
            "snapshot resumes",
        ]


@pytest.mark.usefixtures("limits")
def test_a_query_that_ends_reads_its_table_however_much_is_written_behind_its_end(
    mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]
) -> None:
    with serving(mariadb) as server:
        behind = _Behind(mariadb, database(mariadb), server.address)
        behind.query.stop_at_present_end()
        wanted = select_rows(mariadb, behind.name, "*")
        behind.fill_log()
        while behind.run_batch()[1]:
            pass
        assert behind.state.get("complete")
        assert behind.mirror.snapshot_rows == 2 * behind.first_rows
        assert behind.mirror.content == wanted
