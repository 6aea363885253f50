"""How late a change is searchable: a writer commits at a steady pace, and a reader searches all the time.

Latency is from before the COMMIT was sent, so with the time that the source takes to commit, to when the first search
that finds the change has returned. Between two searches the reader pauses for 5 ms, or it would take a core for itself.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from benchmarks._index_probe import SearchProbe
from benchmarks._index_sync import SyncProcess
from benchmarks._index_writer import CHANGES_PER_S
from benchmarks._scale import scaled
from benchmarks._server_run import connection_of
from benchmarks._spark_processes import TICKS, CpuMeter
from penstock.testing import DatabaseServer

WARM_S, MEASURED_S = scaled(30, 1), scaled(25, 1)
CHANGES = (WARM_S + MEASURED_S) * CHANGES_PER_S
_PAUSE_S = 0.005
_LATEST_S = 120  # after which a change that no search finds ends the benchmark


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds until changes were searchable; how many were timed, how fast they were written; and the CPU that was
    used meanwhile, in percent of a core, by name."""

    p50_ms: float
    p99_ms: float
    most_ms: float
    changes: int
    changes_per_s: float
    searches_per_s: float
    cpu_percent: dict[str, float]


def measure_latency(
    source: DatabaseServer, sync: SyncProcess, probe: SearchProbe, first_mark: int, processes: Mapping[str, int]
) -> Latency:
    """Write changes with marks from `first_mark` on, and see when they are found; those of the first seconds do not
    count. `processes` are those whose CPU is of interest, by name."""
    _wait_for_first(source, sync, probe, first_mark - 1)
    asked = {"connection": connection_of(source), "first": first_mark, "count": CHANGES}
    command = [sys.executable, "-m", "benchmarks._index_writer", json.dumps(asked)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:  # noqa: S603 - ours
        try:
            reader, began = ChangeReader(probe, first_mark, CHANGES), time.monotonic()
            _search(reader, writer, sync, began, lambda: time.monotonic() - began > WARM_S)
            use = _CpuUse({**processes, "writer": writer.pid})
            searches, measured_from = reader.searches, time.monotonic()
            _search(reader, writer, sync, began, lambda: reader.is_done)
            took, percent = time.monotonic() - measured_from, use.percent()
            written, _ = writer.communicate(timeout=_LATEST_S)
        finally:
            writer.kill()
    moments: list[int] = json.loads(written)
    warm = CHANGES * WARM_S // (WARM_S + MEASURED_S)
    latencies = [(reader.seen[number] - moments[number]) / 1e6 for number in range(warm, CHANGES)]
    percentiles = quantiles(latencies, n=100)
    pace = (len(latencies) - 1) / (moments[-1] - moments[warm]) * 1e9
    return Latency(
        *(percentiles[49], percentiles[98], max(latencies), len(latencies), pace),
        *((reader.searches - searches) / took, percent),
    )


def _wait_for_first(source: DatabaseServer, sync: SyncProcess, probe: SearchProbe, mark: int) -> None:
    """Make one change, and wait until it is found: Spark starts its Python processes for the first batch."""
    with source.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"UPDATE shop.product SET mark = {mark} WHERE id = 1")
    sync.wait(lambda: bool(probe.find_products([mark])), _LATEST_S, "the first change")


class ChangeReader:
    """Searches for changes with marks from `first_mark` on, and notes when each was found first.

    reader = ChangeReader(probe, first_mark, changes)
    reader.search(written)
    reader.seen[0]  # nanoseconds
    """

    def __init__(
        self, probe: SearchProbe, first_mark: int, changes: int, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._probe, self._first_mark, self._changes, self._clock = probe, first_mark, changes, clock
        self._next = 0  # the first change that was not found
        self.seen: dict[int, int] = {}
        self.searches = 0

    @property
    def is_done(self) -> bool:
        """Return whether all changes were found."""
        return self._next == self._changes

    def search(self, written: int) -> None:
        """Search once, for the changes that were not found and may be among the first so many that are written."""
        numbers = range(self._next, min(written, self._changes))
        marks = [self._first_mark + number for number in numbers if number not in self.seen]
        if not marks:
            return
        keys = self._probe.find_products(marks)
        now = self._clock()
        self.searches += 1
        for key in keys:
            self.seen.setdefault(key - 1, now)
        while self._next in self.seen:
            self._next += 1


def _search(
    reader: ChangeReader,
    writer: "subprocess.Popen[bytes]",
    sync: SyncProcess,
    began: float,
    is_over: Callable[[], bool],
) -> None:
    """Search for what the writer may have written since it began, until it is over."""
    while not is_over():
        if writer.poll():
            raise RuntimeError("changes could not be written")
        seconds = time.monotonic() - began
        if seconds > WARM_S + MEASURED_S + _LATEST_S:
            raise RuntimeError(f"{len(reader.seen)} of {CHANGES} changes were found within {seconds:.0f} s")
        sync.check("changes at a steady pace")
        reader.search(round((seconds + 1) * CHANGES_PER_S))
        time.sleep(_PAUSE_S)


class _CpuUse:
    """The CPU that processes use from now on, the reader's own, and what all others of the machine use."""

    def __init__(self, processes: Mapping[str, int]) -> None:
        self._meters = {name: CpuMeter(process) for name, process in processes.items()}
        self._own_s, self._machine_s, self._began = time.process_time(), _machine_cpu_s(), time.monotonic()

    def percent(self) -> dict[str, float]:
        took = time.monotonic() - self._began
        used = {name: meter.used_s for name, meter in self._meters.items()}
        used["reader"] = time.process_time() - self._own_s
        used["others"] = max(0.0, _machine_cpu_s() - self._machine_s - sum(used.values()))
        return {name: 100 * seconds / took for name, seconds in used.items()}


def _machine_cpu_s() -> float:
    """Return the seconds for which the cores of the machine were busy since it was started."""
    user, nice, system, _, _, *rest = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + sum(rest)) / TICKS
