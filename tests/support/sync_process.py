"""`penstock sync` as a process of its own, for tests that kill it, freeze it, or read what it prints."""

import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.capture import poll

PENSTOCK = Path(sys.executable).with_name("penstock")


class SyncProcess:
    """A `penstock sync` with what it has printed."""

    def __init__(self, command: list[Any], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(line for line in iter(self.process.stdout.readline, ""))

    def has_said(self, text: str) -> bool:
        return any(text in line for line in self.lines)

    @property
    def has_ended(self) -> bool:
        """Return whether the process is gone."""
        return self.process.poll() is not None

    @property
    def children(self) -> set[int]:
        """Processes that it has started and that live: its JVM."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return {int(number) for children in tasks for number in children.read_text().split()}

    def freeze(self) -> None:
        """Stop the process where it is; what it has started runs on."""
        self.process.send_signal(signal.SIGSTOP)
        stat = Path(f"/proc/{self.process.pid}/stat")
        assert poll(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")

    def thaw(self) -> None:
        """Let a frozen process run again."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it with -9."""
        self.process.kill()
        self._end()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> str:
        """Send a signal, wait until it has ended, and return what it has printed."""
        self.process.send_signal(number)
        try:
            self.process.wait(60)
        finally:
            self.process.kill()  # one that did not stop; nothing happens to one that did
            self._end()
        return "".join(self.lines)

    def _end(self) -> None:
        self.process.wait()
        self._reader.join()
        if self.process.stdout is not None:
            self.process.stdout.close()


def find_descendants(process: int) -> list[int]:
    """Return the ids of all processes that a process has started, and that those have started."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    processes = list(children.get(process, ()))
    for child in processes:
        processes += children.get(child, ())
    return processes


def find_workers(process: int) -> list[int]:
    """Return the ids of the processes in which the Spark of a process runs Python."""
    workers: list[int] = []
    for child in find_descendants(process):
        with suppress(OSError):
            if b"\0-m\0pyspark." in Path(f"/proc/{child}/cmdline").read_bytes():  # the JVM names it in a path
                workers.append(child)
    return workers
