"""ZooKeeper 3.9, one node.

Invariant: sessions may be as short as a second, so that tests of their expiry do not wait long.
"""

import socket
from pathlib import Path
from typing import Any

from penstock.testing import Report
from tests.services import maven
from tests.services.java import JavaServer, java_home
from tests.services.service import CachedService

VERSION = "3.9.5"
# ZooKeeper leaves metrics, compression and a logger to who deploys it.
_COORDINATES = (
    f"org.apache.zookeeper:zookeeper:{VERSION}",
    "io.dropwizard.metrics:metrics-core:4.1.12.1",
    "org.xerial.snappy:snappy-java:1.1.10.5",
    "org.slf4j:slf4j-simple:2.0.13",
)


class ZooKeeper(JavaServer):
    """A running ZooKeeper; `hosts` is what clients connect to."""

    name = "zookeeper"

    @property
    def hosts(self) -> str:
        return f"{self.host}:{self.port}"

    def configure(self) -> None:
        settings = {
            "tickTime": 500,
            "minSessionTimeout": 1000,
            "dataDir": self.folder / "data",
            "clientPort": self.port,
            "clientPortAddress": self.host,
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            **self.options,
        }
        lines = [f"{name}={value}\n" for name, value in settings.items()]
        (self.folder / "config/zoo.cfg").write_text("".join(lines), encoding="utf-8")

    def command(self) -> list[str]:
        return [
            str(java_home() / "bin/java"),
            "-Xmx128m",
            *self.java_options,
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            *("-cp", f"{self.home}/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain"),
            str(self.folder / "config/zoo.cfg"),
        ]

    def is_ready(self) -> bool:
        # One of ZooKeeper's four-letter words: the answer names the mode once the node serves. Asked too early,
        # ZooKeeper takes the connection and never answers, hence the short timeout.
        try:
            with socket.create_connection((self.host, self.port), timeout=0.3) as connection:
                connection.sendall(b"srvr")
                with connection.makefile("rb") as answer:
                    return b"Mode:" in answer.read()
        except OSError:
            return False


class ZooKeeperService(CachedService):
    """ZooKeeper and its libraries from Maven."""

    name = "zookeeper"
    folder_name = f"zookeeper-{VERSION}"

    def download(self, target: Path, cache: Path, report: Report) -> None:
        maven.fetch(_COORDINATES, target, cache=cache, report=report, with_dependencies=True)

    def server(self, folder: Path, **settings: Any) -> ZooKeeper:
        return ZooKeeper(self.require(), folder, **settings)
