"""What canal's console can ask for. Answers are texts: 1 and 0 for yes and no."""

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
_LINES = 100
_MOST_LINES = 5000
_OVER = {InstanceState.STOPPED, InstanceState.FAILED}

Action = Callable[[str], str]


class OperatedDestinations(Protocol):
    """The destinations of a server, as somebody starts and stops them by hand."""

    @property
    def all(self) -> Mapping[str, Destination]: ...

    @property
    def starting(self) -> Mapping[str, str]: ...

    @property
    def is_halted(self) -> bool: ...

    def halt(self, name: str) -> bool: ...

    def resume(self, name: str) -> bool: ...

    def release(self, name: str) -> bool: ...

    def halt_all(self) -> None: ...

    def resume_all(self) -> None: ...


class ConsoleCalls:
    """Answers the requests of canal's console. Any thread may call it."""

    def __init__(self, destinations: OperatedDestinations, ring: LogRing, settings: ServerSettings) -> None:
        self._destinations, self._ring, self._settings = destinations, ring, settings
        self._server: Mapping[str, Action] = {
            "check": lambda _: _flag(not destinations.is_halted),
            "start": self._start_all,
            "stop": self._stop_all,
            "restart": lambda _: self._stop_all("") and self._start_all(""),
            "list": lambda _: ",".join(name for name in sorted(destinations.all) if self._runs(name)),
        }
        self._instance: Mapping[str, Action] = {
            "check": lambda name: _flag(self._runs(name)),
            "start": lambda name: _flag(destinations.resume(name) or self._runs(name)),
            "stop": lambda name: _flag(destinations.halt(name) or not self._runs(name)),
            "restart": self._restart,
            "release": lambda name: _flag(destinations.release(name)),
        }

    def server(self, request: ServerAdminRequest) -> str:
        """Do an action on all destinations."""
        return _choose(self._server, "ServerAdmin", request.admin)("")

    def instance(self, request: InstanceAdminRequest) -> str:
        """Run an action of canal's admin on one destination, such as start or stop, and return its result."""
        destination = request.destination
        call = _choose(self._instance, "InstanceAdmin", request.admin)
        self._check_known(destination)
        return call(destination)

    def log(self, request: LogAdminRequest) -> str:
        """Return the names of the log files (`list`), or the last lines of one (`tail`), for canal's admin."""
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
        count = min(request.count or _LINES, _MOST_LINES)
        return self._ring.tail(count, destination, set(self._secrets()))

    def _secrets(self) -> Iterator[str]:
        yield from _secrets_of(self._settings)
        for one in self._destinations.all.values():
            yield from _secrets_of(one.settings)

    def _check_known(self, destination: str) -> None:
        """One that is still starting is known: it does not run yet, and there is nothing to stop or to start."""
        known = sorted({*self._destinations.all, *self._destinations.starting})
        if destination not in known:
            raise ConfigurationError(f"there is no destination {destination[:100]!r}; there is: {', '.join(known)}")

    def _runs(self, name: str) -> bool:
        found = self._destinations.all.get(name)
        try:
            return found is not None and found.running().state not in _OVER
        except NotRunningError:
            return False

    def _restart(self, name: str) -> str:
        self._destinations.halt(name)
        return _flag(self._destinations.resume(name))

    def _stop_all(self, _: str) -> str:
        self._destinations.halt_all()
        return "1"

    def _start_all(self, _: str) -> str:
        self._destinations.resume_all()
        return "1"


def _choose(actions: Mapping[str, Action], kind: str, action: str) -> Action:
    found = actions.get(action)
    if found is None:
        raise CanalRefusedError(
            UNKNOWN_ACTION, f"{kind} action={action[:40]} is unknown: there is {', '.join(actions)}"
        )
    return found


def _flag(value: bool) -> str:
    return "1" if value else "0"


def _secrets_of(value: object) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _secrets_of(getattr(value, name))
    elif isinstance(value, Mapping):
        for one in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _secrets_of(one)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, tuple | list):
        for one in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _secrets_of(one)  # pyright: ignore[reportUnknownArgumentType]
