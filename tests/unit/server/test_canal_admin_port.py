"""canal's admin port: who may come in, and what canal-admin can do."""

import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.canal import packet, scramble
from penstock.config import ConfFolder
from penstock.errors import NotRunningError
from penstock.server import Server
from penstock.store import BatchSize, Start
from penstock.testing import poll_until
from tests.support.admin_support import Console, readiness_of, served, settings_with, shop_folder, status_of

CLIENT = 1001
LOGIN = {"port": 0, "user": "admin", "password": "secret"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shop_folder(tmp_path / "logs")


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    with served(settings_with(folder, canal_admin=LOGIN)) as process:
        yield process


def port_of(server: Server) -> int:
    assert server.canal_admin is not None
    return server.canal_admin.port


def test_it_is_closed_by_default(folder: Path) -> None:
    with served(settings_with(folder)) as server:
        assert server.canal_admin is None


@pytest.mark.parametrize(("user", "password"), [("admin", "wrong"), ("admin", ""), ("other", "secret"), ("", "secret")])
def test_who_does_not_know_the_password_gets_nothing(server: Server, user: str, password: str) -> None:
    with Console(port_of(server), user, password) as console:
        assert console.login == (400, "auth failed: wrong user or password")
        # canal's own port answers from here on.
        assert console.server("list") == (300, "log in first")
        assert console.instance("stop") == (300, "log in first")
        with pytest.raises(OSError, match=r"closed|reset|[Bb]roken"):
            console.server("list")
    assert server.destinations.running_instance("shop").state.value == "following"


def test_nothing_is_answered_without_a_login(server: Server) -> None:
    with Console(port_of(server), login=False) as console:
        for _ in range(3):
            assert console.server("stop") == (300, "log in first")
        with pytest.raises(OSError, match=r"closed|reset|[Bb]roken"):
            console.server("stop")
    assert not server.destinations.is_halted


def test_a_proof_counts_for_its_own_connection(server: Server) -> None:
    with Console(port_of(server)) as first, Console(port_of(server), login=False) as second:
        assert first.login == (0, "")
        assert second.send(2, first.proof("admin", "secret"))[0] == 400
        stored = scramble.hash_for_storage("secret")
        body = packet.protobuf.encode_text(1, "admin") + packet.protobuf.encode_text(2, stored)
        assert second.send(2, body)[0] == 400, "what is stored is no proof"
        assert second.send(2, second.proof("admin", "secret")) == (0, "")
        assert second.server("check") == (0, "1")


def test_a_password_may_be_given_as_canal_keeps_it(folder: Path) -> None:
    login = {"port": 0, "user": "admin", "password_hash": scramble.hash_for_storage("secret")}
    with served(settings_with(folder, canal_admin=login)) as server, Console(port_of(server)) as console:
        assert console.login == (0, "")


def test_an_instance_is_stopped_and_started(server: Server) -> None:
    clients = server.destinations.running_instance("shop").clients
    clients.subscribe(CLIENT, "", Start.stored())
    first = clients.get(CLIENT, BatchSize(6), 10)
    assert first
    clients.ack(CLIENT, first[0])
    before = clients.cursors()
    with Console(port_of(server)) as console:
        assert console.server("list") == (0, "shop")
        assert console.instance("check") == (0, "1")
        assert console.instance("stop") == (0, "1")
        assert console.instance("stop") == (0, "1")
        assert console.instance("check") == (0, "0")
        assert console.server("list") == (0, "")
        with pytest.raises(NotRunningError, match="was stopped manually"):
            server.destinations.running_instance("shop")
        code, body = readiness_of(server)
        assert (code, body["notes"]) == (200, {"shop": "stopped manually"})
        assert status_of(server)["instances"][0]["role"] == "stopped manually"
        assert console.instance("start") == (0, "1")
        assert console.instance("start") == (0, "1")
        assert console.instance("check") == (0, "1")
        assert server.destinations.running_instance("shop").clients.cursors() == before, (
            "cursors in memory are not lost"
        )
        assert console.instance("restart") == (0, "1")
        assert server.destinations.running_instance("shop").clients.cursors() == before
        code, text = console.instance("release")
        assert code == 400
        assert "has no ZooKeeper" in text


def test_the_server_is_stopped_and_started(server: Server) -> None:
    with Console(port_of(server)) as console:
        assert console.server("check") == (0, "1")
        assert console.server("stop") == (0, "1")
        assert console.server("check") == (0, "0")
        assert console.instance("check") == (0, "0")
        assert readiness_of(server)[1]["reasons"] == {"(server)": "it was stopped manually"}
        with pytest.raises(NotRunningError, match="was stopped with the server"):
            server.destinations.running_instance("shop")
        with pytest.raises(NotRunningError, match="the server was stopped manually"):
            server.destinations.start(server.settings.instances[0])
        assert console.server("start") == (0, "1")
        assert console.instance("check") == (0, "1")
        assert console.server("restart") == (0, "1")
        assert console.instance("check") == (0, "1")


def test_what_was_stopped_by_hand_stays_so_with_the_server(server: Server) -> None:
    with Console(port_of(server)) as console:
        console.instance("stop")
        console.server("restart")
        assert console.instance("check") == (0, "0")


def test_mistakes_have_canals_codes(server: Server) -> None:
    with Console(port_of(server)) as console:
        assert console.server("explode")[0] == 301
        assert console.instance("explode")[0] == 301
        assert console.log("server", "explode")[0] == 301
        assert console.log("instance", "tail", "other")[0] == 400
        assert console.log("server", "tail", file="../../etc/passwd")[0] == 400
        assert console.send(9, b"") == (300, "packet type=9 is NOT supported!")
        code, text = console.instance("start", "other")
        assert (code, text) == (400, "there is no destination 'other'; there is: shop")
        assert console.server("check") == (0, "1")


def test_the_log_is_read_over_the_port(server: Server) -> None:
    with Console(port_of(server)) as console:
        logging.getLogger("penstock.some").warning("about destination=shop password=%s", "secret")
        logging.getLogger("penstock.some").warning("about destination=shopping\nand more")
        try:
            int("inside")
        except ValueError:
            logging.getLogger("penstock.some").exception("failed destination=other")
        assert console.log("server", "list") == (0, "penstock.log")
        assert console.log("instance", "list", "shop") == (0, "shop.log")
        code, text = console.log("server", "tail", count=3)
        assert code == 0
        lines = text.splitlines()
        assert [line.partition("penstock.some ")[2] for line in lines] == [
            "about destination=shop password=***",
            "about destination=shopping and more",
            "failed destination=other",
        ]
        _, text = console.log("instance", "tail", "shop", "shop.log")
        assert "password=***" in text
        assert "shopping" not in text
        assert console.log("server", "tail", count=-1) == (0, "")


def test_a_stop_by_hand_outlives_scans_until_the_settings_change(folder: Path, tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    text = f"{{source: {{path: {folder}, poll_s: 0.05}}, start: earliest, data_dir: {tmp_path / 'data'}}}"
    (conf / "shop.yml").write_text(text)
    settings = settings_with(folder, canal_admin=LOGIN).model_copy(update={"instances": ()})
    with served(settings, ConfFolder(conf, 0), 60) as server, Console(port_of(server)) as console:
        assert server.monitor is not None
        assert poll_until(lambda: readiness_of(server)[0] == 200, 20), readiness_of(server)
        assert console.instance("stop") == (0, "1")
        for _ in range(3):
            server.monitor.scan()
        assert server.monitor.is_reconciled
        assert console.instance("check") == (0, "0")
        (conf / "shop.yml").write_text(text[:-1] + ", retention_warning_h: 3}")
        server.monitor.scan()
        assert poll_until(lambda: console.instance("check") == (0, "1"), 20), server.problems
        assert server.destinations.running_instance("shop").settings.retention_warning_h == 3
        console.instance("stop")
        (conf / "shop.yml").unlink()
        server.monitor.scan()
        assert poll_until(lambda: not server.destinations.all, 20)


def test_frames_that_are_none_do_no_harm(server: Server) -> None:
    for raw in (
        b"\x7f\xff\xff\xff",
        b"\x00\x00\x00\x04\xff\xff\xff\xff",
        b"\xff\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", port_of(server)), timeout=20) as peer:
            peer.sendall(raw)
            received = b""
            try:
                while piece := peer.recv(4096):
                    received += piece
            except ConnectionResetError:
                pass
            assert len(received) < 300
    with Console(port_of(server)) as console:
        assert console.server("check") == (0, "1")
