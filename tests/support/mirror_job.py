"""What a test sees of `mirror_program.py`, and how it pauses it at a point of its choice."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from penstock.testing import ServerProcess, free_port
from tests.services.java import QUICK
from tests.support.capture import poll
from tests.support.ledger import Ledger
from tests.support.spark_cluster import SparkCluster

PROGRAM = Path(__file__).with_name("mirror_program.py")
WAIT_S = 240
# A task that takes longer than others gets a second attempt at once.
_SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": "1",
    "spark.speculation.quantile": "0.1",
}


@dataclass(frozen=True)
class Attempt:
    """One attempt of a task, as it has recorded itself."""

    batch: int
    part: int
    number: int
    jvm: int
    host: str
    is_done: bool
    digest: str = ""


class MirrorJob:
    """One driver after the other, on one folder: `start` starts the next one from the checkpoint of the last."""

    SETTINGS: ClassVar = {**_SPECULATION, "spark.sql.session.timeZone": "Asia/Tokyo"}

    def __init__(self, folder: Path, cluster: SparkCluster, options: dict[str, str]) -> None:
        self.folder, self._cluster = folder, cluster
        self._runs, self._driver = 0, None
        self.events, self.ui = folder / "events", f"http://127.0.0.1:{free_port()}"
        self.pause_folder, self.paused_folder = folder / "pause", folder / "paused"
        for path in (self.pause_folder, self.paused_folder, self.events):
            path.mkdir(parents=True)
        (folder / "options.json").write_text(json.dumps(options))

    @property
    def run(self) -> Path:
        """The folder of the driver that was started last."""
        return self.folder / f"run-{self._runs}"

    @property
    def driver(self) -> ServerProcess:
        assert self._driver is not None
        return self._driver

    def start(self) -> None:
        self._runs += 1
        settings = {
            **self.SETTINGS,
            "spark.ui.port": self.ui.rpartition(":")[2],
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": self.events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            "spark.driver.extraJavaOptions": " ".join(QUICK),
            "spark.executor.extraJavaOptions": " ".join(QUICK),
            "spark.sql.shuffle.partitions": "2",
        }
        arguments = str(self.folder), self.run.name
        self._driver: ServerProcess | None = self._cluster.submit(self.run, PROGRAM, *arguments, settings=settings)

    def kill(self) -> None:
        if self._driver is not None:
            self._driver.kill()

    # -- what it has recorded

    @property
    def batches(self) -> list[dict[str, Any]]:
        file = self.folder / "batches.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def accounts(self) -> dict[int, tuple[int, int]]:
        """The balance and the checksum of the note of each account."""
        content = json.loads((self.folder / "mirror.json").read_text())
        return {int(number): (balance, note) for number, (balance, note) in content.items()}

    def attempts(self, batch: int) -> list[Attempt]:
        """Return the attempts of the tasks of a batch, by the driver that was started last."""
        files = sorted((self.run / "attempts").glob(f"{batch}-*"))
        return [Attempt(*map(int, file.name.split("-")), **json.loads(file.read_text())) for file in files]

    def read_range(self) -> dict[str, Any]:
        """Return what the batch read over the whole range has found."""
        file = self.run / "range.json"
        self.wait(file.exists)
        content = json.loads(file.read_text())
        return content | {"balances": {int(number): balance for number, balance in content["balances"].items()}}

    def wait_until_applied(self, batch: int) -> dict[str, Any]:
        """Return what is recorded of a batch, once the driver that was started last has applied it."""
        self.wait(lambda: bool(self._applied(batch)))
        return self._applied(batch)[0]

    def _applied(self, batch: int) -> list[dict[str, Any]]:
        return [applied for applied in self.batches if (applied["run"], applied["batch"]) == (self.run.name, batch)]

    def wait(self, condition: Any) -> None:
        """Wait for a condition; a driver that ends before is an error."""
        assert poll(lambda: condition() or self.driver.has_exited(), WAIT_S), self._explain()
        assert condition(), self._explain()

    def _explain(self) -> str:
        text = self.driver.log.read_text(errors="replace")
        return f"{self.batches[-3:]}\n{text[-6000:]}"

    # -- pauses

    @contextmanager
    def pause(self, pattern: str) -> Iterator[None]:
        """Let what matches wait for as long as the block lasts: BATCH-PART-ATTEMPT, or BATCH-applied."""
        file = self.pause_folder / pattern
        file.touch()
        try:
            yield
        finally:
            file.unlink()

    @contextmanager
    def pause_in_large_batch(self, ledger: Ledger, executors: int) -> Iterator[list[Attempt]]:
        """Pause a batch of several parts when so many executors are in the middle of it; give their attempts."""
        with ExitStack() as stack:
            with self.pause("*-applied"):
                batch = self.wait_until_paused() + 1
                ledger.add_wide(40)
                stack.enter_context(self.pause(f"{batch}-[0-9]*"))
            self.wait(lambda: len({attempt.jvm for attempt in self._running(batch)}) >= executors)
            yield self._running(batch)

    def wait_until_paused(self) -> int:
        """Return the batch whose `applied` is paused."""
        self.wait(lambda: any(self.paused_folder.iterdir()))
        (file,) = self.paused_folder.iterdir()
        return int(file.name.partition("-")[0])

    def _running(self, batch: int) -> list[Attempt]:
        return [attempt for attempt in self.attempts(batch) if not attempt.is_done and is_alive(attempt.jvm)]


def is_alive(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def kill_process(process: int) -> None:
    """Kill a process that Spark has started for this test."""
    os.kill(process, signal.SIGKILL)
