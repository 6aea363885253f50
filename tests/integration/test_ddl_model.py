"""Our model of tables against the servers' own: every case of `ddl_cases`, after every statement."""

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.binlog.events.file import LogFile
from penstock.binlog.events.statement import find_statements
from penstock.model import Position, TableName
from penstock.schema.catalogue import Catalogue
from penstock.schema.change import SchemaChange
from penstock.schema.dialect import ServerProfile, SqlMode, SqlSession
from penstock.schema.history import SchemaHistory
from penstock.schema.live_catalogue import read_catalogue
from penstock.testing import DatabaseServer
from tests.support.ddl_cases import altering, charsets, creating, keys, types
from tests.support.ddl_cases.topic import SERVERS, Topic
from tests.support.ddl_random import RandomDdl
from tests.support.ddl_server import FollowedServer, assert_same, quoted, shape_of
from tests.support.json_support import new_file

TOPICS = [topic for module in (types, charsets, creating, altering, keys) for topic in module.TOPICS]
CASES = [(release, topic) for release in SERVERS for topic in TOPICS if topic.statements(release)]
STEPS = int(os.environ.get("DDL_STEPS", "60"))
SEED = int(os.environ.get("DDL_SEED", "1"))

Follow = Callable[[DatabaseServer], FollowedServer]


@pytest.fixture
def follow() -> Iterator[Follow]:
    """A server that is followed from an empty database on, which is in use."""
    made: list[FollowedServer] = []

    def start(server: DatabaseServer) -> FollowedServer:
        name = f"ddl_{secrets.token_hex(4)}"
        made.append(FollowedServer(server, name))
        made[-1].run(f"CREATE DATABASE {name}")
        made[-1].cursor.execute(f"USE {name}")
        return made[-1]

    yield start
    for statement in made:
        statement.close()


def test_there_are_enough_cases() -> None:
    counts = {name: sum(len(topic.statements(name)) for topic in TOPICS) for name in SERVERS}
    assert all(count > 300 for count in counts.values()), counts


@pytest.mark.parametrize(("release", "topic"), CASES, ids=[f"{release}-{topic.name}" for release, topic in CASES])
def test_every_statement(release: str, topic: Topic, request: pytest.FixtureRequest, follow: Follow) -> None:
    """By the text that we send and by the text that the server logs, the tables are those of information_schema; and
    rows that are then written have their columns."""
    followed = follow(request.getfixturevalue(release))
    for statement in topic.statements(release):
        followed.run(statement.replace("{db}", followed.start))
    followed.compare_live()
    if followed.sent.table_names():
        assert followed.compare_rows()


@pytest.mark.parametrize("release", SERVERS)
def test_a_log_that_is_read_as_a_whole(release: str, request: pytest.FixtureRequest, follow: Follow) -> None:
    """By penstock's reader, from the log file alone."""
    server: DatabaseServer = request.getfixturevalue(release)
    file = new_file(server)
    followed = follow(server)
    for statement in creating.DROPS.statements(release) + keys.FOREIGN.statements(release):
        followed.cursor.execute(statement.replace("{db}", followed.start))
    version, case, collation = followed.row("SELECT VERSION(), @@lower_case_table_names, @@collation_server")
    catalogue = Catalogue(ServerProfile.from_version_text(version, case))
    for block in LogFile(file, verify=True):
        for logged in find_statements(block):
            session = SqlSession(SqlMode(logged.sql_mode or 0), collation_server=collation)
            catalogue = catalogue.apply(logged.text, logged.database, session).catalogue
    server_shapes = followed.shapes()
    assert catalogue.table_names() == sorted(server_shapes)
    for name, shape in server_shapes.items():
        assert_same(shape_of(catalogue, name), shape, f"{name}")
    followed.sent = followed.logged = catalogue


