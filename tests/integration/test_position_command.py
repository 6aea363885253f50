"""penstock position: what it shows, what it changes, and what it refuses."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from typer.testing import CliRunner, Result

from penstock.cli import app
from penstock.errors import ConfigurationError, MetaError, PenstockError, PositionLostError
from penstock.instance import Instance
from penstock.meta import Cursor, FileMetaBackend
from penstock.model import Position
from penstock.store import BatchSize, Start
from penstock.testing import DatabaseServer
from tests.services.zookeeper import ZooKeeper
from tests.support.capture import execute, instance_of

PLACES = ("at", "earliest", "latest", "gtid", "time")


@pytest.fixture(params=["mariadb", "mariadb11", "mysql9"])
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


@pytest.fixture
def table(server: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = f"{database(server)}.t"
    execute(server, f"CREATE TABLE {name} (id INT PRIMARY KEY)")
    return name


@pytest.fixture
def config(server: DatabaseServer, tmp_path: Path) -> Path:
    source = f"{{port: {server.port}, user: {server.user}, password: '{server.password}'}}"
    path = tmp_path / "penstock.yml"
    path.write_text(f"data_dir: {tmp_path}\ninstances:\n- destination: shop\n  source: {source}\n", encoding="utf-8")
    return path


def served(server: DatabaseServer, folder: Path, **changes: Any) -> Instance:
    instance = instance_of(server, destination="shop", **({"data_dir": folder} | changes))
    instance.start()
    return instance


def acked(server: DatabaseServer, table: str, folder: Path, **changes: Any) -> Position:
    """Let a client ack a few rows, and stop; gives its cursor."""
    instance = served(server, folder, **changes)
    instance.clients.subscribe(1001, table, Start.latest())
    execute(server, *(f"INSERT INTO {table} VALUES ({number})" for number in range(5)))
    for _ in range(3):
        got = instance.clients.get(1001, BatchSize(3), 10)
        assert got is not None
        instance.clients.ack(1001, got[0])
    end = instance.store.acked
    instance.stop()
    return end


def run(*arguments: object, answer: str = "") -> Result:
    return CliRunner().invoke(app, ["position", *map(str, arguments)], input=answer)


def printed(*arguments: object, answer: str = "") -> str:
    result = run(*arguments, answer=answer)
    assert result.exception is None, result.output
    return result.output


def cursor_in(folder: Path, client: int = 1001) -> Cursor | None:
    records = FileMetaBackend("shop", folder).read_records()
    return next((record.cursor for record in records if record.client_id == client), None)


def test_it_shows_where_each_client_is(server: DatabaseServer, table: str, config: Path, tmp_path: Path) -> None:
    assert "no client of 'shop' has subscribed yet" in printed("show", config)
    position = acked(server, table, tmp_path)
    text = printed("show", config)
    assert re.search(rf"1001 +{position} +20\d\d-\d\d-\d\d \d\d:\d\d:\d\d +[\d.]+ (kB|bytes) +{table}", text)
    assert "the source's binlog: binlog.000001:4 to binlog." in text
    (client,) = json.loads(printed("show", config, "--output", "json"))
    assert (client["client"], client["position"], client["subscribed"], client["is_in_log"]) == (
        1001, str(position), True, True,
    )  # fmt: skip
    assert client["behind_bytes"] > 0


def test_it_shows_cursors_without_the_source(server: DatabaseServer, table: str, config: Path, tmp_path: Path) -> None:
    position = acked(server, table, tmp_path)
    config.write_text(config.read_text().replace(f"port: {server.port}", "port: 1"))
    text = printed("show", config)
    assert str(position) in text
    assert "the source was not asked: cannot reach a database at 127.0.0.1:1" in text


@pytest.mark.parametrize("where", PLACES)
def test_a_client_resumes_where_it_is_told(
    server: DatabaseServer, table: str, config: Path, tmp_path: Path, where: str
) -> None:
    position = acked(server, table, tmp_path)
    instance = instance_of(server, destination="other")
    instance.start()
    text = {"at": str(position), "earliest": "earliest", "latest": "latest", "time": "-1h", "gtid": gtid_of(server)}[
        where
    ]
    expected = instance.oldest_position() if where in {"earliest", "time"} else instance.store.latest
    instance.stop()
    if where == "at":
        printed("set", config, 1001, "latest", "--yes")
        expected = position
    shown = printed("set", config, 1001, "--yes", "--", text or "latest")
    assert f"client 1001 resumes at {expected}" in shown
    cursor = cursor_in(tmp_path)
    assert cursor is not None
    assert cursor.position == expected
    instance = served(server, tmp_path)
    try:
        assert instance.clients.subscribe(1001, table) == expected
    finally:
        instance.stop()


def gtid_of(server: DatabaseServer) -> str:
    """Of the last transaction; none where there are no GTIDs."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        (version,) = cursor.fetchone() or ("",)
        cursor.execute("SELECT @@gtid_binlog_pos" if "MariaDB" in str(version) else "SELECT @@gtid_executed")
        (gtid,) = cursor.fetchone() or ("",)
    return re.sub(r":\d+-", ":", str(gtid))


