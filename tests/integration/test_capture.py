"""Capture from real servers: every value as a SELECT shows it, every order kept, every interruption survived."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from penstock.errors import AuthenticationError, PositionLostError
from penstock.instance import Instance, InstanceState
from penstock.model import Position
from penstock.source import BinlogStream
from penstock.testing import DatabaseServer
from tests.support.capture import changes_until, execute, instance_of, poll, source_of

SOURCES = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")

COLUMNS = """
    id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT,
    t1 TINYINT, t2 TINYINT UNSIGNED, s1 SMALLINT, s2 SMALLINT UNSIGNED, y1 YEAR, m1 MEDIUMINT, m2 MEDIUMINT UNSIGNED,
    i1 INT, i2 INT UNSIGNED, b1 BIGINT, b2 BIGINT UNSIGNED, d1 DECIMAL(10,2), d2 DECIMAL(65,30), d3 DECIMAL(18,18),
    d4 DECIMAL(38,0) UNSIGNED, f1 FLOAT, f2 DOUBLE, v1 VARCHAR(20), v2 VARCHAR(300), c1 CHAR(5), x1 TEXT, x2 LONGTEXT,
    n1 VARBINARY(20), n2 BLOB, n3 BINARY(4), n4 BINARY(200), e1 ENUM('a','b','it''s','ü'), e2 SET('x','y','z'),
    dt0 DATETIME, dt6 DATETIME(6),
    dt1 DATETIME(1), ts0 TIMESTAMP NULL, ts3 TIMESTAMP(3) NULL, da DATE, ti0 TIME, ti2 TIME(2), ti6 TIME(6)