@pytest.mark.parametrize("release", SERVERS)
def test_a_history_that_begins_with_a_live_server(
    release: str, request: pytest.FixtureRequest, follow: Follow, tmp_path: Path
) -> None:
    """All tables of the server, system tables too; then the statements of its log, with a restart after each."""
    followed = follow(request.getfixturevalue(release))
    for statement in keys.KEYS.statements(release)[:6]:
        followed.cursor.execute(statement.replace("{db}", followed.start))
    file, offset = followed.log_end()

    def first() -> tuple[Position, Catalogue]:
        return Position(file, offset), read_catalogue(followed.cursor)

    SchemaHistory(tmp_path, first).close()
    for statement in keys.KEYS.statements(release)[6:14]:
        followed.cursor.execute(statement.replace("{db}", followed.start))
    for number, logged in enumerate(followed.log_since((file, offset)), start=1):
        session = SqlSession(SqlMode(logged.sql_mode or 0), thread=logged.thread, error=logged.error)
        with SchemaHistory(tmp_path, first, snapshot_every=3) as history:
            history.record(SchemaChange(Position(file, offset + number), logged.text, logged.database, session))
    with SchemaHistory(tmp_path, first) as history:
        assert history.catalogue_at(Position(file, offset)) != history.catalogue
        shapes = followed.shapes()
        assert len(shapes) > 3
        for name, shape in shapes.items():
            assert_same(shape_of(history.catalogue, name), shape, f"{name}")
        others = read_catalogue(followed.cursor)
        assert others.table_names() == history.catalogue.table_names()
        assert others.find(TableName("mysql", "user")) == history.catalogue.find(TableName("mysql", "user"))


@pytest.mark.parametrize("release", SERVERS)
def test_what_show_create_table_says(release: str, request: pytest.FixtureRequest, follow: Follow) -> None:
    """A catalogue can begin with it: the same tables come out."""
    followed = follow(request.getfixturevalue(release))
    for topic in (types.TEXTS, types.LABELS, keys.KEYS, altering.VERSIONED, charsets.COLUMNS):
        for statement in topic.statements(release):
            if statement.startswith(("CREATE TABLE", "SET")):
                followed.cursor.execute(statement.replace("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS "))
    followed.cursor.execute("SET sql_mode = DEFAULT")
    catalogue = Catalogue(followed.sent.server, followed.sent.databases)
    shapes = followed.shapes()
    assert len(shapes) > 25
    for name in shapes:
        text = followed.row(f"SHOW CREATE TABLE {quoted(name)}")[1]
        catalogue = catalogue.apply(text, name.schema).catalogue
    for name, shape in shapes.items():
        assert_same(shape_of(catalogue, name), shape, f"{name}")


@pytest.mark.parametrize("release", ["mysql57", "mysql80"])
@pytest.mark.timeout(600)
def test_create_table_as_select(release: str, private_server: Callable[..., DatabaseServer], follow: Follow) -> None:
    """Which servers with GTIDs refuse up to 8.0.20."""
    options = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}
    followed = follow(private_server(release, options=options))
    followed.run("CREATE TABLE a (id INT UNSIGNED PRIMARY KEY, name VARCHAR(20) CHARSET latin1, e ENUM('x', 'y'))")
    followed.run("CREATE TABLE b SELECT id, name, 1 + 1 AS two, NOW(3) AS moment, e FROM a")
    followed.run("CREATE TABLE c (extra INT, KEY (name)) CHARSET utf8 AS SELECT name, id FROM a")
    followed.run("CREATE TABLE IF NOT EXISTS c SELECT 1 AS one")
    assert [column.name for column in followed.logged.schema_of(followed.logged.table_names()[2]).columns] == [
        "extra", "name", "id",
    ]  # fmt: skip


@pytest.mark.parametrize("release", SERVERS)
@pytest.mark.timeout(max(180, STEPS))
def test_random_statements(release: str, request: pytest.FixtureRequest, follow: Follow) -> None:
    """DDL_STEPS and DDL_SEED choose others."""
    followed = follow(request.getfixturevalue(release))
    assert RandomDdl(followed, release, SEED).run(STEPS) >= STEPS
    followed.compare_live()
