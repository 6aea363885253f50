"""An instance whose source is a folder of log files: it follows, restarts, meets purged files and other logs."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.binlog.events.layout import FLAGS_AT, IN_USE
from penstock.cli import app
from penstock.client import FlightClient
from penstock.config import load_server_settings
from penstock.errors import ConfigurationError, NotRunningError, PositionLostError, SchemaError, SourceConnectionError
from penstock.instance import Instance, InstanceState
from penstock.model import Position, TableName
from penstock.server import Server
from penstock.store import BatchSize, Start
from tests.support.capture import changes_until, poll
from tests.support.folder_instance import ids_in, settings_of
from tests.support.shop_log import PRODUCT, written
from tests.twins import event as ev
from tests.twins.log import SOURCE, LogWriter
from tests.twins.row import INSERT, table_map
from tests.twins.table_map_fields import without_fields

CLIENT = 1001
COUNT = 3  # rows of each file
Made = Callable[..., LogWriter]


@pytest.fixture(params=["mariadb", "mysql"])
def is_mariadb(request: pytest.FixtureRequest) -> bool:
    return request.param == "mariadb"


@pytest.fixture
def file_of(is_mariadb: bool) -> Made:
    """File 1 has rows 1, 2 and 3, file 2 has 4, 5 and 6, and so on."""

    def make(number: int, *, began: int = 1_700_000_000, server_id: int = 1, shift: int = 0) -> LogWriter:
        log = LogWriter(file=f"binlog.{number:06}", is_mariadb=is_mariadb, timestamp=began + number * 100).open()
        log._number = last = COUNT * (number - 1) + shift
        last_bytes = last.to_bytes(8, "little")
        if is_mariadb:
            triple = (5).to_bytes(4, "little") + (1).to_bytes(4, "little") + last_bytes
            log.add(ev.MARIADB_GTID_LIST, (1).to_bytes(4, "little") + triple if last else bytes(4))
        else:
            ranges = (1).to_bytes(8, "little") * 2 + (last + 1).to_bytes(8, "little")
            log.add(ev.PREVIOUS_GTIDS, (1).to_bytes(8, "little") + SOURCE.bytes + ranges if last else bytes(8))
        for row in range(last + 1, last + 1 + COUNT):
            log.timestamp += 1
            log.begin()
            log.map(7, PRODUCT)
            log.rows(INSERT, 7, PRODUCT, [[row, "x", None]])
            log.commit()
        if server_id != 1:
            log.data[:] = owned(bytes(log.data), server_id)
        return log

    return make


def owned(data: bytes, server_id: int) -> bytes:
    """The format event of another server; without its checksum nobody looks at that."""
    raw = bytearray(data)
    raw[5:9] = server_id.to_bytes(4, "little")
    return bytes(raw)


def put(folder: Path, *logs: LogWriter) -> None:
    folder.mkdir(exist_ok=True)
    for log in logs:
        written(log, folder, log.file)


@contextmanager
def running(folder: Path | str, **changes: Any) -> Iterator[Instance]:
    instance = Instance(settings_of(folder, **changes), jitter=lambda: 0)
    instance.start()
    try:
        yield instance
    finally:
        instance.stop()


def rows_of(instance: Instance, count: int) -> list[int]:
    """That a client gets, and acks, until there are so many."""
    instance.clients.subscribe(CLIENT, "", Start.stored())
    ids = list[int]()

    def get() -> bool:
        got = instance.clients.get(CLIENT, BatchSize(2), 0.05)
        if got is not None:
            for block in got[1].blocks:
                ids.extend(ids_in(block))
            instance.clients.ack(CLIENT, got[0])
        return len(ids) >= count

    assert poll(get, 60), f"{ids} of {count}, {instance.states.current}"
    return ids


def test_it_follows_files_and_bytes_and_resumes_at_cursors(tmp_path: Path, file_of: Made) -> None:
    folder, data = tmp_path / "logs", tmp_path / "data"
    first, two, three = (file_of(number) for number in (1, 2, 3))
    put(folder, first)
    with running(folder, data_dir=data) as instance:
        assert rows_of(instance, 3) == [1, 2, 3]
        assert instance.state is InstanceState.FOLLOWING
        path = written(two, folder, two.file)
        whole = path.read_bytes()
        path.write_bytes(whole[: two.boundaries[2] + 5])
        assert rows_of(instance, 1) == [4]
        assert instance.oldest_position() == Position(first.file, 4)
    path.write_bytes(whole)
    (folder / first.file).unlink()
    put(folder, three)
    with running(folder, data_dir=data) as instance:
        assert rows_of(instance, 5) == [5, 6, 7, 8, 9]
        assert instance.store.latest == Position(three.file, three.position)
        assert instance.status()["source"] == str(folder)
        assert instance.status()["retention_hours_left"] is None


@pytest.mark.parametrize(
    ("start", "rows"),
    [
        ("earliest", [1, 2, 3, 4, 5, 6]),
        (None, []),
        ("latest", []),
        ("position", [5, 6]),
        ("gtid", [3, 4, 5, 6]),
        ("set", [3, 4, 5, 6]),
        ("2023-11-14 22:16:42", [5, 6]),
    ],
)
def test_it_begins_where_it_is_told(
    tmp_path: Path, file_of: Made, is_mariadb: bool, start: str | None, rows: list[int]
) -> None:
    logs = [file_of(1), file_of(2)]
    put(tmp_path, *logs)
    texts = {
        "position": f"{logs[1].file}:{logs[1].boundaries[1]}",
        "gtid": "5-1-2" if is_mariadb else f"{SOURCE}:2",
        "set": "5-1-2" if is_mariadb else f"{SOURCE}:1-2",
    }
    with running(tmp_path, start=texts.get(start or "", start)) as instance:
        put(tmp_path, file_of(3))
        assert rows_of(instance, len(rows) + 3) == [*rows, 7, 8, 9]


def test_a_new_client_is_served_from_the_folder(tmp_path: Path, file_of: Made) -> None:
    """What the store does not have any more, and what it never had."""
    put(tmp_path, file_of(1), file_of(2))
    with running(tmp_path, start="latest") as instance:
        oldest = instance.oldest_position()
        assert [row["id"] for row in changes_read(instance, oldest)] == [1, 2, 3, 4, 5, 6]
        instance.clients.subscribe(CLIENT, "", Start.at(oldest))
        ids = list[int]()
        while len(ids) < 6:
            got = instance.clients.get(CLIENT, BatchSize(100), 5)
            assert got is not None
            ids += [row for block in got[1].blocks for row in ids_in(block)]
            instance.clients.ack(CLIENT, got[0])
        assert ids == [1, 2, 3, 4, 5, 6]


def changes_read(instance: Instance, start: Position) -> list[dict[str, Any]]:
    put_rows = [row for block in instance.read(start, instance.store.latest) for row in ids_in(block)]
    return [{"id": row} for row in put_rows]


def test_the_policy_repair_is_refused_where_no_function_repairs(tmp_path: Path, file_of: Made) -> None:
    put(tmp_path / "log", file_of(1))
    instance = Instance(settings_of(tmp_path / "log", on_purged="repair"))
    with pytest.raises(ConfigurationError, match="has nothing that could repair"):
        instance.start()


@pytest.mark.parametrize("policy", ["stop", "latest", "repair"])
def test_purged_files_are_gone_by_policy(tmp_path: Path, file_of: Made, policy: str) -> None:
    folder, data, gaps = tmp_path / "logs", tmp_path / "data", list[Any]()
    logs = [file_of(number) for number in (1, 2, 3)]
    put(folder, *logs[:2])
    with running(folder, data_dir=data) as instance:
        assert rows_of(instance, 6) == [1, 2, 3, 4, 5, 6]
    put(folder, file_of(4))
    for log in logs[:2]:
        (folder / log.file).unlink()
    instance = Instance(settings_of(folder, data_dir=data, on_purged=policy), jitter=lambda: 0, repair=gaps.append)
    if policy == "stop":
        with pytest.raises(PositionLostError, match=r"no longer has what follows .*: its log begins at binlog\.000004"):
            instance.start()
        return
    instance.start()
    try:
        put(folder, file_of(5))
        assert rows_of(instance, 3) == [13, 14, 15]
        assert len(gaps) == (policy == "repair")
    finally:
        instance.stop()


def test_a_purged_file_of_which_all_was_captured_is_no_gap(tmp_path: Path, file_of: Made) -> None:
    put(tmp_path, file_of(1))
    with running(tmp_path) as instance:
        assert rows_of(instance, 3) == [1, 2, 3]
        instance.pause()
        assert poll(lambda: instance.state is InstanceState.PAUSED)
        put(tmp_path, file_of(2))
        (tmp_path / "binlog.000001").unlink()
        instance.resume()
        assert rows_of(instance, 3) == [4, 5, 6]


@pytest.mark.parametrize("policy", ["stop", "latest"])
def test_a_hole_between_files_is_a_gap(tmp_path: Path, file_of: Made, policy: str) -> None:
    put(tmp_path, file_of(1))
    with running(tmp_path, on_purged=policy) as instance:
        put(tmp_path, file_of(3))
        if policy == "stop":
            assert poll(lambda: instance.failure is not None)
            text = r"has no binlog\.000002, and binlog\.000003 after it"
            with pytest.raises(
                PositionLostError, match=rf"begins at binlog\.000003:4; missing are files 1 to 2.*{text}"
            ):
                rows_of(instance, 4)
        else:
            assert poll(lambda: instance.store.latest.file == "binlog.000003")
            put(tmp_path, file_of(4))
            assert rows_of(instance, 6) == [1, 2, 3, 10, 11, 12]


def test_another_log_in_the_folder_is_another_epoch(tmp_path: Path, file_of: Made) -> None:
    """Of another server: it resumes by GTIDs."""
    folder, data = tmp_path / "logs", tmp_path / "data"
    put(folder, file_of(1))
    with running(folder, data_dir=data) as instance:
        assert rows_of(instance, 3) == [1, 2, 3]
    (folder / "binlog.000001").unlink()
    put(folder, file_of(1, began=1_700_000_050, server_id=2), file_of(2, began=1_700_000_050, server_id=2))
    with running(folder, data_dir=data, verify_checksum=False) as instance:
        assert rows_of(instance, 3) == [4, 5, 6]
        assert instance.store.latest.epoch == 1
        assert instance.status()["epoch"] == 1


@pytest.mark.parametrize("is_running", [True, False])
def test_a_log_that_was_reset_is_noticed(tmp_path: Path, file_of: Made, is_running: bool) -> None:
    folder, data = tmp_path / "logs", tmp_path / "data"
    put(folder, file_of(1))
    new_log = file_of(1, began=1_800_000_000)
    with running(folder, data_dir=data, on_purged="latest") as instance:
        assert rows_of(instance, 3) == [1, 2, 3]
        if is_running:
            larger = file_of(1, began=1_800_000_000)
            for _ in range(3):
                larger.begin()
                larger.commit()
            written(larger, folder, ".new").replace(folder / "binlog.000001")
            assert poll(lambda: instance.status()["epoch"] == 1), instance.states.current
            put(folder, file_of(2, began=1_800_000_000))
            assert rows_of(instance, 6) == [1, 2, 3, 4, 5, 6]
    if not is_running:
        put(folder, new_log)
        with running(folder, data_dir=data, on_purged="latest") as instance:
            assert poll(lambda: instance.status()["epoch"] == 1)
            put(folder, file_of(2, began=1_800_000_000))
            assert rows_of(instance, 6) == [1, 2, 3, 4, 5, 6]


def test_a_file_that_was_cut_off_is_waited_for(tmp_path: Path, file_of: Made) -> None:
    log = file_of(1)
    put(tmp_path, log)
    with running(tmp_path) as instance:
        assert rows_of(instance, 3) == [1, 2, 3]
        path = tmp_path / log.file
        whole = path.read_bytes()
        path.write_bytes(whole[: log.boundaries[2]])
        assert poll(lambda: "waiting for what is missing" in instance.states.current.reason)
        path.write_bytes(whole)
        assert poll(lambda: instance.state is InstanceState.FOLLOWING)
        put(tmp_path, file_of(2))
        assert rows_of(instance, 3) == [4, 5, 6]


def test_a_folder_that_is_away_is_waited_for(tmp_path: Path, file_of: Made) -> None:
    folder = tmp_path / "logs"
    put(folder, file_of(1))
    with running(folder) as instance:
        assert rows_of(instance, 3) == [1, 2, 3]
        folder.rename(tmp_path / "away")
        assert poll(lambda: instance.state is InstanceState.RECONNECTING)
        (tmp_path / "away").rename(folder)
        put(folder, file_of(2))
        assert rows_of(instance, 3) == [4, 5, 6]


def test_a_url_is_a_folder_too(tmp_path: Path, file_of: Made) -> None:
    import fsspec

    files, url = fsspec.filesystem("memory"), f"memory://logs{random.randrange(1 << 30)}"

    def upload(*logs: LogWriter) -> None:
        put(tmp_path, *logs)
        for log in logs:
            files.pipe(f"{url}/{log.file}", (tmp_path / log.file).read_bytes())

    upload(file_of(1))
    with running(url) as instance:
        assert rows_of(instance, 3) == [1, 2, 3]
        upload(file_of(2))
        assert rows_of(instance, 3) == [4, 5, 6]
        assert [row["id"] for row in changes_read(instance, instance.oldest_position())] == [1, 2, 3, 4, 5, 6]
        files.rm(f"{url}/binlog.000001")
        assert instance.oldest_position() == Position("binlog.000002", 4)


def test_tables_are_described_as_the_log_has_them(tmp_path: Path, file_of: Made) -> None:
    put(tmp_path, file_of(1))
    with running(tmp_path, start="latest") as instance:
        with pytest.raises(SchemaError, match=r"nothing of table shop\.product has been seen in the log since binlog"):
            instance.describe_tables([PRODUCT.name])
        put(tmp_path, log := file_of(2))
        assert rows_of(instance, 3) == [4, 5, 6]
        (schema,) = instance.describe_tables([PRODUCT.name])
        assert [(column.name, column.type) for column in schema.columns] == [
            (column.name, column.type) for column in PRODUCT.columns
        ]
        log.statement("CREATE DATABASE other")
        log.statement("CREATE TABLE other.t (a INT PRIMARY KEY)")
        written(log, tmp_path, log.file)
        assert poll(lambda: instance.store.latest.offset >= log.position)
        (made,) = instance.describe_tables([TableName("other", "t")])
        assert ([column.name for column in made.columns], made.key) == (["a"], ("a",))
        log.statement("ALTER TABLE other.t ADD b INT")
        written(log, tmp_path, log.file)
        assert poll(lambda: len(instance.describe_tables([TableName("other", "t")])[0].columns) == 2)


def test_a_table_without_names_stops_alone(tmp_path: Path, file_of: Made, is_mariadb: bool) -> None:
    log = file_of(1)
    log.statement("CREATE DATABASE other")
    log.statement("CREATE TABLE other.product (id INT, name VARCHAR(50) CHARACTER SET utf8mb4, price DECIMAL(10, 2))")
    bare = without_fields(table_map(9, PRODUCT, is_mariadb=is_mariadb), set(range(256)))
    for body in (bare, bare.replace(b"\x04shop\0", b"\x05other\0").replace(bare[:6], (10).to_bytes(6, "little"))):
        log.begin()
        log.add(ev.TABLE_MAP, body)
        log.rows(INSERT, int.from_bytes(body[:6], "little"), PRODUCT, [[7, "x", None]])
        log.commit()
    put(tmp_path, log)
    with running(tmp_path) as instance:
        assert poll(lambda: instance.store.latest.offset >= log.position)
        (why,) = instance.status()["stopped_tables"].items()
        assert why[0] == "shop.product"
        assert "there is no table shop.product in the log's DDL; a folder of log files has no catalogue" in why[1]
        with pytest.raises(SchemaError, match="begin before the statements that made the database"):
            instance.describe_tables([PRODUCT.name])
        rows = changes_until(instance, "other.product", 1, instance.oldest_position())
        assert [row["id"] for row in rows] == [7]


def config_of(tmp_path: Path, folder: Path, extra: str = "") -> Path:
    path = tmp_path / "penstock.yml"
    source = f"{{path: {folder}, poll_s: 0.01}}"
    instance = f"{{destination: shop, source: {source}, start: earliest{extra}}}"
    ports = "flight: {port: 0}\ncanal: {port: 0}\nadmin: {port: null}\n"
    path.write_text(f"{ports}data_dir: {tmp_path / 'data'}\ninstances: [{instance}]\n")
    return path


def test_it_is_served_over_flight(tmp_path: Path, file_of: Made) -> None:
    folder = tmp_path / "logs"
    put(folder, file_of(1), file_of(2))
    server = Server(load_server_settings(config_of(tmp_path, folder)))
    server.start()
    try:
        client = FlightClient(server.address, "shop")
        oldest = client.source_start()
        assert poll(lambda: client.find_batch_end(oldest, 1 << 20, 100).file == "binlog.000002")
        end = client.find_batch_end(oldest, 1 << 20, 100)
        tickets = client.plan_parts([PRODUCT.name], oldest, end)
        assert [row for ticket in tickets for block in client.read_part(ticket) for row in ids_in(block)] == [
            1,
            2,
            3,
            4,
            5,
            6,
        ]
    finally:
        server.stop()


def test_the_settings_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"reads the files in /x, and a folder has no standby"):
        load_server_settings(config_of(tmp_path, Path("/x"), ", standby: {host: db2}"))
    path = config_of(tmp_path, Path("/x"))
    path.write_text(path.read_text().replace("path: /x", "hots: db1").replace(", poll_s: 0.01", ""))
    with pytest.raises(ConfigurationError, match=r"instances\.0\.source\.hots: Extra inputs are not permitted"):
        load_server_settings(path)
    with pytest.raises(ConfigurationError, match=r"instances\.0\.source\.host: Extra inputs are not permitted"):
        load_server_settings(config_of(tmp_path, Path("/x, host: db1")))
    with pytest.raises(ConfigurationError, match="there is no folder"):
        Instance(settings_of(tmp_path / "nothing")).start()
    with pytest.raises(SourceConnectionError, match="there are no log files in"):
        Instance(settings_of(tmp_path)).start()


@pytest.mark.parametrize("version", [b"10.4.34-MariaDB-log", b"5.6.51-log"])
def test_the_log_of_a_server_that_is_too_old_is_refused(tmp_path: Path, version: bytes) -> None:
    log = LogWriter(is_checksummed=False).open()
    log.begin()
    log.commit()
    at = log.data.index(b"10.")
    log.data[at : at + 50] = version.ljust(50, b"\0")
    put(tmp_path / "logs", log)
    with pytest.raises(ConfigurationError, match=r"supported are MySQL 5\.7 to 9 and MariaDB 10\.5 to 12"):
        Instance(settings_of(tmp_path / "logs")).start()
    done = CliRunner().invoke(app, ["check", "--path", str(tmp_path / "logs")])
    assert done.exit_code == 1
    assert "supported are MySQL 5.7 to 9 and MariaDB 10.5 to 12" in " ".join(done.output.split())


def test_an_instance_that_was_stopped_is_not_a_source_that_cannot_be_reached(tmp_path: Path, file_of: Made) -> None:
    folder = tmp_path / "logs"
    put(folder, file_of(1))
    with running(folder, start="earliest") as instance:
        start = instance.store.first
        instance.clients.subscribe(7, "", Start.latest())
        instance.stop()
        with pytest.raises(NotRunningError, match="was stopped") as told:
            instance.clients.get(7, BatchSize(1), 0)
        assert told.value.transient, "the same call succeeds once it runs again"
        with pytest.raises(NotRunningError, match="was stopped"):
            list(instance.source_log.read_raw(start, Position(start.file, 1 << 20, epoch=start.epoch)))


def test_check_looks_at_the_folder(tmp_path: Path, file_of: Made) -> None:
    folder = tmp_path / "logs"
    put(folder, file_of(1), file_of(2))
    config = config_of(tmp_path, folder)
    done = CliRunner().invoke(app, ["check", str(config)])
    assert done.exit_code == 0, done.output
    assert "reading the log         binlog.000001:4 to binlog.000002:" in done.output
    assert "start at earliest       found at binlog.000001:4" in done.output
    done = CliRunner().invoke(app, ["check", "--path", str(folder), "--start", "binlog.000002:4"])
    assert "start at binlog.000002:4  found at binlog.000002:4" in done.output
    data = bytearray((folder / "binlog.000001").read_bytes())
    data[4 + FLAGS_AT] |= IN_USE
    (folder / "binlog.000001").write_bytes(data)
    done = CliRunner().invoke(app, ["check", str(config)])
    assert "not binlog.000001" in done.output
    put(folder, file_of(4))
    done = CliRunner().invoke(app, ["check", str(config)])
    assert done.exit_code == 1
    assert "between binlog.000002 and binlog.000004" in done.output
    (folder / "binlog.000004").write_bytes(b"\xfdbin" + bytes(600))
    done = CliRunner().invoke(app, ["check", str(config)])
    assert done.exit_code == 1
    assert "is encrypted, and only its server has the key" in done.output
    for wrong in (tmp_path / "nothing", tmp_path):
        done = CliRunner().invoke(app, ["check", str(config_of(tmp_path, wrong))])
        assert (done.exit_code, "fail" in done.output) == (1, True)


def test_cursors_are_shown_and_moved(tmp_path: Path, file_of: Made) -> None:
    folder = tmp_path / "logs"
    put(folder, file_of(1), file_of(2))
    config = config_of(tmp_path, folder)
    (settings,) = load_server_settings(config).instances
    instance = Instance(settings)
    instance.start()
    assert rows_of(instance, 6) == [1, 2, 3, 4, 5, 6]
    instance.stop()
    shown = CliRunner().invoke(app, ["position", "show", str(config)])
    assert "the source's binlog: binlog.000001:4 to binlog.000002:" in shown.output
    moved = CliRunner().invoke(app, ["position", "set", str(config), str(CLIENT), "binlog.000002:4", "--yes"])
    assert f"client {CLIENT} resumes at binlog.000002:4" in moved.output, moved.output
    instance = Instance(settings)
    instance.start()
    assert rows_of(instance, 3) == [4, 5, 6]
    instance.stop()
