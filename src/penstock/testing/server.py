"""The life of a private server: started, stopped or killed, and started again on the same data.

Invariant: everything a server writes is below its `folder`, it listens on loopback only, and its port stays the same.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.testing.process import ServerProcess, free_port

START_TIMEOUT_S = 90


class PrivateServer(ABC):
    """A database, ZooKeeper or search server that a test starts on its own folder, with its output in `server.log`.

    class Cache(PrivateServer):
        def launch(self) -> ServerProcess: ...
        def is_ready(self) -> bool: ...
    """

    host = "127.0.0.1"
    name: str
    """What error messages call it."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder.absolute()
        self.log = self.folder / "server.log"
        self.port = port or free_port()
        self._process: ServerProcess | None = None

    @abstractmethod
    def launch(self) -> ServerProcess:
        """Prepare the folder and start the process; `start` does the waiting."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Tell whether the server answers; it is called again and again, so it must return soon."""

    @property
    def pid(self) -> int | None:
        """Return the process id while the server runs, else None."""
        return self._process.pid if self._process else None

    def start(self) -> Self:
        """Start the server, and return once it answers."""
        if self._process is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            process = self.launch()
            process.wait_until_ready(self.is_ready, START_TIMEOUT_S)
            self._process = process
        return self

    def stop(self) -> None:
        """Shut the server down in order."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def kill(self) -> None:
        """End the server as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
