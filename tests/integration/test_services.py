"""The servers themselves: each one starts, answers, stops, and leaves no process."""

import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql
import pytest
from kazoo.client import KazooClient

from penstock.errors import ServerStartError
from penstock.testing import DatabaseServer, MariaDB, PrivateServer
from tests.services import SERVICES
from tests.services.opensearch import OpenSearch
from tests.services.search import SearchServer

StartServer = Callable[..., Any]

DATABASES = ["mariadb", "mariadb11", "mysql57", "mysql80", "mysql9"]
SEARCH = ["opensearch", "elasticsearch"]


def marked(names: list[str]) -> list[Any]:
    return [pytest.param(name, marks=getattr(pytest.mark, name)) for name in names]


def query(server: DatabaseServer, statement: str, **changes: Any) -> list[tuple[Any, ...]]:
    with server.connect(**changes) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def ask(server: SearchServer, path: str, body: object = None, method: str = "GET") -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.url}/{path}", data, headers, method=method)  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - loopback
        return json.load(answer)


def answers(server: PrivateServer) -> bool:
    """Whether a client of this kind of server gets an answer."""
    if isinstance(server, DatabaseServer):
        return query(server, "SELECT 1 + 1") == [(2,)]
    if isinstance(server, SearchServer):
        ask(server, "things/_doc/1?refresh=true&version=7&version_type=external_gte", {"a": "red fox"}, "PUT")
        return ask(server, "things/_search?q=a:fox")["hits"]["hits"][0]["_id"] == "1"
    client = KazooClient(hosts=f"{server.host}:{server.port}")
    client.start(timeout=10)
    try:
        client.ensure_path("/a")
        return bool(client.exists("/a"))
    finally:
        client.stop()
        client.close()


@pytest.mark.parametrize("name", marked([*DATABASES, *SEARCH, "zookeeper"]))
def test_a_server_starts_answers_stops_and_leaves_no_process(name: str, private_server: StartServer) -> None:
    server = private_server(name)
    pid = server.pid
    assert answers(server)
    assert Path(f"/proc/{pid}").exists()

    server.stop()

    assert server.pid is None
    assert not Path(f"/proc/{pid}").exists()
    with pytest.raises(ConnectionRefusedError), socket.create_connection((server.host, server.port), timeout=5):
        pass


@pytest.mark.parametrize("name", DATABASES)
def test_a_wrong_password_is_refused(name: str, request: pytest.FixtureRequest) -> None:
    server: DatabaseServer = request.getfixturevalue(name)

    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        server.connect(password="wrong")


@pytest.mark.parametrize("name", DATABASES)
def test_the_log_holds_rows_with_all_columns(name: str, request: pytest.FixtureRequest) -> None:
    server: DatabaseServer = request.getfixturevalue(name)

    assert query(server, "SELECT @@log_bin, @@binlog_format, @@binlog_row_image") == [(1, "ROW", "FULL")]
    if name != "mysql57":
        assert query(server, "SELECT @@binlog_row_metadata") == [("FULL",)]
    if not name.startswith("mariadb"):
        assert query(server, "SELECT @@gtid_mode") == [("ON",)]


@pytest.mark.parametrize(
    ("name", "plugin"),
    [
        ("mariadb", "mysql_native_password"),
        ("mariadb11", "mysql_native_password"),
        ("mysql57", "mysql_native_password"),
        ("mysql80", "caching_sha2_password"),
        ("mysql9", "caching_sha2_password"),
    ],
)
def test_only_root_can_log_in(name: str, plugin: str, request: pytest.FixtureRequest) -> None:
    server: DatabaseServer = request.getfixturevalue(name)

    rows = query(server, "SELECT Host, plugin FROM mysql.user WHERE User IN ('root', '')")

    assert sorted(rows) == [("127.0.0.1", plugin), ("localhost", plugin)]


@pytest.mark.parametrize("name", DATABASES)
def test_a_database_is_there_for_one_test(
    name: str, request: pytest.FixtureRequest, database: Callable[[DatabaseServer], str]
) -> None:
    server: DatabaseServer = request.getfixturevalue(name)

    first, two = database(server), database(server)

    assert first != two
    assert query(server, "SELECT DATABASE()", database=first) == [(first,)]


