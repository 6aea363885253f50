"""A running demo, and the processes that it has started."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PENSTOCK = Path(sys.executable).with_name("penstock")


def descendants(pid: int) -> set[int]:
    """Every process below this one, now."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it ended while we looked
    processes, fresh = set[int](), {pid}
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh} - processes
        processes |= fresh
    return processes


def is_running(pid: int) -> bool:
    """Whether a process is there, and not only its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def name_of(pid: int) -> str:
    """The name of a process, empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def gone_soon(pids: set[int], seconds: float = 20) -> set[int]:
    """Wait until these processes have ended; gives those that have not."""
    deadline = time.monotonic() + seconds
    while (left := {pid for pid in pids if is_running(pid)}) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


@contextmanager
def running_demo() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running demo in a process group of its own, and the address of its page."""
    process = subprocess.Popen(
        [PENSTOCK, "demo", "--port", "0"], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if address := re.search(r"http://127\.0\.0\.1:\d+", line):
                break
        else:
            pytest.fail("the demo ended early:\n" + "".join(lines))
        yield process, address.group()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def press_ctrl_c(process: subprocess.Popen[str]) -> None:
    """Interrupt as a terminal does: every process of the group gets it."""
    os.killpg(process.pid, signal.SIGINT)
