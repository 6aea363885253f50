"""Follows changes into an index as `penstock sync` does, batch by batch, without Spark: fast, and at will."""

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.config import InstanceSettings, ServerSettings, SourceSettings
from penstock.document import (
    CHANGE_COLUMNS,
    DOCUMENT_DECODING,
    BatchCounts,
    DocumentSpec,
    DocumentSync,
    LocalWriter,
    OutcomeLog,
)
from penstock.model import Position, Sequence, TableName
from penstock.search.embedded import EmbeddedIndex
from penstock.server import Server
from penstock.snapshot.source_rows import SourceRows
from penstock.source import connect, current_position
from penstock.spark.change_log import ChangeLog
from penstock.spark.driver_read import DriverReader, UsedColumns
from penstock.spark.index_sync import find_requirement, table_filter
from penstock.spark.options import ReadOptions
from penstock.spark.sync_job import LoadedGraphs
from tests.support.capture import source_of


@dataclass
class DocumentStream:
    """An index that follows a database when told to."""

    sync: DocumentSync
    index: EmbeddedIndex
    address: str
    start: Position

    def follow(self) -> BatchCounts:
        """Apply everything that is in the database's log now, as one batch."""
        start, tables = self.start, self.sync.graph.tables
        changes, end = self.read_changes()
        log = ChangeLog(_options(self.address, tables))
        counts = self.sync.apply_changes(
            changes,
            lambda: read_changes(self.address, tables, start, last=end)[0],
            lambda: find_requirement(changes, log.offset_of(end)),
        )
        self.start = end
        self.index.refresh()
        return counts

    def read_changes(self) -> tuple[pa.Table, Position]:
        """Return the changes up to the end of the database's log, with what documents depend on, and that end."""
        graph = self.sync.graph
        return read_changes(self.address, graph.tables, self.start, graph.used_columns)

    def documents(self) -> dict[str, Any]:
        """Return all documents by id, without what Penstock keeps in them for itself."""
        table = self.index.documents()
        documents = {
            key: json.loads(text)
            for key, text in zip(table.column("id").to_pylist(), table.column("document").to_pylist(), strict=True)
        }
        for document in documents.values():
            document.pop("penstock_references", None)
        return documents


def read_changes(
    address: str,
    tables: Iterable[TableName],
    start: Position,
    used: UsedColumns | None = None,
    last: Position | None = None,
) -> tuple[pa.Table, Position]:
    """Return the changes of tables from a position up to another, or to the end of the database's log, and that end.
    With `used`, their images have only these columns."""
    options = _options(address, tables)
    log = ChangeLog(options)
    last, end = last or log.client.source_end(), start
    while end < last:
        end = log.end_before(end, last)
    return DriverReader(options).read_range(start, end, used).select([*CHANGE_COLUMNS, "_gtid"]), end


def _options(address: str, tables: Iterable[TableName]) -> ReadOptions:
    """Return the options of a stream of tables with their statements."""
    return ReadOptions.of({"server": address, "filter": table_filter(tables), "includeDdl": "true"})


@contextmanager
def open_stream(
    database: Any,
    spec: DocumentSpec,
    folder: Path,
    outcome: OutcomeLog | None = None,
    *,
    replica: SourceSettings | None = None,
    capture: InstanceSettings | None = None,
) -> Iterator[DocumentStream]:
    """Capture a database, or with `capture` one that may be another, load the documents of a spec into an embedded
    index, and follow it from there. A refused document is an error unless an `outcome` takes it."""
    source = source_of(database)
    with ExitStack() as opened:
        captured = source if capture is None or capture.source is None else capture.source
        with closing(connect(captured)) as connection:
            start = current_position(connection, captured)
        settings = (capture or InstanceSettings(source=captured)).model_copy(update={"start": str(start)})
        server = Server(ServerSettings.with_flight_only(settings))
        opened.callback(server.stop)
        server.start()
        rows = SourceRows(source, DOCUMENT_DECODING, replica=replica)
        opened.callback(rows.close)
        index = opened.enter_context(EmbeddedIndex.open(folder))
        sync = DocumentSync(
            LoadedGraphs(source, spec).load, rows, index, lambda builder: LocalWriter(builder, rows, index), outcome
        )
        sync.prepare_index()
        sync.load_all(int(Sequence.from_position(start)))
        yield DocumentStream(sync, index, server.address, start)
