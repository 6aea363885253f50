"""Runs the batches of `format("penstock")` in this process as Spark would, without a JVM."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.streaming.datasource import ReadAllAvailable

from penstock.config import InstanceSettings, ServerSettings
from penstock.config.settings import SnapshotSettings
from penstock.server import Server
from penstock.spark.source import PenstockDataSource
from penstock.testing import DatabaseServer
from tests.support.capture import source_of

SMALL_CHUNKS = SnapshotSettings(chunk_rows=50, connections=1)

Target = Callable[[pa.Table, int], None]


@contextmanager
def serving(captured: DatabaseServer, **changes: Any) -> Iterator[Server]:
    """Capture a source in this process, so that a test can act between the steps of its reads."""
    settings = InstanceSettings(**{"source": source_of(captured), "snapshot": SMALL_CHUNKS, **changes})
    server = Server(ServerSettings.with_flight_only(settings))
    server.start()
    try:
        yield server
    finally:
        server.stop()


class MicroBatches:
    """A query whose batches a test runs one by one. As in Spark, its offsets are JSON between two calls, what reads
    a part is pickled, a batch that is read again has the number that it had, and a batch is committed when the next
    one is planned.

    query = MicroBatches(server.address, mirror.apply, table="shop.product", startingPosition="snapshot")
    query.run_batch()

    With the option `zookeeper` the address is not used.
    """

    def __init__(self, address: str, target: Target, **options: str) -> None:
        origin = {} if "zookeeper" in options else {"server": address}
        self._options, self._target = origin | options, target
        self._number = -1
        self._start: str | None = None  # of the last batch
        self._end: str | None = None
        self.restart()

    def restart(self) -> None:
        """Resume with a new reader, as a query does that is started again with its checkpoint: the last batch is read
        again first."""
        source = PenstockDataSource(self._options)
        schema = source.schema()
        self._planner: Any = source.streamReader(schema)
        self._reader = cloudpickle.dumps(source.streamReader(schema))
        if self._end is not None:
            self._read()

    @property
    def offset(self) -> dict[str, Any]:
        """Return where the last batch ended."""
        return json.loads(self._end or "{}")

    @property
    def is_complete(self) -> bool:
        """Return whether all tables were delivered."""
        return self._end is not None and all(
            state.get("complete") for state in self.offset.get("snapshot", {}).values()
        )

    def run_batch(self) -> bool:
        """Run the next batch; return whether there was one."""
        begin = self._end or json.dumps(self._planner.initialOffset())
        end = json.dumps(self._planner.latestOffset(json.loads(begin), ReadAllAvailable()))
        if json.loads(end) == json.loads(begin):
            return False
        if self._end is not None:
            self._planner.commit(json.loads(begin))
        self._start, self._end, self._number = begin, end, self._number + 1
        self._read()
        return True

    def stop_at_present_end(self) -> None:
        """Let no batch go past where the source's log ends now, as Trigger.AvailableNow does."""
        self._planner.prepareForTriggerAvailableNow()

    def run_until(self, is_done: Callable[[], bool], timeout_s: float = 120) -> None:
        """Run batches until a condition holds."""
        deadline = time.monotonic() + timeout_s
        while not is_done():
            assert time.monotonic() < deadline, self.offset
            self.run_batch()

    def _read(self) -> None:
        """Read the parts of the last batch, and give them to the target."""
        parts = self._planner.partitions(json.loads(self._start or ""), json.loads(self._end or ""))
        batches: list[pa.RecordBatch] = []
        for part in parts:
            reader: Any = cloudpickle.loads(self._reader)
            batches += reader.read(cloudpickle.loads(cloudpickle.dumps(part)))
        self._target(pa.Table.from_batches(batches) if batches else pa.table({}), self._number)
