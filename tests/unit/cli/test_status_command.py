"""`penstock status`."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from penstock.cli import app, status
from penstock.cli.status_text import format_status
from penstock.errors import AuthenticationError, ConfigurationError, ProtocolError, ServerUnavailableError
from penstock.server import Server
from penstock.store import BatchSize, Start
from penstock.testing import free_port, poll_until
from tests.support.admin_support import served, settings_with, shop_folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with served(settings_with(shop_folder(tmp_path / "logs"), admin={"port": 0, "token": "s3cret"})) as process:
        yield process


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(app, ["status", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def url_of(server: Server) -> tuple[str, ...]:
    assert server.admin is not None
    return "--url", f"http://{server.admin.address}", "--token", "s3cret"


def test_it_shows_instances_and_clients(server: Server) -> None:
    clients = server.destinations.running_instance("shop").clients
    clients.subscribe(1001, "", Start.stored())
    assert poll_until(lambda: clients.get(1001, BatchSize(3), 0) is not None, 20)
    result = run(*url_of(server))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("penstock 0.")
    assert any(line.split()[:2] == ["shop", "following"] for line in lines), result.stdout
    assert any(line.startswith("1001") and "holds the oldest entries" in line for line in lines), result.stdout
    status = json.loads(run(*url_of(server), "--output", "json").stdout)
    assert status["instances"][0]["clients"][0]["outstanding"] == 1


def test_readiness_is_an_exit_code(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert poll_until(lambda: server.report.readiness().is_ready, 20)
    assert run(*url_of(server), "--ready").exit_code == 0
    monkeypatch.setattr(server, "has_started", False)
    result = run(*url_of(server), "--ready")
    assert result.exit_code == 1
    assert "NOT READY\n  (server): it is being started" in result.stdout
    assert run(*url_of(server)).exit_code == 0


def test_a_wrong_token_is_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AuthenticationError, match="Authorization: Bearer and the token"):
        run(*url_of(server)[:2])
    monkeypatch.setenv("PENSTOCK_ADMIN_TOKEN", "s3cret")
    assert run(*url_of(server)[:2]).exit_code == 0


def test_nobody_listens() -> None:
    port = free_port()
    with pytest.raises(
        ServerUnavailableError, match=rf"no Penstock server answers at http://127.0.0.1:{port} .*refused"
    ):
        run("--url", f"http://127.0.0.1:{port}")
    with pytest.raises(ConfigurationError, match="write it as http://host:port"):
        run("--url", "localhost:11112")


def test_something_else_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            connection, _ = other.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"SSH-2.0-other\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ServerUnavailableError, match="no Penstock server answers"):
            run("--url", f"http://127.0.0.1:{other.getsockname()[1]}")
        thread.join()


class Handler(BaseHTTPRequestHandler):
    seen: list[str | None] = []  # noqa: RUF012 - of one test

    def do_GET(self) -> None:
        self.seen.append(self.headers["Authorization"])
        self.send_response(302 if self.path == "/status" else 200)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"[]")

    def log_message(self, *_: object) -> None: ...


def test_a_token_is_not_carried_elsewhere() -> None:
    with HTTPServer(("127.0.0.1", 0), Handler) as other:
        thread = threading.Thread(target=other.handle_request)
        thread.start()
        with pytest.raises(ProtocolError, match="answers 302"):
            run("--url", f"http://127.0.0.1:{other.server_port}", "--token", "s3cret")
        thread.join()
    assert Handler.seen == ["Bearer s3cret"]


def test_it_looks_again_and_again(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def sleep(_: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(status.time, "sleep", sleep)
    result = CliRunner().invoke(app, ["status", *url_of(server), "--watch", "--output", "json"])
    reports = [json.loads(line) for line in result.stdout.splitlines()]
    assert [report["instances"][0]["destination"] for report in reports] == ["shop"] * 3


def test_the_help_has_examples() -> None:
    text = CliRunner().invoke(app, ["status", "--help"]).stdout
    assert "penstock status --watch" in text


def test_what_is_not_known_and_what_is_strange_can_be_shown() -> None:
    lag = {"seconds": None, "bytes": None}
    position = {"file": "binlog.000001", "offset": 4, "epoch": 2}
    client: dict[str, Any] = {"client": "readers", "state": "lost", "cursor": position, "lag": lag, "outstanding": 0}
    client |= {"waiting_entries": 3, "waiting_bytes": 2e6, "holds_oldest": False, "lost": "it was too slow"}
    absent = client | {"client": "1002", "state": "absent", "lost": "", "connected": False, "from_log": True}
    present = client | {
        "client": "1001",
        "state": "live",
        "lost": "",
        "connected": True,
        "addresses": ["10.0.0.7:51234"],
    }
    store = {"bytes": 5, "limit_bytes": None, "fill": None, "waits_for": ["7"]}
    election = {"is_held": False, "owner": "db2:11111", "epoch": None}
    text = format_status(
        {
            "time": 200_000.0,
            "server": {"version": "1", "uptime_s": 200_000, "ports": {}},
            "ready": False,
            "reasons": {"shop": "broken\x1b[2J"},
            "problems": {"(server)": "changed"},
            "instances": [
                {"destination": "a", "state": "stopped", "role": "standby", "election": election},
                {"destination": "b", "state": "blocked", "since": 199_990.5, "role": "running", "latest": position}
                | {"lag": lag, "store": store, "clients": [client, absent, present]},
            ],
        }
    )
    where = "binlog.000001:4 (epoch 2)  not known  3 entries, 2.0 MB  0"
    assert text.splitlines() == [
        "penstock 1, up 2 d, ",
        "NOT READY",
        "  shop: broken?[2J",
        "  (server): changed",
        "",
        "instance  state    for    position                   lag        store  role",
        "a         stopped  -      -                          -          -      standby: db2:11111 runs it",
        "b         blocked  9.5 s  binlog.000001:4 (epoch 2)  not known  5 B    running",
        "",
        "client   of  state   connected       cursor                     lag        waiting            batches",
        f"readers  b   lost    no              {where}        it was too slow",
        f"1002     b   absent  no              {where}        catching up from the source's log",
        f"1001     b   live    10.0.0.7:51234  {where}",
        "capture of b waits for client 7 to ack",
    ]


def test_a_server_that_is_not_ready_can_be_asked_why(server: Server) -> None:
    from penstock.client.admin import AdminClient

    client = AdminClient(url_of(server)[1], "s3cret")
    assert poll_until(lambda: client.readiness()["ready"], 20)
    server.has_started = False
    assert client.readiness()["reasons"] == {"(server)": "it is being started"}
    assert "penstock_ready 0" in client.metrics()
