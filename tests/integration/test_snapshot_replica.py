"""The rows of a snapshot are read from a replica, at positions of the log of its primary: a table that is built from
them and from the changes of the primary equals the primary, also while the replica is behind."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.errors import SchemaError
from penstock.model import TableName
from penstock.snapshot import reader as snapshot_reader
from penstock.snapshot.chunks import Chunk
from penstock.source.replica_read import ReplicaRead
from penstock.testing import DatabaseServer, poll_until
from tests.support.capture import end_of, execute, source_of
from tests.support.micro_batches import MicroBatches, serving
from tests.support.random_writers import create_table, select_rows, written
from tests.support.replication import has, pair, start_applying, stop_applying
from tests.support.strict_mirror import StrictMirror

_SERVERS = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")
_EACH = [pytest.param(flavour, marks=[] if flavour == "mariadb" else [pytest.mark.campaign]) for flavour in _SERVERS]
_OPTIONS = {"startingPosition": "snapshot", "maxRowsPerTrigger": "100", "pollMs": "50"}


@pytest.mark.parametrize("flavour", _EACH)
def test_rows_are_read_from_a_replica_when_it_has_what_is_in_the_log(
    private_server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, flavour: str
) -> None:
    primary, replica = pair(private_server, flavour)
    name, mirror = TableName("replicated", "t"), StrictMirror()
    create_table(primary, name, "integer")
    assert poll_until(lambda: has(replica, f"SELECT 1 FROM {name}"), 30)
    read_from: list[int] = []
    connect = snapshot_reader.connect_for_snapshot
    monkeypatch.setattr(
        snapshot_reader, "connect_for_snapshot", lambda source: read_from.append(source.port) or connect(source)
    )
    with serving(primary, replica=source_of(replica)) as server:
        query = MicroBatches(server.address, mirror.apply, table=str(name), **_OPTIONS)
        stop_applying(replica, flavour)
        execute(primary, f"UPDATE {name} SET name = 'not yet on the replica'")
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(query.run_batch)
            assert poll_until(lambda: bool(read_from) or first.done(), 60)
            assert not first.done(), "the replica does not have what is in the log"
            start_applying(replica, flavour)
            assert first.result(60)
        with written(primary, name, "integer", 0.005):
            query.run_until(lambda: mirror.snapshot_rows > 150)
        monkeypatch.setattr(ReplicaRead, "open", _change_before(ReplicaRead.open, primary, name))
        query.run_until(lambda: query.is_complete)
        wanted = select_rows(primary, name)
        query.run_until(lambda: mirror.content == wanted)
    assert set(read_from) == {replica.port}
    assert mirror.snapshot_rows > 300


def _change_before(open_view: Callable[[ReplicaRead], None], primary: DatabaseServer, name: TableName) -> Any:
    """Let all rows be changed after the low watermark of each chunk is taken: its read view sees the change."""
    changes = count()

    def open_later(self: ReplicaRead) -> None:
        execute(primary, f"UPDATE {name} SET name = 'seam {next(changes)}' WHERE id % 3 = 0")
        open_view(self)

    return open_later


def test_a_table_that_a_replica_has_in_another_way_is_refused_and_one_that_it_does_not_have_yet_waited_for(
    private_server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, replica = pair(private_server, "mariadb")
    execute(primary, *(f"CREATE TABLE replicated.{name} (id INT PRIMARY KEY, other INT)" for name in ("a", "b")))
    assert poll_until(lambda: has(replica, "SHOW TABLES FROM replicated LIKE 'b'"), 30)
    execute(
        replica,
        "SET SESSION sql_log_bin = 0",
        "ALTER TABLE replicated.a ENGINE=MyISAM",
        "ALTER TABLE replicated.b DROP PRIMARY KEY, ADD PRIMARY KEY (other)",
    )
    with serving(primary, replica=source_of(replica)) as server:
        instance = server.instances["default"]
        for table, words in (("a", "from the replica: .*ENGINE=InnoDB"), ("b", "has another key on the replica")):
            name = TableName("replicated", table)
            fields = arrow_fields_of_table(instance.describe_tables([name])[0])
            with pytest.raises(SchemaError, match=words):
                list(instance.snapshots.read(name, Chunk(None, None), instance.store.latest, fields))
        stop_applying(replica, "mariadb")
        name = TableName("replicated", "c")
        execute(primary, f"CREATE TABLE {name} (id INT PRIMARY KEY)", f"INSERT INTO {name} VALUES (1), (2)")
        end = end_of(primary)
        assert poll_until(lambda: instance.store.latest >= end, 30)
        fields = arrow_fields_of_table(instance.describe_tables([name])[0])
        waits: list[Any] = []
        wait = ReplicaRead._wait
        monkeypatch.setattr(ReplicaRead, "_wait", lambda self, gtids: waits.append(gtids) or wait(self, gtids))
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(lambda: list(instance.snapshots.read(name, Chunk(None, None), end, fields)))
            assert poll_until(lambda: bool(waits) or reading.done(), 60)
            start_applying(replica, "mariadb")
            assert sum(batch.num_rows for batch in reading.result(90)) == 2
