"""Behind the address of a source another server may answer than the one whose log is captured: its rows are refused."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from pydantic import SecretStr

from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.errors import NotRunningError
from penstock.instance import Instance
from penstock.model import Position, TableName
from penstock.snapshot.chunks import Chunk
from penstock.testing import DatabaseServer, poll_until
from tests.support.capture import end_of, execute, instance_of, source_of
from tests.support.stalling_proxy import StallingProxy

NewDatabase = Callable[[Any], str]
_USER, _PASSWORD = "switched", "secret-of-a-test"


@contextmanager
def _captured_through_proxy(server: DatabaseServer) -> Iterator[tuple[Instance, StallingProxy]]:
    with StallingProxy(server.port) as proxy:
        source = source_of(server).model_copy(
            update={"port": proxy.port, "user": _USER, "password": SecretStr(_PASSWORD), "tls": "disabled"}
        )
        instance = instance_of(server, source=source)
        instance.start()
        try:
            yield instance, proxy
        finally:
            instance.stop()


def _read(instance: Instance, name: TableName, position: Position) -> list[dict[str, Any]]:
    fields = arrow_fields_of_table(instance.describe_tables([name])[0])
    batches = instance.snapshots.read(name, Chunk(None, None), position, fields)
    return pa.Table.from_batches(batches, fields).to_pylist()


def _write_files(server: DatabaseServer, beyond: DatabaseServer, count: int) -> None:
    """Let the log of a server have a file whose number is so much higher than that of another server's log."""
    while end_of(server).file_number < end_of(beyond).file_number + count:
        execute(server, "FLUSH BINARY LOGS")


@pytest.mark.parametrize(
    ("flavour", "other", "options", "ahead", "words"),
    [
        ("mysql80", "mysql57", None, 0, "its uuid is"),
        ("mariadb", "mariadb", {"server_id": 12}, 0, "was written by server 12"),
        ("mariadb", "mariadb11", None, 1, "is captured up to"),
    ],
    ids=["uuid", "server id", "log that is behind"],
)
def test_rows_of_another_server_than_the_captured_one_are_refused(
    request: pytest.FixtureRequest,
    database: NewDatabase,
    private_server: Callable[..., Any],
    flavour: str,
    other: str,
    options: dict[str, Any] | None,
    ahead: int,
    words: str,
) -> None:
    first: DatabaseServer = request.getfixturevalue(flavour)
    second: DatabaseServer = (
        request.getfixturevalue(other) if options is None else private_server(other, options=options)
    )
    name = TableName(database(first), "t")
    execute(second, f"CREATE DATABASE {name.schema}")
    for server, text in ((first, "of the source"), (second, "of another server")):
        execute(
            server,
            f"CREATE USER IF NOT EXISTS '{_USER}'@'%' IDENTIFIED BY '{_PASSWORD}'",
            f"GRANT ALL ON *.* TO '{_USER}'@'%'",
            f"CREATE TABLE {name} (id INT PRIMARY KEY, a VARCHAR(40))",
            f"INSERT INTO {name} VALUES (1, '{text}')",
        )
    if ahead:
        _write_files(first, second, ahead)
    elif options is not None:  # the same file of both, and the end of the other one is not behind
        _write_files(second, first, 0)
    try:
        _check_switches(first, second, name, words)
    finally:
        execute(second, f"DROP DATABASE {name.schema}", f"DROP USER '{_USER}'@'%'")
        execute(first, f"DROP USER '{_USER}'@'%'")


def _check_switches(first: DatabaseServer, second: DatabaseServer, name: TableName, words: str) -> None:
    with _captured_through_proxy(first) as (instance, proxy):
        end = end_of(first)
        assert poll_until(lambda: instance.store.latest >= end, 30)
        position = instance.store.latest
        wanted = [{"id": 1, "a": "of the source"}]
        assert _read(instance, name, position) == wanted
        proxy.switch_to(second.port)
        with pytest.raises(NotRunningError, match=words):
            _read(instance, name, position)
        proxy.switch_to(first.port)
        assert _read(instance, name, position) == wanted
