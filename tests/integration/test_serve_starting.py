"""`penstock serve` while its destinations start: every port says so, and clients that ask once do not fail."""

import json
import random
import signal
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.flight as fl
import pytest
import yaml

import penstock
from penstock.client.canal import CanalConnector
from penstock.errors import PenstockError, StartingError
from penstock.testing import DatabaseServer, free_port
from tests.services.canal_client import JAVA_CLIENT, PYTHON_CLIENT, Driver
from tests.support.capture import execute, poll
from tests.support.scenario.proxy import Network
from tests.support.serve_process import ServeProcess, serve_process

LONG_S = 120.0  # longer than any start takes on a busy machine
STARTING = "destination 'default' is starting, try again"
STOP_S, SLACK_S = 5.0, 5.0


class BlockedSource(Network):
    """A way to a source on which nothing passes until it is opened."""

    def __init__(self, port: int) -> None:
        super().__init__(port, 0)
        self._opened = threading.Event()

    def __exit__(self, *_: object) -> None:
        self.open()
        super().__exit__()

    def open(self) -> None:
        self._opened.set()

    def _to_client(self, server: socket.socket, client: socket.socket) -> None:
        self._opened.wait()
        super()._to_client(server, client)


@pytest.fixture
def schema(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = database(mariadb)
    execute(mariadb, f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    return name


@pytest.fixture
def server(mariadb: DatabaseServer, tmp_path: Path) -> Iterator[ServeProcess]:
    with serve_process(tmp_path, mariadb) as process:
        yield process


@pytest.fixture
def blocked_source(mariadb: DatabaseServer, server: ServeProcess) -> Iterator[BlockedSource]:
    """Between the server and its source, and closed."""
    with BlockedSource(mariadb.port) as proxy:
        server.instance["source"] |= {"port": proxy.port, "connect_timeout_s": LONG_S}
        yield proxy


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    executor = ThreadPoolExecutor(8)
    yield executor
    executor.shutdown(wait=False, cancel_futures=True)


def write_conf(server: ServeProcess, *, wait_s: float = LONG_S, with_instance: bool = True) -> Path:
    """A conf folder with one instance, `default`."""
    conf = server.folder / "conf"
    conf.mkdir(exist_ok=True)
    settings = server.settings
    settings["canal"] |= {"start_wait_s": wait_s}
    (conf / "server.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    if with_instance:
        (conf / "default.yml").write_text(yaml.safe_dump(server.instance), encoding="utf-8")
    return conf


def launch(server: ServeProcess, config: Path | None = None) -> None:
    """Until its ports answer."""
    server.launch(config)
    assert poll(lambda: _is_open(server.admin) or server.has_ended, 90), server.output
    assert not server.has_ended, server.output


def is_serving(server: ServeProcess) -> bool:
    return "serving Arrow Flight" in server.output


def test_every_port_tells_to_try_again(server: ServeProcess, blocked_source: BlockedSource) -> None:
    launch(server, write_conf(server, wait_s=0.2))
    _check_starting(server)
    unknown = pytest.raises(fl.FlightServerError, match="there is no destination 'other' on this server")
    with closing(fl.connect(server.url)) as client, unknown:
        _ask_flight(client, "other")
    assert poll(lambda: "nothing to serve yet" in server.output), server.output
    assert not is_serving(server)
    blocked_source.open()
    assert poll(lambda: is_serving(server), 90), server.output
    assert server.output.index("capturing 'default'") < server.output.index("serving Arrow Flight")
    assert poll(lambda: server.ask("/readyz")[0] == 200)
    assert [instance["role"] for instance in server.ask("/status")[1]["instances"]] == ["running"]


def test_a_server_of_one_file_answers_while_it_starts(server: ServeProcess, blocked_source: BlockedSource) -> None:
    config = server.folder / "server.yml"
    settings = server.settings
    settings["canal"] |= {"start_wait_s": 0.2}
    config.write_text(yaml.safe_dump({**settings, "instances": [server.instance]}), encoding="utf-8")
    launch(server, config)
    _check_starting(server)
    assert not is_serving(server)
    blocked_source.open()
    assert poll(lambda: is_serving(server), 90), server.output
    with _connector(server) as connector:
        connector.subscribe(".*\\..*")


def test_clients_that_ask_once_wait_for_the_start(
    server: ServeProcess, blocked_source: BlockedSource, mariadb: DatabaseServer, schema: str, pool: ThreadPoolExecutor
) -> None:
    """Our canal client and canal's own in Java and Python, `changes()`, a subscription, and what is asked besides."""
    launch(server, write_conf(server))
    with (
        Driver(JAVA_CLIENT.quick_command()) as java,
        Driver(PYTHON_CLIENT.command()) as python,
        _connector(server, client_id=1002) as connector,
        penstock.connect(server.url, retry_timeout_s=LONG_S) as there,
    ):
        java.ask("single", "127.0.0.1", server.canal, "default", "-", "-")
        java.ask("connect")
        python.ask("connect", "127.0.0.1", server.canal)
        asked: list[Future[Any]] = [
            pool.submit(java.ask, "subscribe", f"{schema}\\..*"),
            pool.submit(python.ask, "subscribe", "default", 1004, f"{schema}\\..*"),
            pool.submit(connector.subscribe, f"{schema}\\..*"),
            pool.submit(there.changes, f"{schema}.t"),
            pool.submit(there.subscribe, 1003, filter=f"{schema}\\..*"),
            pool.submit(there.tables),
            pool.submit(there.positions),
        ]
        assert poll(lambda: server.ask("/status")[1]["server"]["ports"]["canal"]["connections"] == 3)
        assert not is_serving(server)
        blocked_source.open()
        _, _, _, changes, subscription, tables, positions = [answer.result(LONG_S) for answer in asked]
        with changes, subscription:
            assert positions["latest"]["file"]
            assert isinstance(tables, dict)
            execute(mariadb, f"INSERT INTO {schema}.t VALUES (7)")
            assert next(iter(changes)).column("id").to_pylist() == [7]
            assert next(iter(subscription)).num_rows == 1
            message = connector.get_without_ack(10, timeout_s=30)
            assert [change.rowDatas[0].afterColumns[0].value for _, change in message.row_changes()] == ["7"]
            assert poll(lambda: bool(java.ask("get", 10)["entries"]))
            assert poll(lambda: bool(python.ask("get", 10)["entries"]))


def test_clients_may_ask_as_soon_as_a_port_is_open(server: ServeProcess, schema: str, pool: ThreadPoolExecutor) -> None:
    conf = write_conf(server)

    def ask_canal() -> None:
        assert poll(lambda: _is_open(server.canal), 90), server.output
        with _connector(server) as connector:
            connector.subscribe(f"{schema}\\..*")
            connector.get_without_ack(1)

    def ask_flight() -> Any:
        assert poll(lambda: _is_open(server.flight), 90), server.output
        with penstock.connect(server.url, retry_timeout_s=LONG_S) as there:
            return there.status()

    asked = [pool.submit(ask_canal), pool.submit(ask_flight)]
    server.launch(conf)
    for answer in asked:
        answer.result(LONG_S)
    assert poll(lambda: is_serving(server), 90), server.output


def test_clients_may_ask_once_it_says_that_it_serves(server: ServeProcess, schema: str) -> None:
    """At once, without a retry of theirs and without waiting in the server."""
    server.start(write_conf(server, wait_s=0))
    with _connector(server) as connector:
        connector.subscribe(f"{schema}\\..*")
    with penstock.connect(server.url, retry_timeout_s=0) as there:
        assert there.status()["state"] == "following"
    assert server.ask("/readyz")[0] == 200


def test_a_source_that_is_not_there_is_named_until_it_is(
    server: ServeProcess, mariadb: DatabaseServer, schema: str, pool: ThreadPoolExecutor
) -> None:
    with Network(free_port(), random.randrange(100)) as network, closing(fl.connect(server.url)) as client:
        server.instance["source"] |= {"port": network.port}
        launch(server, write_conf(server))
        assert poll(lambda: "start failed" in _refusal(client)["message"]), server.output
        assert _refusal(client)["message"].startswith(STARTING)
        status = server.ask("/status")[1]
        assert "start failed" in status["instances"][0]["reason"]
        assert status["ready"] is False
        assert not is_serving(server)
        with _connector(server) as connector, penstock.connect(server.url, retry_timeout_s=LONG_S) as there:
            asked = [pool.submit(connector.subscribe, f"{schema}\\..*"), pool.submit(there.positions)]
            network.move_to(mariadb.port)
            for answer in asked:
                answer.result(LONG_S)
        assert poll(lambda: is_serving(server), 90), server.output


def test_one_source_that_is_not_there_does_not_end_the_server_of_one_file(
    server: ServeProcess, mariadb: DatabaseServer, pool: ThreadPoolExecutor
) -> None:
    """The others are served meanwhile, each port says why this one is not, and it starts once its source answers."""
    config = server.folder / "server.yml"
    with Network(free_port(), random.randrange(100)) as network:
        late = {"destination": "late", "source": server.instance["source"] | {"port": network.port}}
        instances = [late, server.instance]
        config.write_text(yaml.safe_dump({**server.settings, "instances": instances}), encoding="utf-8")
        server.start(config)
        with penstock.connect(server.url, retry_timeout_s=0) as there:
            assert there.status()["state"] == "following"
        told = pytest.raises(StartingError, match="destination 'late' is starting, try again: start failed")
        with penstock.connect(server.url, destination="late", retry_timeout_s=0) as there, told:
            there.positions()
        code, ready = server.ask("/readyz")
        assert code == 503
        assert ready["reasons"].keys() == {"late"}
        with penstock.connect(server.url, destination="late", retry_timeout_s=LONG_S) as there:
            asked = pool.submit(there.positions)
            network.move_to(mariadb.port)
            assert asked.result(LONG_S)["latest"]["file"]
        assert poll(lambda: server.ask("/readyz")[0] == 200)
        assert server.stop()[0] == 0, server.output


@pytest.mark.usefixtures("blocked_source")
def test_who_waits_for_a_start_does_not_keep_a_server_from_stopping(
    server: ServeProcess, pool: ThreadPoolExecutor
) -> None:
    launch(server, write_conf(server))
    with _connector(server) as connector, penstock.connect(server.url, retry_timeout_s=1) as there:
        held = pool.submit(connector.subscribe, ".*\\..*")
        patient = pool.submit(there.positions)
        assert poll(lambda: server.ask("/status")[1]["server"]["ports"]["canal"]["connections"] == 1)
        code, seconds = server.stop(signal.SIGTERM)
        assert code == 0, server.output
        assert seconds < STOP_S + SLACK_S
        for answer in (held, patient):
            error = answer.exception(30)
            assert isinstance(error, PenstockError)


def test_a_folder_without_destinations_says_so(server: ServeProcess) -> None:
    launch(server, write_conf(server, with_instance=False))
    assert poll(lambda: "no destination is configured yet" in server.output), server.output
    assert not is_serving(server)
    with closing(fl.connect(server.url)) as client, pytest.raises(fl.FlightServerError, match="it has: none"):
        _ask_flight(client)
    write_conf(server)
    assert poll(lambda: is_serving(server), 90), server.output


def _check_starting(server: ServeProcess) -> None:
    """On each port, for a destination that is configured and does not run."""
    with closing(fl.connect(server.url)) as client:
        assert poll(lambda: _refusal(client)["message"].startswith(STARTING))
        calls: list[Callable[[], object]] = [
            lambda: _listed(client, b"default"),
            lambda: _listed(client, b""),
            lambda: client.do_get(fl.Ticket(json.dumps({"destination": "default"}))).schema,
        ]
        for call in calls:
            with pytest.raises(fl.FlightUnavailableError, match=STARTING):
                call()
    with _connector(server) as connector, pytest.raises(PenstockError, match=STARTING) as told:
        connector.subscribe(".*\\..*")
    assert told.value.transient
    assert _delete(server, "/instances/default/clients/1001") == (503, f"{STARTING}\n", "1")
    code, ready = server.ask("/readyz")
    assert code == 503
    assert ready["reasons"]["default"]
    instances = {instance["destination"]: instance for instance in server.ask("/status")[1]["instances"]}
    assert instances["default"]["state"] == "starting"
    assert instances["default"]["role"] == "starting"


def _connector(server: ServeProcess, client_id: int = 1001) -> CanalConnector:
    return CanalConnector("127.0.0.1", server.canal, "default", client_id=client_id, timeout_s=LONG_S)


def _ask_flight(client: Any, destination: str = "default") -> Any:
    return list(client.do_action(fl.Action("status", json.dumps({"destination": destination}).encode())))


def _listed(client: Any, criteria: bytes) -> list[Any]:
    return list(client.list_flights(criteria))


def _refusal(client: Any) -> dict[str, str]:
    """Who reads without our client is told by the kind of error that the same call makes sense again."""
    with pytest.raises(fl.FlightUnavailableError) as told:
        _ask_flight(client)
    return json.loads(told.value.extra_info)


def _delete(server: ServeProcess, path: str) -> tuple[int, str, str | None]:
    request = urllib.request.Request(f"http://127.0.0.1:{server.admin}{path}", method="DELETE")
    with pytest.raises(urllib.error.HTTPError) as told:
        urllib.request.urlopen(request, timeout=10)  # noqa: S310 - ours
    with told.value as answer:
        return answer.code, answer.read().decode(), answer.headers["Retry-After"]


def _is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True
