"""The first call to a server that does not listen yet: it is waited for, within the bound that the caller gave."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import penstock
from penstock.client import ServerConnection, channel
from penstock.errors import ServerUnavailableError, SourceConnectionError
from penstock.server import Server
from penstock.testing import free_port, poll_until
from tests.support.admin_support import served, settings_with, shop_folder

LONG_S = 60.0

CALLS: dict[str, Callable[[ServerConnection], object]] = {
    "changes": lambda there: there.changes("shop.product", start="earliest").close(),
    "subscription": lambda there: there.subscribe(1001).close(),
    "positions": lambda there: there.positions(),
    "tables": lambda there: there.tables(),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_server_that_does_not_listen_yet_is_waited_for(tmp_path: Path, name: str) -> None:
    port = free_port()
    settings = settings_with(shop_folder(tmp_path / "logs"), flight={"port": port})
    with (
        ThreadPoolExecutor(1) as pool,
        penstock.connect(f"grpc://127.0.0.1:{port}", destination="shop", retry_timeout_s=0.05) as hasty,
        penstock.connect(f"grpc://127.0.0.1:{port}", destination="shop", retry_timeout_s=LONG_S) as patient,
    ):
        asked = pool.submit(CALLS[name], patient)
        with pytest.raises(ServerUnavailableError, match=f"no Penstock server answers at grpc://127.0.0.1:{port}"):
            CALLS[name](hasty)
        assert not asked.done()
        with served(settings):
            asked.result(LONG_S)


def test_a_server_that_cannot_be_reached_is_no_trouble_of_the_source(tmp_path: Path) -> None:
    server = Server(settings_with(shop_folder(tmp_path / "logs")))
    server.start()
    with penstock.connect(server.address, destination="shop", retry_timeout_s=0) as there:
        assert there.status()["state"]
        server.stop()
        with pytest.raises(ServerUnavailableError) as told:
            there.status()
    assert told.value.transient
    assert not isinstance(told.value, SourceConnectionError)


def test_a_server_that_is_frozen_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped still has its connections, and answers nothing."""
    monkeypatch.setattr(channel, "CALL_TIMEOUT_S", 1.0)
    folder, port = shop_folder(tmp_path / "logs"), free_port()
    config = tmp_path / "server.yml"
    source = {"destination": "shop", "source": {"path": str(folder)}}
    ports = {"flight": {"port": port}, "canal": {"port": None}, "admin": {"port": None}}
    config.write_text(json.dumps({**ports, "instances": [source]}), "utf-8")
    script = "from penstock.cli import main; main()"
    with subprocess.Popen([sys.executable, "-c", script, "serve", str(config)], stdout=subprocess.DEVNULL) as server:
        try:
            with penstock.connect(f"grpc://127.0.0.1:{port}", destination="shop", retry_timeout_s=LONG_S) as there:
                assert there.status()["state"]
            with penstock.connect(f"grpc://127.0.0.1:{port}", destination="shop", retry_timeout_s=0) as there:
                assert there.status()["state"]
                server.send_signal(signal.SIGSTOP)
                stat = Path(f"/proc/{server.pid}/stat")
                assert poll_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", LONG_S)
                with pytest.raises(ServerUnavailableError, match="does not answer"):
                    there.status()
        finally:
            server.kill()
