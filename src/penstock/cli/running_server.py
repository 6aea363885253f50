"""The server that runs an instance now, for commands that change what only that server may change."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.cli.instance_options import find_admin_url
from penstock.client.admin import AdminClient
from penstock.config import InstanceSettings
from penstock.errors import ConfigurationError, MetaInUseError, NotRunningError, PenstockError
from penstock.instance.cursors import check_not_in_use
from penstock.model import Position

_START_S, _LOOK_S = 10.0, 0.1  # how long a destination that is starting is waited for


@dataclass(frozen=True, slots=True)
class CursorOwner:
    """The running server that owns the cursors of a destination, and changes them when asked at its admin port. `why`
    is the error that showed that a server runs; `problem` is why it cannot be asked, if it cannot.
    """

    destination: str
    why: MetaInUseError
    client: AdminClient | None
    cursors: Mapping[int, Position]
    problem: str = ""

    def forget_client(self, client_id: int) -> None:
        """Let the running server remove a client with its cursor. Raises MetaInUseError when the server cannot be
        asked."""
        self._require_admin().forget_client(self.destination, client_id)

    def seek_client(self, client_id: int, position: Position) -> None:
        """Let the running server move a client's cursor to a position. Raises MetaInUseError when the server cannot be
        asked."""
        self._require_admin().seek_client(self.destination, client_id, position)

    def _require_admin(self) -> AdminClient:
        """Return the admin client, or raise why the server cannot be asked."""
        if self.client is None:
            raise MetaInUseError(f"{self.why}, or let it do this itself: {self.problem}")
        return self.client


def find_running_server(
    settings: InstanceSettings, config: Path, url: str | None, token: str | None
) -> CursorOwner | None:
    """Return the server that has the cursors of an instance; None when no server has them, so that this process may
    change them."""
    try:
        check_not_in_use(settings)
    except MetaInUseError as error:
        try:
            client, instance = _ask_status(settings, config, url, token)
        except PenstockError as problem:
            return CursorOwner(settings.destination, error, None, {}, str(problem))
        clients = [entry for entry in instance["clients"] if entry["client"].isdecimal()]
        cursors = {int(entry["client"]): Position.from_json(entry["cursor"]) for entry in clients}
        return CursorOwner(settings.destination, error, client, cursors)
    return None


def _ask_status(
    settings: InstanceSettings, config: Path, url: str | None, token: str | None
) -> tuple[AdminClient, Mapping[str, Any]]:
    """Return the admin client and the status of the server that holds the instance's lock; a server that merely answers
    at the configured address may be another one.
    """
    admin_url, secret = (url, None) if url is not None else find_admin_url(config)
    client = AdminClient(admin_url, token or secret)
    status, instance = _await_start(client, settings.destination)
    if instance is None or instance["role"] != "running":
        raise ConfigurationError(
            f"the server at {admin_url} does not run '{settings.destination}': set --url to the one that does"
        )
    if url is None and settings.zookeeper is None and status["server"].get("pid") != _pid_of_lock(settings):
        raise ConfigurationError(
            f"the server at {admin_url} is another one: set --url to the one that runs with {config}"
        )
    return client, instance


def _await_start(client: AdminClient, destination: str) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """Return the status of a server and of a destination in it, once that is not starting any more."""
    until = time.monotonic() + _START_S
    while True:
        status = client.status()
        instance = next((entry for entry in status["instances"] if entry["destination"] == destination), None)
        if instance is None or instance["role"] != "starting":
            return status, instance
        if time.monotonic() > until:
            raise NotRunningError(f"destination '{destination}' is starting at {client.url}, try again")
        time.sleep(_LOOK_S)


def _pid_of_lock(settings: InstanceSettings) -> int | None:
    """Return the process id that the server holding the data folder has written into its lock."""
    if settings.data_dir is None:
        return None
    try:
        text = (settings.data_dir / settings.destination / "server.lock").read_text("utf-8")
    except OSError:
        return None
    matched = re.match(r"pid=(\d+)", text)
    return int(matched[1]) if matched else None
