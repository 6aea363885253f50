"""`format("penstock")` without a Penstock server: the connector captures a database or a folder of logs itself."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.local_process import LocalProcess
from penstock.testing import DatabaseServer, poll_until
from tests.spark.test_stream_source import Collected, run
from tests.support.capture import execute, poll
from tests.support.stalling_proxy import StallingProxy


@pytest.fixture
def table(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = f"{database(mariadb)}.item"
    execute(mariadb, f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(100)) DEFAULT CHARSET utf8mb4")
    return name


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """The folder for what queries without a server keep; the processes that they have started are ended."""
    folder = tmp_path / "state"
    yield folder
    for process in servers(folder):
        os.kill(process.pid, signal.SIGTERM)
        assert poll_until(lambda process=process: not process.is_alive, 30)


@pytest.fixture
def source(mariadb: DatabaseServer, state: Path) -> dict[str, str]:
    """The options of a query that captures a database by itself."""
    account = {"user": "root", "password": mariadb.password}
    return {"host": "127.0.0.1", "port": str(mariadb.port), **account, "stateDir": str(state)}


def servers(state: Path) -> list[LocalProcess]:
    """The server processes that were started below a state folder and are alive."""
    processes = [LocalProcess.parse(json.loads(file.read_text())["process"]) for file in state.rglob("server.json")]
    return [process for process in processes if process.is_alive]


def read(spark: SparkSession, source: dict[str, str], **options: str) -> DataFrame:
    return spark.read.format("penstock").options(**source, **options).load()


def follow(spark: SparkSession, source: dict[str, str], **options: str) -> DataFrame:
    return spark.readStream.format("penstock").options(**source, **options).load()


def test_a_query_captures_a_database_by_itself_and_resumes_from_its_checkpoint(
    spark: SparkSession, source: dict[str, str], state: Path, mariadb: DatabaseServer, table: str, tmp_path: Path
) -> None:
    execute(mariadb, *(f"INSERT INTO {table} VALUES ({i}, 'first')" for i in range(10)))
    whole = read(spark, source, table=table)
    assert sorted(row.id for row in whole.select("id").collect()) == list(range(10))
    got = Collected()
    query = run(follow(spark, source, table=table, startingPosition="earliest"), got, tmp_path / "checkpoint")
    assert poll(lambda: len(got.rows) == 10, 60), query.exception()
    (server,) = servers(state)  # of the batch read and of the stream
    execute(mariadb, f"INSERT INTO {table} VALUES (10, 'live')")
    assert poll(lambda: len(got.rows) == 11, 60), query.exception()
    assert {path.stat().st_mode & 0o077 for path in state.rglob("*")} == {0}  # for their owner only
    # The server is killed: it is started again by whoever needs it.
    os.kill(server.pid, signal.SIGKILL)
    execute(mariadb, f"INSERT INTO {table} VALUES (11, 'after a crash')")
    assert poll(lambda: len(got.rows) == 12, 60), query.exception()
    query.stop()
    # While nothing runs the table changes: the rows from before and from after are read by the columns of their time.
    (server,) = servers(state)
    os.kill(server.pid, signal.SIGTERM)
    assert poll(lambda: not server.is_alive, 30)
    execute(
        mariadb,
        f"INSERT INTO {table} VALUES (12, 'before')",
        f"ALTER TABLE {table} ADD COLUMN n INT FIRST",
        f"INSERT INTO {table} VALUES (5, 13, 'behind')",
    )
    # The query may have been stopped before Spark had noted its last batch, which then is redelivered.
    query = run(
        follow(spark, source, table=table, startingPosition="earliest"), got, tmp_path / "checkpoint", drain=True
    )
    assert query.awaitTermination(60)
    rows = [(row.get("n"), row["id"], row["v"]) for row in got.rows[12:]]
    assert rows == [(None, 12, "before"), (5, 13, "behind")]
    text = json.dumps(list(query.recentProgress), default=str)
    assert mariadb.password not in text


@pytest.fixture
def nameless(mariadb: DatabaseServer) -> Iterator[None]:
    """A log that does not name its columns, as servers write it by default."""
    execute(mariadb, "SET GLOBAL binlog_row_metadata = 'NO_LOG'")
    yield
    execute(mariadb, "SET GLOBAL binlog_row_metadata = 'FULL'")


@pytest.mark.usefixtures("nameless")
def test_rows_from_before_the_first_query_are_read_where_the_log_does_not_name_columns(
    spark: SparkSession,
    source: dict[str, str],
    state: Path,
    mariadb: DatabaseServer,
    database: Callable[[DatabaseServer], str],
    tmp_path: Path,
) -> None:
    table = f"{database(mariadb)}.item"
    execute(
        mariadb,
        "FLUSH BINARY LOGS",
        f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(10)) DEFAULT CHARSET utf8mb4",
        f"INSERT INTO {table} VALUES (1, 'x')",
        f"ALTER TABLE {table} ADD COLUMN n INT AFTER id",
        f"INSERT INTO {table} VALUES (2, 7, 'y')",
    )
    rows = read(spark, source, table=table).orderBy("_seq").select("id", "n", "v").collect()
    assert [tuple(row) for row in rows] == [(1, None, "x"), (2, 7, "y")]
    assert len(servers(state)) == 1
    execute(mariadb, "FLUSH BINARY LOGS")
    logs = tmp_path / "logs"
    logs.mkdir()
    for file in sorted((mariadb.folder / "data").glob("binlog.[0-9]*"))[:-1]:
        (logs / file.name).write_bytes(file.read_bytes())
    reader = spark.read.format("penstock").options(stateDir=str(state), filter=table.replace(".", "\\."))
    files = reader.load(str(logs)).orderBy("_seq").select("after").collect()
    assert [row.after for row in files] == ['{"id":1,"v":"x"}', '{"id":2,"n":7,"v":"y"}']


def processes_of(state: Path) -> list[int]:
    """The capture processes of a state folder, also those that do not serve yet."""
    process_ids = list[int]()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = file.read_bytes().split(b"\0")
            if b"penstock.server.embedded" in words and any(word.startswith(str(state).encode()) for word in words):
                process_ids.append(int(file.parent.name))
    return process_ids


@pytest.mark.timeout(400)
@pytest.mark.usefixtures("nameless")
def test_a_capture_that_is_killed_while_it_reads_the_past_for_its_ddl_begins_again(
    spark: SparkSession,
    source: dict[str, str],
    state: Path,
    mariadb: DatabaseServer,
    database: Callable[[DatabaseServer], str],
    tmp_path: Path,
) -> None:
    """On a machine that has lost its state a query resumes from its checkpoint; its first capture dies half-way."""
    table, got = f"{database(mariadb)}.item", Collected()
    execute(
        mariadb,
        f"CREATE TABLE {table} (id INT PRIMARY KEY, v MEDIUMTEXT) DEFAULT CHARSET utf8mb4",
        f"INSERT INTO {table} VALUES (1, 'x')",
        *(f"INSERT INTO {table} VALUES ({number}, REPEAT('x', 500000))" for number in range(10, 20)),
    )
    start = {"table": table, "startingPosition": "earliest"}
    query = run(follow(spark, source, **start), got, tmp_path / "checkpoint", drain=True)
    assert query.awaitTermination(120)
    assert len(got.rows) == 11
    execute(
        mariadb,
        f"INSERT INTO {table} VALUES (2, 'before')",
        f"ALTER TABLE {table} ADD COLUMN n INT AFTER id",
        f"INSERT INTO {table} VALUES (3, 7, 'behind')",
    )
    lost = tmp_path / "lost"  # what the machine has lost
    state.rename(lost)
    (old,) = servers(lost)
    os.kill(old.pid, signal.SIGTERM)
    assert poll(lambda: not old.is_alive, 30)
    with StallingProxy(mariadb.port, stall_after_bytes=2 << 20) as proxy, ThreadPoolExecutor(1) as pool:
        options = source | {"port": str(proxy.port)}
        again = Collected()
        resumed = pool.submit(lambda: run(follow(spark, options, **start), again, tmp_path / "checkpoint", drain=True))
        assert proxy.has_stalled.wait(120)
        assert list(state.rglob("unfinished"))
        (reading,) = processes_of(state)
        os.kill(reading, signal.SIGKILL)
        proxy.resume()
        assert resumed.result(120).awaitTermination(120)
        assert not list(state.rglob("unfinished"))
        rows = [(row["id"], row["n"], row["v"]) for row in again.rows]
        assert rows == [(2, None, "before"), (3, 7, "behind")]
        for server in servers(state):
            os.kill(server.pid, signal.SIGTERM)


def test_a_folder_of_log_files_is_read_without_any_server(
    spark: SparkSession, state: Path, mariadb: DatabaseServer, table: str, tmp_path: Path
) -> None:
    execute(mariadb, *(f"INSERT INTO {table} VALUES ({i}, 'x')" for i in range(5)), "FLUSH BINARY LOGS")
    logs = tmp_path / "logs"
    logs.mkdir()
    for file in sorted((mariadb.folder / "data").glob("binlog.[0-9]*"))[:-1]:
        (logs / file.name).write_bytes(file.read_bytes())
    frame = spark.read.format("penstock").options(stateDir=str(state), filter=table.replace(".", "\\.")).load(str(logs))
    rows = frame.orderBy("_seq").collect()
    assert [(row["_change_type"], row["_key"], row["after"]) for row in rows] == [
        ("insert", {"id": str(i)}, f'{{"id":{i},"v":"x"}}') for i in range(5)
    ]


def test_what_keeps_the_connector_from_capturing_is_said(
    spark: SparkSession, source: dict[str, str], mariadb: DatabaseServer, table: str
) -> None:
    with pytest.raises(Exception, match=r"refused user 'root'") as refused:
        read(spark, source | {"password": "wrong-secret"}, table=table).collect()
    assert "wrong-secret" not in str(refused.value)
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE OR REPLACE USER nobody@localhost IDENTIFIED BY 'nothing-granted'")
    with pytest.raises(Exception, match=r"REPLICATION"):
        read(spark, source | {"user": "nobody", "password": "nothing-granted"}, table=table).collect()
    with pytest.raises(Exception, match=r"database at 127\.0\.0\.1:1: is it running"):
        read(spark, source | {"port": "1"}, table=table, waitForServer="0").collect()
