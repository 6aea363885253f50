"""Capture without a Penstock server: a client of a database starts a server of its own on its machine, and shares it.

Processes of one user on one machine that read one source share one server process. Whoever needs it first starts it,
and whoever finds it dead starts it again. It ends by itself a few seconds after the last process that is registered
with it (server/embedded.py). Its folder:

| name          | content                                                                        |
|---------------|--------------------------------------------------------------------------------|
| `data/`       | the schema history of the source                                               |
| `lock`        | held while somebody starts the server, also by the server until it serves      |
| `server.json` | URL and token of the server that runs, readable by its owner only              |
| `users/`      | one empty file per process for which the server runs                           |
| `log`         | what the server has logged since it was started                                |
"""

import hashlib
import json
import os
import platform
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import errors
from penstock.client.address import ServerAddress
from penstock.client.channel import ServerChannel
from penstock.disk import FileLock, make_private_folder, write_private
from penstock.errors import ConfigurationError, PenstockError, ServerUnavailableError
from penstock.local_process import LocalProcess

if TYPE_CHECKING:
    from penstock.coordinate.running_lookup import Cancelled

# A server that its client waits for no longer than this would hardly ever start: loading its modules takes seconds.
LEAST_START_S = 20.0
_POLL_S = 0.05
_LONGER_ADVICE = (
    ": give it longer (in Spark with the option waitForServer). Its first start reads the whole log of a source whose"
    " binlog_row_metadata is not FULL."
)
_DIGEST_ROUNDS = 200_000
_LOG_LINES = 5
_started: list["subprocess.Popen[bytes]"] = []  # they outlive us; a Popen that is collected would complain of that


@dataclass(frozen=True, slots=True)
class EmbeddedSource:
    """A database server, or a folder with files of its log, that is captured on this machine without a server.

    FlightClient(EmbeddedSource(host="db1", user="penstock", password="…"), retry_timeout_s=60)
    FlightClient(EmbeddedSource(path="/backup/binlogs"))
    """

    host: str = ""
    port: int = 3306
    user: str = "root"
    password: str = field(default="", repr=False)
    tls: str = "preferred"  # as the setting `tls` of a source
    tls_ca: str = ""
    path: str = ""  # instead of a host
    state_dir: str = ""  # where its folder is; below the user's own state folder when it is not given
    ends_with_jvm: bool = False  # it is used by the JVM above this process, not by this process alone

    @property
    def server(self) -> str:
        """Return the name of the source in log lines and errors."""
        return f"the embedded capture of {self.path or f'{self.host}:{self.port}'}"

    @property
    def settings(self) -> dict[str, Any]:
        """Return the source as an instance's settings have it."""
        if self.path:
            return {"path": self.path}
        settings = {"host": self.host, "port": self.port, "user": self.user, "password": self.password, "tls": self.tls}
        return settings | ({"tls_ca": self.tls_ca} if self.tls_ca else {})

    @property
    def folder(self) -> Path:
        """The folder of its server process. Another password or way to connect has another one, so that the database
        itself decides about it; so has another machine, where machines share the folder above it."""
        base = Path(self.state_dir) if self.state_dir else _state_folder()
        return base / _digest(json.dumps({**self.settings, "machine": platform.node()}))


class EmbeddedServers:
    """The server process of an embedded source, for a `ServerLink`; it is started if it does not run."""

    is_single = True

    def __init__(self, source: EmbeddedSource) -> None:
        self._source = source
        self._lock = threading.Lock()  # of these:
        self._channel: ServerChannel | None = None
        self._is_left = False

    def candidates(self, start_timeout_s: float) -> Sequence[ServerChannel]:
        """Return the connection to the server that runs, after starting it where it does not."""
        with self._lock:
            if self._channel is None or self._is_left:
                self._channel, self._is_left = self._find_or_start(start_timeout_s), False
            return [self._channel]

    def demote(self, channel: ServerChannel) -> None:
        """Check whether the server runs before it is asked the next time."""
        with self._lock:
            self._is_left = self._is_left or channel is self._channel

    def watch(self, channel: ServerChannel, cancelled: "Cancelled") -> None:
        """Do nothing: calls and streams of a server that ends break by themselves."""

    def close(self) -> None:
        """Close the connection to the embedded server, which ends by itself when its last client has gone."""
        with self._lock:
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.client.close()

    def _find_or_start(self, start_timeout_s: float) -> ServerChannel:
        """Return a channel to the running server, after starting it if needed."""
        address = find_or_start(self._source, start_timeout_s)
        if self._channel is not None and self._channel.url == address.server:
            return self._channel
        return ServerChannel(address, address.server, name=self._source.server, advice="")


