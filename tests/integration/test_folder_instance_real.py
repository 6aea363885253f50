"""An instance on a folder of a real server's files captures what an instance on that server captures."""

import random
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import PositionLostError, SchemaError
from penstock.instance import Instance
from penstock.model import Position, TableName
from penstock.store import BatchSize, Start
from penstock.testing import DatabaseServer
from tests.support.capture import changes_until, end_of, execute, instance_of, poll
from tests.support.folder_instance import folder_instance, running
from tests.support.scenario.captured import Reading, Taker
from tests.support.scenario.folder import copied, whole_copy, working
from tests.support.scenario.server_log import ANNOTATE, Event, events_between, events_of, keep_all, log_files

KINDS = ("mariadb", "mariadb11", "mysql9")


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, private_server: Callable[..., Any]) -> DatabaseServer:
    return private_server(request.param, options={"max_allowed_packet": "64M"})


def without_notes(events: list[Event]) -> list[Event]:
    """Servers send statements' texts to nobody who does not ask for them; files have them."""
    return [event for event in events if event[2][4] != ANNOTATE]


def read(instance: Instance, start: Position, end: Position) -> tuple[list[Event], dict[Position, str | None]]:
    """The events, and the GTIDs at the ends of transactions."""
    events, gtids = list[Event](), dict[Position, str | None]()
    for block in instance.read(start, end):
        events += events_of(block)
        for i in block.boundaries.tolist():
            position = block.boundary_after(i)
            gtids[position] = position.gtids and position.gtids.text
    return without_notes(events), gtids


def test_it_captures_what_the_server_gives(server: DatabaseServer, tmp_path: Path) -> None:
    """While the files come in pieces, and with a restart in the middle."""
    folder, reading = tmp_path / "copy", Reading()
    folder.mkdir()
    first = Position(log_files(server.data)[0].name, 4)
    options = {"data_dir": tmp_path / "data", "start": "earliest", "store": {"kind": "file"}}
    with (
        running(instance_of(server, start="earliest", store={"kind": "mixed"}, data_dir=tmp_path / "live")) as live,
        copied(server, folder),
        working(server) as workload,
    ):
        live.clients.subscribe(1, "", Start.stored())  # what it has stays
        assert poll(lambda: (folder / first.file).exists() and (folder / first.file).stat().st_size > 400)
        for _ in range(2):
            with running(folder_instance(folder, **options)) as instance:
                taker = Taker(instance, reading)
                taker.start()
                for _ in range(2):
                    workload.write(60)
                    execute(server, "FLUSH BINARY LOGS")
                taker.end()
            taker.stop()
        workload.write(20)
        workload.stop()
        end = end_of(server)
        with running(folder_instance(folder, **options)) as instance:
            taker = Taker(instance, reading)
            taker.start()
            assert poll(partial(has, reading, end), 60), reading.boundary
            taker.stop()
            assert poll(lambda: live.store.latest >= end)
            theirs, live_gtids = read(live, first, end)
            ours, gtids = read(instance, first, end)
            assert instance.store.latest.gtids == end.gtids
            assert instance.status()["epoch"] == 0
    expected = events_between(server.data, first, end)
    assert len(expected) > 1000
    # A checkpoint that the server writes later may be read too.
    got = [event for event in reading.events if event[:2] < (end.file_number, end.offset)]
    for whose, rows in {"client": without_notes(got), "server": theirs, "folder": ours}.items():
        assert rows == expected, whose
    assert gtids == live_gtids


def test_it_begins_where_the_server_would(server: DatabaseServer, tmp_path: Path) -> None:
    with working(server) as workload:
        workload.write(40)
        execute(server, "FLUSH BINARY LOGS")
        workload.write(20)
        middle = end_of(server)
        when = datetime.fromtimestamp(middle.timestamp, UTC)
        workload.write(20)
        execute(server, "FLUSH BINARY LOGS")
        workload.write(20)
    end = whole_copy(server, tmp_path)
    assert middle.gtids is not None
    kinds = ("earliest", "latest", str(middle), middle.gtids.text, f"{when:%Y-%m-%d %H:%M:%S}", None)
    for start in kinds:
        with running(instance_of(server, start=start)) as live:
            expected = live.store.first
        with running(folder_instance(tmp_path, start=start)) as instance:
            begin = instance.store.first
            assert (begin.file, begin.gtids) == (expected.file, expected.gtids), start
            if start in {None, "latest"}:
                assert begin == end
            else:
                assert begin == expected, start
            assert poll(lambda: instance.store.latest >= end)
            if start == str(middle):
                instance.clients.subscribe(1, "", Start.after_gtid(last_of(middle)))
                got = instance.clients.get(1, BatchSize(10), 10)
                assert got is not None
                assert got[1].start == instance.source_log.find(Start.after_gtid(last_of(middle)))
                assert got[1].start.gtids == middle.gtids


