"""`penstock sync` as a process of its own, started as a user starts it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks._server_run import Running
from benchmarks._spark_processes import read_peaks_mib
from penstock.testing import DatabaseServer, poll_until

_START_S = 180
_STOP_S = 60
_LAST_LINES = 20


class SyncProcess:
    """A running sync, and what it has printed."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process, self._log = process, log

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Return when the condition holds; raise RuntimeError when sync ends, or when the time is over."""
        if not poll_until(lambda: self._has_ended or condition(), timeout_s):
            raise RuntimeError(f"{what}: not within {timeout_s:g} s; sync says:\n{self._tail}")
        self.check(what)

    def check(self, what: str) -> None:
        """Raise RuntimeError when sync has ended."""
        if self._has_ended:
            raise RuntimeError(f"{what}: sync has ended with {self._process.returncode}, saying:\n{self._tail}")

    def peaks_mib(self) -> dict[str, float]:
        """Return the most memory so far: of the driver's Python process, of its JVM, and of all processes."""
        peaks = read_peaks_mib(self.pid)
        jvm = sum(peak for (_, name), peak in peaks.items() if name == "java")
        driver = sum(peak for (process, _), peak in peaks.items() if process == self.pid)
        return {"driver": driver, "jvm": jvm, "all": sum(peaks.values())}

    @property
    def _has_ended(self) -> bool:
        return self._process.poll() is not None

    @property
    def _tail(self) -> str:
        return "\n".join(self.output.splitlines()[-_LAST_LINES:])


@contextmanager
def syncing(
    source: DatabaseServer, server: Running, specs: Sequence[Path], index: str, folder: Path
) -> Iterator[SyncProcess]:
    """Run a sync of these specs from its first load on; it follows changes when it is given."""
    folder.mkdir()
    command = [sys.executable, "-c", "from penstock.cli import main; main()", "sync", *map(str, specs)]
    command += ["--host", source.host, "--port", str(source.port), "--user", source.user]
    command += ["--server", f"127.0.0.1:{server.flight}", "--destination", "shop", "--index", index]
    command += ["--checkpoint", str(folder / "checkpoint")]
    log = folder / "sync.log"
    with log.open("wb") as out:
        environment = {**os.environ, "PENSTOCK_PASSWORD": source.password}
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)  # noqa: S603 - ours
    try:
        sync = SyncProcess(process, log)
        sync.wait(lambda: "following changes" in sync.output, _START_S, "the first load")
        yield sync
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
