"""The calls of canal-admin. Answers are texts, with 1 and 0 for yes and no."""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from pydantic import BaseModel, SecretStr

from penstock.canal.structures import InstanceAdminRequest, LogAdminRequest, ServerAdminRequest
from penstock.config import ServerSettings
from penstock.errors import ConfigurationError, NotRunningError
from penstock.instance import InstanceState
from penstock.server.canal.refusal import GENERAL, UNKNOWN_ACTION, CanalRefusedError
from penstock.server.destination import Destination
from penstock.server.log_ring import LogRing

SERVER_LOG = "penstock.log"
_DEFAULT_LINES = 100
_MAX_LINES = 5000
_ENDED = {InstanceState.STOPPED, InstanceState.FAILED}

Action = Callable[[str], str]


class OperatedDestinations(Protocol):
    """The destinations of a server, as an operator starts and stops them."""

    @property
    def all(self) -> Mapping[str, Destination]:
        """All destinations by name."""
        ...

    @property
    def starting(self) -> Mapping[str, str]:
        """The destinations that are configured and not started yet, with the reason why the last attempt failed."""
        ...

    @property
    def is_halted(self) -> bool:
        """Return whether all destinations were stopped manually with `halt_all`."""
        ...

    def halt(self, name: str) -> bool:
        """Stop a destination manually. False when it was stopped already."""
        ...

    def resume(self, name: str) -> bool:
        """Start a destination that was stopped manually. False when it was not."""
        ...

    def release(self, name: str) -> bool:
        """Release a destination, so that another server is elected to run it. False when it does not run on this
        server, or is not released in time."""
        ...

    def halt_all(self) -> None:
        """Stop all destinations manually; nothing starts until `resume_all`."""
        ...

    def resume_all(self) -> None:
        """Start the destinations that `halt_all` stopped."""
        ...


class CanalAdminCalls:
    """Answers the requests of canal-admin. Any thread may call it."""

    def __init__(self, destinations: OperatedDestinations, ring: LogRing, settings: ServerSettings) -> None:
        self._destinations, self._ring, self._settings = destinations, ring, settings
        self._server: Mapping[str, Action] = {
            "check": lambda _: _format_flag(not destinations.is_halted),
            "start": self._start_all,
            "stop": self._stop_all,
            "restart": lambda _: self._stop_all("") and self._start_all(""),
            "list": lambda _: ",".join(name for name in sorted(destinations.all) if self._is_running(name)),
        }
        self._instance: Mapping[str, Action] = {
            "check": lambda name: _format_flag(self._is_running(name)),
            "start": lambda name: _format_flag(destinations.resume(name) or self._is_running(name)),
            "stop": lambda name: _format_flag(destinations.halt(name) or not self._is_running(name)),
            "restart": self._restart,
            "release": lambda name: _format_flag(destinations.release(name)),
        }

    def run_server_action(self, request: ServerAdminRequest) -> str:
        """Run an action of canal-admin on all destinations, such as start or list, and return its result."""
        return _find_action(self._server, "ServerAdmin", request.admin)("")

    def run_instance_action(self, request: InstanceAdminRequest) -> str:
        """Run an action of canal-admin on one destination, such as start or stop, and return its result."""
        destination = request.destination
        call = _find_action(self._instance, "InstanceAdmin", request.admin)
        self._check_known(destination)
        return call(destination)

    def read_log(self, request: LogAdminRequest) -> str:
        """Return the names of the log files (`list`), or the last lines of one (`tail`), for canal-admin."""
        kind, action, file = request.type, request.admin, request.file
        destination = request.destination if kind == "instance" else None
        if kind not in {"server", "instance"} or action not in {"list", "tail"}:
            raise CanalRefusedError(UNKNOWN_ACTION, f"LogAdmin type={kind[:40]} action={action[:40]} is unknown")
        if destination is not None:
            self._check_known(destination)
        name = SERVER_LOG if destination is None else f"{destination}.log"
        if action == "list":
            return name
        if file not in {"", name}:
            raise CanalRefusedError(GENERAL, f"there is no log {file[:100]!r}: there is {name}")
        count = min(request.count or _DEFAULT_LINES, _MAX_LINES)
        return self._ring.tail(count, destination, set(self._all_secrets()))

    def _all_secrets(self) -> Iterator[str]:
        """Yield all passwords and tokens of the settings, to mask them in log lines."""
        yield from _find_secrets(self._settings)
        for destination in self._destinations.all.values():
            yield from _find_secrets(destination.settings)

    def _check_known(self, destination: str) -> None:
        """Raise ConfigurationError for a destination that is neither running nor starting."""
        known = sorted({*self._destinations.all, *self._destinations.starting})
        if destination not in known:
            raise ConfigurationError(f"there is no destination {destination[:100]!r}; there is: {', '.join(known)}")

    def _is_running(self, name: str) -> bool:
        """Return whether a destination runs on this server now."""
        destination = self._destinations.all.get(name)
        try:
            return destination is not None and destination.running_instance().state not in _ENDED
        except NotRunningError:
            return False

    def _restart(self, name: str) -> str:
        """Stop and start one destination."""
        self._destinations.halt(name)
        return _format_flag(self._destinations.resume(name))

    def _stop_all(self, _: str) -> str:
        self._destinations.halt_all()
        return "1"

    def _start_all(self, _: str) -> str:
        self._destinations.resume_all()
        return "1"


def _find_action(actions: Mapping[str, Action], kind: str, action: str) -> Action:
    """Return the action of this name. Raises CanalRefusedError for an unknown one."""
    chosen = actions.get(action)
    if chosen is None:
        raise CanalRefusedError(
            UNKNOWN_ACTION, f"{kind} action={action[:40]} is unknown: there is {', '.join(actions)}"
        )
    return chosen


def _format_flag(value: bool) -> str:
    """Return canal's text for yes or no."""
    return "1" if value else "0"


def _find_secrets(value: object) -> Iterator[str]:
    """Yield all secrets in a settings object."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _find_secrets(getattr(value, name))
    elif isinstance(value, Mapping):
        for item in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _find_secrets(item)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, tuple | list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _find_secrets(item)  # pyright: ignore[reportUnknownArgumentType]
