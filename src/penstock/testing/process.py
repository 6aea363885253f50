"""A server as a child process that cannot outlive us.

Invariant: from `start` until `stop` or `kill` has returned, the process id belongs to this server: its exit is only
looked at (WNOWAIT), never collected, so a signal to its group can never reach a stranger who got the same id.

`setpriv --pdeathsig` makes the kernel kill the server when its parent is gone, however that happened. For the kernel
the parent is the *thread* that started the process, hence one thread that starts them all and lives as long as we do.
"""

import functools
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from penstock.errors import ServerStartError

POLL_S = 0.03
TAIL_LINES = 15
_STACK_FRAME = re.compile(r"\s+(at \S+\(|\.\.\. \d+ more)")


def free_port() -> int:
    """Reserve a TCP port of the loopback interface for as long as this process lives, and return it.

    The port lies outside the range from which the kernel gives ports to outgoing connections, and no other process
    that calls `free_port` gets it: it stays free until the server that it is meant for listens, also while that server
    is down between a kill and a restart.
    """
    candidates = _ports_without_automatic_use()
    for _attempt in range(1000):
        port = random.choice(candidates)  # noqa: S311 - a port is no secret
        # The name of an abstract socket belongs to one process, and the kernel frees it when that process ends.
        reservation = socket.socket(socket.AF_UNIX)
        try:
            reservation.bind(f"\0penstock-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            reservation.close()
            continue
        reservation.detach()  # stays open until the process ends
        return port
    raise ServerStartError("no free TCP port was found on the loopback interface: 1000 ports were tried")


@functools.cache
def _ports_without_automatic_use() -> Sequence[int]:
    """Return the ports that no outgoing connection gets by itself, or all unprivileged ones where those are few."""
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    every = range(15000, 65536)
    return [port for port in every if not first <= port <= last] if first - every[0] > 1000 else every


def poll_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Ask `condition` until it is true or the time is over, and return whether it became true."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


class ServerProcess:
    """A database or other server that tests have started as a child process; it leads a process group of its own, which
    is ended as a whole.

        process = ServerProcess.start("zookeeper", command, log=tmp_path / "server.log")
        process.wait_until_ready(is_ready, timeout_s=30)
    """

    def __init__(self, name: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.name = name
        self.log = log
        self.pid = process.pid
        self._process = process

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str | Path],
        *,
        log: Path,
        user: str | None = None,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> "ServerProcess":
        """Start `command` in `folder`, output to `log`; as another user if one is named (needs root)."""
        arguments = [*_setpriv_command(user), "--", *map(str, command)]
        with log.open("ab") as output:
            spawning = _get_spawner(os.getpid()).submit(
                subprocess.Popen,
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=None if environment is None else dict(environment),
                start_new_session=True,
            )
            try:
                process = spawning.result()
            except OSError as error:
                raise ServerStartError(f"{name} could not be started: {error}") from error
        return cls(name, process, log)

    def has_exited(self) -> bool:
        """Tell whether the server process has exited."""
        if self._process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def wait_until_ready(self, is_ready: Callable[[], bool], timeout_s: float) -> None:
        """Return once `is_ready` says so; if the server exits or the time is over, end it and raise."""
        try:
            in_time = poll_until(lambda: self.has_exited() or is_ready(), timeout_s)
        except BaseException:
            self.kill()
            raise
        if in_time and not self.has_exited():
            return
        self.kill()
        status = self._process.returncode
        if not in_time:
            outcome = f"was not ready after {timeout_s:g} s"
        else:
            outcome = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"exited with status {status}"
        raise ServerStartError(f"{self.name} {outcome}; the end of {self.log}:\n{read_log_tail(self.log)}")

    def stop(self, timeout_s: float = 20) -> None:
        """Send SIGTERM to the server's whole process group, and SIGKILL to what is left of it after `timeout_s`."""
        if self._process.returncode is None:
            self._signal_group(signal.SIGTERM)
            # Not only the leader: a start program may end before the server that it started.
            poll_until(lambda: not _has_living_members(self.pid), timeout_s)
        self.kill()

    def kill(self) -> None:
        """Send SIGKILL to the whole group, as a crash would."""
        if self._process.returncode is None:
            self._signal_group(signal.SIGKILL)
            self._process.wait()

    def _signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the process group."""
        # While the leader is not collected its group exists, so this cannot fail with "no such process".
        os.killpg(self.pid, number)


def _has_living_members(group: int) -> bool:
    """Tell whether a process group has a process that has not exited."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # pid (name) state parent group …; the name may hold anything, so count from its closing bracket.
            state, _parent, its_group, *_rest = path.read_text(errors="replace").rpartition(")")[2].split()
        except (OSError, ValueError):
            continue  # it ended while we looked
        if int(its_group) == group and state not in "ZX":
            return True
    return False


def read_log_tail(log: Path) -> str:
    """Return the last lines of a log, indented, for an error message; Java's stack frames would push the reason out."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        lines = [f"({error.strerror})"]
    telling = [line for line in lines if line.strip() and not _STACK_FRAME.match(line)]
    return "\n".join(f"  {line}" for line in telling[-TAIL_LINES:] or ["(empty)"])


def _setpriv_command(user: str | None) -> list[str]:
    """Return the setpriv command that ends the server with its parent, and runs it as another user."""
    program = shutil.which("setpriv")
    if program is None:
        raise ServerStartError("setpriv was not found: install util-linux (it ends servers when their parent dies)")
    if user is None:
        return [program, "--pdeathsig", "KILL"]
    account = pwd.getpwnam(user)
    identity = [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", "--inh-caps=-all"]
    return [program, *identity, "--pdeathsig", "KILL"]


@functools.cache
def _get_spawner(_process_id: int) -> ThreadPoolExecutor:
    """Return the one thread of this process that starts servers."""
    # Keyed by process id: a forked child has our memory but not our thread.
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="penstock-servers")
