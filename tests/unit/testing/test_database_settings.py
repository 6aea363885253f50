"""Settings of private database servers as command lines."""

from pathlib import Path

import pytest

from penstock.testing import MariaDB, MariaDBInstallation
from penstock.testing.database import settings_to_arguments

NOWHERE = MariaDBInstallation(("mariadbd",), Path("share"), None)


def test_true_is_a_bare_option_and_none_is_no_option() -> None:
    settings = {"binlog_format": "ROW", "server_id": 7, "skip_log_bin": True, "socket": None}

    assert settings_to_arguments(settings) == ["--binlog_format=ROW", "--server_id=7", "--skip_log_bin"]


def test_options_of_the_caller_win(tmp_path: Path) -> None:
    server = MariaDB(NOWHERE, tmp_path, options={"binlog_format": "STATEMENT", "log_bin": None})

    settings = server._merge_settings()

    assert settings["binlog_format"] == "STATEMENT"
    assert settings["log_bin"] is None
    assert settings["binlog_row_metadata"] == "FULL"


def test_the_socket_is_short_however_long_the_folder_is(tmp_path: Path) -> None:
    server = MariaDB(NOWHERE, tmp_path / ("x" * 120))

    assert not Path(str(server._merge_settings()["socket"])).is_absolute()


def test_passwords_differ_and_are_not_on_the_command_line(tmp_path: Path) -> None:
    first, two = MariaDB(NOWHERE, tmp_path), MariaDB(NOWHERE, tmp_path)

    assert first.password != two.password
    assert not any(
        first.password in argument for argument in [*first.command(), *settings_to_arguments(first._merge_settings())]
    )


@pytest.mark.parametrize(
    ("answer", "is_usable"),
    [
        ("mysqld  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)", True),
        ("mariadbd  Ver 11.4.5-MariaDB for Linux on x86_64 (MariaDB Server)", True),
        ("mysqld  Ver 10.5.0-MariaDB for Linux on x86_64", True),
        ("mysqld  Ver 10.4.33-MariaDB for Linux on x86_64", False),
        ("mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)", False),
        ("", False),
    ],
)
def test_the_machines_own_server_is_used_when_it_is_a_recent_mariadb(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, is_usable: bool
) -> None:
    program = tmp_path / "bin/mariadbd"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{answer}'\n")
    program.chmod(0o755)
    share = tmp_path / "share/mariadb"
    share.mkdir(parents=True)
    (share / "mariadb_system_tables.sql").touch()
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")

    installation = MariaDBInstallation.find(tmp_path / "cache")

    if is_usable:
        assert installation == MariaDBInstallation((str(program),), share, None)
    else:
        assert installation is None or installation.program != (str(program),)
