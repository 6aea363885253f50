"""`penstock check`: what of a source is ready, what could be better, what must change first."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from penstock.config import InstanceSettings
from penstock.instance.examine import examine_instances
from penstock.model import Position
from penstock.source.examine import examine_server
from penstock.source.finding import Finding, Verdict
from penstock.testing import DatabaseServer
from tests.support.capture import changes_until, execute, instance_of, source_of

SOURCES = ("mariadb", "mariadb11", "mysql80", "mysql9")


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


def failed(findings: list[Finding]) -> list[Finding]:
    return [one for one in findings if one.verdict is Verdict.FAIL]


def test_a_source_that_is_ready(server: DatabaseServer) -> None:
    findings = list(examine_server(source_of(server)))
    assert failed(findings) == []
    about = {one.check: one.value for one in findings}
    assert about["reading the log"].startswith("binlog.000001:4 to binlog.")
    assert about["version"].startswith(server.version.split("-")[0])


def test_mysql57_lacks_the_names_of_columns(mysql57: DatabaseServer) -> None:
    found = {one.check: one for one in examine_server(source_of(mysql57))}
    assert failed(list(found.values())) == []
    one = found["binlog_row_metadata"]
    assert (one.verdict, one.value) == (Verdict.WARN, "NOT THERE")
    assert "columns get their names from the statements that made the tables" in one.remedy


def test_a_wrong_password(server: DatabaseServer) -> None:
    (one,) = examine_server(source_of(server).model_copy(update={"password": SecretStr("wrong")}))
    assert (one.check, one.verdict) == ("login", Verdict.FAIL)
    assert "check user and password" in one.remedy


def test_nobody_there(server: DatabaseServer) -> None:
    (one,) = examine_server(source_of(server).model_copy(update={"port": 1}))
    assert "is it running, and are host and port right?" in one.remedy


def test_missing_grants(server: DatabaseServer) -> None:
    execute(server, "DROP USER IF EXISTS poor", "CREATE USER poor IDENTIFIED BY 'poor-password'")
    poor = source_of(server).model_copy(update={"user": "poor", "password": SecretStr("poor-password")})
    found = {one.check: one for one in examine_server(poor)}
    assert found["reading the log"].verdict is Verdict.FAIL
    assert "GRANT REPLICATION SLAVE" in found["reading the log"].remedy
    assert found["SELECT"].verdict is Verdict.WARN
    execute(server, "GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO poor")
    assert failed(list(examine_server(poor))) == []
    execute(server, "DROP USER poor")


@pytest.mark.mariadb
def test_settings_that_must_change(private_server: Callable[..., DatabaseServer]) -> None:
    options = {
        "binlog_format": "STATEMENT",
        "binlog_row_image": "MINIMAL",
        "binlog_row_metadata": "MINIMAL",
        "binlog_checksum": "NONE",
        "binlog_expire_logs_seconds": 3600,
    }
    server = private_server("mariadb", options=options)
    findings = list(examine_server(source_of(server)))
    assert {one.check: one.value for one in failed(findings)} == {
        "binlog_format": "STATEMENT",
        "binlog_row_image": "MINIMAL",
    }
    warned = {one.check: one.value for one in findings if one.verdict is Verdict.WARN}
    assert (warned["binlog_checksum"], warned["retention of the log"]) == ("NONE", "1 hours")
    assert warned["binlog_row_metadata"] == "MINIMAL"
    assert all("SET GLOBAL" in one.remedy for one in failed(findings))


@pytest.mark.mariadb
def test_without_a_log(private_server: Callable[..., DatabaseServer]) -> None:
    server = private_server("mariadb", options={"log_bin": None})
    found = {one.check: one for one in examine_server(source_of(server))}
    assert (found["log_bin"].value, found["log_bin"].verdict) == ("OFF", Verdict.FAIL)
    assert "reading the log" not in found


@pytest.mark.mariadb
def test_an_encrypted_log_is_read_through_its_server(private_server: Callable[..., DatabaseServer]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder, "keys")
        keys.write_text(f"1;{'a1' * 32}\n")
        Path(folder).chmod(0o755)
        server = private_server(
            "mariadb",
            options={
                "plugin_load_add": "file_key_management",
                "file_key_management_filename": str(keys),
                "encrypt_binlog": "ON",
            },
        )
        execute(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
        found = {one.check: one for one in examine_server(source_of(server))}
        assert (found["encryption of the log"].verdict, found["encryption of the log"].value) == (Verdict.OK, "on")
        assert failed(list(found.values())) == []
        instance = instance_of(server, start="earliest")
        instance.start()
        try:
            execute(server, "INSERT INTO d.t VALUES (1), (2)")
            rows = changes_until(instance, "d.t", 2, Position("binlog.000001", 4))
            assert [row["id"] for row in rows] == [1, 2]
        finally:
            instance.stop()


def starts(server: DatabaseServer, text: str) -> Finding:
    settings = InstanceSettings(source=source_of(server), start=text)
    return examine_instances([settings])[f"{server.host}:{server.port}"][-1]


def test_a_start_that_the_log_does_not_have(server: DatabaseServer) -> None:
    is_mariadb = "MariaDB" in server.version
    unknown = "77-1-4711" if is_mariadb else "00000000-0000-11f1-8000-000000000000:1-9"
    for text, verdict, why in (
        ("earliest", Verdict.OK, ""),
        ("-1h", Verdict.OK, ""),
        (unknown, Verdict.FAIL, f"never had {unknown}: it has "),
        ("binlog.999999:4", Verdict.FAIL, "is ahead of the log"),
        ("yesterday", Verdict.FAIL, "is not a position in a log: write a position"),
    ):
        found = starts(server, text)
        assert found.check == f"start at {text}"
        assert found.verdict is verdict, text
        assert why in found.remedy


def run(server: DatabaseServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from penstock.cli import main; main()", "check", *arguments]
    environment = {**os.environ, "PENSTOCK_PASSWORD": server.password}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_as_a_command(mysql9: DatabaseServer, mysql57: DatabaseServer, tmp_path: Path) -> None:
    done = run(mysql9, "--port", str(mysql9.port))
    assert (done.returncode, done.stderr) == (0, "")
    assert "  ok   binlog_format         ROW\n" in done.stdout
    config = tmp_path / "penstock.yml"
    config.write_text(
        json.dumps(
            {
                "instances": [
                    {"destination": one.name.replace(" ", "_"), "source": {"port": one.port, "password": one.password}}
                    for one in (mysql9, mysql57)
                ]
            }
        )
    )
    done = run(mysql9, str(config), "--output", "json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert set(found) == {f"127.0.0.1:{one.port}" for one in (mysql9, mysql57)}
    assert mysql9.password not in done.stdout
