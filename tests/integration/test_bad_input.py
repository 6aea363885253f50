"""What a person gets wrong first: each gives one clear line with what to do, and a non-zero exit."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.config import InstanceSettings, ServerSettings
from penstock.server import Server
from penstock.testing import free_port
from tests.support.capture import execute, source_of

PENSTOCK = Path(sys.executable).with_name("penstock")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PENSTOCK, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def assert_one_line(result: subprocess.CompletedProcess[str], *words: str) -> None:
    lines = result.stderr.strip().splitlines()
    assert result.returncode != 0
    assert len(lines) == 1, result.stderr
    for word in words:
        assert word in lines[0]


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_missing_java(tmp_path: Path) -> None:
    (tmp_path / "java-home").mkdir()
    by_home = run("demo", "--once", JAVA_HOME=str(tmp_path / "java-home"))
    assert_one_line(by_home, "Java 17", "JAVA_HOME", "apt-get install openjdk-17")
    (tmp_path / "penstock-only").mkdir()
    by_path = run("demo", "--once", PATH=str(tmp_path / "penstock-only"), JAVA_HOME="")
    assert_one_line(by_path, "Java 17", "PATH", "apt-get install openjdk-17")


def test_an_old_java(tmp_path: Path) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    old.chmod(0o755)
    assert_one_line(run("demo", "--once", JAVA_HOME=str(tmp_path)), "Java 17", "11")


def test_a_busy_port_for_the_page(busy_port: int) -> None:
    assert_one_line(run("demo", "--port", str(busy_port)), f"port {busy_port}", f"make demo PORT={busy_port + 1}")


def test_a_busy_port_for_the_server(mariadb: Any, busy_port: int) -> None:
    result = run("serve", "--port", str(mariadb.port), "--flight", str(busy_port), PENSTOCK_PASSWORD=mariadb.password)
    assert_one_line(result, f"127.0.0.1:{busy_port}", "port is in use", "another")


def test_a_wrong_password(mariadb: Any) -> None:
    result = run("serve", "--port", str(mariadb.port), "--flight", "0", PENSTOCK_PASSWORD="wrong-secret")
    assert_one_line(result, f"127.0.0.1:{mariadb.port}", "refused user 'root'", "password")
    assert "wrong-secret" not in result.stderr + result.stdout


def test_no_database_there(busy_port: int) -> None:
    nobody = free_port()
    result = run("serve", "--port", str(nobody), "--flight", "0", PENSTOCK_PASSWORD="x")
    assert_one_line(result, f"127.0.0.1:{nobody}", "is it running")


@pytest.mark.mariadb
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"binlog_format": "STATEMENT"}, ("binlog_format is STATEMENT", "SET GLOBAL binlog_format = 'ROW'")),
        ({"binlog_format": "MIXED"}, ("binlog_format is MIXED", "SET GLOBAL binlog_format = 'ROW'")),
        ({"log_bin": None}, ("log_bin is OFF", "--log-bin")),
        ({"binlog_row_image": "MINIMAL"}, ("binlog_row_image is MINIMAL", "SET GLOBAL binlog_row_image")),
    ],
    ids=lambda value: "-".join(f"{key}={item}" for key, item in value.items()) if isinstance(value, dict) else "",
)
def test_a_log_that_cannot_be_captured(
    private_server: Callable[..., Any], options: dict[str, Any], words: tuple[str, ...]
) -> None:
    server = private_server("mariadb", options=options)
    result = run("serve", "--port", str(server.port), "--flight", "0", PENSTOCK_PASSWORD=server.password)
    assert_one_line(result, f"127.0.0.1:{server.port}", *words)


@pytest.mark.parametrize("granted", ["SELECT", "SELECT, REPLICATION CLIENT"])
def test_a_user_without_the_replication_privilege(mariadb: Any, granted: str) -> None:
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE OR REPLACE USER nobody@'%' IDENTIFIED BY 'pw'")
        cursor.execute(f"GRANT {granted} ON *.* TO nobody@'%'")
    result = run("serve", "--port", str(mariadb.port), "--user", "nobody", "--flight", "0", PENSTOCK_PASSWORD="pw")
    assert_one_line(result, "nobody", "GRANT", "REPLICATION")


def test_a_config_file_with_a_typing_error(tmp_path: Path) -> None:
    config = tmp_path / "penstock.yml"
    config.write_text("instances:\n  - destination: shop\n    sorce: {}\n")
    assert_one_line(run("serve", str(config)), "penstock.yml", "instances.0.sorce")
    config.write_text("instances: [")
    assert_one_line(run("serve", str(config)), "penstock.yml", "not YAML")
    config.write_text("instances:\n  - source: {password: '${env:NOT_SET_ANYWHERE}'}\n")
    assert_one_line(run("serve", str(config)), "NOT_SET_ANYWHERE", "not set")
    assert_one_line(run("serve", str(tmp_path / "nothing.yml")), "nothing.yml", "No such file")


def test_a_destination_that_is_no_name() -> None:
    assert_one_line(run("serve", "--destination", "a b"), "destination", "match pattern")


@pytest.mark.parametrize(
    ("ddl", "spec", "words"),
    [
        ("CREATE TABLE {d}.t (a INT)", "index: x\nroot: {{table: {d}.t, fields: [a]}}", ("primary key", "missing")),
        ("CREATE TABLE {d}.t (id INT PRIMARY KEY)", "index: x\nroot: {{table: {d}.t, fields: [b]}}", ("no column b",)),
        ("SELECT 1", "index: x\nroot: {{table: {d}.t, fields: [a]}}", ("no table",)),
        (
            "SELECT 1",
            "index: x\nroot: {{table: {d}.t, fields: [a], where: {{a: []}}}}",
            ("root.where", "a has no values"),
        ),
    ],
)
def test_a_spec_that_cannot_be_followed(
    mariadb: Any, database: Callable[[Any], str], tmp_path: Path, ddl: str, spec: str, words: tuple[str, ...]
) -> None:
    name = database(mariadb)
    execute(mariadb, f"CREATE TABLE {name}.o (id INT PRIMARY KEY)", ddl.format(d=name))
    (tmp_path / "spec.yml").write_text(spec.format(d=name))
    result = run(
        "sync", str(tmp_path / "spec.yml"), "--port", str(mariadb.port), "--server", "127.0.0.1:1",
        "--index", str(tmp_path / "index"), "--checkpoint", str(tmp_path / "checkpoint"),
        PENSTOCK_PASSWORD=mariadb.password,
    )  # fmt: skip
    assert_one_line(result, *words)


@pytest.mark.parametrize("where", ["--index", "--checkpoint"])
def test_a_folder_that_cannot_be_made(mariadb: Any, database: Callable[[Any], str], tmp_path: Path, where: str) -> None:
    name = database(mariadb)
    execute(mariadb, f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    (tmp_path / "spec.yml").write_text(f"index: x\nroot: {{table: {name}.t, fields: [id]}}")
    server = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(mariadb))))
    server.start()
    folders = {"--index": str(tmp_path / "index"), "--checkpoint": str(tmp_path / "checkpoint"), where: "/proc/none/x"}
    result = run(
        "sync", str(tmp_path / "spec.yml"), "--port", str(mariadb.port), "--server", server.address,
        *(part for folder in folders.items() for part in folder),
        PENSTOCK_PASSWORD=mariadb.password,
    )  # fmt: skip
    server.stop()
    assert_one_line(result, "/proc/none")
