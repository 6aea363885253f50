"""A folder into which the files of a server's log come, piece by piece, while the server still writes them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from penstock.capture.position_resolver import PositionResolver
from penstock.config import DirectorySettings
from penstock.model import Position
from penstock.source.directory import DirectoryStream
from penstock.source.folder_source import FolderSource
from penstock.source.server_source import ServerSource
from penstock.store import Start
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute, poll, source_of
from tests.support.scenario.folder import copied, working
from tests.support.scenario.server_log import ANNOTATE, Event, events_between, events_of, keep_all, log_files

KINDS = ("mariadb", "mariadb11", "mysql9")


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, private_server: Callable[..., Any]) -> DatabaseServer:
    return private_server(request.param, options={"max_allowed_packet": "64M"})


def followed(folder: Path, start: Position, goal: Callable[[], Position | None]) -> tuple[list[Event], Position]:
    """Return what comes until the goal, once there is one, and the position that was reached: the last block may end
    later, because MariaDB writes checkpoints to its log when it likes."""
    events = list[Event]()
    with DirectoryStream(DirectorySettings(path=str(folder), poll_s=0.01), start) as stream:
        for block in stream:
            if block is not None:
                events += events_of(block)
            end = goal()
            if end is not None and stream.position >= end:
                return events, stream.position
    raise AssertionError("it was stopped")


def test_files_that_are_still_written(server: DatabaseServer, tmp_path: Path) -> None:
    folder, kept = tmp_path / "copy", tmp_path / "kept"
    folder.mkdir()
    kept.mkdir()
    start, goal = Position(log_files(server.data)[0].name, 4), list[Position]()
    with copied(server, folder), working(server) as workload:
        assert poll((folder / start.file).exists)
        with ThreadPoolExecutor(1) as pool:
            reader = pool.submit(followed, folder, start, lambda: next(iter(goal), None))
            try:
                for _ in range(6):
                    workload.write(80)
                    execute(server, "FLUSH BINARY LOGS")
                workload.stop()
                goal.append(end_of(server))
                events, reached = reader.result(60)
            finally:
                goal.insert(0, start)  # ends the reader also after an error
    keep_all(server, kept)
    notes = [event for event in events if event[2][4] == ANNOTATE]
    assert bool(notes) == (server.name == "MariaDB")
    without = [event for event in events if event[2][4] != ANNOTATE]
    assert without == events_between(kept, start, reached)


def test_positions_are_those_of_the_server(server: DatabaseServer) -> None:
    with working(server) as workload:
        for _ in range(4):
            workload.write(40)
            execute(server, "FLUSH BINARY LOGS")
    execute(server, "SET SESSION timestamp = 1900000000", "INSERT INTO d.a (n) VALUES (1)")
    middle = end_of(server)
    execute(server, "FLUSH BINARY LOGS", "INSERT INTO d.a (n) VALUES (2)")
    origin, end = FolderSource(DirectorySettings(path=str(server.data))), end_of(server)
    log, live = PositionResolver(origin, 0, 0), ServerSource(source_of(server))
    assert origin.inventory().oldest == Position(log_files(server.data)[0].name, 4)
    assert origin.sizes().keys() == live.sizes().keys()
    for file in origin.sizes():
        assert origin.file_identity(file) == live.file_identity(file)
        assert origin.previous_gtids(file) == live.previous_gtids(file)
    assert poll(lambda: origin.end() == end_of(server))  # MariaDB adds words of its own some time after
    assert origin.end().gtids == end.gtids
    assert end.gtids is not None
    assert middle.gtids is not None
    (last,) = middle.gtids.ranges.items() if not middle.gtids.is_mariadb else [("", ((0, 0),))]
    gtid = middle.gtids.text if middle.gtids.is_mariadb else f"{last[0]}:{last[1][-1][1]}"
    ours, theirs = (resolver.find(Start.after_gtid(gtid)) for resolver in (log, PositionResolver(live, 0, 0)))
    assert ours == theirs
    assert ours.gtids == theirs.gtids == middle.gtids
