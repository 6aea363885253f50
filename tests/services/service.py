"""The one shape every server of the tests has: fetched once, started on a folder, stopped.

Invariant: what `fetch` leaves in the cache is complete or absent, and `start` never downloads.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from penstock.errors import ServerStartError
from penstock.testing import PrivateServer, Report, build_once, cache_folder, has_folder


class Service(ABC):
    """A kind of server in one version."""

    name: str
    """What fixtures, markers and `make services ONLY=…` call it."""

    is_default: bool = True
    """Whether it is fetched without being named: what `make test` needs."""

    @abstractmethod
    def find(self, cache: Path) -> Path | None:
        """Where it is, if it has been fetched."""

    @abstractmethod
    def fetch(self, cache: Path, report: Report) -> Path:
        """Where it is, fetched now if need be."""

    def require(self) -> Path:
        """Where it is, or an error with the command that fetches it."""
        installation = self.find(cache_folder())
        if installation is None:
            raise ServerStartError(f"{self.name} is not in {cache_folder()}: run `make services ONLY={self.name}`")
        return installation


class ServerService(Service):
    """A service that runs as a process of its own."""

    @abstractmethod
    def server(self, folder: Path, **settings: Any) -> PrivateServer:
        """A server on `folder`, not started; `settings` are those of its class."""

    def start(self, folder: Path, **settings: Any) -> PrivateServer:
        return self.server(folder, **settings).start()


class CachedService(ServerService):
    """A service that is a folder of the cache, named after its version."""

    folder_name: str

    @abstractmethod
    def download(self, target: Path, cache: Path, report: Report) -> None:
        """Fill the empty folder `target`."""

    def find(self, cache: Path) -> Path | None:
        folder = cache / self.folder_name
        return folder if has_folder(folder) else None

    def fetch(self, cache: Path, report: Report) -> Path:
        return build_once(cache / self.folder_name, lambda target: self.download(target, cache, report), report)