def has(reading: Reading, end: Position) -> bool:
    return reading.boundary is not None and reading.boundary >= end


def last_of(position: Position) -> str:
    assert position.gtids is not None
    if position.gtids.is_mariadb:
        return position.gtids.text
    ((source, ranges),) = position.gtids.ranges.items()
    return f"{source}:{ranges[-1][1]}"


def test_rows_and_tables_of_a_folder(server: DatabaseServer, tmp_path: Path) -> None:
    execute(
        server,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY, v VARCHAR(20), e ENUM('a', 'b'), d DECIMAL(8, 2) UNSIGNED)",
        "INSERT INTO shop.t VALUES (1, 'x', 'b', 1.5), (2, NULL, NULL, NULL)",
        "FLUSH BINARY LOGS",
        "UPDATE shop.t SET v = 'y' WHERE id = 1",
        "DELETE FROM shop.t WHERE id = 2",
    )
    end = whole_copy(server, tmp_path)
    with (
        running(instance_of(server, start="earliest")) as live,
        running(folder_instance(tmp_path, start="latest")) as late,
        running(folder_instance(tmp_path, start="earliest")) as instance,
    ):
        assert poll(lambda: instance.store.latest >= end)
        name = TableName("shop", "t")
        assert instance.describe_tables([name]) == live.describe_tables([name])
        theirs = changes_until(live, "shop.t", 5, live.oldest_position())
        assert changes_until(instance, "shop.t", 5, instance.oldest_position()) == theirs
        with pytest.raises(SchemaError, match=r"nothing of table shop\.t has been seen"):
            late.describe_tables([name])


def test_from_a_server_to_its_files_and_back(server: DatabaseServer, tmp_path: Path) -> None:
    """It is the same log: positions and epoch continue."""
    folder, data = tmp_path / "copy", tmp_path / "data"
    folder.mkdir()
    reading = Reading()
    with working(server) as workload:
        for is_folder in (False, True, False, True):
            workload.write(40)
            keep_all(server, folder)
            options = {"data_dir": data, "destination": "folder", "start": "earliest"}
            source = folder_instance(folder, **options) if is_folder else instance_of(server, **options)
            with running(source) as instance:
                taker = Taker(instance, reading)
                taker.start()
                end = end_of(server) if not is_folder else instance.source_log.end()
                assert poll(partial(has, reading, end)), instance.states.current
                taker.end()
                assert instance.status()["epoch"] == 0
            taker.stop()


@pytest.mark.parametrize("policy", ["stop", "latest"])
def test_a_purged_file_by_policy(server: DatabaseServer, tmp_path: Path, policy: str) -> None:
    folder, data = tmp_path / "copy", tmp_path / "data"
    folder.mkdir()
    with working(server) as workload:
        workload.write(20)
        keep_all(server, folder)
        with running(folder_instance(folder, data_dir=data, start="earliest")) as instance:
            reading = Reading()
            taker = Taker(instance, reading)
            taker.start()
            assert poll(partial(has, reading, instance.source_log.end()))
            taker.end()
        taker.stop()
        for _ in range(2):
            workload.write(20)
            execute(server, "FLUSH BINARY LOGS")
        workload.write(20)
    end = whole_copy(server, folder)
    for path in log_files(folder)[:-1]:
        path.unlink()
    instance = folder_instance(folder, data_dir=data, on_purged=policy)
    if policy == "stop":
        with pytest.raises(PositionLostError, match=r"no longer has what follows .*; GTIDs .*; the time from"):
            instance.start()
        return
    with running(instance):
        assert instance.store.latest == end


def test_a_folder_in_memory(server: DatabaseServer, tmp_path: Path) -> None:
    import fsspec

    files, url = fsspec.filesystem("memory"), f"memory://logs{random.randrange(1 << 30)}"
    with working(server) as workload:
        workload.write(40)
        execute(server, "FLUSH BINARY LOGS")
        workload.write(40)
    end = whole_copy(server, tmp_path)
    for path in log_files(tmp_path):
        files.pipe(f"{url}/{path.name}", path.read_bytes())
    with (
        running(folder_instance(url, start="earliest")) as remote,
        running(folder_instance(tmp_path, start="earliest")) as local,
    ):
        assert poll(lambda: min(remote.store.latest, local.store.latest) >= end)
        assert read(remote, remote.oldest_position(), end) == read(local, local.oldest_position(), end)
