"""Admin ports on a real source: what is seen of clients that read, wait and block, and of a source that dies."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.client.canal import CanalConnector
from penstock.config import ConfFolder, ServerSettings
from penstock.errors import PenstockError
from penstock.model import TableName
from penstock.server import Server
from penstock.testing import DatabaseServer, poll_until
from tests.services.zookeeper import ZooKeeper
from tests.support.admin_support import (
    CLOSED,
    Console,
    asked,
    parse_metrics,
    readiness_of,
    sample,
    served,
    status_of,
)
from tests.support.capture import execute

LOGIN = {"port": 0, "user": "admin", "password": "secret"}


def configuration(server: DatabaseServer, **changes: Any) -> dict[str, Any]:
    source = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    return {"source": source | {"heartbeat_s": 1}, "destination": "shop"} | changes


def settings_of(*instances: dict[str, Any], **sections: Any) -> ServerSettings:
    given = {"flight": {"port": 0}, "canal": {"port": 0}, "admin": {"port": 0}, "canal_admin": LOGIN}
    return ServerSettings.model_validate(given | {"instances": list(instances)} | sections)


@contextmanager
def client_of(server: Server, client_id: int, table: str) -> Iterator[CanalConnector]:
    assert server.canal is not None
    with CanalConnector("127.0.0.1", server.canal.port, "shop", client_id=client_id) as connector:
        connector.subscribe(table.replace(".", "\\."))
        yield connector


@pytest.fixture
def table(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = f"{database(mariadb)}.t"
    execute(mariadb, f"CREATE TABLE {name} (id INT PRIMARY KEY, v LONGTEXT)")
    return name


def one_of(server: Server) -> dict[str, Any]:
    (instance,) = status_of(server)["instances"]
    return instance


def clients_of(server: Server) -> dict[str, dict[str, Any]]:
    return {client["client"]: client for client in one_of(server)["clients"]}


def test_status_shows_clients_and_who_blocks_whom(mariadb: DatabaseServer, table: str) -> None:
    with (
        served(settings_of(configuration(mariadb, store={"memory": 1 << 16}))) as server,
        client_of(server, 1001, table) as slow,
        client_of(server, 1002, table) as quick,
    ):
        execute(mariadb, f"INSERT INTO {table} VALUES (1, 'a')")
        first = slow.get_without_ack(100, timeout_s=10)
        second = quick.get_without_ack(100, timeout_s=10)
        quick.ack(second.id)
        assert poll_until(lambda: clients_of(server)["1002"]["outstanding"] == 0, 10)
        assert poll_until(lambda: one_of(server)["lag"] == {"seconds": 0.0, "bytes": 0}, 10)
        clients = clients_of(server)
        assert [batch["id"] for batch in clients["1001"]["batches"]] == [first.id]
        assert (clients["1001"]["holds_oldest"], clients["1002"]["holds_oldest"]) == (True, False)
        assert clients["1002"]["lag"]["bytes"] == 0 < clients["1001"]["lag"]["bytes"]
        assert clients["1001"]["cursor"]["offset"] < clients["1002"]["cursor"]["offset"]
        for number in range(10, 40):  # each is read before the next is written: blocks of one row fill the store well
            execute(mariadb, f"INSERT INTO {table} VALUES ({number}, REPEAT('x', 10000))")
            if (
                one_of(server)["state"] != "blocked"
                and not (message := quick.get_without_ack(100, timeout_s=2)).is_empty
            ):
                quick.ack(message.id)
        assert poll_until(lambda: one_of(server)["state"] == "blocked", 20), one_of(server)
        assert quick.get_without_ack(100, timeout_s=0.1).is_empty
        instance = one_of(server)
        assert instance["store"]["waits_for"] == instance["store"]["held_for"] == ["1001"]
        assert instance["reason"] == "the store is full until 1001 acks"
        assert instance["store"]["fill"] > 0.5
        samples = parse_metrics(asked(server, "/metrics")[1])
        assert sample(samples, "penstock_client_holds_oldest", destination="shop", client="1001") == 1
        assert sample(samples, "penstock_instance_state", destination="shop", state="blocked") == 1
        assert sample(samples, "canal_instance_client_packets", destination="shop", packetType="GET") >= 3
        assert sample(samples, "canal_instance_client_packets", destination="shop", packetType="SUBSCRIPTION") == 2
        assert sample(samples, "canal_instance_client_bytes", destination="shop") > 10000
        assert sample(samples, "canal_instance_client_empty_batches", destination="shop") >= 1
        latencies = sample(samples, "canal_instance_client_request_latency_count", destination="shop")
        assert latencies == sample(
            samples, "canal_instance_client_request_latency_bucket", destination="shop", le="+Inf"
        )
        assert sample(samples, "penstock_connections", port="canal") == 2
        slow.ack(first.id)

        def take() -> bool:
            for client in (slow, quick):
                message = client.get_without_ack(1000, timeout_s=0.1)
                if not message.is_empty:
                    client.ack(message.id)
            return one_of(server)["state"] == "following" and not one_of(server)["store"]["held_for"]

        assert poll_until(take, 30), one_of(server)
        assert poll_until(lambda: one_of(server)["lag"] == {"seconds": 0.0, "bytes": 0}, 10)
        samples = parse_metrics(asked(server, "/metrics")[1])
        assert sample(samples, "canal_instance_sink_blocking_time", destination="shop") > 0


def test_the_progress_of_snapshots_is_in_the_status_and_the_metrics(mariadb: DatabaseServer, table: str) -> None:
    execute(mariadb, f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, 'c')", f"ANALYZE TABLE {table}")
    with served(settings_of(configuration(mariadb), canal=CLOSED)) as server:
        assert one_of(server)["snapshots"] == {}, "no query has asked for one"
        instance, name = server.instances["shop"], TableName.parse(table)
        fields = arrow_fields_of_table(instance.describe_tables([name])[0])
        assert poll_until(lambda: instance.store.latest >= instance.source_log.end(), 30)
        (chunk,) = instance.snapshots.plan(name, None, rows_before=0, count=1, rows=100).chunks
        progress = one_of(server)["snapshots"][table]
        assert (progress["state"], progress["rows_read"]) == ("running", 0)
        assert sum(batch.num_rows for batch in instance.snapshots.read(name, chunk, instance.store.latest, fields)) == 3
        progress = one_of(server)["snapshots"][table]
        assert (progress["state"], progress["rows_read"], progress["percent"]) == ("complete", 3, 100.0)
        samples, where = parse_metrics(asked(server, "/metrics")[1]), {"destination": "shop", "table": table}
        assert sample(samples, "penstock_snapshot_done_ratio", **where) == 1
        assert sample(samples, "penstock_snapshot_rows_total", **where) == 3
        assert sample(samples, "penstock_snapshot_chunks_total", **where) == 1


def test_it_is_ready_while_its_source_lives(private_server: Callable[..., Any]) -> None:
    mariadb: DatabaseServer = private_server("mariadb")
    with served(settings_of(configuration(mariadb), canal=CLOSED)) as server:
        assert poll_until(lambda: readiness_of(server)[0] == 200, 20), readiness_of(server)
        mariadb.kill()
        assert poll_until(lambda: readiness_of(server)[0] == 503, 20)
        code, body = readiness_of(server)
        assert code == 503
        assert body["reasons"]["shop"].startswith("reconnecting: ")
        assert mariadb.password not in str(body)
        assert asked(server, "/healthz")[0] == 200
        assert sample(parse_metrics(asked(server, "/metrics")[1]), "penstock_ready") == 0
        mariadb.start()
        assert poll_until(lambda: readiness_of(server)[0] == 200, 60), readiness_of(server)


def test_it_is_ready_while_its_settings_are_right(mariadb: DatabaseServer, tmp_path: Path) -> None:
    def write(changes: dict[str, Any]) -> None:
        text = yaml.safe_dump(configuration(mariadb, data_dir=str(tmp_path / "data")) | changes)
        (tmp_path / "conf" / "shop.yml").write_text(text.replace("destination: shop\n", ""))

    (tmp_path / "conf").mkdir()
    write({})
    settings = settings_of(canal=CLOSED)
    with served(settings, ConfFolder(tmp_path / "conf", 0), 0.2) as server:
        assert poll_until(lambda: readiness_of(server)[0] == 200, 20), readiness_of(server)
        write({"on_purged": "sometimes"})
        assert poll_until(lambda: readiness_of(server)[0] == 503, 20)
        _, body = readiness_of(server)
        assert "on_purged" in body["reasons"]["shop"]
        assert one_of(server)["state"] == "following", "what runs stays"
        assert status_of(server)["problems"].keys() == {"shop"}
        write({"on_purged": "latest"})
        assert poll_until(lambda: readiness_of(server)[0] == 200, 30), readiness_of(server)
        # One whose source does not let it in: the start is tried again, and shown.
        (tmp_path / "conf" / "other.yml").write_text(
            yaml.safe_dump({"source": configuration(mariadb)["source"] | {"password": "wr0ng"}})
        )
        assert poll_until(lambda: "is tried again" in str(readiness_of(server)), 20), readiness_of(server)
        assert "wr0ng" not in str(status_of(server))
        (tmp_path / "conf" / "other.yml").unlink()
        assert poll_until(lambda: readiness_of(server)[0] == 200, 30), readiness_of(server)


def test_the_console_stops_and_starts_and_clients_resume(mariadb: DatabaseServer, table: str) -> None:
    with served(settings_of(configuration(mariadb))) as server:
        assert server.canal_admin is not None
        with Console(server.canal_admin.port) as console, client_of(server, 1001, table) as client:
            execute(mariadb, f"INSERT INTO {table} VALUES (1, 'a')")
            client.ack(client.get_without_ack(100, timeout_s=10).id)
            assert poll_until(lambda: clients_of(server)["1001"]["outstanding"] == 0, 10)
            assert console.instance("stop") == (0, "1")
            execute(mariadb, f"INSERT INTO {table} VALUES (2, 'b')")
            with pytest.raises(PenstockError, match="was stopped manually"):
                client.get_without_ack(100)
            assert console.instance("start") == (0, "1")
            with client_of(server, 1001, table) as again:
                message = again.get_without_ack(100, timeout_s=10)
                rows = [row for _, change in message.row_changes() for row in change.rowDatas]
                assert [row.afterColumns[0].value for row in rows] == ["2"], "what came meanwhile, and nothing again"
            code, text = console.log("server", "tail", count=200)
            assert code == 0
            assert mariadb.password not in text


def test_a_released_destination_goes_to_another_server(mariadb: DatabaseServer, zookeeper: ZooKeeper) -> None:
    name = f"d{secrets.token_hex(4)}"
    settings = settings_of(
        configuration(mariadb, destination=name), zookeeper=zookeeper.hosts, running={"session_s": 6, "share": False}
    )
    with served(settings) as first, served(settings) as second:
        assert poll_until(lambda: readiness_of(first)[0] == readiness_of(second)[0] == 200, 30), (
            readiness_of(first),
            readiness_of(second),
        )
        owners = [server for server in (first, second) if one_of(server)["election"]["is_held"]]
        (owner,) = owners
        other = second if owner is first else first
        assert owner.canal is not None
        assert readiness_of(other)[1]["notes"] == {name: f"standby: {owner.canal.address} runs it"}
        assert (one_of(owner)["role"], one_of(other)["role"]) == ("running", "standby")
        epoch = one_of(owner)["election"]["epoch"]
        assert owner.canal_admin is not None
        with Console(owner.canal_admin.port) as console:
            assert console.instance("release", name) == (0, "1")
            assert poll_until(lambda: one_of(other)["election"]["is_held"], 20)
            assert poll_until(lambda: readiness_of(owner)[0] == readiness_of(other)[0] == 200, 20)
            assert one_of(other)["election"]["epoch"] > epoch
            assert console.instance("release", name) == (0, "0"), "it is not ours any more"
            # By hand it leaves the election, and comes back to it.
            assert console.instance("stop", name) == (0, "1")
            assert one_of(owner)["role"] == "stopped manually"
        assert other.canal_admin is not None
        with Console(other.canal_admin.port) as console:
            assert console.instance("stop", name) == (0, "1")
            assert not one_of(owner)["election"]["is_held"]
        with Console(owner.canal_admin.port) as console:
            assert console.instance("start", name)[0] == 0
            assert poll_until(lambda: console.instance("check", name) == (0, "1"), 30)
