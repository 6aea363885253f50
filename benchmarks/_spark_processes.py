"""CPU time and memory of a Spark query: of its JVM and of every Python process below it."""

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


class CpuMeter:
    """Counts the CPU seconds of a process and of all below it, from when the meter is made.

        meter = CpuMeter(jvm_pid)
        ...
        meter.used_s

    What a process has used that ended meanwhile is not known; those of a query live as long as it does.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._before = _cpu_by_process(root)

    @property
    def used_s(self) -> float:
        """The CPU seconds since then."""
        return sum(used - self._before.get(process, 0.0) for process, used in _cpu_by_process(self._root).items())


def read_peaks_mib(root: int) -> dict[tuple[int, str], float]:
    """Return the most memory that a process, and each below it, has had resident, by its number and name."""
    peaks = dict[tuple[int, str], float]()
    for process in _cpu_by_process(root):
        try:
            status = Path(f"/proc/{process}/status").read_text()
        except OSError:  # it has ended
            continue
        if "VmHWM:" in status:
            name = status.partition("Name:")[2].split()[0]
            peaks[process, name] = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return peaks


def _cpu_by_process(root: int) -> dict[int, float]:
    children, times = dict[int, list[int]](), dict[int, float]()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            children.setdefault(int(fields[1]), []).append(int(folder.name))
            times[int(folder.name)] = (int(fields[11]) + int(fields[12])) / TICKS
    seconds, waiting = dict[int, float](), [root]
    while waiting:
        process = waiting.pop()
        seconds[process] = times.get(process, 0.0)
        waiting += children.get(process, [])
    return seconds
