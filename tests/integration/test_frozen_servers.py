"""A server that is frozen in the middle of a range: its reader gives it up, and reads the rest there later, or
elsewhere."""

import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.binlog.rows.changes import decode_changes
from penstock.client import FlightClient, link
from penstock.model import Position, TableName
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute, poll
from tests.support.serve_process import ServeProcess, serve_process

ROWS = 100  # of half a megabyte: far more than a connection has room for


@pytest.fixture
def table(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = f"{database(mariadb)}.item"
    execute(mariadb, f"CREATE TABLE {name} (id INT PRIMARY KEY, v MEDIUMTEXT) DEFAULT CHARSET utf8mb4")
    return name


@pytest.fixture
def server_processes(mariadb: DatabaseServer, tmp_path: Path) -> Iterator[list[ServeProcess]]:
    """Two servers of one source."""
    with ExitStack() as stack:
        processes = list[ServeProcess]()
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            processes.append(stack.enter_context(serve_process(tmp_path / name, mariadb)))
            processes[-1].launch()
        for process in processes:
            assert poll(lambda process=process: "serving Arrow Flight" in process.output, 90), process.output
        yield processes


def latest_of(process: ServeProcess) -> Position:
    client = FlightClient(process.url, retry_timeout_s=60)
    try:
        return client.store_bounds()["latest"]
    finally:
        client.close()


@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["the same server", "another server"])
def test_the_rest_of_a_range_is_read_when_its_server_is_frozen(
    mariadb: DatabaseServer,
    table: str,
    server_processes: list[ServeProcess],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    is_elsewhere: bool,
) -> None:
    monkeypatch.setattr(link, "SILENCE_S", 3.0)
    start = end_of(mariadb)
    for low in range(0, ROWS, 10):
        rows = ", ".join(f"({low + i}, REPEAT('x', 500000))" for i in range(10))
        execute(mariadb, f"INSERT INTO {table} VALUES {rows}")
    end, frozen = end_of(mariadb), server_processes[0]
    for process in server_processes:
        assert poll(lambda process=process: latest_of(process) >= end, 60)
    servers = ",".join(process.url for process in server_processes) if is_elsewhere else frozen.url
    client, name = FlightClient(servers, retry_timeout_s=120), TableName.parse(table)
    (fields,) = client.describe_tables([name])
    request = {"form": "raw", "tables": [table], "start": start.to_json(), "end": end.to_json()}
    blocks = client.read_part(json.dumps(request).encode())
    with caplog.at_level(logging.WARNING), ThreadPoolExecutor(1) as pool:
        first = next(blocks)
        frozen.freeze()
        reading = pool.submit(lambda: [first, *blocks])
        try:
            assert poll(lambda: "does not answer: nothing came for 3 s" in caplog.text, 60)
        finally:
            if not is_elsewhere:
                frozen.thaw()
        got = reading.result(100)
    client.close()
    batches = [batch for block in got for batch in decode_changes(block, name, fields)]
    assert [number for batch in batches for number in batch.column("id").to_pylist()] == list(range(ROWS))