def test_a_dry_run_and_a_no_change_nothing(server: DatabaseServer, table: str, config: Path, tmp_path: Path) -> None:
    position = acked(server, table, tmp_path)
    text = printed("set", config, 1001, "earliest", "--dry-run")
    assert text.splitlines()[0] == "client 1001 of 'shop'"
    assert re.search(rf"^- {position}  20", text, re.MULTILINE)
    assert "\n+ binlog.000001:4" in text
    assert "back: what lies between the two is redelivered, " in text
    assert "nothing was changed (--dry-run)" in text
    plan = json.loads(printed("set", config, 1001, "earliest", "--dry-run", "--output", "json"))
    assert (plan["before"], plan["after"], plan["effect"]) == (str(position), "binlog.000001:4", "back")
    assert plan["log_bytes"] > 0
    assert not plan["changed"]
    text = printed("set", config, 1001, "latest", answer="n\n")
    assert "forward: what lies between the two is never delivered, " in text
    assert text.endswith("nothing was changed\n")
    assert "nothing was changed" in printed("reset", config, 1001, "--dry-run")
    assert "it is there already" in printed("set", config, 1001, position)
    cursor = cursor_in(tmp_path)
    assert cursor is not None
    assert cursor.position == position
    answered = run("set", config, 1001, "latest", "--output", "json", answer="n\n")
    assert json.loads(answered.stdout[answered.stdout.index("{") :])["changed"] is False  # the runner echoes the answer
    assert "Change it?" in answered.stderr
    assert "client 1001 resumes at" in printed("set", config, 1001, "latest", answer="y\n")
    done = json.loads(printed("reset", config, 1001, "--yes", "--output", "json"))
    assert (done["effect"], done["after"], done["changed"]) == ("forget", None, True)
    assert cursor_in(tmp_path) is None


def test_a_client_that_is_reset_begins_as_a_new_one(
    server: DatabaseServer, table: str, config: Path, tmp_path: Path
) -> None:
    acked(server, table, tmp_path)
    assert "client 1001 is forgotten" in printed("reset", config, 1001, answer="y\n")
    assert cursor_in(tmp_path) is None
    with pytest.raises(ConfigurationError, match="there is no client 1001 of 'shop'; there is none"):
        raise run("reset", config, 1001).exception or AssertionError


def test_a_position_can_be_set_before_a_client_comes(
    server: DatabaseServer, table: str, config: Path, tmp_path: Path
) -> None:
    del table
    assert "has not subscribed to 'shop' yet" in printed("set", config, 7, "earliest", "--yes")
    instance = served(server, tmp_path)
    try:
        assert instance.clients.subscribe(7) == instance.oldest_position()
    finally:
        instance.stop()


@pytest.mark.parametrize(
    ("position", "error", "message"),
    [
        ("binlog.900000:4", PositionLostError, "is ahead of the log"),
        ("binlog.000000:4", PositionLostError, r"has no log file binlog\.000000"),
        (
            "binlog.000001:5",
            PositionLostError,
            r"is no transaction boundary .* before it is binlog\.000001:4",
        ),
        ("somewhere", ConfigurationError, "is not a position in a log"),
    ],
)
def test_what_is_not_a_position(
    server: DatabaseServer,
    table: str,
    config: Path,
    tmp_path: Path,
    position: str,
    error: type[PenstockError],
    message: str,
) -> None:
    before = acked(server, table, tmp_path)
    with pytest.raises(error, match=message):
        raise run("set", config, 1001, position, "--yes").exception or AssertionError
    cursor = cursor_in(tmp_path)
    assert cursor is not None
    assert cursor.position == before


def test_not_while_a_server_runs(server: DatabaseServer, table: str, config: Path, tmp_path: Path) -> None:
    del table
    instance = served(server, tmp_path)
    instance.clients.subscribe(1001)
    for command in (("set", config, 1001, "latest", "--yes"), ("reset", config, 1001, "--yes")):
        result = run(*command)
        if "is there already" not in result.output and "there is no client" not in str(result.exception):
            with pytest.raises(MetaError, match="a server that runs; stop it first"):
                raise result.exception or AssertionError
    instance.stop()


def test_which_instance_must_be_said(config: Path, tmp_path: Path) -> None:
    text = config.read_text()
    (tmp_path / "two.yml").write_text(text + text.partition("instances:\n")[2].replace("shop", "crm"))
    with pytest.raises(ConfigurationError, match=r"several instances \(crm, shop\): choose one with --destination"):
        raise run("show", tmp_path / "two.yml").exception or AssertionError
    with pytest.raises(ConfigurationError, match="has no instance 'x'; it has: shop"):
        raise run("show", config, "--destination", "x").exception or AssertionError
    config.write_text(text.replace(f"data_dir: {tmp_path}\n", ""))
    with pytest.raises(ConfigurationError, match="are in memory only"):
        raise run("show", config).exception or AssertionError


def test_cursors_in_zookeeper(server: DatabaseServer, table: str, config: Path, zookeeper: ZooKeeper) -> None:
    config.write_text(re.sub("data_dir: .*", f"zookeeper: {zookeeper.hosts}", config.read_text()))
    position = acked(server, table, Path(), data_dir=None, zookeeper=zookeeper.hosts)
    assert str(position) in printed("show", config)
    assert "client 1001 resumes at binlog.000001:4" in printed("set", config, 1001, "earliest", "--yes")
    assert "binlog.000001:4 " in printed("show", config)
    running = "/otter/canal/destinations/shop/running"
    canal: Any = KazooClient(zookeeper.hosts)
    canal.start()
    canal.create(running, b'{"active":true,"address":"10.0.0.1:11111"}', ephemeral=True)
    with pytest.raises(MetaError, match=r"a server runs 'shop' .*10\.0\.0\.1:11111.*: stop it first"):
        raise run("set", config, 1001, "latest", "--yes").exception or AssertionError
    canal.stop()
    canal.close()
    assert "client 1001 is forgotten" in printed("reset", config, 1001, "--yes")
