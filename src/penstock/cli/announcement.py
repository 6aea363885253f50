"""What `penstock serve` prints: where it listens, what it captures, and that there is something to serve."""

import time
from typing import TYPE_CHECKING

from penstock.cli.output import Output

if TYPE_CHECKING:
    from penstock.server import Server

_QUIET_S = 2.0  # most destinations have started by then
_MAX_NAMES = 5
_PORT_NAMES = {
    "flight": "Arrow Flight",
    "canal": "canal's protocol",
    "admin": "its status",
    "canal_admin": "canal's admin protocol",
}


class ServeAnnouncer:
    """Prints each destination once it is captured, and "serving" once, when the first of them can be read.

    announcer = ServeAnnouncer(server, Output("text"))
    announcer.print_news()  # again and again, while the server runs
    """

    def __init__(self, server: "Server", output: Output) -> None:
        self._server, self._output, self._began = server, output, time.monotonic()
        self._captured = set[str]()
        self._has_said_wait = False
        self.is_made = False

    def print_news(self) -> bool:
        """Print what is new; return True if it just said that there is something to serve."""
        for name, instance in self._server.instances.items():
            if name not in self._captured:
                self._captured.add(name)
                source, position = instance.settings.source.address, instance.store.latest
                text = f"capturing '{name}' from {source} at {position}"
                self._output.print_event(
                    "capturing", text, destination=name, source=source, position=position.to_json()
                )
        if self.is_made:
            return False
        if self._server.is_serving:
            self.is_made = True
            ports = self._list_ports
            self._output.print_event("serving", f"serving {_describe_ports(ports)}; Ctrl-C stops", ports=ports)
            return True
        if not self._has_said_wait and (reason := self._why_nothing_serves()):
            self._has_said_wait = True
            ports = self._list_ports
            text = f"listening: {_describe_ports(ports)}; {reason}; Ctrl-C stops"
            self._output.print_event("listening", text, ports=ports, reason=reason)
        return False

    @property
    def _list_ports(self) -> dict[str, str]:
        """Return where the server listens, by the name of the port in its settings."""
        server = self._server
        ports = {"flight": server.address}
        if server.canal is not None:
            ports["canal"] = server.canal.address
        if server.admin is not None:
            ports["admin"] = f"http://{server.admin.address}"
        if server.canal_admin is not None:
            ports["canal_admin"] = server.canal_admin.address
        return ports

    def _why_nothing_serves(self) -> str:
        """Return why there is nothing to serve; an empty text while destinations may still be starting."""
        server = self._server
        if server.has_started and server.has_no_destination:
            return "no destination is configured yet, so there is nothing to serve"
        problems = server.problems
        if not problems and time.monotonic() - self._began < _QUIET_S:
            return ""
        reasons = [f"{name}: {text}" for name, text in server.report.readiness().unready_reasons.items()]
        if len(reasons) > _MAX_NAMES:
            reasons[_MAX_NAMES:] = [f"and {len(reasons) - _MAX_NAMES} more"]
        return f"nothing to serve yet ({'; '.join(reasons)})" if reasons else ""


def _describe_ports(ports: dict[str, str]) -> str:
    """Return the ports as one line of text."""
    return ", ".join(f"{_PORT_NAMES[name]} on {address}" for name, address in ports.items())
