"""What OpenSearch and Elasticsearch have in common: one node, on loopback, that refuses nothing for lack of disk.

Invariant: ready means that the cluster's health is not red, which both answer without security and without plugins. One
node alone is yellow when an index wants replicas.
"""

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.services.java import JavaServer

SETTINGS = {
    "discovery.type": "single-node",
    "network.host": "127.0.0.1",
    "cluster.routing.allocation.disk.threshold_enabled": "false",
    "action.auto_create_index": "true",
}


@dataclass(frozen=True, slots=True)
class SearchRelease:
    """What differs between releases of one product."""

    name: str  # of the service
    version: str
    least_java: int = 0  # 0: any that we have
    java_options: tuple[str, ...] = ()  # that its own start script would add
    is_default: bool = False  # whether `make test` needs it


class SearchServer(JavaServer):
    """A search server with the address `url`."""

    refuses_root = True
    settings_file: str

    def __init__(self, release: SearchRelease, home: Path, folder: Path, **settings: Any) -> None:
        super().__init__(home, folder, **settings)
        self.name, self.release, self.least_java = release.name, release, release.least_java

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def configure(self) -> None:
        own = {
            "cluster.name": self.name,
            "node.name": self.name,
            "http.port": self.port,
            # The transport takes any free port; nobody connects to it.
            "transport.port": 0,
            "path.data": self.folder / "data",
            "path.logs": self.folder / "logs",
        }
        lines = [f"{name}: {value}\n" for name, value in {**own, **SETTINGS, **self.options}.items()]
        (self.folder / "config" / self.settings_file).write_text("".join(lines), encoding="utf-8")
        (self.folder / "config/log4j2.properties").write_text(_LOGGING, encoding="utf-8")

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/_cluster/health", timeout=5) as answer:  # noqa: S310 - our own
                return json.load(answer)["status"] != "red"
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %-5p %c{1.}: %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""
