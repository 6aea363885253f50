"""`penstock index build` and `penstock index verify` as processes of their own, started as a user starts them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks._server_run import Running
from benchmarks._spark_processes import read_peaks_mib
from penstock.testing import DatabaseServer

_STOP_S = 60


class IndexCommand:
    """What one of these commands prints, line by line, and how much memory it takes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lines = list[str]()
        self.peak_mib = 0.0

    def events(self) -> Iterator[tuple[float, dict[str, Any]]]:
        """Yield what it prints, each with the time."""
        for line in self._process.stdout or ():
            self._lines.append(line)
            self.peak_mib = max(self.peak_mib, sum(read_peaks_mib(self._process.pid).values()))
            if line.startswith("{"):
                yield time.perf_counter(), json.loads(line)

    def wait_for(self, text: str) -> float:
        """Return the time when it says something; raise RuntimeError when it ends before."""
        for now, event in self.events():
            if text in str(event.get("message", "")):
                return now
        raise RuntimeError(f"'{text}' was not said: {''.join(self._lines[-20:])}")

    def read_result(self) -> dict[str, Any]:
        """Return the result that `verify` prints at its end."""
        results = [event for _, event in self.events() if event.get("event") == "result"]
        if not results:
            raise RuntimeError(f"there is no result: {''.join(self._lines[-20:])}")
        return results[-1]


@contextmanager
def running_command(
    source: DatabaseServer, server: Running, spec: Path, index: str, *words: str
) -> Iterator[IndexCommand]:
    """Run a command about an index until the block ends."""
    command = [sys.executable, "-c", "from penstock.cli import main; main()", "index", words[0], str(spec), *words[1:]]
    command += ["--host", source.host, "--port", str(source.port), "--user", source.user]
    command += ["--server", f"127.0.0.1:{server.flight}", "--destination", "shop", "--index", index, "--output", "json"]
    environment = {**os.environ, "PENSTOCK_PASSWORD": source.password}
    process = subprocess.Popen(  # noqa: S603 - ours
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    )
    try:
        yield IndexCommand(process)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
