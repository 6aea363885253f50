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
    return [finding for finding in findings if finding.verdict is Verdict.FAIL]


def test_a_source_that_is_ready(server: DatabaseServer) -> None:
    findings = list(examine_server(source_of(server)))
    assert failed(findings) == []
    values = {finding.check: finding.value for finding in findings}
    assert values["reading the log"].startswith("binlog.000001:4 to binlog.")
    assert values["version"].startswith(server.version.split("-")[0])


def test_mysql57_lacks_the_names_of_columns(mysql57: DatabaseServer) -> None:
    findings = {finding.check: finding for finding in examine_server(source_of(mysql57))}
    assert failed(list(findings.values())) == []
    finding = findings["binlog_row_metadata"]
    assert (finding.verdict, finding.value) == (Verdict.WARN, "NOT THERE")
    assert "columns get their names from the statements that made the tables" in finding.remedy


def test_a_wrong_password(server: DatabaseServer) -> None:
    (finding,) = examine_server(source_of(server).model_copy(update={"password": SecretStr("wrong")}))
    assert (finding.check, finding.verdict) == ("login", Verdict.FAIL)
    assert "check user and password" in finding.remedy


def test_nobody_there(server: DatabaseServer) -> None:
    (finding,) = examine_server(source_of(server).model_copy(update={"port": 1}))
    assert "is it running, and are host and port right?" in finding.remedy


def test_missing_grants(server: DatabaseServer) -> None:
    execute(server, "DROP USER IF EXISTS poor", "CREATE USER poor IDENTIFIED BY 'poor-password'")
    poor = source_of(server).model_copy(update={"user": "poor", "password": SecretStr("poor-password")})
    findings = {finding.check: finding for finding in examine_server(poor)}
    assert findings["reading the log"].verdict is Verdict.FAIL
    assert "GRANT REPLICATION SLAVE" in findings["reading the log"].remedy
    assert findings["SELECT"].verdict is Verdict.WARN
    execute(server, "GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO poor")
    assert failed(list(examine_server(poor))) == []
    execute(server, "XA START 'check'", "XA END 'check'", "XA COMMIT 'check' ONE PHASE")
    findings = {finding.check: finding for finding in examine_server(poor)}
    if "MariaDB" in server.version:
        assert findings["PROCESS"].verdict is Verdict.WARN
        assert "GRANT PROCESS ON *.* TO 'poor'@'%'" in findings["PROCESS"].remedy
        execute(server, "GRANT PROCESS ON *.* TO poor")
        findings = {finding.check: finding for finding in examine_server(poor)}
        assert findings["PROCESS"].verdict is Verdict.OK
    else:
        assert "PROCESS" not in findings
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
    assert {finding.check: finding.value for finding in failed(findings)} == {
        "binlog_format": "STATEMENT",
        "binlog_row_image": "MINIMAL",
    }
    warned = {finding.check: finding.value for finding in findings if finding.verdict is Verdict.WARN}
    assert (warned["binlog_checksum"], warned["retention of the log"]) == ("NONE", "1 hours")
    assert warned["binlog_row_metadata"] == "MINIMAL"
    assert all("SET GLOBAL" in finding.remedy for finding in failed(findings))


@pytest.mark.mariadb
def test_without_a_log(private_server: Callable[..., DatabaseServer]) -> None:
    server = private_server("mariadb", options={"log_bin": None})
    findings = {finding.check: finding for finding in examine_server(source_of(server))}
    assert (findings["log_bin"].value, findings["log_bin"].verdict) == ("OFF", Verdict.FAIL)
    assert "reading the log" not in findings


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
        findings = {finding.check: finding for finding in examine_server(source_of(server))}
        assert (findings["encryption of the log"].verdict, findings["encryption of the log"].value) == (
            Verdict.OK,
            "on",
        )
        assert failed(list(findings.values())) == []
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
        finding = starts(server, text)
        assert finding.check == f"start at {text}"
        assert finding.verdict is verdict, text
        assert why in finding.remedy


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
                    {
                        "destination": server.name.replace(" ", "_"),
                        "source": {"port": server.port, "password": server.password},
                    }
                    for server in (mysql9, mysql57)
                ]
            }
        )
    )
    done = run(mysql9, str(config), "--output", "json")
    assert done.returncode == 0
    reports = json.loads(done.stdout)
    assert set(reports) == {f"127.0.0.1:{server.port}" for server in (mysql9, mysql57)}
    assert mysql9.password not in done.stdout
