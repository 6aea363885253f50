"""A server that replicates another one, for tests of failover."""

from collections.abc import Callable
from typing import Any

import pymysql

from penstock.testing import DatabaseServer
from tests.support.capture import execute, poll

_REPLICA = ("SLAVE", "REPLICA")
_KINDS: dict[str, dict[str, Any]] = {
    "mariadb": {"log_slave_updates": "ON"},
    "mariadb11": {"log_slave_updates": "ON"},
    "mysql57": {"log_slave_updates": "ON"},
    "mysql80": {},
    "mysql9": {},
}


def pair(
    start: Callable[..., Any], kind: str, options: dict[str, Any] | None = None, *, by_gtids: bool = True
) -> tuple[DatabaseServer, DatabaseServer]:
    """A primary and its replica, both with a log; the replica's files have other numbers and other sizes."""
    first: DatabaseServer = start(kind, options=(options or {}) | {"server_id": 11} | _KINDS[kind])
    second: DatabaseServer = start(kind, options=(options or {}) | {"server_id": 12} | _KINDS[kind])
    execute(second, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    execute(
        first,
        "CREATE USER 'repl'@'%' IDENTIFIED BY 'secret-of-a-test'",
        "GRANT REPLICATION SLAVE ON *.* TO 'repl'@'%'",
    )
    replicate(first, second, kind, by_gtids=by_gtids)
    return first, second


def replicate(primary: DatabaseServer, replica: DatabaseServer, kind: str, *, by_gtids: bool) -> None:
    options = f"MASTER_HOST='{primary.host}', MASTER_PORT={primary.port}, MASTER_USER='repl'"
    options += ", MASTER_PASSWORD='secret-of-a-test', MASTER_CONNECT_RETRY=1"
    if kind.startswith("mariadb"):
        options += f", MASTER_USE_GTID={'slave_pos' if by_gtids else 'no'}"
    elif by_gtids:
        options += ", MASTER_AUTO_POSITION=1"
    if not by_gtids:
        file, offset = _first_position(primary, kind)
        options += f", MASTER_LOG_FILE='{file}', MASTER_LOG_POS={offset}"
    if kind == "mysql80":
        options += ", GET_MASTER_PUBLIC_KEY=1"
    if kind == "mysql9":
        options = options.replace("MASTER_", "SOURCE_") + ", GET_SOURCE_PUBLIC_KEY=1"
        execute(replica, f"CHANGE REPLICATION SOURCE TO {options}", "START REPLICA")
    else:
        execute(replica, f"CHANGE MASTER TO {options}", "START SLAVE")
    execute(primary, "CREATE DATABASE replicated")
    assert poll(lambda: has(replica, "SHOW DATABASES LIKE 'replicated'")), status(replica, kind)


def stop_applying(replica: DatabaseServer, kind: str) -> None:
    """What it still receives it does not make its own."""
    execute(replica, f"STOP {_REPLICA[kind == 'mysql9']} SQL_THREAD")


def start_applying(replica: DatabaseServer, kind: str) -> None:
    execute(replica, f"START {_REPLICA[kind == 'mysql9']} SQL_THREAD")


def status(replica: DatabaseServer, kind: str) -> Any:
    with replica.connect(cursorclass=pymysql.cursors.DictCursor) as connection, connection.cursor() as cursor:
        cursor.execute(f"SHOW {_REPLICA[kind == 'mysql9']} STATUS")
        return cursor.fetchone()


def has(server: DatabaseServer, query: str) -> bool:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return bool(cursor.fetchall())


def _first_position(primary: DatabaseServer, kind: str) -> tuple[str, int]:
    """Before the user for replication was made: the replica has it as well then."""
    with primary.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOG STATUS" if kind == "mysql9" else "SHOW MASTER STATUS")
        file, offset = cursor.fetchone()[:2]
        return str(file), int(offset)