"""
LOW = (
    "1, -128, 0, -32768, 0, 1901, -8388608, 0, -2147483648, 0, -9223372036854775808, 0, -99999999.99,"
    f" -{'9' * 35}.{'9' * 30}, -0.{'9' * 18}, 0, -1.5, -2.25, '', '', '', '', '', '', '', '', x'00', 'a', '',"
    " '1000-01-01 00:00:00', '1000-01-01 00:00:00.000001', '1969-12-31 23:59:59.9',"
    " '1970-01-01 00:00:01', '1970-01-01 00:00:01.001', '1000-01-01',"
    " '-838:59:59', '-838:59:58.99', '-00:00:00.000001'"
)
HIGH = (
    "18446744073709551615, 127, 255, 32767, 65535, 2155, 8388607, 16777215, 2147483647, 4294967295,"
    f" 9223372036854775807, 18446744073709551615, 99999999.99, {'9' * 35}.{'9' * 30}, 0.{'9' * 18}, {'9' * 38},"
    " 3.5, 1e300, 'ünï漢😀', REPEAT('é', 300), 'abcde', REPEAT('t', 65000), REPEAT('l', 70000),"
    " x'00ff00', x'0001fffe', x'01020300', x'ff00',"
    " 'it''s', 'x,y,z', '9999-12-31 23:59:59', '9999-12-31 23:59:59.999999', '2024-02-29 12:34:56.7',"
    " '2038-01-19 03:14:07', '2038-01-19 03:14:07.999', '9999-12-31', '838:59:59', '838:59:58.99', '838:59:58.999999'"
)
NULLS = "7" + ", NULL" * 37


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


@pytest.fixture
def instance(server: DatabaseServer) -> Iterator[Instance]:
    instance = instance_of(server)
    instance.start()
    yield instance
    instance.stop()


def test_every_value_is_what_a_select_shows(
    server: DatabaseServer, instance: Instance, database: Callable[[DatabaseServer], str]
) -> None:
    name = database(server)
    start = instance.store.latest
    execute(
        server,
        f"CREATE TABLE {name}.wide ({COLUMNS}) DEFAULT CHARSET utf8mb4",
        "SET time_zone = '+00:00'",
        *(f"INSERT INTO {name}.wide VALUES ({row})" for row in (LOW, HIGH, NULLS)),
    )
    rows = changes_until(instance, f"{name}.wide", 3, start)
    in_utc = {"charset": "utf8mb4", "init_command": "SET time_zone = '+00:00'"}
    with server.connect(**in_utc) as connection, connection.cursor() as cursor:
        for row in rows:
            cursor.execute(f"SELECT * FROM {name}.wide WHERE id = %s", (row["id"],))
            expected = dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))
            values = {key: value for key, value in row.items() if not key.startswith("_")}
            if values["ts0"] is not None:
                values |= {key: values[key].replace(tzinfo=None) for key in ("ts0", "ts3")}
            assert values == expected
            assert row["_change_type"] == "insert"


def test_labels_that_the_catalogue_cannot_say_come_from_the_log(
    server: DatabaseServer, instance: Instance, database: Callable[[DatabaseServer], str]
) -> None:
    """It shows an emoji as a question mark; what a stream is described as must still be what its log gives."""
    name = database(server)
    start = instance.store.latest
    execute(
        server,
        f"CREATE TABLE {name}.t (id INT PRIMARY KEY, e ENUM('why?', 'a''b', '\U0001f600')) CHARACTER SET utf8mb4",
        f"INSERT INTO {name}.t VALUES (1, 'why?'), (2, 'a''b'), (3, '\U0001f600')",
    )
    rows = changes_until(instance, f"{name}.t", 3, start)
    has_labels = "5.7" not in server.version  # else only the catalogue has them
    assert [row["e"] for row in rows] == (["why?", "a'b", "\U0001f600"] if has_labels else [1, 2, 3])


def test_updates_and_deletes_carry_both_images_order_and_identity(
    server: DatabaseServer, instance: Instance, database: Callable[[DatabaseServer], str]
) -> None:
    name = database(server)
    start = instance.store.latest
    execute(
        server,
        f"CREATE TABLE {name}.t (id INT PRIMARY KEY, a INT, b VARCHAR(10)) DEFAULT CHARSET utf8mb4",
        f"INSERT INTO {name}.t VALUES (1, 1, 'x'), (2, 2, 'y')",
        "BEGIN",
        f"UPDATE {name}.t SET a = 10 WHERE id = 1",
        f"DELETE FROM {name}.t WHERE id = 2",
        "COMMIT",
        "BEGIN",
        f"INSERT INTO {name}.t VALUES (3, 3, 'rolled')",
        "ROLLBACK",
        f"UPDATE {name}.t SET b = NULL, a = 11",
    )
    rows = changes_until(instance, f"{name}.t", 7, start)
    assert [(row["_change_type"], row["id"], row["a"], row["b"], row["_changed"]) for row in rows] == [
        ("insert", 1, 1, "x", None),
        ("insert", 2, 2, "y", None),
        ("update_preimage", 1, 1, "x", None),
        ("update_postimage", 1, 10, "x", ["a"]),
        ("delete", 2, 2, "y", None),
        ("update_preimage", 1, 10, "x", None),
        ("update_postimage", 1, 11, None, ["a", "b"]),
    ]
    sequences = [row["_seq"] for row in rows]
    assert sequences == sorted(set(sequences))
    versions = [row["_commit_version"] for row in rows]
    assert versions[0] == versions[1] < versions[2] == versions[3] == versions[4] < versions[5] == versions[6]
    assert all(row["_commit_version"] < row["_seq"] for row in rows)
    gtids = [row["_gtid"] for row in rows]
    assert len(set(gtids)) == 3
    assert all(gtid for gtid in gtids)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        (version,) = cursor.fetchone()
        if "MariaDB" in version:
            cursor.execute("SELECT @@gtid_binlog_pos")
            assert cursor.fetchone() == (gtids[-1],)
        else:
            cursor.execute("SELECT GTID_SUBSET(%s, @@global.gtid_executed)", (gtids[-1],))
            assert cursor.fetchone() == (1,)


def test_the_same_log_gives_the_same_sequence_again(
    server: DatabaseServer, instance: Instance, database: Callable[[DatabaseServer], str]
) -> None:
    name = database(server)
    start = instance.store.latest
    execute(
        server,
        f"CREATE TABLE {name}.t (id INT PRIMARY KEY)",
        *(f"INSERT INTO {name}.t VALUES ({i})" for i in range(20)),
    )
    live = changes_until(instance, f"{name}.t", 20, start)
    instance.ack(instance.store.latest)
    assert instance.store.first > start, "the store has let go of the range"
    again = changes_until(instance, f"{name}.t", 20, start)
    assert again == live


def test_capture_resumes_after_the_log_is_rotated(
    server: DatabaseServer, instance: Instance, database: Callable[[DatabaseServer], str]
) -> None:
    name = database(server)
    start = instance.store.latest
    execute(server, f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    for i in range(4):
        execute(server, f"INSERT INTO {name}.t VALUES ({i})", "FLUSH BINARY LOGS")
    rows = changes_until(instance, f"{name}.t", 4, start)
    assert [row["id"] for row in rows] == [0, 1, 2, 3]
    assert len({row["_file"] for row in rows}) == 4
    assert [row["_seq"] for row in rows] == sorted(row["_seq"] for row in rows)
    from_log = Instance(instance.settings.model_copy(update={"start": str(start)}))
    from_log.start()
    assert [row["id"] for row in changes_until(from_log, f"{name}.t", 4, start)] == [0, 1, 2, 3]
    from_log.stop()


@pytest.mark.mariadb
@pytest.mark.mysql80
@pytest.mark.parametrize("kind", ["mariadb", "mysql80"])
@pytest.mark.parametrize("crash", [False, True], ids=["stopped", "killed"])
def test_capture_resumes_after_the_source_restarts(private_server: Callable[..., Any], kind: str, crash: bool) -> None:
    server = private_server(kind, options={"innodb_flush_log_at_trx_commit": 1, "sync_binlog": 1})
    execute(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    instance = instance_of(server, source=source_of(server, heartbeat_s=0.5))
    instance.start()
    start = instance.store.latest
    execute(server, "INSERT INTO d.t VALUES (1)")
    assert [row["id"] for row in changes_until(instance, "d.t", 1, start)] == [1]
    if crash:
        server.kill()
    else:
        server.stop()
    assert poll(lambda: instance.state is InstanceState.RECONNECTING)
    server.start()
    execute(server, "INSERT INTO d.t VALUES (2), (3)")
    assert [row["id"] for row in changes_until(instance, "d.t", 3, start)] == [1, 2, 3]
    instance.stop()


def test_a_silent_source_is_not_taken_for_dead(
    server: DatabaseServer, database: Callable[[DatabaseServer], str]
) -> None:
    """Without heartbeats the read would time out after four periods and the state would change."""
    instance = instance_of(server, source=source_of(server, heartbeat_s=0.25))
    instance.start()
    assert not poll(lambda: instance.state is not InstanceState.FOLLOWING, 1.5)
    instance.stop()


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("binlog.000000:4", r"what follows binlog\.000000:4.*SHOW BINARY LOGS"),
        ("binlog.999999:4", "is ahead of the log of"),
    ],
)
def test_a_position_that_is_not_there_is_named(server: DatabaseServer, start: str, message: str) -> None:
    instance = instance_of(server, start=start)
    with pytest.raises(PositionLostError, match=message):
        instance.start()
    assert instance.state is InstanceState.FAILED


def test_a_position_ahead_of_the_log_is_refused(server: DatabaseServer, instance: Instance) -> None:
    """As after a RESET: to resume from there would skip what is written until then."""
    ahead = Position("binlog.900000", 4)
    with pytest.raises(PositionLostError, match="ahead of the log"):
        instance.find_batch_end(ahead, 1 << 20, 0)
    with pytest.raises(PositionLostError, match="ahead of the log"):
        list(instance.read(instance.store.latest, ahead))


@pytest.mark.mariadb
@pytest.mark.mysql80
@pytest.mark.parametrize("kind", ["mariadb", "mysql80"])
def test_a_quiet_source_may_rotate_and_purge_its_log(private_server: Callable[..., Any], kind: str) -> None:
    server = private_server(kind)
    execute(server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    instance = instance_of(server, source=source_of(server, heartbeat_s=0.5))
    instance.start()
    start = instance.store.latest
    for _ in range(3):
        execute(server, "FLUSH BINARY LOGS")
    assert poll(lambda: instance.store.latest.file_number == start.file_number + 3)
    quiet = instance.store.latest
    execute(server, f"PURGE BINARY LOGS TO '{quiet.file}'")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
        for (thread,) in cursor.fetchall():
            cursor.execute(f"KILL {thread}")
    execute(server, "INSERT INTO d.t VALUES (1)")
    rows = changes_until(instance, "d.t", 1, quiet)
    assert [row["id"] for row in rows] == [1]
    instance.stop()


def test_a_wrong_password_is_no_reason_to_try_again(server: DatabaseServer) -> None:
    source = source_of(server).model_copy(update={"user": "somebody"})
    with pytest.raises(AuthenticationError, match="somebody"):
        instance_of(server, source=source).start()


def test_a_decimal_is_exact(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> None:
    name = database(mariadb)
    instance = instance_of(mariadb)
    instance.start()
    start: Position = instance.store.latest
    execute(mariadb, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, p DECIMAL(20,10))")
    values = [
        Decimal(f"{sign}{whole}.{part:010d}") for sign in ("", "-") for whole in (0, 9, 10**9 - 1) for part in (0, 1)
    ]
    execute(mariadb, *(f"INSERT INTO {name}.t VALUES ({i}, {value})" for i, value in enumerate(values)))
    assert [row["p"] for row in changes_until(instance, f"{name}.t", len(values), start)] == values
    instance.stop()


def test_a_server_id_that_another_takes_is_drawn_again(
    mariadb: DatabaseServer, database: Callable[[DatabaseServer], str], caplog: pytest.LogCaptureFixture
) -> None:
    """MySQL tells replicas apart by a uuid, and ours have their own; MariaDB ends the stream of the one before."""
    name = database(mariadb)
    instance = instance_of(mariadb)
    instance.start()
    try:
        start = instance.store.latest
        execute(mariadb, f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
        taken: Any = instance.source_log
        with BinlogStream(source_of(mariadb), start, server_id=taken._server_id) as other:
            next(iter(other))
            assert poll(lambda: "replica server id changed destination=" in caplog.text)
            execute(mariadb, f"INSERT INTO {name}.t VALUES (1), (2)")
            assert [row["id"] for row in changes_until(instance, f"{name}.t", 2, start)] == [1, 2]
    finally:
        instance.stop()
