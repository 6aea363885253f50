"""Every way in which a server may want to know who reads its log."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from penstock.source import BinlogStream, connect, current_position
from penstock.testing import DatabaseServer
from tests.support.capture import execute, source_of

# MySQL 5.7's sha256_password needs TLS or a key pair, and the program that the tests run has neither.
WAYS = [
    ("mariadb", "VIA mysql_native_password USING PASSWORD('let-me-in')", "mysql_native_password"),
    ("mariadb", "VIA ed25519 USING PASSWORD('let-me-in')", "ed25519"),
    ("mariadb11", "VIA ed25519 USING PASSWORD('let-me-in')", "ed25519"),
    ("mysql57", "WITH mysql_native_password BY 'let-me-in'", "mysql_native_password"),
    ("mysql80", "WITH mysql_native_password BY 'let-me-in'", "mysql_native_password"),
    ("mysql80", "WITH sha256_password BY 'let-me-in'", "sha256_password"),
    ("mysql80", "WITH caching_sha2_password BY 'let-me-in'", "caching_sha2_password"),
    ("mysql9", "WITH caching_sha2_password BY 'let-me-in'", "caching_sha2_password"),
]
pytestmark = [getattr(pytest.mark, kind) for kind in ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")]


@pytest.mark.parametrize("tls", ["disabled", "preferred"])
@pytest.mark.parametrize(
    ("kind", "identification", "plugin"), WAYS, ids=[f"{kind}-{plugin}" for kind, _, plugin in WAYS]
)
def test_a_user_comes_in_and_reads_the_log(
    request: pytest.FixtureRequest,
    database: Callable[[DatabaseServer], str],
    kind: str,
    identification: str,
    plugin: str,
    tls: str,
) -> None:
    server: DatabaseServer = request.getfixturevalue(kind)
    if plugin == "ed25519":
        execute(server, "INSTALL PLUGIN IF NOT EXISTS ed25519 SONAME 'auth_ed25519'")
    user: dict[str, Any] = {"user": "reader", "password": SecretStr("let-me-in"), "tls": tls}
    name = database(server)
    execute(
        server,
        "DROP USER IF EXISTS reader",
        f"CREATE USER reader IDENTIFIED {identification}",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO reader",
        "FLUSH PRIVILEGES",  # MySQL forgets whom it knows: the password goes the long way
    )
    source = source_of(server).model_copy(update=user)
    for _ in range(2):
        with connect(source) as connection:
            start = current_position(connection, source)
            with connection.cursor() as cursor:
                cursor.execute("SELECT CURRENT_USER()")
                assert cursor.fetchone() == ("reader@%",)
        execute(server, f"CREATE TABLE {name}.t (id INT)", f"DROP TABLE {name}.t")
        with BinlogStream(source, start) as stream:
            assert next(block for block in stream if block is not None).start >= start
    execute(server, "DROP USER reader")
