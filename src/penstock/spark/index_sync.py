"""Index sync as a Spark stream: changes of all tables of a document spec, batch by batch, into a search index.

The offsets live in the checkpoint. A batch is done when the index has taken it; after a crash the same batch runs
again with the same versions, which changes nothing that was written already.
"""

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import ServerAddress
from penstock.document import DocumentBuilder, DocumentPlan, apply_changes
from penstock.model import Position
from penstock.search.index import SearchIndex
from penstock.spark.options import struct_names

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SyncBatch:
    """The numbers of one finished batch, as `on_batch` receives them."""

    number: int
    changes: int
    documents: int
    seconds: float


class IndexSync:
    """Writes the changes of a document spec's tables into a search index, as a Spark stream with a checkpoint."""

    def __init__(
        self,
        plan: DocumentPlan,
        builder: DocumentBuilder,
        index: SearchIndex,
        *,
        server: str | ServerAddress,
        destination: str = "default",
        name: str | None = None,
        on_batch: Callable[[SyncBatch], None] = lambda _: None,
    ) -> None:
        self._plan = plan
        self._structs = struct_names(plan.spec.tables)
        self._builder = builder
        self._index = index
        self._server = server if isinstance(server, ServerAddress) else ServerAddress(server)
        self._destination = destination
        self._name = name or f"penstock-index-{plan.spec.index}"  # of the query, once per Spark session
        self._on_batch = on_batch

    def start(self, spark: SparkSession, checkpoint: Path, start: Position | None = None) -> StreamingQuery:
        """Start the stream and return its query. It resumes at the checkpoint; with a new one it begins at `start`,
        else at the end of the log."""
        stream = (
            spark.readStream.format("penstock")
            .option("server", self._server.server)
            .option("token", self._server.token)
            .option("tlsCa", self._server.tls_ca)
            .option("destination", self._destination)
            .option("tables", ",".join(map(str, self._plan.spec.tables)))
            .option("columns", ",".join(self._columns()))
        )
        if start is not None:
            stream = stream.option("startingPosition", json.dumps(start.to_json()))
        return (
            stream.load()
            .select("_table", *self._structs.values(), "_seq")
            .writeStream.queryName(self._name)
            .option("checkpointLocation", str(checkpoint))
            .trigger(processingTime="0 seconds")
            .foreachBatch(self._batch)
            .start()
        )

    def _batch(self, changes: DataFrame, number: int) -> None:
        began = time.monotonic()
        table = changes.toArrow()
        documents = apply_changes(table, self._structs, self._plan, self._builder, self._index)
        done = SyncBatch(number, table.num_rows, documents, time.monotonic() - began)
        log.info(
            "documents indexed batch=%d changes=%d documents=%d seconds=%.3f",
            *(done.number, done.changes, done.documents, done.seconds),
        )
        self._on_batch(done)

    def _columns(self) -> list[str]:
        return [f"{self._structs[table]}.{key}" for table, key in self._plan.key_columns.items()]
