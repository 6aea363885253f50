"""The memory of a process and of all that it has started, sampled while a test runs."""

import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.sync_process import find_descendants

_SAMPLE_S = 0.5


class TreeMemory:
    """Samples the memory of a process and its descendants: the sum of their PSS, in which a page that several of them
    share counts once.

        with TreeMemory(process.pid) as memory:
            ...
        assert memory.peak_mib < 2000
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="tree-memory")
        self.peak_mib = 0
        self.samples = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(_SAMPLE_S):
            total = sum(map(_pss_kib, (self._root, *find_descendants(self._root))))
            self.peak_mib = max(self.peak_mib, total >> 10)
            self.samples += 1


def _pss_kib(process: int) -> int:
    """Return the proportional set size of a process; 0 when it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0