@pytest.mark.parametrize("name", marked(["mariadb", "mysql80"]))
def test_data_survives_a_stop_and_a_crash(name: str, private_server: StartServer) -> None:
    server = private_server(name)
    port = server.port
    query(server, "CREATE DATABASE shop")
    query(server, "CREATE TABLE shop.orders (id INT PRIMARY KEY)")
    query(server, "INSERT INTO shop.orders VALUES (1)")

    server.stop()
    server.start()
    query(server, "INSERT INTO shop.orders VALUES (2)")
    server.kill()
    server.start()

    assert query(server, "SELECT id FROM shop.orders ORDER BY id") == [(1,), (2,)]
    assert server.port == port


@pytest.mark.mariadb
def test_options_reach_the_server(private_server: StartServer) -> None:
    server = private_server("mariadb", options={"binlog_format": "STATEMENT", "log_bin": None})

    assert query(server, "SELECT @@binlog_format, @@log_bin") == [("STATEMENT", 0)]


@pytest.mark.mariadb
def test_a_port_that_is_taken_is_an_error_with_the_servers_own_words(private_server: StartServer) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ServerStartError, match="Address already in use") as caught,
    ):
        private_server("mariadb", port=taken.getsockname()[1])

    assert "server.log" in str(caught.value)


def test_the_root_password_is_in_no_file_and_on_no_command_line(mariadb: MariaDB) -> None:
    secret = mariadb.password.encode()

    assert secret not in Path(f"/proc/{mariadb.pid}/cmdline").read_bytes()
    assert [path for path in mariadb.folder.rglob("*") if path.is_file() and secret in path.read_bytes()] == []


def test_mariadb_has_the_ed25519_plugin_and_reads_its_own_log(mariadb: MariaDB) -> None:
    query(mariadb, "INSTALL SONAME 'auth_ed25519'")
    query(mariadb, "UNINSTALL SONAME 'auth_ed25519'")
    log = next(mariadb.data.glob("binlog.0*"))

    shown = subprocess.run([*mariadb.installation.tool_command("mariadb-binlog"), log], capture_output=True, check=True)

    assert b"server id 1" in shown.stdout


def test_opensearch_has_the_common_analyzers(opensearch: OpenSearch) -> None:
    tokens = ask(opensearch, "_analyze", {"analyzer": "english", "text": "the running foxes"}, "POST")["tokens"]

    assert [token["token"] for token in tokens] == ["run", "fox"]


@pytest.mark.opensearch
def test_settings_reach_the_search_server(private_server: StartServer) -> None:
    server = private_server("opensearch", options={"http.max_content_length": "2mb"})

    nodes = ask(server, "_nodes/settings?flat_settings=true")["nodes"]

    (node,) = nodes.values()
    assert node["settings"]["http.max_content_length"] == "2mb"


def test_chromium_renders_a_page(chromium: Path, tmp_path: Path) -> None:
    page = "data:text/html,<p id=a></p><script>a.textContent = 6 * 7</script>"
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--dump-dom"]

    shown = subprocess.run([*command, page], capture_output=True, check=True, timeout=60, text=True)

    assert '<p id="a">42</p>' in shown.stdout


def test_a_server_that_was_not_fetched_is_an_error_with_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))

    with pytest.raises(ServerStartError, match="make services ONLY=opensearch"):
        SERVICES["opensearch"].require()


def test_an_unknown_name_is_one_line_with_the_names() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.services", "mysql"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert done.stderr.splitlines() == [f"no such server: mysql; the names are {', '.join(SERVICES)}"]


def test_a_marker_leaves_out_what_needs_the_server() -> None:
    def collected(expression: str) -> str:
        command = [sys.executable, "-m", "pytest", __file__, "--collect-only", "-q", "-p", "no:cacheprovider"]
        return subprocess.run([*command, "-m", expression], capture_output=True, text=True, check=True).stdout

    only, others = collected("opensearch"), collected("not opensearch and not mysql57")

    assert "test_opensearch_has_the_common_analyzers" in only
    assert "leaves_no_process[opensearch]" in only
    assert "mysql" not in only
    assert "opensearch" not in others
    assert "test_a_wrong_password_is_refused[mysql80]" in others
    assert "[mysql57]" not in others
