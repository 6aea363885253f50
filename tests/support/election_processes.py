"""Several servers of an election as processes, and what they have said: never two at a time."""

import json
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from penstock.testing import poll_until

_SECONDS = 60.0


class Process:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.address: str = settings["address"]
        self.said: list[dict[str, Any]] = []
        command = [sys.executable, "-m", "tests.support.election_process", json.dumps(settings)]
        with tempfile.NamedTemporaryFile(prefix="penstock-running-", delete=False) as log:
            self._log = Path(log.name)
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith(b"\n"):
                self.said.append(json.loads(line))

    def tell(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n".encode())
        self._process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join(10)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def wait_closed(self) -> None:
        self._process.wait(_SECONDS)

    def report(self) -> str:
        return self._log.read_text(errors="replace")

    def forget(self) -> None:
        self._log.unlink(missing_ok=True)

    def lines(self, kind: str, destination: str | None = None) -> list[dict[str, Any]]:
        of_kind = [line for line in list(self.said) if line["kind"] == kind]
        return [line for line in of_kind if destination in {None, line.get("destination")}]

    def known_owner(self, destination: str) -> str | None:
        """Return the address of the server that this one knows to run a destination."""
        owners = [line["owner"] for line in self.lines("owner", destination)]
        return owners[-1] if owners else None

    def runs(self, destination: str) -> bool:
        last = [line["kind"] for line in list(self.said) if line.get("destination") == destination]
        last = [kind for kind in last if kind in {"running", "stopped"}]
        return self._process.poll() is None and bool(last) and last[-1] == "running"


class ElectionProcesses:
    """Servers that take part in one election, each a process: `with ElectionProcesses(hosts) as election`.

    At the end it checks that no two of them ever held the destination, or wrote, at the same time.
    """

    def __init__(self, hosts: str, *, session_s: float = 3.0, destinations: int = 1) -> None:
        self.destinations = [f"d{secrets.token_hex(4)}" for _ in range(destinations)]
        self.processes: list[Process] = []
        self._hosts, self._session_s = hosts, session_s

    @property
    def destination(self) -> str:
        return self.destinations[0]

    def add(self, *, hosts: str | None = None, **settings: Any) -> Process:
        """With its own way to ZooKeeper, if one is named."""
        defaults = {"hosts": hosts or self._hosts, "direct": self._hosts, "session_s": self._session_s}
        defaults |= {"address": f"10.0.0.{len(self.processes) + 1}:11111", "destinations": self.destinations}
        process = Process(defaults | settings)
        self.processes.append(process)
        until(lambda: bool(process.lines("ready")), self)
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for process in self.processes:
            process.end()
        try:
            if kind is None:
                for destination in self.destinations:
                    check_alone(self.processes, destination)
        finally:
            for process in self.processes:
                process.forget()

    def report(self) -> str:
        return "\n\n".join(f"{process.address}\n{process.report()}" for process in self.processes)


def until(holds: Callable[[], bool], election: ElectionProcesses, timeout_s: float = _SECONDS) -> None:
    assert poll_until(holds, timeout_s), election.report()


def check_alone(processes: list[Process], destination: str) -> None:
    spans: dict[tuple[int, float], float] = {}
    for number, process in enumerate(processes):
        for line in process.lines("held"):
            if destination in line["spans"]:
                since, end = line["spans"][destination]
                spans[number, since] = max(end, spans.get((number, since), end))
    in_order = sorted((since, end, number) for (number, since), end in spans.items())
    assert in_order, "nobody ever held it"
    for (_, end, member), (since, _, other) in pairwise(in_order):
        assert member == other or end < since, f"{processes[member].address} and {processes[other].address} at {since}"
    started = sorted(
        (line["at"], line["epoch"]) for member in processes for line in member.lines("running", destination)
    )
    epochs = [epoch for _, epoch in started]
    assert epochs == sorted(set(epochs)), epochs
    # What was asked after a write of a later epoch had been answered must have been refused.
    writes = [line for process in processes for line in process.lines("wrote", destination)]
    events = [(line["at"], 1, line["epoch"]) for line in writes]
    events += [(line["asked"], 0, line["epoch"]) for line in writes]
    newest = 0
    for _, is_answer, epoch in sorted(events):
        assert is_answer or epoch >= newest, f"epoch {epoch} wrote after {newest}"
        newest = max(newest, epoch) if is_answer else newest
