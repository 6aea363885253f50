"""Commands that let a running server change a client: they wait for a destination that the server is starting."""

import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.running_server import CursorOwner, find_running_server
from penstock.client.admin import AdminClient
from penstock.config import ConfFolder, InstanceSettings
from penstock.errors import NotRunningError, PenstockError
from penstock.meta import FileMetaBackend
from penstock.server import Server
from tests.support.admin_support import served, shop_folder, status_of
from tests.support.recorded_destinations import poll

LONG_S = 60.0


class Scene:
    """A server whose destination cannot start yet: its log is not there, and somebody else has its cursors."""

    def __init__(self, folder: Path) -> None:
        self.logs, self.conf, self.data = folder / "logs", folder / "conf", folder / "data"
        self.conf.mkdir()
        ports = "{flight: {port: 0}, canal: {port: null}, admin: {port: 0}, scan_s: 0}"
        (self.conf / "server.yml").write_text(ports, encoding="utf-8")
        text = f"{{source: {{path: '{self.logs}', poll_s: 0.05}}, start: earliest, data_dir: '{self.data}'}}"
        (self.conf / "shop.yml").write_text(text, encoding="utf-8")
        self.folder = ConfFolder(self.conf, 0)
        self.backend = FileMetaBackend("shop", self.data)
        self.backend.load()

    @property
    def settings(self) -> InstanceSettings:
        return self.folder.read().settings().instances[0]

    def find(self, server: Server) -> CursorOwner | None:
        assert server.admin is not None
        return find_running_server(self.settings, self.conf, f"http://{server.admin.address}", None)

    def let_start(self) -> None:
        self.backend.close()
        shop_folder(self.logs)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def _is_starting(server: Server) -> bool:
    return [instance["role"] for instance in status_of(server)["instances"]] == ["starting"]


def test_a_destination_that_is_starting_is_waited_for(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.cli.running_server._START_S", LONG_S)
    looks, owners = list[str](), list[CursorOwner | None]()
    ask = AdminClient.status

    def status(client: AdminClient) -> dict[str, Any]:
        looks.append(client.url)
        return ask(client)

    monkeypatch.setattr(AdminClient, "status", status)
    with served(scene.folder.read().server, scene.folder, 0) as server:
        assert poll(lambda: _is_starting(server))
        command = threading.Thread(target=lambda: owners.append(scene.find(server)))
        command.start()
        assert poll(lambda: len(looks) > 1), "it looks again"
        assert not owners
        scene.let_start()
        command.join(LONG_S)
        assert owners[0] is not None
        assert owners[0].client is not None, owners[0].problem
        with pytest.raises(PenstockError, match="there is no client 1001 of 'shop'"):
            owners[0].forget_client(1001)


def test_one_that_does_not_start_is_told_to_be_tried_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.cli.running_server._START_S", 0.2)
    with served(scene.folder.read().server, scene.folder, 0) as server:
        assert poll(lambda: _is_starting(server))
        owner = scene.find(server)
        assert owner is not None
        assert "destination 'shop' is starting at http" in owner.problem
        assert server.admin is not None
        client = CursorOwner("shop", owner.why, AdminClient(f"http://{server.admin.address}"), {})
        with pytest.raises(NotRunningError, match="'shop' is starting, try again") as told:
            client.forget_client(1001)
        assert told.value.transient
    scene.backend.close()
