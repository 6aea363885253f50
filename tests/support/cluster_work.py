"""Work for servers that take over from each other: rows are written all the time, and read by a client that finds the
running server by itself."""

import threading
import time
from itertools import pairwise
from typing import Any, Protocol

from penstock.client.canal import CanalCluster
from penstock.testing import DatabaseServer
from tests.services.canal_client import Driver


class Reader(Protocol):
    def get(self) -> tuple[int, list[int]]:
        """The id of a batch, and the first column of its rows."""
        ...

    def ack(self, batch_id: int) -> None: ...

    def close(self) -> None: ...


class OwnReader:
    """Our client."""

    def __init__(self, zookeeper: str, destination: str, table: str, *, timeout_s: float = 5) -> None:
        self._cluster = CanalCluster.from_zookeeper(zookeeper, destination, retry_timeout_s=100, timeout_s=timeout_s)
        self._cluster.connect()
        self._cluster.subscribe(table.replace(".", "\\."))

    @property
    def address(self) -> str | None:
        return self._cluster.address

    def get(self) -> tuple[int, list[int]]:
        message = self._cluster.get_without_ack(100, timeout_s=1)
        rows = [row for _, change in message.row_changes() for row in change.rowDatas]
        return message.id, [int(row.afterColumns[0].value) for row in rows]

    def ack(self, batch_id: int) -> None:
        self._cluster.ack(batch_id)

    def close(self) -> None:
        self._cluster.close()


class JavaReader:
    """canal's. It tries three times, then its program starts again: that is how programs with it are written."""

    def __init__(self, driver: Driver, kind: str, where: str, destination: str, table: str) -> None:
        self._driver, self._filter = driver, table.replace(".", "\\.")
        self.problems: list[str] = []
        driver.ask(kind, where, destination, "-", "-")
        self._begin()

    def _begin(self) -> None:
        self._driver.ask("connect")
        self._driver.ask("subscribe", self._filter)

    def get(self) -> tuple[int, list[int]]:
        message = self._tried("getWithoutAck", 100, 500)
        if message is None:
            return -1, []
        rows = [row for entry in message["entries"] for row in entry.get("change", {"rows": []})["rows"]]
        return message["id"], [int(row["after"][0]["value"]) for row in rows]

    def ack(self, batch_id: int) -> None:
        if batch_id > 0:
            self._tried("ack", batch_id)

    def _tried(self, *words: object) -> Any:
        try:
            return self._driver.ask(*words)
        except RuntimeError as error:
            self.problems.append(str(error))
            self._driver.ask("disconnect")
            self._begin()
            return None

    def close(self) -> None:
        self._driver.ask("disconnect")


class Work:
    def __init__(self, source: DatabaseServer, table: str, reader: Reader) -> None:
        self._source, self._table, self._reader = source, table, reader
        self._closing, self._is_all_written = threading.Event(), threading.Event()
        self.written = 0
        self.read: list[tuple[float, int]] = []
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._write, self._read)]
        self.problem: Exception | None = None

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def _write(self) -> None:
        with self._source.connect() as connection, connection.cursor() as cursor:
            while not self._closing.wait(0.01):
                cursor.execute(f"INSERT INTO {self._table} VALUES ({self.written})")
                connection.commit()
                self.written += 1

    def _read(self) -> None:
        try:
            while not (self._is_all_written.is_set() and len({number for _, number in self.read}) >= self.written):
                batch_id, rows = self._reader.get()
                now = time.monotonic()
                self.read += [(now, number) for number in rows]
                self._reader.ack(batch_id)
        except Exception as error:  # noqa: BLE001 - for who looks at the end
            self.problem = error

    def reads_after(self, moment: float) -> bool:
        return any(when > moment for when, _ in self.read[-200:])

    def finish(self) -> None:
        writer, reader = self._threads
        self._closing.set()
        writer.join(60)
        self._is_all_written.set()  # only now is it known how many rows there are to read
        reader.join(110)
        self._reader.close()

    def check(self) -> None:
        """All rows, and each for the first time in its order."""
        assert self.problem is None, self.problem
        first = dict.fromkeys(number for _, number in self.read)
        assert list(first) == list(range(self.written))

    def longest_pause_s(self, since: float) -> float:
        times = [when for when, _ in self.read if when > since]
        return max(later - earlier for earlier, later in pairwise(times))

    def repeated(self) -> list[tuple[float, int]]:
        """Rows that came more than once, and when they came first."""
        seen = dict[int, float]()
        times = dict[int, float]()
        for when, number in self.read:
            if number in seen:
                times[number] = seen[number]
            seen.setdefault(number, when)
        return [(when, number) for number, when in times.items()]
