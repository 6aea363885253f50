"""The admin port: pages, who may see them, and peers that mean no good."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import ConfigurationError
from penstock.instance.report import report_instance
from penstock.render.json_rows import JsonRowReader
from penstock.server import Server
from penstock.server.admin.admin_port import AdminPort
from penstock.store import BatchSize, Start
from penstock.testing import free_port, poll_until
from tests.support.admin_support import (
    asked,
    parse_metrics,
    readiness_of,
    sample,
    served,
    settings_with,
    shop_folder,
    status_of,
)

CLIENT = 1001


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shop_folder(tmp_path / "logs")


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    with served(settings_with(folder)) as process:
        assert poll_until(lambda: readiness_of(process)[0] == 200, 20), readiness_of(process)
        assert poll_until(lambda: status_of(process)["instances"][0]["lag"] == {"seconds": 0.0, "bytes": 0}, 20)
        yield process


def test_it_is_alive_and_ready(server: Server) -> None:
    assert asked(server, "/healthz") == (200, "ok\n")
    code, body = readiness_of(server)
    assert (code, body) == (200, {"ready": True, "reasons": {}, "notes": {}})
    assert asked(server, "/healthz", "HEAD") == (200, "")


def test_status_says_what_runs_and_who_reads(server: Server) -> None:
    clients = server.destinations.running_instance("shop").clients
    clients.subscribe(CLIENT, "shop\\..*", Start.stored())
    first = clients.get(CLIENT, BatchSize(3), 10)
    second = clients.get(CLIENT, BatchSize(3), 10)
    assert first is not None
    assert second is not None
    clients.ack(CLIENT, first[0])
    status = status_of(server)
    assert status["ready"]
    assert status["server"]["ports"]["admin"]["address"] == f"127.0.0.1:{server.admin.port}"
    (instance,) = status["instances"]
    assert (instance["destination"], instance["state"], instance["role"]) == ("shop", "following", "running")
    (client,) = instance["clients"]
    assert (client["client"], client["filter"], client["state"]) == (str(CLIENT), "shop\\..*", "live")
    assert client["outstanding"] == 1
    assert [batch["id"] for batch in client["batches"]] == [second[0]]
    assert client["batches"][0]["end"]["offset"] == second[1].end.offset
    assert client["cursor"]["offset"] == clients.cursors()[CLIENT].offset
    assert client["holds_oldest"]
    assert instance["store"]["held_for"] == [str(CLIENT)]
    assert instance["store"]["waits_for"] == []
    assert client["waiting_entries"] == instance["store"]["entries"] > 0
    assert client["lag"]["bytes"] == instance["latest"]["offset"] - client["cursor"]["offset"]
    while (batch := clients.get(CLIENT, BatchSize(100))) is not None:
        pass
    del batch
    for batch_id in clients.outstanding(CLIENT):
        clients.ack(CLIENT, batch_id)
    (client,) = status_of(server)["instances"][0]["clients"]
    assert (client["outstanding"], client["holds_oldest"], client["lag"]["bytes"]) == (0, False, 0)


def test_metrics_are_what_prometheus_reads(server: Server) -> None:
    clients = server.destinations.running_instance("shop").clients
    clients.subscribe(CLIENT, "", Start.stored())
    first = clients.get(CLIENT, BatchSize(3), 10)
    assert first is not None
    clients.ack(CLIENT, first[0])
    assert clients.get(CLIENT, BatchSize(3), 10) is not None
    code, text = asked(server, "/metrics")
    assert code == 200
    metrics = parse_metrics(text)
    assert sample(metrics, "penstock_ready") == 1
    assert sample(metrics, "canal_instance", destination="shop", mode="own") == 1
    assert sample(metrics, "canal_instance_transactions", destination="shop") == 6
    assert sample(metrics, "canal_instance_subscriptions", destination="shop") == 1
    put = sample(metrics, "canal_instance_store_produce_seq", destination="shop")
    assert put > sample(metrics, "canal_instance_store_consume_seq", destination="shop")
    assert sample(metrics, "penstock_client_outstanding_batches", destination="shop", client=str(CLIENT)) == 1
    assert sample(metrics, "penstock_client_holds_oldest", destination="shop", client=str(CLIENT)) == 1
    assert sample(metrics, "canal_instance_put_delay", destination="shop") == 0
    got, acked = (sample(metrics, f"canal_instance_{what}_delay", destination="shop") for what in ("get", "ack"))
    assert acked >= got > 1e9, "the log is years old"
    states = [value for (name, _), value in metrics.items() if name == "penstock_instance_state"]
    assert sum(states) == 1
    assert "password" not in text


def rows_of(server: Server) -> list[float]:
    """That were put, got and acked."""
    metrics = parse_metrics(asked(server, "/metrics")[1])
    return [sample(metrics, f"canal_instance_{what}_rows", destination="shop") for what in ("put", "get", "ack")]


def test_rows_are_counted_when_they_are_put_got_and_acked(server: Server) -> None:
    clients = server.destinations.running_instance("shop").clients
    clients.subscribe(CLIENT, "", Start.stored())
    rows = 0
    while (batch := clients.get(CLIENT, BatchSize(3))) is not None:
        for block in batch[1].blocks:
            json_rows = JsonRowReader(lambda table: table.columns).read_block(block)
            kinds = [] if json_rows is None else json_rows.column("_change_type").to_pylist()
            rows += sum(kind != "update_preimage" for kind in kinds)
    assert rows > 3
    assert rows_of(server) == [rows, rows, 0]
    first, *others = clients.outstanding(CLIENT)
    clients.ack(CLIENT, first)
    some = rows_of(server)[2]
    clients.rollback(CLIENT)
    assert rows_of(server) == [rows, rows, some]
    again = clients.get(CLIENT, BatchSize(1000))
    assert again is not None
    assert rows_of(server) == [rows, 2 * rows - some, some], "what is redelivered counts again"
    clients.ack(CLIENT, again[0])
    assert rows_of(server) == [rows, 2 * rows - some, rows]
    assert others


def test_rows_are_not_counted_without_a_port_that_shows_them(folder: Path) -> None:
    settings = settings_with(folder)
    without = settings.model_copy(update={"admin": settings.admin.model_copy(update={"port": None})})
    with served(without) as server:
        assert poll_until(lambda: "shop" in server.destinations.instances, 20)
        instance = server.destinations.running_instance("shop")
        assert poll_until(lambda: instance.counters.kept_events > 0, 20)
        report = report_instance(instance)["store"]
    assert [report[f"{what}_rows"] for what in ("put", "got", "acked")] == [None, None, None]


def test_all_metrics_of_canals_panels_are_there(server: Server) -> None:
    clients = server.destinations.running_instance("shop").clients
    clients.subscribe(CLIENT, "", Start.stored())
    batch = clients.get(CLIENT, BatchSize(3), 10)
    assert batch is not None
    clients.ack(CLIENT, batch[0])
    metrics = parse_metrics(asked(server, "/metrics")[1])
    assert sample(metrics, "canal_instance_parser_mode", destination="shop", parallel="false") == 1
    (labels,) = [dict(labels) for name, labels in metrics if name == "canal_instance_store"]
    assert labels.pop("size").isdecimal()
    assert labels == {"destination": "shop", "batchMode": "MEMSIZE"}
    names = {name for name, _ in metrics}
    assert names >= {f"canal_instance_{name}" for name in (
        "traffic_delay", "transactions", "received_binlog_bytes", "publish_blocking_time", "sink_blocking_time",
        "store_produce_seq", "store_consume_seq", "store_produce_mem", "store_consume_mem", "put_delay", "get_delay",
        "ack_delay", "put_rows", "get_rows", "ack_rows", "subscriptions", "parser_mode", "store",
    )}  # fmt: skip


def test_what_is_not_there_or_not_allowed_is_said_in_a_line(server: Server) -> None:
    assert asked(server, "/nothing") == (404, "there is /healthz, /readyz, /status, /metrics\n")
    assert asked(server, "/status", "POST")[0] == 405
    assert asked(server, "/status?pretty=1")[0] == 200
    assert asked(server, "/status", Host="evil.example")[0] == 403  # a page that a name was pointed here for
    assert asked(server, "/status", Host="localhost:11112")[0] == 200
    assert asked(server, "/status", Host="[::1]:11112")[0] == 200


def test_an_error_inside_shows_no_trace(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ZeroDivisionError("a secret of ours")

    monkeypatch.setattr(server.report, "status", fail)
    assert asked(server, "/status") == (500, "an error inside of the server: its log says more\n")
    assert asked(server, "/healthz")[0] == 200


def test_a_token_is_asked_for(folder: Path) -> None:
    with served(settings_with(folder, admin={"port": 0, "token": "s3cret"})) as server:
        assert asked(server, "/healthz")[0] == 200
        for path in ("/status", "/readyz", "/metrics", "/nothing"):
            assert asked(server, path)[0] == 401
            for wrong in ("Bearer", "Bearer wrong", "Bearer s3cre", "Bearer s3crett", "Basic s3cret", "s3cret"):
                assert asked(server, path, Authorization=wrong)[0] == 401, wrong
        code, text = asked(server, "/status", Authorization="Bearer s3cret", Host="db1:11112")
        assert code == 200
        assert "s3cret" not in text


def test_ready_only_while_it_gets_on(server: Server, folder: Path) -> None:
    log = folder / "binlog.000001"
    held = log.rename(folder.parent / "held")
    assert poll_until(lambda: readiness_of(server)[0] == 503, 30)
    code, body = readiness_of(server)
    assert (code, body["ready"]) == (503, False)
    assert "shop" in body["reasons"]
    assert asked(server, "/healthz")[0] == 200
    held.rename(log)


# -- hostile peers


def connected(server: Server) -> socket.socket:
    assert server.admin is not None
    return socket.create_connection(("127.0.0.1", server.admin.port), timeout=20)


def answer_to(server: Server, raw: bytes) -> bytes:
    with connected(server) as peer:
        peer.sendall(raw)
        received = b""
        while piece := peer.recv(4096):
            received += piece
        return received


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * 100_000, 431),
        (b"\x00\xff\x16\x03\x01 garbage\r\n\r\n", 400),
        (b"GET /status\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\n" + b"".join(b"A%d: b\r\n" % i for i in range(500)) + b"\r\n", 400),
    ],
)
def test_a_request_that_is_none_gets_a_short_answer(server: Server, raw: bytes, code: int) -> None:
    received = answer_to(server, raw)
    assert received.startswith(f"HTTP/1.1 {code} ".encode())
    assert len(received) < 500
    assert asked(server, "/healthz")[0] == 200


def port_with(server: Server, **limits: float) -> AdminPort:
    port = AdminPort(server.settings.admin, 0, server.report, **limits)  # type: ignore[arg-type]
    port.start()
    return port


def test_a_slow_peer_has_a_deadline(server: Server) -> None:
    port = port_with(server, request_s=0.5)
    try:
        with socket.create_connection(("127.0.0.1", port.port), timeout=20) as peer:
            begin = time.monotonic()
            peer.settimeout(0.05)
            received = b""
            while not received and time.monotonic() < begin + 10:
                peer.sendall(b"G")
                try:
                    received = peer.recv(4096)
                except TimeoutError:
                    continue
            assert received.startswith(b"HTTP/1.1 408")
            assert time.monotonic() - begin < 5
        assert poll_until(lambda: port.open_connections == 0, 10)
    finally:
        port.stop()


def test_many_connections_are_refused_and_the_port_lives(server: Server) -> None:
    port = port_with(server, connections=5, request_s=2.0)
    try:
        peers = [socket.create_connection(("127.0.0.1", port.port), timeout=20) for _ in range(5)]
        assert poll_until(lambda: port.open_connections == 5, 10)
        with socket.create_connection(("127.0.0.1", port.port), timeout=20) as beyond:
            assert beyond.recv(4096).startswith(b"HTTP/1.1 503")
        for peer in peers:
            peer.close()
        assert poll_until(lambda: port.open_connections == 0, 10)
    finally:
        port.stop()


def test_a_busy_port_is_named_and_leaves_nothing_open(server: Server, folder: Path) -> None:
    assert server.admin is not None
    taken = server.admin.port
    canal = free_port()
    with pytest.raises(ConfigurationError, match=rf"cannot listen on 127.0.0.1:{taken} .* with `admin: \{{port: …\}}`"):
        Server(settings_with(folder, admin={"port": taken}, canal={"port": canal}))
    socket.create_server(("127.0.0.1", canal)).close()
