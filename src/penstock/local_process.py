"""Processes of this machine, told apart also where the kernel has given a process id a second time.

Every room may import it.
"""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LocalProcess:
    """A process of this machine: its id, and when it began, in the kernel's own clock ticks since the machine's start.

    LocalProcess.current().to_text()
    """

    pid: int
    began: int

    @classmethod
    def current(cls) -> "LocalProcess":
        """Return the calling process."""
        return cls.find(os.getpid())

    @classmethod
    def find(cls, pid: int) -> "LocalProcess":
        """Return the process that has an id now; OSError if there is none."""
        return cls(pid, _read_stat(pid)[2])

    @classmethod
    def find_parent_jvm(cls) -> "LocalProcess | None":
        """Return the nearest ancestor of this process that is a JVM, or None if there is none.

        For a Python process that Spark has started it is the driver's or the executor's JVM.
        """
        pid = os.getpid()
        while pid > 1:
            try:
                _, parent, began = _read_stat(pid)
                if Path(f"/proc/{pid}/exe").readlink().name == "java":
                    return cls(pid, began)
            except OSError:
                return None  # of another user, or ended while we looked
            pid = parent
        return None

    @classmethod
    def parse(cls, text: str) -> "LocalProcess":
        """Parse a process from a text that `to_text` wrote; ValueError for any other text."""
        pid, began = map(int, text.split("-"))
        return cls(pid, began)

    def to_text(self) -> str:
        """Return the process as a text that can be the name of a file."""
        return f"{self.pid}-{self.began}"

    @property
    def is_alive(self) -> bool:
        """Tell whether the process still runs; one that has ended and was not collected by its parent does not."""
        try:
            state, _, began = _read_stat(self.pid)
        except OSError:
            return False
        return began == self.began and state not in "ZX"


def _read_stat(pid: int) -> tuple[str, int, int]:
    """Return state, parent and start of a process."""
    # pid (name) state parent …; the name may hold anything, so count from its closing bracket.
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return fields[0], int(fields[1]), int(fields[19])
