"""The processes that run the mutants, watched: one that crashes or hangs is a failure of the mutant it was at."""

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.campaign import status
from tests.campaign.status import WARMING

LIMIT_S = 10  # of one mutant; most take milliseconds
_WARM_UP_LIMIT_S = 1800  # kernels whose indexes are checked take minutes to compile
_ROOT = Path(__file__).parents[2]
_ENDED = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """`where` names the finding that this mutant is one of."""

    number: int
    where: str
    trace: str


class Worker:
    """Every `step`-th number from `first` on, in one process after another."""

    def __init__(self, seed: int, first: int, stop: int, step: int, file: Path) -> None:
        self._seed, self._stop, self._step = seed, stop, step
        self._file, self._errors = file, file.with_suffix(".errors")
        self._lines: queue.Queue[str] = queue.Queue()
        self._before: Counter[str] = Counter()  # of processes that are gone
        self._hung = False
        self.is_done = False
        self._start(first)

    @property
    def counts(self) -> Counter[str]:
        return self._before + Counter(status.read(self._file)[1])

    def failures(self) -> Iterator[Failure]:
        """Those since the last call."""
        self._watch()
        while not self.is_done:
            try:
                line = self._lines.get_nowait()
            except queue.Empty:
                return
            if line != _ENDED:
                yield Failure(**json.loads(line))
            elif self._process.wait() == 0:
                self.is_done = True
            else:
                yield self._replace_lost_worker()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def _start(self, first: int) -> None:
        status.clear(self._file)
        self._seen = WARMING, time.monotonic()
        arguments = [*map(str, (self._seed, first, self._stop, self._step)), str(self._file)]
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", "-m", "tests.campaign.worker", *arguments],
                cwd=_ROOT,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        threading.Thread(target=self._collect, args=(self._process,), name="campaign-output", daemon=True).start()

    def _collect(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout
        for line in process.stdout:
            self._lines.put(line)
        self._lines.put(_ENDED)

    def _watch(self) -> None:
        number, _ = status.read(self._file)
        if number != self._seen[0]:
            self._seen = number, time.monotonic()
        elif time.monotonic() - self._seen[1] > (_WARM_UP_LIMIT_S if number == WARMING else LIMIT_S):
            self._hung = True
            self._process.kill()

    def _replace_lost_worker(self) -> Failure:
        """The process is gone; the next one begins after the mutant that it was at."""
        number, _ = status.read(self._file)
        code = self._process.returncode
        outcome = f"crash with {signal.Signals(-code).name}" if code < 0 else f"end with status {code}"
        said = self._errors.read_text(encoding="utf-8", errors="replace")
        if number == WARMING:
            raise RuntimeError(f"{outcome} before the first mutant:\n{said}")
        what = f"hang of more than {LIMIT_S} s" if self._hung else outcome
        self._hung = False
        self._before = self.counts + Counter(failed=1)
        self._start(number + self._step)
        return Failure(number, what, f"{what}\n{said}")
