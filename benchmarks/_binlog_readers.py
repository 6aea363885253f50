"""The three readers of logs that `benchmarks/binlog.py` compares, each on one core.

Invariant: what runs inside `one_core` and all it starts share that core; servers are started outside of it.
"""

import importlib.util
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Self

from benchmarks._binlog_logs import Log, say, written
from benchmarks._binlog_shapes import Shape
from penstock.testing import DatabaseServer, build_once, cache_folder

PEER = "mysql-replication==1.0.17"
_FOLLOW_TIMEOUT_S = 120  # it reconnects without end when a server does not want it
_ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Time:
    """`cpu` is what the same work takes when nobody else wants the core."""

    seconds: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Speed:
    seconds: float
    cpu: float
    size: int
    images: int

    @classmethod
    def of(cls, times: Sequence[Time], size: int, images: int) -> "Speed":
        return cls(median(time.seconds for time in times), median(time.cpu for time in times), size, images)

    @property
    def mb_per_s(self) -> float:
        return self.size / self.seconds / 1e6

    @property
    def images_per_s(self) -> float:
        return self.images / self.seconds

    def ratios(self, other: "Speed | None") -> tuple[float | None, float | None]:
        """How many times as fast as the other, by the clock and by CPU time."""
        if other is None:
            return None, None
        mine = self.images / self.seconds, self.images / self.cpu
        return mine[0] / (other.images / other.seconds), mine[1] / (other.images / other.cpu)


@contextmanager
def one_core() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Penstock:
    """Our decoder in a process of its own, for one log after another."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks._decode_log"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
        )

    def decode(self, decoder: str, log: Log) -> Time:
        """`what` is `columns` or `changes`."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the decoding process has no pipes")
        self._process.stdin.write(f"{decoder} {log.path}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the decoding process ended with {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        images = log.shape.images()
        if answer["rows"] != images:
            raise RuntimeError(f"{answer['rows']} row images were decoded of {log.path}, {images} were written")
        return Time(answer["seconds"], answer["cpu"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def run_tool(tool: list[str], log: Log) -> Time:
    """The server's own reader, its output thrown away."""
    began, before = time.perf_counter(), _cpu_of_children()
    subprocess.run(  # noqa: S603 - a program of the server that wrote the log
        [*tool, "--no-defaults", "-v", str(log.path)], stdout=subprocess.DEVNULL, check=True
    )
    return Time(time.perf_counter() - began, _cpu_of_children() - before)


def _cpu_of_children() -> float:
    """Of those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def follow(server: str, shape: Shape, rows: int, rounds: int) -> Speed | None:
    """python-mysql-replication on a server that wrote this many rows of the shape; None when it cannot be had."""
    packages = _peer_packages()
    if packages is None:
        return None
    say(f"python-mysql-replication: {shape.images(rows):,} row images of {server}")
    with written(server, shape, rows) as (running, file):
        size = (running.data / file).stat().st_size
        with one_core():
            answers = [_follow_once(packages, running, file) for _ in range(rounds)]
    images = shape.images(rows)
    if any(answer["rows"] != images for answer in answers):
        raise RuntimeError(f"python-mysql-replication gave {answers[0]['rows']} row images, {images} were written")
    return Speed.of([Time(answer["seconds"], answer["cpu"]) for answer in answers], size, images)


def _follow_once(packages: str, running: DatabaseServer, file: str) -> dict[str, Any]:
    connection = {"host": running.host, "port": running.port, "user": running.user, "passwd": running.password}
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-W", "ignore", str(Path(__file__).with_name("_follow_server.py"))],
        input=json.dumps({"connection": connection, "file": file}),
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": packages},
        timeout=_FOLLOW_TIMEOUT_S,
        check=True,
    )
    return json.loads(done.stdout)


def _peer_packages() -> str | None:
    """What PYTHONPATH needs for it: nothing where it is installed, else a folder of the cache."""
    if importlib.util.find_spec("pymysqlreplication"):
        return ""
    target = cache_folder() / PEER.replace("==", "-")
    try:
        return str(build_once(target, _install, say))
    except subprocess.CalledProcessError as error:
        say(f"{PEER} could not be installed and is left out: {error.stderr.strip().splitlines()[-1:]}")
        return None


def _install(folder: Path) -> None:
    say(f"installing {PEER}")
    # It needs PyMySQL, which is ours too, and packaging, which comes with pytest.
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--target", str(folder), PEER], capture_output=True, text=True, check=True)  # noqa: S603
