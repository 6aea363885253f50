"""Capture has failed over to the standby, while documents are still read from the old primary, which lives on: what it
does not have is waited for, and no older state is written."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.client import FlightClient
from penstock.config import InstanceSettings
from penstock.document import DOCUMENT_DECODING, DocumentBuilder, DocumentSpec
from penstock.document.difference_check import DifferenceCheck
from penstock.document.verify import IndexVerifier
from penstock.errors import SourceBehindError
from penstock.model import GtidSet, LogRequirement, Position
from penstock.snapshot.source_rows import SourceRows
from penstock.spark.applied_changes import SettleTime
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute, poll, source_of
from tests.support.document_stream import DocumentStream, open_stream
from tests.support.following import QUICK
from tests.support.replication import has, pair
from tests.support.scenario.proxy import Network

Servers = Callable[..., Any]
SPEC = DocumentSpec.model_validate(
    {
        "index": "t",
        "root": {
            "table": "replicated.t",
            "fields": ["v"],
            "joins": {"u": {"table": "replicated.u", "on": {"id": "id"}, "fields": ["name"]}},
        },
    }
)
TABLES = (
    "CREATE TABLE replicated.t (id INT PRIMARY KEY, v VARCHAR(20))",
    "CREATE TABLE replicated.u (id INT PRIMARY KEY, name VARCHAR(20))",
    "INSERT INTO replicated.u VALUES (1, 'one'), (2, 'two')",
    "INSERT INTO replicated.t VALUES (1, 'a'), (2, 'b')",
)
CHANGE = "UPDATE replicated.t SET v = 'new' WHERE id = 1"
OLD = {"v": "c", "u": {"name": "one"}}
NOBODY = 9  # a port that nobody listens on


@contextmanager
def failed_over(first: DatabaseServer, second: DatabaseServer, folder: Path) -> Iterator[DocumentStream]:
    """Follow documents that are read from `first`, with a capture that has lost it and follows `second`, where a row
    has changed since."""
    execute(first, *TABLES)
    with Network(first.port, 1) as network:
        way = source_of(first, heartbeat_s=0.5, connect_timeout_s=3).model_copy(update={"port": network.port})
        standby = source_of(second, heartbeat_s=0.5, connect_timeout_s=3)
        capture = InstanceSettings(source=way, standby=standby, failover=QUICK)
        with open_stream(first, SPEC, folder, capture=capture) as stream:
            execute(first, "UPDATE replicated.t SET v = 'c' WHERE id = 1")
            stream.follow()
            assert stream.documents()["1"] == OLD
            assert poll(lambda: has(second, "SELECT 1 FROM replicated.t WHERE v = 'c'"))
            execute(second, "STOP SLAVE", "RESET SLAVE ALL")
            network.move_to(NOBODY)  # capture cannot reach the old primary any more; sync can
            execute(second, CHANGE)
            assert poll(lambda: stream.read_changes()[0].num_rows > 0, 60)
            yield stream


def execute_as(server: DatabaseServer, other: DatabaseServer, kind: str, statement: str) -> None:
    """Execute what the other server has executed last, as a replica of it would."""
    with other.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@gtid_binlog_pos" if kind == "mariadb" else "SELECT @@server_uuid, @@gtid_executed")
        row = cursor.fetchone()
    if kind == "mariadb":
        domain, server_id, number = row[0].split("-")
        execute(server, f"SET gtid_domain_id={domain}, server_id={server_id}, gtid_seq_no={number}", statement)
    else:
        number = GtidSet.parse(row[1]).last_number(row[0])
        execute(server, f"SET gtid_next = '{row[0]}:{number}'", statement)


def repair_from(server: DatabaseServer, stream: DocumentStream) -> None:
    """Verify an index against a database, and repair what differs."""
    with (
        closing(FlightClient(stream.address)) as client,
        closing(SourceRows(source_of(server), DOCUMENT_DECODING)) as rows,
    ):
        builder = DocumentBuilder(stream.sync.graph, rows)
        changes = SettleTime(client, settle_s=0.0, stopped=threading.Event())
        check = DifferenceCheck(builder, rows, stream.index, changes)
        IndexVerifier(builder, stream.index, check).run(repair=True)


@pytest.mark.mariadb
@pytest.mark.mysql80
@pytest.mark.parametrize("kind", ["mariadb", pytest.param("mysql80", marks=pytest.mark.campaign)])
def test_states_of_an_old_primary_are_never_written(private_server: Servers, kind: str, tmp_path: Path) -> None:
    first, second = pair(private_server, kind)
    with failed_over(first, second, tmp_path) as stream:
        # It is still written to: by the numbers of its transactions alone it is not behind.
        execute(first, *(f"INSERT INTO replicated.u VALUES ({number}, 'old')" for number in range(10, 20)))
        for _ in range(2):
            with pytest.raises(SourceBehindError, match=rf":{first.port} does not have the transactions .* start sync"):
                stream.follow()
        with pytest.raises(SourceBehindError):
            repair_from(first, stream)
        assert stream.documents()["1"] == OLD
        execute_as(first, second, kind, CHANGE)
        stream.follow()
        assert stream.documents()["1"] == {"v": "new", "u": {"name": "one"}}
    assert SourceBehindError.transient


def test_a_view_needs_the_transactions_that_are_required(
    mysql80: DatabaseServer, database: Callable[[DatabaseServer], str]
) -> None:
    database(mysql80)  # the first transaction
    with mysql80.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@server_uuid, @@gtid_executed")
        uuid, executed = cursor.fetchone()
    with closing(SourceRows(source_of(mysql80), DOCUMENT_DECODING)) as rows:
        rows.requirement = LogRequirement.of_changes(GtidSet.parse(executed).text.split(","), None)
        with rows.open_view():
            pass
        strange = "3e11fa47-71ca-11e1-9e33-c80aa9429562:7"
        rows.requirement = LogRequirement.of_changes([f"{uuid}:1", strange], None)
        with pytest.raises(SourceBehindError, match=f"does not have the transactions {strange}, "), rows.open_view():
            pass


@pytest.mark.mysql57
def test_without_gtids_the_server_must_be_the_captured_one(
    private_server: Servers, mysql57: DatabaseServer, database: Callable[[DatabaseServer], str], tmp_path: Path
) -> None:
    options = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF", "server_id": 4711}
    first, name = private_server("mysql57", options=options), database(mysql57)
    execute(first, f"CREATE DATABASE {name}")
    tables = [statement.replace("replicated", name) for statement in TABLES]
    for server in (first, mysql57):
        execute(server, *tables)
    spec = DocumentSpec.model_validate_json(SPEC.model_dump_json(exclude_unset=True).replace("replicated", name))
    change = CHANGE.replace("replicated", name)
    with open_stream(first, spec, tmp_path) as stream:
        execute(first, change)
        stream.follow()
        assert stream.documents()["1"]["v"] == "new"
    with open_stream(mysql57, spec, tmp_path / "other", capture=InstanceSettings(source=source_of(first))) as stream:
        execute(first, change.replace("new", "newer"))
        with pytest.raises(SourceBehindError, match="does not have the log of the server with the id 4711"):
            stream.follow()
        assert stream.documents()["1"]["v"] == "a"
    with closing(SourceRows(source_of(first), DOCUMENT_DECODING)) as rows:
        end = end_of(first)
        rows.requirement = LogRequirement.of_position(Position(end.file, end.offset + 1), "4711-1")
        with pytest.raises(SourceBehindError, match=f"does not have the position {end.file}"), rows.open_view():
            pass
        rows.requirement = LogRequirement.of_position(Position(end.file, end.offset), "4711-1")
        with rows.open_view():
            pass
