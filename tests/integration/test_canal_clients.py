"""canal's own clients at our port: the Java client 1.1.8 and canal-python."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.canal import scramble
from penstock.server.canal.session import CanalAccess
from penstock.testing import DatabaseServer
from tests.services.canal_client import JAVA_CLIENT, PYTHON_CLIENT, Driver
from tests.support.canal_port import connect, listening, values
from tests.support.capture import execute, poll

SOURCES = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")
pytestmark = [pytest.mark.canal_java, pytest.mark.canal_python]


@pytest.fixture
def other_java() -> Iterator[Driver]:
    with Driver(JAVA_CLIENT.quick_command()) as driver:
        yield driver


@pytest.fixture
def python() -> Iterator[Driver]:
    with Driver(PYTHON_CLIENT.command()) as driver:
        yield driver


@pytest.fixture
def schema(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = database(mariadb)
    execute(mariadb, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v VARCHAR(200))")
    return name


def got(driver: Driver, rows: int, size: int = 1000, *, acks: bool = True) -> list[Any]:
    """Messages until there are so many rows."""
    entries = list[Any]()

    def is_enough() -> bool:
        message = driver.ask("getWithoutAck", size)
        if message["id"] > 0:
            entries.append(message)
            if acks:
                driver.ask("ack", message["id"])
        return sum(len(values(entry)) for entry in entries) >= rows

    assert poll(is_enough, 60)
    return entries


def test_it_gets_acks_and_rolls_back(java: Driver, mariadb: DatabaseServer, schema: str) -> None:
    with listening(mariadb) as port:
        connect(java, port.port, f"{schema}\\..*")
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'a'), (2, NULL)")
        (first,) = got(java, 2, acks=False)
        assert [entry["entryType"] for entry in first["entries"]] == ["TRANSACTIONBEGIN", "ROWDATA", "TRANSACTIONEND"]
        header = first["entries"][1]
        assert (header["version"], header["encoding"], header["source"]) == (1, "UTF-8", "MYSQL")
        assert (header["schema"], header["table"], header["eventType"]) == (schema, "t", "INSERT")
        java.ask("rollback", first["id"])
        (again,) = got(java, 2)
        assert values(again) == values(first) == [{"id": "1", "v": "a"}, {"id": "2", "v": None}]
        assert java.ask("getWithoutAck", 100)["id"] == -1
        assert java.ask("getWithoutAck", 100, 200)["id"] == -1
        execute(mariadb, f"DELETE FROM {schema}.t")
        assert poll(lambda: values(java.ask("get", 100)) == [{"id": "1", "v": "a"}, {"id": "2", "v": None}])
        java.ask("unsubscribe")
        with pytest.raises(RuntimeError, match="subscribe"):
            java.ask("getWithoutAck", 1)


def test_it_comes_back_to_what_it_has_not_acked(java: Driver, mariadb: DatabaseServer, schema: str) -> None:
    with listening(mariadb) as port:
        connect(java, port.port, f"{schema}\\..*")
        for i in range(10):
            execute(mariadb, f"INSERT INTO {schema}.t VALUES ({i}, 'x')")
        acked = [row["id"] for message in got(java, 5, 1) for row in values(message)]
        assert poll(lambda: java.ask("getWithoutAck", 1)["id"] > 0), "nothing is left that is not acked"
        java.ask("disconnect")
        java.ask("connect")
        java.ask("subscribe", f"{schema}\\..*")
        rest = [row["id"] for message in got(java, 10 - len(acked), 1) for row in values(message)]
        assert acked + rest == [str(i) for i in range(10)]


def test_two_clients_at_once(java: Driver, python: Driver, mariadb: DatabaseServer, schema: str) -> None:
    with listening(mariadb) as port:
        connect(java, port.port, f"{schema}\\..*")
        python.ask("connect", "127.0.0.1", port.port)
        python.ask("subscribe", "default", 1002, f"{schema}\\..*")
        for i in range(20):
            execute(mariadb, f"INSERT INTO {schema}.t VALUES ({i}, REPEAT('x', {i}))")
        expected = [{"id": str(i), "v": "x" * i} for i in range(20)]
        for driver in (java, python):
            assert [row for message in got(driver, 20, 2) for row in values(message)] == expected


def test_a_password_is_asked_for(java: Driver, other_java: Driver, mariadb: DatabaseServer, schema: str) -> None:
    with listening(mariadb, CanalAccess("canal", scramble.hash_for_storage("secret"))) as port:
        connect(java, port.port, f"{schema}\\..*", "canal", "secret")
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'a')")
        got(java, 1)
        for password in ("wrong", "-"):
            other_java.ask("single", "127.0.0.1", port.port, "default", "canal", password)
            with pytest.raises(RuntimeError, match="auth failed"):
                other_java.ask("connect")


def test_a_transaction_is_larger_than_a_batch(java: Driver, mariadb: DatabaseServer, schema: str) -> None:
    with listening(mariadb) as port:
        connect(java, port.port, f"{schema}\\..*")
        execute(mariadb, f"USE {schema}", "INSERT INTO t SELECT seq, REPEAT('y', 100) FROM seq_1_to_20000")
        messages = got(java, 20000, 64)
        assert len(messages) > 10
        rows = [row["id"] for message in messages for row in values(message)]
        assert rows == [str(i) for i in range(1, 20001)]
        kinds = [entry["entryType"] for message in messages for entry in message["entries"]]
        assert kinds[0] == "TRANSACTIONBEGIN"
        assert kinds[-1] == "TRANSACTIONEND"
        assert set(kinds[1:-1]) == {"ROWDATA"}


@pytest.mark.parametrize("kind", SOURCES)
def test_ddl_and_rows_of_every_server(
    java: Driver, request: pytest.FixtureRequest, database: Callable[[DatabaseServer], str], kind: str
) -> None:
    server: DatabaseServer = request.getfixturevalue(kind)
    schema = database(server)
    with listening(server) as port:
        connect(java, port.port, f"{schema}\\..*")
        execute(
            server,
            f"CREATE TABLE {schema}.d (id INT PRIMARY KEY, n DECIMAL(10,2))",
            f"INSERT INTO {schema}.d VALUES (1, 1.5)",
            f"ALTER TABLE {schema}.d ADD COLUMN u BIGINT UNSIGNED",
            f"UPDATE {schema}.d SET u = 18446744073709551615",
            f"DROP TABLE {schema}.d",
        )
        entries = list[Any]()

        def is_dropped() -> bool:
            message = java.ask("get", 100)
            entries.extend(entry for entry in message["entries"] if entry["entryType"] == "ROWDATA")
            return bool(entries) and entries[-1]["eventType"] == "ERASE"

        assert poll(is_dropped, 30)
        assert [entry["eventType"] for entry in entries] == ["CREATE", "INSERT", "ALTER", "UPDATE", "ERASE"]
        assert [entry["change"]["isDdl"] for entry in entries] == [True, False, True, False, True]
        assert all((entry["schema"], entry["table"]) == (schema, "d") for entry in entries)
        last = entries[3]["change"]["rows"][0]["after"][2]
        assert (last["name"], last["value"], last["sqlType"], last["updated"]) == ("u", "18446744073709551615", 3, True)
        assert last["mysqlType"].endswith("unsigned")
