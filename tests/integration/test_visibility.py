"""A change can be in the log before a SELECT sees it. A document built from it must not show the old state.

The gap is made at will: with semi-sync replication in AFTER_SYNC mode the commit waits, after the log was written,
for a replica that never acknowledges.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.document import DocumentBuilder, DocumentPlan, DocumentSpec, apply_changes, load_all
from penstock.document.plan import witness
from penstock.instance import Instance
from penstock.model import Sequence, TableName
from penstock.search.embedded import EmbeddedIndex
from penstock.source import BinlogStream, RowQuery, connect, current_position
from tests.capture import changes_until, execute, instance_of, source_of

HELD_MS = 3000
SPEC = DocumentSpec.model_validate({"index": "t", "root": {"table": "d.t", "id": "id", "columns": ["a"]}})


@contextmanager
def silent_replica(server: Any) -> Iterator[None]:
    """Follows the log as a semi-sync replica and never acknowledges."""
    source = source_of(server)

    class Replica(BinlogStream):
        def _prepare_session(self) -> None:
            super()._prepare_session()
            with self._connection.cursor() as cursor:
                cursor.execute("SET @rpl_semi_sync_slave = 1")

    with closing(connect(source)) as connection:
        start = current_position(connection, source)
    with Replica(source, start):
        yield


@pytest.fixture(params=["mariadb", "mariadb11"])
def held(request: pytest.FixtureRequest, private_server: Callable[..., Any]) -> Iterator[Any]:
    """A server with one row whose commits, from here on, are held back after they are in the log."""
    server = private_server(request.param)
    execute(
        server, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a INT)", "INSERT INTO d.t VALUES (1, 1)"
    )
    execute(
        server,
        "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'",
        f"SET GLOBAL rpl_semi_sync_master_timeout = {HELD_MS}",
        "SET GLOBAL rpl_semi_sync_master_enabled = ON",
    )
    with silent_replica(server):
        yield server


@contextmanager
def update_in_the_gap(server: Any) -> Iterator[tuple[Instance, dict[str, Any]]]:
    """An update that is in the log and that a plain SELECT does not see yet."""
    instance = instance_of(server)
    instance.start()
    start = instance.store.latest
    writer = threading.Thread(target=execute, args=(server, "UPDATE d.t SET a = 2 WHERE id = 1"))
    writer.start()
    try:
        *_, event = changes_until(instance, "d.t", 2, start)
        assert (event["_change_type"], event["a"]) == ("update_postimage", 2)
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT a FROM d.t")
            assert cursor.fetchone() == (1,), "the trap is set: a plain SELECT still sees the old row"
        yield instance, event
    finally:
        writer.join()
        instance.stop()


def test_a_document_is_never_older_than_the_event_that_named_it(held: Any, tmp_path: Path) -> None:
    with update_in_the_gap(held) as (instance, event), closing(RowQuery(source_of(held))) as rows:
        plan = DocumentPlan.of(SPEC, {table.name: table for table in instance.describe(SPEC.tables)})
        struct = pa.array([{"id": 1}], pa.struct([("id", pa.int32())]))
        changes = pa.table({"_table": ["d.t"], "t": struct, "_seq": [event["_seq"]]})
        with EmbeddedIndex.open(tmp_path) as index:
            index.prepare(plan.fields)
            apply_changes(changes, {TableName("d", "t"): "t"}, plan, DocumentBuilder(plan, rows), index)
            assert index.get("1") == {"a": 2}


def test_a_first_load_sees_all_that_was_in_the_log_when_it_began(held: Any, tmp_path: Path) -> None:
    with update_in_the_gap(held) as (instance, _), closing(RowQuery(source_of(held))) as rows:
        plan = DocumentPlan.of(SPEC, {table.name: table for table in instance.describe(SPEC.tables)})
        with EmbeddedIndex.open(tmp_path) as index:
            index.prepare(plan.fields)
            load_all(DocumentBuilder(plan, rows), index, int(Sequence.at(instance.store.latest)))
            assert index.get("1") == {"a": 2}


def test_waiting_for_a_row_outlasts_its_lock(mariadb: Any, database: Callable[[Any], str]) -> None:
    name = database(mariadb)
    execute(mariadb, f"CREATE TABLE {name}.t (id INT PRIMARY KEY)", f"INSERT INTO {name}.t VALUES (1)")
    with mariadb.connect(autocommit=False) as holder, holder.cursor() as cursor:
        cursor.execute(f"DELETE FROM {name}.t")
        timer = threading.Timer(7, holder.commit)  # longer than one turn of waiting
        timer.start()
        with closing(RowQuery(source_of(mariadb))) as rows:
            rows.wait_for_row(witness(TableName(name, "t"), "id"), 1)
            assert list(rows.rows(f"SELECT * FROM {name}.t")) == []
        timer.join()
