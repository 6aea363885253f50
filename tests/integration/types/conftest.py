"""One database with all test tables per server, made on first use and gone at the end."""

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.testing import DatabaseServer, MariaDB
from tests.integration.types.tables import tables_of
from tests.integration.types.workload import Recorder
from tests.services.mysql import MYSQL_9
from tests.support.capture import execute

RecorderOf = Callable[[str], Recorder]


@pytest.fixture(scope="session")
def recorder_of(request: pytest.FixtureRequest) -> Iterator[RecorderOf]:
    """The recorder of a server, by the server's name."""
    made: dict[str, tuple[DatabaseServer, Recorder]] = {}

    def recorder(name: str) -> Recorder:
        if name not in made:
            server: DatabaseServer = request.getfixturevalue(name)
            database = f"types_{secrets.token_hex(4)}"
            execute(server, f"CREATE DATABASE `{database}`")
            made[name] = server, Recorder(server, name, database, tables_of(name, _charsets(server)))
        return made[name][1]

    yield recorder
    for server, opened in made.values():
        opened.close()
        if server.pid is not None:
            execute(server, f"DROP DATABASE `{opened.database}`")


@pytest.fixture(scope="session")
def binlog_tool_of(request: pytest.FixtureRequest) -> Callable[[str], list[str]]:
    """How to run the program that prints a server's log. MySQL 9's reads those of 5.7 and 8.0, which have none here."""

    def command(name: str) -> list[str]:
        if name.startswith("mariadb"):
            server: MariaDB = request.getfixturevalue(name)
            return server.installation.tool_command("mariadb-binlog")
        return MYSQL_9.server(Path()).tool("mysqlbinlog")

    return command


def _charsets(server: DatabaseServer) -> list[str]:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT character_set_name FROM information_schema.character_sets")
        return sorted(name for (name,) in cursor.fetchall() if name != "binary")
