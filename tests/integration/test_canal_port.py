"""canal's protocol on a real source, by our own client: calls in every order, filters, batches, errors."""

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from penstock.canal import packet, scramble
from penstock.canal.types import CanalEventType, EntryType
from penstock.client.canal import CanalConnector, CanalMessage
from penstock.config import FilterSettings
from penstock.errors import AuthenticationError, ProtocolError
from penstock.server.canal import CanalListener
from penstock.server.canal.session import CanalAccess
from penstock.testing import DatabaseServer
from tests.support.canal_port import SOURCES, changes, connected, listening
from tests.support.capture import execute, instance_of, poll


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


@pytest.fixture
def schema(server: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = database(server)
    execute(server, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v VARCHAR(20))")
    execute(server, f"CREATE TABLE {name}.other (id INT PRIMARY KEY)")
    return name


def rows_until(connector: CanalConnector, count: int) -> list[CanalMessage]:
    """Batches until they have so many rows; acked."""
    messages, rows, deadline = list[CanalMessage](), 0, time.monotonic() + 60
    while rows < count and time.monotonic() < deadline:
        message = connector.get_without_ack(100, timeout_s=1)
        if not message.is_empty:
            messages.append(message)
            rows += sum(len(values) for _, _, values in changes(message))
            connector.ack(message.id)
    assert rows == count
    return messages


def test_a_transaction_is_framed_and_has_its_rows(server: DatabaseServer, schema: str) -> None:
    with listening(server) as port, connected(port, f"{schema}\\..*") as connector:
        execute(
            server,
            "BEGIN",
            f"INSERT INTO {schema}.t VALUES (1, 'a'), (2, NULL)",
            f"UPDATE {schema}.t SET v = 'b' WHERE id = 1",
            f"DELETE FROM {schema}.t WHERE id = 2",
            "COMMIT",
        )
        message = connector.get_without_ack(100, timeout_s=10)
        kinds = [entry.entryType for entry in message.entries]
        assert kinds == [EntryType.TRANSACTIONBEGIN, *[EntryType.ROWDATA] * 3, EntryType.TRANSACTIONEND]
        assert changes(message) == [
            ("t", "INSERT", [{"id": "1", "v": "a"}, {"id": "2", "v": None}]),
            ("t", "UPDATE", [{"id": "1", "v": "b"}]),
            ("t", "DELETE", [{"id": "2", "v": None}]),
        ]
        _, update = list(message.row_changes())[1]
        row = update.rowDatas[0]
        assert [(column.name, column.updated, column.isKey) for column in row.afterColumns] == [
            ("id", False, True),
            ("v", True, False),
        ]
        header = message.entries[1].header
        assert (header.schemaName, header.tableName, header.serverenCode) == (schema, "t", "UTF-8")
        assert {pair.key: pair.value for pair in header.props} == {"rowsCount": "2"}
        connector.ack(message.id)
        assert connector.get_without_ack(100).is_empty


def test_each_client_has_its_own_cursor_and_filter(server: DatabaseServer, schema: str) -> None:
    with (
        listening(server) as port,
        connected(port, f"{schema}\\.t", client_id=1) as narrow,
        connected(port, f"{schema}\\..*", client_id=2) as two,
    ):
        execute(server, f"INSERT INTO {schema}.t VALUES (1, 'a')", f"INSERT INTO {schema}.other VALUES (5)")
        execute(server, f"INSERT INTO {schema}.t VALUES (2, 'b')")
        mine = [change for message in rows_until(narrow, 2) for change in changes(message)]
        theirs = [change for message in rows_until(two, 3) for change in changes(message)]
        assert [table for table, _, _ in mine] == ["t", "t"]
        assert [table for table, _, _ in theirs] == ["t", "other", "t"]
        assert narrow.get_without_ack(100).is_empty


def test_what_is_not_acked_is_redelivered(server: DatabaseServer, schema: str) -> None:
    with listening(server) as port:
        with connected(port, f"{schema}\\..*") as connector:
            for i in range(3):
                execute(server, f"INSERT INTO {schema}.t VALUES ({i}, 'x')")
            assert poll(lambda: len(connector.get_without_ack(1000)) > 0 or None)
            connector.rollback()
            first = connector.get_without_ack(1000, timeout_s=5)
            assert [values[0]["id"] for _, _, values in changes(first)][:1] == ["0"]
        with connected(port, f"{schema}\\..*") as connector:
            rows_until(connector, 3)
        with connected(port, f"{schema}\\..*") as connector:
            assert connector.get_without_ack(1000).is_empty


def test_batches_are_acked_in_their_order(server: DatabaseServer, schema: str) -> None:
    with listening(server, canal={"unit": "items"}) as port, connected(port, f"{schema}\\..*") as connector:
        for i in range(4):
            execute(server, f"INSERT INTO {schema}.t VALUES ({i}, 'x')")
        first, two = (connector.get_without_ack(3, timeout_s=10) for _ in range(2))
        assert two.id > first.id
        connector.ack(two.id)
        with pytest.raises(ProtocolError, match="400"):
            connector.get_without_ack(3)  # the answer to the ack before
        connector.connect()
        again = rows_until(connector, 4)
        assert [values[0]["id"] for message in again for _, _, values in changes(message)] == ["0", "1", "2", "3"]


def test_what_is_prepared_is_rolled_back_too(mariadb: DatabaseServer, database: Any) -> None:
    """While a client is busy with a large batch, the next one is made ready for it."""
    schema = database(mariadb)
    execute(mariadb, f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(200))", f"USE {schema}")
    with (
        listening(mariadb) as port,
        connected(port, f"{schema}\\..*") as connector,
        connected(port, f"{schema}\\..*", client_id=2) as other,
    ):
        execute(
            mariadb,
            f"USE {schema}",
            *[f"INSERT INTO t SELECT seq + {500 * i}, REPEAT('x', 100) FROM seq_1_to_500" for i in range(20)],
        )
        rows_until(other, 10_000)  # all is in the store: a batch cannot be smaller for lack of rows
        assert poll(lambda: len(connector.get_without_ack(20, timeout_s=5)) > 0)
        connector.rollback()
        first = connector.get_without_ack(20, timeout_s=5)
        second = connector.get_without_ack(20, timeout_s=5)
        connector.ack(first.id)
        connector.rollback()
        again = connector.get_without_ack(20, timeout_s=5)
        assert changes(again) == changes(second)
        connector.rollback()
        seen = [int(str(row["id"])) for _, _, rows in changes(first) for row in rows]
        while len(seen) < 10_000:
            message = connector.get_without_ack(64, timeout_s=5)
            seen += [int(str(row["id"])) for _, _, rows in changes(message) for row in rows]
            connector.ack(message.id)
        assert seen == list(range(1, 10_001))


def test_ddl_is_an_entry_and_passes_the_filter_by_its_table(server: DatabaseServer, schema: str) -> None:
    with listening(server) as port, connected(port, f"{schema}\\.t") as connector:
        execute(
            server,
            f"ALTER TABLE {schema}.other ADD c INT",
            f"ALTER TABLE {schema}.t ADD c INT",
            f"CREATE INDEX i ON {schema}.t (v)",
            f"RENAME TABLE {schema}.t TO {schema}.u, {schema}.u TO {schema}.t",
            f"TRUNCATE TABLE {schema}.t",
            f"DROP TABLE {schema}.t",
        )
        statements = list[tuple[int, str, str]]()
        deadline = time.monotonic() + 20
        while len(statements) < 5 and time.monotonic() < deadline:
            message = connector.get_without_ack(100, timeout_s=1)
            for header, change in message.row_changes():
                assert change.isDdl
                assert change.eventType == header.eventType
                statements.append((change.eventType, header.tableName, change.sql))
            connector.ack(message.id)
        kinds = [CanalEventType(kind).name for kind, _, _ in statements]
        assert kinds == ["ALTER", "CINDEX", "RENAME", "TRUNCATE", "ERASE"]
        assert all("other" not in sql for _, _, sql in statements)


def test_a_get_that_waits_holds_up_nobody(server: DatabaseServer, schema: str) -> None:
    with listening(server) as port, connected(port, f"{schema}\\..*") as waiting, connected(port, client_id=7) as other:
        thread = threading.Thread(target=waiting.get_without_ack, args=(1000, 20))
        thread.start()
        begin = time.monotonic()
        for _ in range(20):
            other.get_without_ack(10)
            other.rollback()
        assert time.monotonic() - begin < 18
        execute(server, f"INSERT INTO {schema}.t VALUES (1, 'x')")
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.parametrize("waits_for", ["entries", "batch"])
def test_a_get_with_a_timeout_waits_for_entries_or_for_a_batch(
    mariadb: DatabaseServer, database: Any, waits_for: str
) -> None:
    schema = database(mariadb)
    execute(mariadb, f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
    with listening(mariadb, canal={"waits_for": waits_for}) as port, connected(port, f"{schema}\\..*") as connector:
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (1)")
        begin = time.monotonic()
        message = CanalMessage(*_plain_get(connector, 1000, 6000))
        took = time.monotonic() - begin
        assert [values for _, _, values in changes(message)] == [[{"id": "1"}]]
        assert took > 5.5 if waits_for == "batch" else took < 5.5


def _plain_get(connector: Any, size: int, timeout_ms: int) -> tuple[int, tuple[bytes, ...]]:
    """As canal's own clients ask."""
    from penstock.canal import messages

    names = {"destination": "default", "client_id": "1001"}
    connector._send_packet(packet.PacketType.GET, messages.Get(fetch_size=size, timeout=timeout_ms, unit=2, **names))
    answer = messages.Messages.FromString(connector._receive_packet(30).body)
    return answer.batch_id, tuple(answer.messages)


def test_a_password_is_proved(mariadb: DatabaseServer) -> None:
    with listening(mariadb, CanalAccess("canal", scramble.hash_for_storage("secret"))) as port:
        with connected(port, user="canal", password="secret") as connector:
            assert connector.get_without_ack(1) is not None
        for user, password in (("canal", "wrong"), ("canal", ""), ("other", "secret")):
            with pytest.raises(AuthenticationError, match="wrong user or password"):
                CanalConnector("127.0.0.1", port.port, "default", user=user, password=password).connect()


def test_errors_are_one_line_with_canals_code(mariadb: DatabaseServer) -> None:
    with listening(mariadb) as port:
        with connected(port, None) as connector, pytest.raises(ProtocolError, match=r"has not subscribed.*\(400\)"):
            connector.get_without_ack(1)
        with connected(port) as connector:
            connector._send_packet(packet.PacketType.HEARTBEAT, _Raw(b""))
            with pytest.raises(ProtocolError, match="HEARTBEAT is NOT supported"):
                connector.get_without_ack(1)
        with connected(port) as connector:
            connector._send_packet(packet.PacketType.CLIENTACK, _Raw(b"\x0a\x07default\x12\x041001"))
            with pytest.raises(ProtocolError, match=r"\(402\)"):
                connector.get_without_ack(1)
        with connected(port) as connector:
            connector._send_packet(packet.PacketType.GET, _Raw(b"\x18\x01"))
            with pytest.raises(ProtocolError, match=r"\(401\)"):
                connector._expect_ok()
        with connected(port, None) as connector:
            connector._require_connection.sendall(b"\x7f\xff\xff\xff")
            with pytest.raises(ProtocolError, match="larger than"):
                connector._expect_ok()


class _Raw:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        return self._raw


def test_connections_are_counted_and_end_with_the_port(mariadb: DatabaseServer) -> None:
    with listening(mariadb) as port:
        peers = [socket.create_connection(("127.0.0.1", port.port)) for _ in range(20)]
        assert poll(lambda: port.open_connections == 20)
        for peer in peers[:10]:
            peer.close()
        assert poll(lambda: port.open_connections == 10)
    for peer in peers[10:]:
        with peer:
            peer.settimeout(5)
            while peer.recv(100):
                pass


HIDDEN = {"columns": [{"table": ".*\\.t", "drop": ["v"]}]}


def test_a_column_that_is_left_out_is_in_no_statement(
    mysql80: DatabaseServer, database: Callable[[DatabaseServer], str]
) -> None:
    """The log may have the statement behind the rows, with the values of all columns."""
    name = database(mysql80)
    execute(mysql80, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v VARCHAR(20))")
    for number, (settings, is_there) in enumerate((({}, True), ({"filter": HIDDEN}, False))):
        with listening(mysql80, **settings) as port, connected(port, f"{name}\\..*") as connector:
            # Another row each time: the same one again would be no change, and would not be in the log.
            insert = f"INSERT INTO {name}.t VALUES ({number}, 'secret')"
            execute(mysql80, "SET SESSION binlog_rows_query_log_events = ON", insert)
            messages = rows_until(connector, 1)
            assert any(b"secret" in raw for message in messages for raw in message.raw) is is_there


def test_a_filter_that_is_reloaded_counts_for_clients_that_are_connected(
    mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]
) -> None:
    name = database(mariadb)
    execute(mariadb, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v VARCHAR(20))")
    instance = instance_of(mariadb)
    instance.start()
    port = CanalListener("127.0.0.1", 0, lambda _: instance)
    port.start()
    try:
        with connected(port, f"{name}\\..*") as connector:
            execute(mariadb, f"INSERT INTO {name}.t VALUES (1, 'seen')")
            assert changes(rows_until(connector, 1)[0]) == [("t", "INSERT", [{"id": "1", "v": "seen"}])]
            instance.reload_filter(FilterSettings.model_validate(HIDDEN))
            execute(mariadb, f"INSERT INTO {name}.t VALUES (2, 'secret')")
            assert changes(rows_until(connector, 1)[0]) == [("t", "INSERT", [{"id": "2"}])]
    finally:
        port.stop()
        instance.stop()
