"""Index sync as a Spark stream: the changes of all tables of document specs, batch by batch, into search indexes.

The offsets live in the checkpoint. A batch is done when the indexes have taken it; after a crash the same batch runs
again with the same versions, which changes nothing that was written already. A batch reads a bounded part of the log,
whatever the size of a transaction, so the memory of the driver does not depend on it.
"""

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.backoff import Backoff
from penstock.client import ServerAddress
from penstock.document import CHANGE_COLUMNS, BatchCounts, DocumentSync
from penstock.errors import PenstockError, TableAlteredError
from penstock.model import LogRequirement, Position, TableName
from penstock.spark.batch_range import read_batch_range, read_offset
from penstock.spark.change_log import Offset
from penstock.spark.driver_read import DriverReader, UsedColumns
from penstock.spark.options import ReadOptions
from penstock.spark.sessions import register_source
from penstock.spark.source import PenstockDataSource

log = logging.getLogger(__name__)

BYTES_PER_BATCH = 8 << 20  # of the log: about 60 MB of rows as JSON in the driver
_BACKOFF = Backoff(0.2, 10.0, spread=0.3)


@dataclass(frozen=True, slots=True)
class SyncBatch:
    """The numbers of one finished batch, as `on_batch` receives them."""

    number: int
    changes: int
    unused: int  # changes of columns that no document uses
    documents: int
    from_log: int  # documents that were built from row images, without a read
    rejected: int
    seconds: float
    lag_s: float | None  # between the newest commit of the batch and its end


def table_filter(tables: Iterable[TableName]) -> str:
    """Return the filter that exactly these tables pass."""
    return ",".join(f"{re.escape(name.schema)}\\.{re.escape(name.table)}" for name in tables)


class IndexSync:
    """Writes the changes of document specs into their indexes, as a Spark stream with a checkpoint.

    query = IndexSync([sync], server="127.0.0.1:11115").start(spark, Path("/var/lib/penstock/product"))
    """

    def __init__(
        self,
        syncs: Sequence[DocumentSync],
        *,
        server: str | ServerAddress,
        destination: str = "default",
        name: str | None = None,
        on_batch: Callable[[SyncBatch], None] = lambda _: None,
        stopped: threading.Event | None = None,
        require: Callable[[], None] = lambda: None,
    ) -> None:
        self._syncs = syncs
        self._server = server if isinstance(server, ServerAddress) else ServerAddress(server)
        self._destination = destination
        self._name = name or f"penstock-index-{'-'.join(sync.graph.spec.index for sync in syncs)}"
        self._on_batch = on_batch
        self._stopped = stopped or threading.Event()
        self._require = require  # raises when this process may not write any more
        self._filter = ""  # of the stream that runs
        self._checkpoint = Path()
        self._reader: DriverReader | None = None

    @property
    def filter(self) -> str:
        """Return the filter of the tables that the documents depend on now."""
        return table_filter(sorted({name for sync in self._syncs for name in sync.graph.tables}))

    def start(self, spark: SparkSession, checkpoint: Path, start: Position | Offset | None = None) -> StreamingQuery:
        """Start the stream and return its query. It resumes at the checkpoint; with a new one it begins at `start`,
        which may be an offset of another stream, else at the end of the log."""
        self._filter = self.filter
        options = {
            "server": self._server.server,
            "token": self._server.token,
            "tlsCa": self._server.tls_ca,
            "destination": self._destination,
            "filter": self._filter,
            "includeDdl": "true",
            "maxBytesPerTrigger": str(BYTES_PER_BATCH),
        }
        if start is not None:
            offset = start.to_json() if isinstance(start, Position) else start
            options["startingPosition"] = json.dumps(offset)
        self._checkpoint, self._reader = checkpoint, DriverReader(ReadOptions.of(options))
        register_source(spark, PenstockDataSource)
        stream = spark.readStream.format("penstock").options(**options)
        return (
            stream.load()
            .writeStream.queryName(self._name)
            .option("checkpointLocation", str(checkpoint))
            .trigger(processingTime="0 seconds")
            .foreachBatch(self._batch)
            .start()
        )

    def _batch(self, changes: DataFrame, number: int) -> None:
        began = time.monotonic()
        self._require()
        table = self._read(changes, number, self._used_columns())
        if not table.num_rows:
            return
        counts = [
            self._apply(
                sync,
                table,
                lambda: self._read(changes, number, None),
                lambda: find_requirement(table, read_offset(self._checkpoint, number)),
            )
            for sync in self._syncs
        ]
        if self.filter != self._filter:
            raise TableAlteredError("documents depend on other tables now: the stream is started again with those")
        newest: datetime | None = pc.max(table.column("_commit_timestamp")).as_py()
        done = SyncBatch(
            number,
            table.num_rows,
            sum(count.unused for count in counts),
            sum(count.documents.total for count in counts),
            sum(count.from_log for count in counts),
            sum(count.documents.rejected for count in counts),
            time.monotonic() - began,
            None if newest is None else max(0.0, (datetime.now(UTC) - newest.astimezone(UTC)).total_seconds()),
        )
        log.info(
            "documents indexed batch=%d changes=%d unused=%d documents=%d from_log=%d rejected=%d seconds=%.3f",
            *(done.number, done.changes, done.unused, done.documents, done.from_log, done.rejected, done.seconds),
        )
        self._on_batch(done)

    def _read(self, changes: DataFrame, number: int, used: UsedColumns | None) -> pa.Table:
        """Return the changes of a batch: read here, or by Spark where only Spark knows which they are."""
        names = [*CHANGE_COLUMNS, "_commit_timestamp", "_gtid"]
        bounds = read_batch_range(self._checkpoint, number)
        if bounds is None or self._reader is None:
            return changes.select(*names).toArrow()
        return self._reader.read_range(*bounds, used).select(names)

    def _used_columns(self) -> UsedColumns:
        """Return for each table the columns that a document depends on."""
        used: dict[TableName, frozenset[str]] = {}
        for sync in self._syncs:
            for table, names in sync.graph.used_columns.items():
                used[table] = used.get(table, frozenset()) | names
        return used

    def _apply(
        self,
        sync: DocumentSync,
        changes: pa.Table,
        read_whole: Callable[[], pa.Table],
        requirement_of: Callable[[], LogRequirement],
    ) -> BatchCounts:
        """Apply changes to one index; what a later try may solve is tried until it succeeds, or sync is stopped."""
        failures = 0
        while True:
            try:
                return sync.apply_changes(changes, read_whole, requirement_of)
            except PenstockError as error:
                if not error.transient or self._stopped.is_set():
                    raise
                failures += 1
                delay_s = _BACKOFF.delay_s(failures)
                log.warning(
                    "batch failed, retry scheduled index=%s delay_s=%.1f failures=%d reason=%s",
                    *(sync.graph.spec.index, delay_s, failures, error),
                )
                self._stopped.wait(delay_s)


def find_requirement(changes: pa.Table, end: Offset | None) -> LogRequirement:
    """Return what the source must have executed to read back what changes touch, which end at an offset."""
    gtids = pc.unique(changes.column("_gtid")).to_pylist()
    if end is None:
        return LogRequirement.of_changes(gtids, None)
    return LogRequirement.of_changes(gtids, Position.from_json(end), str(end.get("log") or ""))
