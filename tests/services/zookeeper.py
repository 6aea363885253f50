"""ZooKeeper 3.9, one node or several that agree.

Invariant: sessions may be as short as a second, so that tests of their expiry do not wait long.
"""

import re
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from penstock.testing import Report, free_port
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

    @property
    def mode(self) -> str | None:
        """standalone, leader or follower; None while the node does not serve."""
        # One of ZooKeeper's four-letter words: the answer names the mode once the node serves. Asked too early,
        # ZooKeeper takes the connection and never answers, hence the short timeout.
        try:
            with socket.create_connection((self.host, self.port), timeout=0.3) as connection:
                connection.sendall(b"srvr")
                with connection.makefile("rb") as answer:
                    match = re.search(rb"Mode: (\w+)", answer.read())
        except OSError:
            return None
        return match[1].decode() if match else None

    def is_ready(self) -> bool:
        return self.mode is not None


class EnsembleMember(ZooKeeper):
    """It serves while more than half of the members run."""

    def __init__(self, home: Path, folder: Path, number: int, members: Sequence[str], **settings: Any) -> None:
        """`members` are the addresses by which they reach each other, in the order of their numbers."""
        together = {f"server.{other}": address for other, address in enumerate(members, 1)}
        super().__init__(home, folder, options={"initLimit": 10, "syncLimit": 4, **together}, **settings)
        self.number = number

    def configure(self) -> None:
        super().configure()
        (self.folder / "data/myid").write_text(f"{self.number}\n", encoding="utf-8")


class Ensemble:
    """ZooKeepers that agree; `hosts` is what clients connect to."""

    def __init__(self, home: Path, folder: Path, size: int = 3) -> None:
        addresses = [f"{ZooKeeper.host}:{free_port()}:{free_port()}" for _ in range(size)]
        self.members = [
            EnsembleMember(home, folder / f"zookeeper-{number}", number, addresses) for number in range(1, size + 1)
        ]

    @property
    def hosts(self) -> str:
        return ",".join(member.hosts for member in self.members)

    @property
    def leader(self) -> EnsembleMember | None:
        return next((member for member in self.members if member.mode == "leader"), None)

    def start(self) -> None:
        """Those that do not run; at once, since none of them serves alone."""
        with ThreadPoolExecutor(len(self.members)) as pool:
            list(pool.map(lambda member: member.start(), self.members))

    def kill(self) -> None:
        for member in self.members:
            member.kill()


class ZooKeeperService(CachedService):
    """ZooKeeper and its libraries from Maven."""

    name = "zookeeper"
    folder_name = f"zookeeper-{VERSION}"

    def download(self, target: Path, cache: Path, report: Report) -> None:
        maven.fetch(_COORDINATES, target, cache=cache, report=report, with_dependencies=True)

    def server(self, folder: Path, **settings: Any) -> ZooKeeper:
        return ZooKeeper(self.require(), folder, **settings)

    def ensemble(self, folder: Path, size: int = 3) -> Ensemble:
        return Ensemble(self.require(), folder, size)
