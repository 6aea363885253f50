"""Ranges of much log are planned by several calls, each of which reads a bounded part of it: who is interrupted does
not begin again."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.binlog.events.block import Block
from penstock.binlog.rows.changes import decode_changes
from penstock.capture.source_log import SourceLog
from penstock.client import FlightClient
from penstock.client.link import ServerLink
from penstock.config import FilterSettings, StoreSettings
from penstock.instance import range_reader
from penstock.instance.batch_plan import BatchLimit
from penstock.model import Position, TableName
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute
from tests.support.micro_batches import serving

PIECE_BYTES = 1 << 20
BLOCK_BYTES = 4 << 20  # what a piece may pass its limit by: a block is read as a whole
ROWS, ROW_BYTES = 64, 256 << 10
SMALL_STORE = StoreSettings(memory=1 << 20)  # the range is in the source's log alone


class _Reads:
    """Counts the bytes of the source's log that are read again, for planning or for rows."""

    def __init__(self) -> None:
        self.size_bytes = 0

    def count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        read_raw = SourceLog.read_raw

        def counted(source_log: SourceLog, begin: Position, end: Position) -> Iterator[Block]:
            for block in read_raw(source_log, begin, end):
                self.size_bytes += block.size_bytes
                yield block

        monkeypatch.setattr(SourceLog, "read_raw", counted)

    def take(self) -> int:
        """Return how many bytes were read since the last call."""
        size_bytes, self.size_bytes = self.size_bytes, 0
        return size_bytes


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> _Reads:
    counter = _Reads()
    counter.count(monkeypatch)
    monkeypatch.setattr(range_reader, "LOG_BYTES_PER_CALL", PIECE_BYTES)
    return counter


@pytest.fixture
def written(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> tuple[TableName, Position, Position]:
    """A table, and the range of the log with its rows, each in a transaction of its own."""
    name = TableName(database(mariadb), "t")
    execute(mariadb, f"CREATE TABLE {name} (id INT PRIMARY KEY, v MEDIUMTEXT)")
    start = end_of(mariadb)
    execute(mariadb, *(f"INSERT INTO {name} VALUES ({number}, REPEAT('x', {ROW_BYTES}))" for number in range(ROWS)))
    return name, start, end_of(mariadb)


def test_a_range_that_is_planned_in_pieces_has_each_row_once_and_resumes_when_planning_is_stopped(
    mariadb: DatabaseServer,
    written: tuple[TableName, Position, Position],
    reads: _Reads,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, start, end = written
    get_info, calls = ServerLink.get_info, list[int]()

    def stopped_call(link: ServerLink, request: Any) -> Any:
        if len(calls) == 3:
            raise InterruptedError("the query is stopped")
        info = get_info(link, request)
        calls.append(reads.take())
        return info

    with serving(mariadb, store=SMALL_STORE) as server:
        client = FlightClient(server.address)
        with monkeypatch.context() as patch:
            patch.setattr(ServerLink, "get_info", stopped_call)
            with pytest.raises(InterruptedError):
                client.plan_parts([table], start, end)
        assert max(calls) <= PIECE_BYTES + 2 * BLOCK_BYTES, "one call has read too much of the log"
        tickets = client.plan_parts([table], start, end)
        size_bytes = end.offset - start.offset if end.file == start.file else ROWS * ROW_BYTES
        planned = sum(calls) + reads.take()
        assert planned < 1.6 * size_bytes, "planning began again"
        assert len(tickets) >= 4
        assert client.plan_parts([table], start, end) == tickets
        assert reads.take() < size_bytes / 2, "what was planned is not remembered"
        (fields,) = client.describe_tables([table])
        batches = [
            batch
            for ticket in tickets
            for block in client.read_part(ticket)
            for batch in decode_changes(block, table, fields)
        ]
        assert [number for batch in batches for number in batch.column("id").to_pylist()] == [*range(ROWS)]
        client.close()


def test_a_batch_is_planned_by_bounded_reads_where_the_filter_leaves_nothing_of_the_log(
    mariadb: DatabaseServer, written: tuple[TableName, Position, Position], reads: _Reads
) -> None:
    """One call would read the log to its end to fill a batch: it would end by its time limit, and begin again."""
    table, start, end = written
    quiet = f"{table.schema}.quiet"
    execute(mariadb, f"CREATE TABLE {quiet} (id INT PRIMARY KEY)", f"INSERT INTO {quiet} VALUES (1)")
    last = end_of(mariadb)
    only_quiet = FilterSettings(allow=(rf"{table.schema}\.quiet",))
    with serving(mariadb, store=SMALL_STORE, filter=only_quiet) as server:
        instance = server.instances["default"]
        position, calls, with_rows = start, list[int](), list[bool]()
        limit = BatchLimit(64 << 20, is_counted=TableName.parse(quiet).__eq__)
        while position < last:
            plan = instance.plan_batch(position, limit, 1.0)
            assert plan.end > position
            calls.append(reads.take())
            with_rows.append(plan.has_rows)
            position = plan.end
        assert max(calls) <= PIECE_BYTES + 2 * BLOCK_BYTES, calls
        assert len(calls) >= 4
        assert with_rows.count(True) == 1
        assert with_rows[-1]
        assert end <= position
