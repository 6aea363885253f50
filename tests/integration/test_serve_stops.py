"""`penstock serve` stops when it is told to, whatever its clients do, and they resume where it runs again."""

import json
import signal
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.flight as fl
import pytest

import penstock
from penstock.canal import messages, packet
from penstock.canal.packet import PacketType
from penstock.client.canal import CanalConnector
from penstock.errors import PenstockError
from penstock.testing import DatabaseServer
from tests.support.capture import execute, poll
from tests.support.serve_process import ServeProcess, serve_process
from tests.support.stalls import unsent_bytes, wait_until_stalled

STOP_S = 5.0  # what is promised
SLACK_S = 5.0  # a machine that is busy with other tests


@pytest.fixture
def schema(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = database(mariadb)
    execute(mariadb, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v LONGTEXT)")
    return name


@pytest.fixture
def server(mariadb: DatabaseServer, tmp_path: Path) -> Iterator[ServeProcess]:
    with serve_process(tmp_path, mariadb, data_dir=str(tmp_path / "data")) as process:
        process.start()
        yield process


class Reader(threading.Thread):
    """Reads ids until it has so many."""

    def __init__(self, changes: Any, count: int) -> None:
        super().__init__(daemon=True)
        self.changes, self.count = changes, count
        self.ids = list[int]()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            for batch in self.changes:
                self.ids += batch.column("id").to_pylist()
                if len(self.ids) >= self.count:
                    return
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_open_stream_does_not_keep_a_server_from_stopping(
    server: ServeProcess, mariadb: DatabaseServer, schema: str, number: signal.Signals
) -> None:
    with penstock.connect(server.url) as there, there.changes(f"{schema}.t") as changes:
        reader = Reader(changes, 2)
        reader.start()
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (1, 'a')")
        assert poll(lambda: reader.ids == [1])
        code, seconds = server.stop(number)
        assert code == 0, server.output
        assert seconds < STOP_S + SLACK_S
        execute(mariadb, f"INSERT INTO {schema}.t VALUES (2, 'b')")
        server.start()
        reader.join(60)
        assert reader.error is None
        assert reader.ids == [1, 2]


def test_a_plain_reader_is_told_to_reconnect(server: ServeProcess, schema: str) -> None:
    with closing(fl.connect(server.url)) as client:
        stream = client.do_get(fl.Ticket(f"{schema}.t"))
        stream.read_chunk()
        code, _ = server.stop()
        with pytest.raises(fl.FlightUnavailableError) as told:
            _read_all(stream)
    assert code == 0
    assert json.loads(told.value.extra_info)["error"] == "NotRunningError"
    assert "open the stream again" in str(told.value)


def test_clients_that_do_not_read_do_not_keep_a_server_from_stopping(
    server: ServeProcess, mariadb: DatabaseServer, schema: str
) -> None:
    """A Flight stream and canal's get whose answers fill the sockets, and a canal client that waits for ever."""
    with ExitStack() as stack:
        client = stack.enter_context(closing(fl.connect(server.url)))
        stream = client.do_get(fl.Ticket(f"{schema}.t"))
        stack.callback(stream.cancel)
        stream.read_chunk()
        waiting = stack.enter_context(CanalConnector("127.0.0.1", server.canal, "default", client_id=1002))
        waiting.subscribe("nothing\\.here")
        waiter = threading.Thread(target=_get_for_ever, args=(waiting,), daemon=True)
        waiter.start()
        silent = stack.enter_context(CanalConnector("127.0.0.1", server.canal, "default", client_id=1001))
        silent.subscribe(f"{schema}\\..*")
        for row in range(40):
            execute(mariadb, f"INSERT INTO {schema}.t VALUES ({row}, REPEAT('x', 1048576))")
        _ask_without_reading(silent)
        assert poll(lambda: _sent_to_canal(server) > 0)
        own_port = silent._require_connection.getsockname()[1]
        assert wait_until_stalled(lambda: unsent_bytes(server.canal, own_port) or None)
        code, seconds = server.stop()
        assert code == 0, server.output
        assert seconds < STOP_S + SLACK_S
        waiter.join(10)
        assert not waiter.is_alive()


def test_a_start_that_waits_for_its_source_can_be_stopped(mariadb: DatabaseServer, tmp_path: Path) -> None:
    with serve_process(tmp_path, mariadb) as server, _silent_port() as port:
        server.instance["source"] |= {"port": port, "connect_timeout_s": 120}
        server.launch()
        assert poll(lambda: _answers(server), 60), server.output
        code, seconds = server.stop()
        assert code == 0, server.output
        assert seconds < STOP_S + SLACK_S


def test_a_server_that_cannot_start_says_so_in_its_exit_code(mariadb: DatabaseServer, tmp_path: Path) -> None:
    with serve_process(tmp_path, mariadb) as server:
        server.instance["source"] |= {"password": "wrong"}
        server.launch()
        assert server.process is not None
        assert server.process.wait(60) == 1
        assert "Access denied" in server.output or "refuse" in server.output


def _read_all(stream: Any) -> None:
    while True:
        stream.read_chunk()


def _get_for_ever(connector: CanalConnector) -> None:
    with suppress(PenstockError):
        connector.get_without_ack(1000, timeout_s=3600)


def _ask_without_reading(connector: CanalConnector) -> None:
    """Ask for one batch of all rows, and leave the answer where it is."""
    asked = messages.Get(fetch_size=1 << 20, timeout=1, unit=3, destination="default", client_id=str(1001))
    connection: Any = connector._socket
    connection.sendall(packet.build_frame(PacketType.GET, asked.SerializeToString()))


def _sent_to_canal(server: ServeProcess) -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{server.admin}/metrics")
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - ours
        lines = answer.read().decode().splitlines()
    lines_of_client = [line for line in lines if "canal_instance_client_bytes" in line and not line.startswith("#")]
    return round(sum(float(line.rpartition(" ")[2]) for line in lines_of_client))


def _answers(server: ServeProcess) -> bool:
    try:
        return server.ask("/readyz")[0] in {200, 503}
    except OSError:
        return False


@contextmanager
def _silent_port() -> Iterator[int]:
    """It takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]
