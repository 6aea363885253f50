"""What `penstock serve` prints: where it listens, what it captures, and that there is something to serve."""

import time
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from penstock.server import Server

_QUIET_S = 2.0  # most destinations have started by then
_MOST_NAMES = 5


class Announcement:
    """`look` prints what is new. "serving" comes once, when the first destination can be read."""

    def __init__(self, server: "Server") -> None:
        self._server, self._began = server, time.monotonic()
        self._captured = set[str]()
        self._has_said_wait = False
        self.is_made = False

    def look(self) -> bool:
        """Return True when it just said that there is something to serve."""
        for name, instance in self._server.instances.items():
            if name not in self._captured:
                self._captured.add(name)
                typer.echo(f"capturing '{name}' from {instance.settings.source.address} at {instance.store.latest}")
        if self.is_made:
            return False
        if self._server.is_serving:
            self.is_made = True
            typer.echo(f"serving {self._ports}; Ctrl-C stops")
            return True
        if not self._has_said_wait and (reason := self._reason_to_wait()):
            self._has_said_wait = True
            typer.echo(f"listening: {self._ports}; {reason}; Ctrl-C stops")
        return False

    @property
    def _ports(self) -> str:
        server = self._server
        ports = [f"Arrow Flight on {server.address}"]
        if server.canal is not None:
            ports.append(f"canal's protocol on {server.canal.address}")
        if server.admin is not None:
            ports.append(f"its status on http://{server.admin.address}")
        if server.canal_admin is not None:
            ports.append(f"canal's admin protocol on {server.canal_admin.address}")
        return ", ".join(ports)

    def _reason_to_wait(self) -> str:
        """Return why there is nothing to serve; nothing as long as it may be a matter of a moment."""
        server = self._server
        if server.has_started and server.has_no_destination:
            return "no destination is configured yet, so there is nothing to serve"
        problems = server.problems
        if not problems and time.monotonic() - self._began < _QUIET_S:
            return ""
        reasons = [f"{name}: {text}" for name, text in server.report.readiness().hindrances.items()]
        if len(reasons) > _MOST_NAMES:
            reasons[_MOST_NAMES:] = [f"and {len(reasons) - _MOST_NAMES} more"]
        return f"nothing to serve yet ({'; '.join(reasons)})" if reasons else ""
