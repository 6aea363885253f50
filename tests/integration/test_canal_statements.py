"""Statements of real sources at canal's port, and over Flight: who gets them, with which names, without passwords."""

from collections.abc import Callable

import pytest

from penstock.config.filter_settings import KINDS
from penstock.testing import DatabaseServer
from tests.support.canal_port import SOURCES, connected, listening, seen
from tests.support.capture import execute

SECRET = "Geheim-5711"


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


@pytest.fixture
def schema(server: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = database(server)
    execute(server, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v VARCHAR(20))")
    execute(server, f"CREATE TABLE {name}.other (id INT PRIMARY KEY)", f"CREATE TABLE {name}.last (id INT PRIMARY KEY)")
    return name


def accounts(server: DatabaseServer, schema: str) -> list[str]:
    user, password = f"'{schema}'@'10.%'", f"'{SECRET}x'"
    return [
        f"CREATE USER {user} IDENTIFIED BY '{SECRET}'",
        f"GRANT SELECT ON {schema}.* TO {user}",
        f"SET PASSWORD FOR {user} = " + (f"PASSWORD({password})" if "MariaDB" in server.version else password),
        f"REVOKE SELECT ON {schema}.* FROM {user}",
        f"RENAME USER {user} TO '{schema}'@'11.%'",
        f"DROP USER '{schema}'@'11.%'",
    ]


def test_statements_about_accounts_are_for_nobody(server: DatabaseServer, schema: str) -> None:
    with (
        listening(server) as port,
        connected(port, r"nomatch\..*,.*\.last", client_id=1) as narrow,
        connected(port, "", client_id=2) as wide,
    ):
        execute(server, *accounts(server, schema), f"INSERT INTO {schema}.last VALUES (1)")
        for client in (narrow, wide):
            statements, raw = seen(client, "last")
            assert statements == []
            assert b"USER" not in raw
            assert b"GRANT" not in raw


def test_who_asks_for_accounts_gets_them_without_passwords(server: DatabaseServer, schema: str) -> None:
    with (
        listening(server, filter={"kinds": list(KINDS)}) as port,
        connected(port, rf"{schema}\..*", client_id=1) as narrow,
        connected(port, r".*\..*", client_id=2) as wide,
    ):
        execute(server, *accounts(server, schema), f"INSERT INTO {schema}.last VALUES (1)")
        assert seen(narrow, "last")[0] == []
        statements, raw = seen(wide, "last")
        assert SECRET.encode() not in raw
        words = [text.split()[0].upper() for _, _, text in statements]
        assert words == ["CREATE", "GRANT", words[2], "REVOKE", "RENAME", "DROP"]
        assert "***" in statements[0][2]
        assert "***" in statements[2][2]
        assert {kind for kind, _, _ in statements} == {"QUERY"}
        # Servers write hashes of 41 characters and more.
        assert max(len(word) for _, _, text in statements for word in text.split()) < 40


def test_statements_of_a_table_have_its_names_and_pass_its_filter(server: DatabaseServer, schema: str) -> None:
    with (
        listening(server) as port,
        connected(port, rf"nomatch\..*,{schema}\.last", client_id=1) as nobody,
        connected(port, rf"{schema}\.(t|last)", client_id=2) as narrow,
        connected(port, rf"{schema}\..*", client_id=3) as all_of_it,
    ):
        execute(
            server,
            "SET SESSION binlog_format = STATEMENT",
            f"USE {schema}",
            "INSERT INTO t VALUES (1, 'a')",
            "INSERT INTO other VALUES (1)",
            f"UPDATE {schema}.t SET v = 'b' WHERE id = 1",
            "DELETE FROM other WHERE id = 1",
            "DELETE FROM t",
            "SET SESSION binlog_format = ROW",
            "INSERT INTO last VALUES (1)",
        )
        assert seen(nobody, "last")[0] == []
        expected = [("INSERT", "t"), ("INSERT", "other"), ("UPDATE", "t"), ("DELETE", "other"), ("DELETE", "t")]
        for client, tables in ((narrow, {"t"}), (all_of_it, {"t", "other"})):
            statements = [(kind, name) for kind, name, _ in seen(client, "last")[0]]
            assert statements == [(kind, f"{schema}.{name}") for kind, name in expected if name in tables]


def test_an_instance_does_not_keep_statements_of_tables_that_it_drops(server: DatabaseServer, schema: str) -> None:
    rules = {"allow": [rf"{schema}\.(t|last)"]}
    with listening(server, filter=rules) as port, connected(port, "") as client:
        execute(
            server,
            "SET SESSION binlog_format = STATEMENT",
            f"INSERT INTO {schema}.other VALUES (1)",
            f"INSERT INTO {schema}.t VALUES (1, 'a')",
            "SET SESSION binlog_format = ROW",
            f"TRUNCATE {schema}.other",
            f"ANALYZE TABLE {schema}.other",
            f"INSERT INTO {schema}.last VALUES (1)",
        )
        assert [(kind, name) for kind, name, _ in seen(client, "last")[0]] == [("INSERT", f"{schema}.t")]


def test_ddl_has_the_types_and_names_that_canal_gives_it(server: DatabaseServer, schema: str) -> None:
    with listening(server) as port, connected(port, rf"{schema}\..*") as client:
        statements: list[tuple[str, str, str]] = [
            ("ALTER TABLE t ADD INDEX i (v)", "CINDEX", "t"),
            ("ALTER TABLE t DROP INDEX i", "DINDEX", "t"),
            ("ALTER TABLE t ADD UNIQUE u (v), ADD w INT", "CINDEX", "t"),
            ("ALTER TABLE t ADD x INT", "ALTER", "t"),
            ("TRUNCATE t", "TRUNCATE", "t"),
            ("ALTER TABLE t RENAME TO t2", "RENAME", "t2"),
            ("RENAME TABLE t2 TO t3, other TO t2", "RENAME", "t3"),
            ("DROP TABLE t3", "ERASE", "t3"),
        ]
        views = ["CREATE VIEW w AS SELECT * FROM t2", "ALTER VIEW w AS SELECT 1 AS a", "DROP VIEW w"]
        execute(server, f"USE {schema}", *[text for text, _, _ in statements], *views, "INSERT INTO last VALUES (1)")
        received = [(kind, name) for kind, name, _ in seen(client, "last")[0]]
        assert received == [(kind, f"{schema}.{name}") for _, kind, name in statements]
