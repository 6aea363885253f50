"""Arrow Flight on a real source: live and bounded, one table or all, raw or decoded; who may call, and who is slow."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest

import penstock
from penstock.binlog.events.block import Block
from penstock.client import ServerConnection
from penstock.client.changes import ChangeStream, ClientSubscription
from penstock.config import FilterSettings, InstanceSettings, ServerSettings
from penstock.errors import (
    ConfigurationError,
    MetaError,
    PenstockError,
    PositionLostError,
    ProtocolError,
    SchemaError,
    ServerUnavailableError,
)
from penstock.model import Position
from penstock.server import Server
from penstock.testing import DatabaseServer, free_port
from tests.support.capture import end_of, execute, poll, source_of
from tests.support.certificates import Certificates
from tests.support.stalls import wait_until_stalled

SOURCES = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


@pytest.fixture
def schema(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    return tables_in(mariadb, database)


def tables_in(server: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = database(server)
    execute(server, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v VARCHAR(20), price DECIMAL(8,2))")
    execute(server, f"CREATE TABLE {name}.other (id INT PRIMARY KEY, at DATETIME(3), doc BLOB)")
    return name


@contextmanager
def serving(source: DatabaseServer, flight: dict[str, Any] | None = None, **instance: Any) -> Iterator[Server]:
    settings = ServerSettings.with_flight_only(InstanceSettings(source=source_of(source), **instance))
    if flight is not None:
        port_settings = settings.flight.model_validate({"port": 0} | flight)
        settings = settings.model_copy(update={"flight": port_settings})
    running = Server(settings)
    try:
        running.start()
        yield running
    finally:
        running.stop()


def connection(running: Server, **options: Any) -> ServerConnection:
    return penstock.connect(f"grpc://{running.address}", **options)


def rows_of(changes: ChangeStream, count: int, seconds: float = 60) -> list[dict[str, Any]]:
    """The next rows, so many of them and no more."""
    rows, deadline = list[dict[str, Any]](), time.monotonic() + seconds
    for batch in changes:
        batch.validate(full=True)
        rows += batch.to_pylist()
        if len(rows) >= count:
            break
        assert time.monotonic() < deadline, rows
    assert len(rows) == count, rows
    return rows


def values(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in ("_change_type", *names)) for row in rows]


# -- what comes


def test_changes_of_a_table_come_as_they_are_committed(
    server: DatabaseServer, database: Callable[[DatabaseServer], str]
) -> None:
    name = tables_in(server, database)
    with serving(server) as running, connection(running) as there, there.changes(f"{name}.t") as changes:
        execute(server, f"INSERT INTO {name}.t VALUES (1, 'a', 1.5), (2, NULL, NULL)")
        execute(server, f"INSERT INTO {name}.other VALUES (7, NULL, NULL)")
        execute(server, f"UPDATE {name}.t SET v = 'b' WHERE id = 1", f"DELETE FROM {name}.t WHERE id = 2")
        rows = rows_of(changes, 5)
    assert values(rows, "id", "v") == [
        ("insert", 1, "a"),
        ("insert", 2, None),
        ("update_preimage", 1, "a"),
        ("update_postimage", 1, "b"),
        ("delete", 2, None),
    ]
    assert [row["_changed"] for row in rows if row["_change_type"] == "update_postimage"] == [["v"]]
    assert str(rows[0]["price"]) == "1.50"


def test_ten_lines_of_plain_arrow_do(mariadb: DatabaseServer, schema: str) -> None:
    with serving(mariadb) as running:
        client = fl.connect(f"grpc://{running.address}")
        ticket = {"destination": "default", "tables": [f"{schema}.t"], "start": "latest"}
        stream = client.do_get(fl.Ticket(json.dumps(ticket)))
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'a', 1)")
        rows = list[dict[str, Any]]()
        while not rows:
            rows += stream.read_chunk().data.to_pylist()
        assert values(rows, "id") == [("insert", 1)]
        # The name of a table is a ticket, too.
        by_name = client.do_get(fl.Ticket(f"{schema}.t"))
        assert by_name.schema.names[:3] == ["id", "v", "price"]
        by_name.cancel()
        stream.cancel()
        client.close()


def test_all_tables_come_as_json(mariadb: DatabaseServer, schema: str) -> None:
    with serving(mariadb) as running, connection(running) as there, there.changes(filter=f"{schema}\\..*") as changes:
        execute(
            mariadb,
            "BEGIN",
            f"INSERT INTO {schema}.t VALUES (1, 'a\"é', 1.5)",
            f"INSERT INTO {schema}.other VALUES (7, '2024-02-29 10:11:12.123', 'xyz')",
            f"UPDATE {schema}.t SET v = NULL",
            "COMMIT",
        )
        rows = rows_of(changes, 4)
    assert [(row["_table"], row["_change_type"], json.loads(row["row"])) for row in rows] == [
        (f"{schema}.t", "insert", {"id": 1, "v": 'a"é', "price": "1.50"}),
        (f"{schema}.other", "insert", {"id": 7, "at": "2024-02-29T10:11:12.123", "doc": "eHl6"}),
        (f"{schema}.t", "update_preimage", {"id": 1, "v": 'a"é', "price": "1.50"}),
        (f"{schema}.t", "update_postimage", {"id": 1, "v": None, "price": "1.50"}),
    ]


def test_raw_events_are_blocks(mariadb: DatabaseServer, schema: str) -> None:
    with serving(mariadb) as running, closing(fl.connect(f"grpc://{running.address}")) as client:
        stream = client.do_get(fl.Ticket(json.dumps({"form": "raw", "tables": [f"{schema}.t"]})))
        execute(mariadb, f"INSERT INTO {schema}.other VALUES (7, NULL, NULL)")
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'a', 1)")
        while not (chunk := stream.read_chunk()).data.num_rows:
            pass
        block = Block.from_arrow(chunk.data, chunk.app_metadata.to_pybytes())
        assert len(block) == 1
        assert block.schema_of(int(block.column("table_id")[0])).name.table == "t"
        assert Position.from_json(json.loads(chunk.app_metadata.to_pybytes())["position"]) > block.start
        stream.cancel()


def test_a_range_is_read_as_often_as_one_likes(mariadb: DatabaseServer, schema: str) -> None:
    with serving(mariadb) as running, connection(running) as there:
        start = there.positions()["latest"]
        begun = datetime.now(UTC).replace(microsecond=0).isoformat()
        for number in range(20):
            execute(mariadb, f"INSERT INTO {schema}.t VALUES ({number}, 'a', 1)")
        instance = running.instances["default"]
        assert poll(lambda: instance.counters.to_json()["transactions"] >= 20)
        for _ in range(2):
            changes = there.changes(f"{schema}.t", start=start, end="latest", columns=["id"])
            rows = [row for batch in changes for row in batch.to_pylist()]
            assert values(rows, "id") == [("insert", number) for number in range(20)]
            assert "v" not in rows[0]
            assert Position.from_json(dict(changes.position or {})) == instance.store.latest
        ranged = there.changes(f"{schema}.t", start=f"time:{begun}", end="time:2100-01-01T00:00:00Z")
        assert sum(batch.num_rows for batch in ranged) == 20
        info = fl.connect(f"grpc://{running.address}").get_flight_info(
            fl.FlightDescriptor.for_command(json.dumps({"tables": [f"{schema}.t"], "start": start, "end": "latest"}))
        )
        assert info.schema.names[:3] == ["id", "v", "price"]


def test_a_start_may_be_a_position_a_time_or_the_beginning(mariadb: DatabaseServer, schema: str) -> None:
    with serving(mariadb) as running, connection(running) as there:
        position = there.positions()["latest"]
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'a', 1)")
        for start in (position, f"{position['file']}:{position['offset']}", "earliest", "time:2020-01-01T00:00:00Z"):
            with there.changes(f"{schema}.t", start=start) as changes:
                assert values(rows_of(changes, 1), "id") == [("insert", 1)]
        with pytest.raises(PositionLostError, match="ahead of the log"):
            next(iter(there.changes(f"{schema}.t", start=f"{position['file']}:{position['offset'] + 10**9}")))


def test_a_table_that_is_altered_continues_with_its_new_columns(mariadb: DatabaseServer, schema: str) -> None:
    with serving(mariadb) as running, connection(running) as there, there.changes(f"{schema}.t") as changes:
        position = there.positions()["latest"]
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'a', 1)")
        assert values(rows_of(changes, 1), "id") == [("insert", 1)]
        execute(mariadb, f"ALTER TABLE {schema}.t ADD COLUMN more INT FIRST, MODIFY price DECIMAL(12,3)")
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (9, 2, 'b', 3)")
        assert values(rows_of(changes, 1), "id", "more", "price") == [("insert", 2, 9, Decimal(3))]
        execute(mariadb, f"ALTER TABLE {schema}.t DROP COLUMN more")
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (3, 'c', 2)")
        assert values(rows_of(changes, 1), "id", "more") == [("insert", 3, None)]
        # From before the column was dropped: rows that had it are no reason to look again and again.
        with there.changes(f"{schema}.t", start=position) as again:
            assert values(rows_of(again, 3), "id") == [("insert", 1), ("insert", 2), ("insert", 3)]


def test_destinations_and_tables_are_listed(mariadb: DatabaseServer, schema: str) -> None:
    allowed = {"filter": {"allow": f"{schema}.*"}}
    with serving(mariadb, **allowed) as running, connection(running) as there:
        tables = there.tables()
        assert sorted(tables) == [f"{schema}.other", f"{schema}.t"]
        assert tables[f"{schema}.t"].names[:4] == ["id", "v", "price", "_change_type"]
        client = fl.connect(f"grpc://{running.address}")
        paths = [[part.decode() for part in info.descriptor.path] for info in client.list_flights()]
        assert ["default"] in paths
        for info in client.list_flights():
            assert client.get_flight_info(info.descriptor).schema.names == info.schema.names
        assert {action.type for action in client.list_actions()} >= {"subscribe", "ack", "rollback", "positions"}
        assert there.status()["state"] == "following"


# -- what is asked for wrongly


@pytest.mark.parametrize(
    ("request_", "error", "text"),
    [
        ({"destination": "nobody"}, PenstockError, "no destination 'nobody'"),
        ({"tables": ["x"]}, PenstockError, "x"),
        ({"tables": ["a.b"], "columns": ["nope"]}, PenstockError, "a.b"),
        ({"form": "both"}, ProtocolError, "decoded or raw"),
        ({"form": []}, ProtocolError, "decoded or raw"),
        ({"destination": "\ud800"}, ProtocolError, "no Unicode"),
        ({"start": {"file": "binlog.000001", "offset": 4.5}}, ProtocolError, "not a position in the log"),
        ({"tables": ["mysql.user"]}, SchemaError, "does not pass the filter"),
        ({"start": 7}, ProtocolError, "not a position in the log"),
        ({"start": {"file": 1}}, ProtocolError, "not a position in the log"),
        ({"start": "time:yesterday"}, ProtocolError, "no time"),
        ({"filter": "("}, PenstockError, "regular expression"),
        ({"tables": ["a.b"], "filter": "a"}, ProtocolError, "either"),
        ({"tables": [1]}, ProtocolError, "list of texts"),
        ({"client": "x"}, ProtocolError, "number"),
        ({"client": 7}, MetaError, "has not subscribed"),
        ({"client": 7, "start": "latest"}, ProtocolError, "cursor"),
        ({"surprise": 1}, ProtocolError, "surprise"),
    ],
)
def test_a_wrong_ticket_is_refused_in_one_line(
    mariadb: DatabaseServer, request_: dict[str, Any], error: type[PenstockError], text: str
) -> None:
    from penstock.client.link import ServerAddress, ServerLink

    with serving(mariadb, filter={"deny": "mysql\\..*"}) as running:
        link = ServerLink(ServerAddress(running.address))
        with pytest.raises(error, match=text) as caught:
            link.open_stream(json.dumps(request_).encode()).read_chunk()
        assert "\n" not in str(caught.value)
        assert "Traceback" not in str(caught.value)
        link.close()


def test_a_column_that_is_not_there_is_named(mariadb: DatabaseServer, schema: str) -> None:
    wrong = pytest.raises(SchemaError, match="has no column nope")
    with serving(mariadb) as running, connection(running) as there, wrong:
        there.changes(f"{schema}.t", columns=["nope"])


# -- who resumes


def test_a_stream_resumes_after_the_server_was_restarted(mariadb: DatabaseServer, schema: str, tmp_path: Path) -> None:
    flight = {"port": free_port()}
    with serving(mariadb, flight, data_dir=tmp_path) as running:
        there = connection(running)
        changes = there.changes(f"{schema}.t")
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'a', 1)")
        assert values(rows_of(changes, 1), "id") == [("insert", 1)]
    execute(mariadb, f"INSERT INTO {schema}.t VALUES (2, 'a', 1)")
    again = threading.Thread(target=lambda: rows.extend(rows_of(changes, 2)))
    rows = list[dict[str, Any]]()
    again.start()
    with serving(mariadb, flight, data_dir=tmp_path):
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (3, 'a', 1)")
        again.join(30)
        assert values(rows, "id") == [("insert", 2), ("insert", 3)]
        changes.close()
        there.close()


def test_what_a_client_has_not_acked_is_redelivered(mariadb: DatabaseServer, schema: str) -> None:
    with serving(mariadb) as running, connection(running) as there:
        with there.subscribe(7, filter=f"{schema}\\..*", tables=[f"{schema}.t"]) as first:
            execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'a', 1)")
            assert values(rows_of(first, 1), "id") == [("insert", 1)]
            first.ack()
            execute(mariadb, f"INSERT INTO {schema}.t VALUES (2, 'a', 1)")
            assert values(rows_of(first, 1), "id") == [("insert", 2)]
            first.rollback()
            assert values(rows_of(first, 1), "id") == [("insert", 2)]
        with there.subscribe(7, filter=f"{schema}\\..*", tables=[f"{schema}.t"]) as second:
            assert values(rows_of(second, 1), "id") == [("insert", 2)]
            second.ack()
            with pytest.raises(MetaError, match="no batch"):
                there._link.call_action("ack", {"client": 7, "batch": 1})  # pyright: ignore[reportPrivateUsage]
            execute(mariadb, f"INSERT INTO {schema}.other VALUES (1, NULL, NULL)")
            execute(mariadb, f"INSERT INTO {schema}.t VALUES (3, 'a', 1)")
            assert values(rows_of(second, 1), "id") == [("insert", 3)]
            second.ack()
        positions = there.positions()
        client = positions["clients"]["7"]
        assert client["filter"] == f"{schema}\\..*"
        assert poll(lambda: not there.positions()["clients"]["7"]["outstanding"])
        there.unsubscribe(7)
        assert not there.positions()["clients"]


def test_the_last_stream_of_a_client_counts(mariadb: DatabaseServer, schema: str) -> None:
    with serving(mariadb) as running, connection(running) as there:
        old = there.subscribe(7, filter=f"{schema}\\..*")
        ended = list[PenstockError]()

        def follow(subscription: ClientSubscription) -> None:
            try:
                rows_of(subscription, 1)
            except PenstockError as error:
                ended.append(error)

        thread = threading.Thread(target=follow, args=(old,))
        thread.start()
        new = there.subscribe(7, filter=f"{schema}\\..*")
        thread.join(30)
        assert "another stream" in str(ended[0])
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'a', 1)")
        assert values(rows_of(new, 1), "_table") == [("insert", f"{schema}.t")]
        new.close()


def test_a_reader_that_stops_reading_holds_up_nobody(
    private_server: Callable[..., DatabaseServer],
) -> None:
    source = private_server("mariadb")
    execute(source, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, v LONGTEXT)")
    with serving(source, store={"memory": 4 << 20}) as running, connection(running) as there:
        slow, fast = there.changes("shop.t"), there.changes("shop.t")
        execute(source, "INSERT INTO shop.t VALUES (0, '')")
        assert values(rows_of(slow, 1), "id") == [("insert", 0)]  # and then nothing is read for long
        begun = time.monotonic()
        for number in range(1, 65):
            execute(source, f"INSERT INTO shop.t VALUES ({number}, REPEAT('x', 1048576))")
        assert values(rows_of(fast, 65), "id") == [("insert", number) for number in range(65)]
        assert time.monotonic() - begun < 60
        assert values(rows_of(slow, 64), "id") == [("insert", number) for number in range(1, 65)]
        slow.close()
        fast.close()


def test_a_part_of_a_transaction_that_is_redelivered_is_left_out(
    private_server: Callable[..., DatabaseServer],
) -> None:
    """A reader that was evicted inside of a transaction gets the beginning of it a second time."""
    source = private_server("mariadb")
    execute(source, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, v LONGTEXT)")
    with serving(source, store={"memory": 4 << 20}) as running, connection(running) as there:
        slow, fast = there.changes("shop.t"), there.changes("shop.t")
        rows = [f"INSERT INTO shop.t VALUES ({number}, REPEAT('x', 1048576))" for number in range(40)]
        writer = threading.Thread(target=execute, args=(source, "BEGIN", *rows, "COMMIT"))
        writer.start()
        batches = iter(slow)
        ids = next(batches).column("id").to_pylist()
        assert len(rows_of(fast, 40)) == 40
        while len(ids) < 40:
            ids += next(batches).column("id").to_pylist()
        writer.join()
        assert ids == list(range(40))
        slow.close()
        fast.close()


def test_a_server_stops_although_a_reader_does_not_read(
    mariadb: DatabaseServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(mariadb, f"ALTER TABLE {schema}.t MODIFY v LONGTEXT")
    with serving(mariadb) as running, closing(fl.connect(f"grpc://{running.address}")) as client:
        flight, instance, sent_rows, streams = running.flight, running.instances["default"], list[int](), list[Any]()
        assert flight is not None
        original = flight._translate_stream_errors

        def watched(*given: Any) -> Iterator[Any]:
            streams.append(original(*given))
            for piece in streams[-1]:
                sent_rows.append(piece[0].num_rows)
                yield piece

        def sent_while_waiting() -> int | None:
            """How many rows were sent, when there are more and gRPC does not take them."""
            return sum(sent_rows) if streams[-1].gi_suspended and sum(sent_rows) < 30 else None

        monkeypatch.setattr(flight, "_translate_stream_errors", watched)
        stream = client.do_get(fl.Ticket(f"{schema}.t"))
        stream.read_chunk()
        for number in range(30):
            execute(mariadb, f"INSERT INTO {schema}.t VALUES ({number}, REPEAT('x', 1048576), 1)")
        end = end_of(mariadb)
        assert poll(lambda: instance.store.latest >= end)
        assert wait_until_stalled(sent_while_waiting), sent_rows
        begun = time.monotonic()
        running.stop()
        assert time.monotonic() - begun < 20
        stream.cancel()


def test_retries_have_an_end_also_when_the_server_takes_the_call(
    mariadb: DatabaseServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(mariadb) as running, connection(running, retry_timeout_s=2) as there:
        changes = there.changes(f"{schema}.t")
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'a', 1)")
        assert len(rows_of(changes, 1)) == 1
        monkeypatch.setattr(running.flight, "_max_streams", 0)
        running.instances["default"].reload_filter(FilterSettings(deny=("no\\.table",)))
        begun = time.monotonic()
        with pytest.raises(PenstockError, match="streams already"):
            rows_of(changes, 1)
        assert 1 < time.monotonic() - begun < 10


def test_a_filter_that_is_reloaded_counts_for_streams_that_are_open(mariadb: DatabaseServer, schema: str) -> None:
    with serving(mariadb) as running, connection(running) as there:
        narrow, wide = there.changes(f"{schema}.t"), there.changes(filter=f"{schema}\\..*")
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'seen', 1)")
        assert rows_of(narrow, 1)[0]["v"] == "seen"
        assert "seen" in rows_of(wide, 1)[0]["row"]
        hidden = FilterSettings.model_validate({"columns": [{"table": ".*\\.t", "drop": ["v"]}]})
        running.instances["default"].reload_filter(hidden)
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (2, 'secret', 1)")
        assert "v" not in rows_of(narrow, 1)[0]
        assert "secret" not in rows_of(wide, 1)[0]["row"]
        narrow.close()
        wide.close()


def test_an_ack_that_comes_too_late_is_no_error(mariadb: DatabaseServer, schema: str) -> None:
    flight = {"port": free_port()}
    with serving(mariadb, flight) as running:
        there = connection(running)
        changes = there.subscribe(7, filter=f"{schema}\\..*", tables=[f"{schema}.t"])
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'a', 1)")
        assert len(rows_of(changes, 1)) == 1
        start = running.instances["default"].store.first
    changes.ack()
    with serving(mariadb, flight, start=f"{start.file}:{start.offset}") as running:
        with connection(running) as other:
            other.subscribe(7, filter=f"{schema}\\..*", start=start).close()
        changes.ack()
        assert values(rows_of(changes, 1), "id") == [("insert", 1)]
        changes.ack()
        changes.close()
        there.close()


def test_a_subscription_ahead_of_the_log_is_refused(mariadb: DatabaseServer) -> None:
    with serving(mariadb) as running, connection(running) as there:
        position = there.positions()["latest"]
        with pytest.raises(PositionLostError, match="ahead of the log"):
            there.subscribe(7, start=position | {"offset": position["offset"] + 10**9})


# -- who may call, and how many


def test_only_a_token_lets_in(mariadb: DatabaseServer, schema: str) -> None:
    with serving(mariadb, {"tokens": {"search": "s3cret", "lake": "0ther"}}) as running:
        for token in ("", "wrong", "S3cret"):
            with connection(running, token=token) as there, pytest.raises(PenstockError, match="token"):
                there.positions()
            with connection(running, token=token) as there, pytest.raises(PenstockError, match="token"):
                there.changes(f"{schema}.t")
        with connection(running, token="s3cret") as there:
            assert there.tables()
        client = fl.connect(f"grpc://{running.address}")
        header = client.authenticate_basic_token("lake", "0ther")
        assert list(client.list_flights(options=fl.FlightCallOptions(headers=[header])))
        with pytest.raises(fl.FlightUnauthenticatedError):
            client.authenticate_basic_token("search", "0ther")


def test_tls_is_spoken_where_there_is_a_certificate(mariadb: DatabaseServer, schema: str, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates", "127.0.0.1")
    flight = {"tls_cert": certificates.cert, "tls_key": certificates.key, "tokens": {"lake": "s3cret"}}
    with serving(mariadb, flight) as running:
        url = f"grpc+tls://{running.address}"
        with penstock.connect(url, token="s3cret", tls_ca=str(certificates.ca)) as there:
            assert f"{schema}.t" in there.tables()
        plain = penstock.connect(f"grpc://{running.address}", token="s3cret", retry_timeout_s=0.5)
        with plain as there, pytest.raises(ServerUnavailableError, match="TLS at both"):
            there.positions()
        with (
            penstock.connect(url, token="s3cret") as there,
            pytest.raises(ConfigurationError, match="is not trusted: name the CA"),
        ):
            there.positions()


def test_tls_at_a_port_without_it_is_said_at_once(mariadb: DatabaseServer) -> None:
    with (
        serving(mariadb, {}) as running,
        penstock.connect(f"grpc+tls://{running.address}") as there,
        pytest.raises(ConfigurationError, match="does not speak TLS"),
    ):
        there.positions()


def test_streams_are_counted_and_end_with_their_readers(mariadb: DatabaseServer, schema: str) -> None:
    with serving(mariadb, {"streams": 3}) as running, connection(running) as there:
        streams = [there.changes(f"{schema}.t") for _ in range(3)]
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'a', 1)")
        for changes in streams:
            rows_of(changes, 1)
            assert poll(lambda: running.flight.streams == 3)
        with pytest.raises(PenstockError, match="3 streams already"):
            next(iter(penstock.connect(running.address, retry_timeout_s=0).changes(f"{schema}.t")))
        for changes in streams:
            changes.close()
        assert poll(lambda: running.flight.streams == 0)
        instance = running.instances["default"]
        assert not [name for name in instance.store.states() if name.startswith("stream")]


def test_a_batch_of_a_live_stream_is_an_arrow_batch(mariadb: DatabaseServer, schema: str) -> None:
    with serving(mariadb) as running, connection(running) as there, there.changes(f"{schema}.t") as changes:
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'a', 1)")
        batch = next(iter(changes))
        assert isinstance(batch, pa.RecordBatch)
        assert batch.schema.equals(changes.schema)


_WITHOUT_PANDAS = """
import json, sys
import pyarrow.flight as fl
from penstock.config import FilterSettings, InstanceSettings, ServerSettings
from penstock.server import Server

server = Server(ServerSettings.with_flight_only(InstanceSettings.model_validate_json(sys.argv[1])))
server.start()
client = fl.connect(f"grpc://{server.address}")
for ticket in json.loads(sys.argv[2]):
    stream = client.do_get(fl.Ticket(json.dumps(ticket)))
    while not stream.read_chunk().data.num_rows:
        pass
    stream.cancel()
server.stop()
sys.exit("pandas" in sys.modules and "pandas was imported")
"""


def test_no_stream_waits_until_pandas_is_imported(mariadb: DatabaseServer, schema: str) -> None:
    """Some calls of pyarrow import it when it is there, which takes a second."""
    with serving(mariadb) as running:
        start = running.instances["default"].store.latest.to_json()
    execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'a', 1)", f"UPDATE {schema}.t SET v = NULL")
    source = {"host": mariadb.host, "port": mariadb.port, "user": mariadb.user, "password": mariadb.password}
    tickets = [
        {"start": start, "form": "raw"},
        {"start": start, "tables": [f"{schema}.t"]},
        {"start": start, "filter": f"{schema}.*"},
    ]
    command = [sys.executable, "-c", _WITHOUT_PANDAS, json.dumps({"source": source}), json.dumps(tickets)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