def find_or_start(source: EmbeddedSource, start_timeout_s: float) -> ServerAddress:
    """Return the address of the server process of a source; start it where it does not run.

    Raises what keeps it from starting: a source that does not answer, a password that is refused, a missing grant, or
    that it takes longer than `start_timeout_s`, but at least LEAST_START_S.
    """
    deadline_s = time.monotonic() + max(start_timeout_s, LEAST_START_S)
    folder = source.folder
    user = LocalProcess.find_parent_jvm() if source.ends_with_jvm else None
    try:
        make_private_folder(folder / "users")
        (folder / "users" / (user or LocalProcess.current()).to_text()).touch(mode=0o600)
        is_ours = all(path.stat().st_uid == os.getuid() for path in (folder, folder.parent))
    except OSError as error:
        raise ConfigurationError(
            f"{source.server} cannot write to {folder} ({error.strerror}): name another folder (in Spark with the"
            " option stateDir)"
        ) from None
    if not is_ours:  # its owner could put a server of his own there
        raise ConfigurationError(
            f"{source.server} does not use {folder.parent}, which belongs to another user: name another folder"
            " (in Spark with the option stateDir)"
        )
    if (address := _find_running(folder)) is not None:
        return address
    with _hold_start_lock(folder / "lock", source, deadline_s) as lock:
        if (address := _find_running(folder)) is not None:
            return address
        _start_server(source, folder, lock, deadline_s)
    if (address := _find_running(folder)) is None:
        raise ServerUnavailableError(f"{source.server} has ended right after its start:{_read_log_tail(folder)}")
    return address


def _find_running(folder: Path) -> ServerAddress | None:
    """Return the address of the running server; None if there is none."""
    try:
        server = json.loads((folder / "server.json").read_bytes())
        is_alive = LocalProcess.parse(server["process"]).is_alive
        return ServerAddress(server["url"], server["token"]) if is_alive else None
    except (OSError, ValueError, KeyError):
        return None


@contextmanager
def _hold_start_lock(path: Path, source: EmbeddedSource, deadline_s: float) -> Generator[FileLock]:
    """Hold the lock that lets one process at a time start the server."""
    lock = FileLock(path)
    while True:
        try:
            lock.acquire()
            break
        except BlockingIOError:
            if time.monotonic() > deadline_s:
                raise ServerUnavailableError(
                    f"{source.server} is being started by another process, and was not ready in time{_LONGER_ADVICE}"
                ) from None
            time.sleep(_POLL_S)
    try:
        yield lock
    finally:
        lock.release()


def _start_server(source: EmbeddedSource, folder: Path, lock: FileLock, deadline_s: float) -> None:
    """Start the server process, and return when it serves; raise the reason if it fails, or is not ready in time.

    The server inherits the lock: if this process ends meanwhile, the next one waits for that server instead of starting
    a second one, which would find its folder in use.
    """
    began_s = time.monotonic()
    request = {"source": source.settings, "data_dir": str(folder / "data")}
    write_private(folder / "log", b"")
    with (folder / "log").open("wb") as log_file:
        process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "penstock.server.embedded", str(folder), str(lock.fileno())],
            pass_fds=(lock.fileno(),),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log_file,
            start_new_session=True,
        )
    _started[:] = [process for process in _started if process.poll() is None]
    _started.append(process)
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are pipes
    with suppress(BrokenPipeError), process.stdin as pipe:  # it says below why it has ended
        pipe.write(json.dumps(request).encode())
    with process.stdout as answers:
        is_ready, _, _ = select.select([answers], [], [], max(0.0, deadline_s - began_s))
        line = answers.readline() if is_ready else b""
    if not is_ready:
        process.kill()
        raise ServerUnavailableError(
            f"{source.server} was not ready after {time.monotonic() - began_s:.0f} s{_LONGER_ADVICE}"
            f" What it has logged:{_read_log_tail(folder)}"
        )
    try:
        answer = json.loads(line)
    except ValueError:
        process.kill()
        raise ServerUnavailableError(f"{source.server} did not start:{_read_log_tail(folder)}") from None
    if "error" in answer:
        raise _parse_error(answer)


def _parse_error(answer: dict[str, str]) -> PenstockError:
    """Return the error that a failed start reported."""
    error_class = getattr(errors, answer["error"], PenstockError)
    return error_class(answer["message"])


def _read_log_tail(folder: Path) -> str:
    """Return the last lines of the server's log."""
    lines = (folder / "log").read_text("utf-8", "replace").splitlines()[-_LOG_LINES:]
    return "".join(f"\n  {line}" for line in lines) or " it has logged nothing"


def _state_folder() -> Path:
    """Return the folder for state of this user."""
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state")
    if base.is_dir() or os.access(next(parent for parent in base.parents if parent.exists()), os.W_OK):
        return base / "penstock" / "embedded"
    return Path(tempfile.gettempdir()) / f"penstock-embedded-{os.getuid()}"


@lru_cache(maxsize=64)
def _digest(text: str) -> str:
    """Return a short digest of a text with a password in it. It can be seen in the list of processes, so it takes long
    enough to compute that passwords cannot be tried out quickly."""
    return hashlib.pbkdf2_hmac("sha256", text.encode(), b"penstock embedded", _DIGEST_ROUNDS).hex()[:16]
