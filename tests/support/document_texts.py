"""Both ways to the documents of one table: from the changes in the log of a server, and read back from its rows."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.config import InstanceSettings, ServerSettings
from penstock.document import DOCUMENT_DECODING, DocumentBuilder, DocumentGraph, DocumentSpec, load_graph
from penstock.document.batch_images import ImageReader
from penstock.document.document_id import parse_document_id
from penstock.document.image_rules import find_read_back_reasons
from penstock.model import Position, TableName
from penstock.server import Server
from penstock.snapshot.source_rows import SourceRows
from penstock.source import connect, current_position
from penstock.testing import DatabaseServer
from tests.support.capture import source_of
from tests.support.document_stream import read_changes


@dataclass
class CapturedServer:
    """A server whose log is captured from some moment on."""

    server: DatabaseServer
    address: str
    rows: SourceRows
    start: Position

    def load_graph(self, table: str, fields: Sequence[str], **root: Any) -> DocumentGraph:
        """Return the graph of documents with some columns of a table; `root` adds to what is said about it."""
        content = {"table": table, "fields": list(fields)} | root
        spec = DocumentSpec.model_validate({"index": "documents", "root": content})
        with closing(connect(source_of(self.server))) as connection, connection.cursor() as cursor:
            return load_graph(cursor, spec).graph

    def read_changes(self, tables: Sequence[TableName]) -> pa.Table:
        """Return all changes of tables since the beginning."""
        return read_changes(self.address, tables, self.start)[0]

    def read_back(self, graph: DocumentGraph, ids: Sequence[str]) -> dict[str, str]:
        """Return the documents with these ids as they are read from the database."""
        keys = [key for name in ids if (key := parse_document_id(name, graph.root.key)) is not None]
        with self.rows.open_view():
            built = DocumentBuilder(graph, self.rows).build_documents(keys)
        return dict(zip(built.ids, built.documents.to_pylist(), strict=True))


@contextmanager
def capture_server(server: DatabaseServer) -> Iterator[CapturedServer]:
    """Capture the log of a server from its present end on."""
    settings = source_of(server)
    with ExitStack() as opened:
        with closing(connect(settings)) as connection:
            start = current_position(connection, settings)
        capture = Server(ServerSettings.with_flight_only(InstanceSettings(source=settings, start=str(start))))
        opened.callback(capture.stop)
        capture.start()
        rows = opened.enter_context(closing(SourceRows(settings, DOCUMENT_DECODING)))
        yield CapturedServer(server, capture.address, rows, start)


def build_from_log(graph: DocumentGraph, changes: pa.Table) -> tuple[dict[str, str | None], int]:
    """Return the documents that changes give, by id, None for those that are gone; and how many are to be read back."""
    assert find_read_back_reasons(graph) == []
    images = ImageReader(graph).read_changes(changes)
    assert images is not None
    documents: dict[str, str | None] = {}
    unreadable = 0
    for part in images.build_parts():
        columns = (part.operations.column(name).to_pylist() for name in ("id", "document"))
        documents |= dict(zip(*columns, strict=True))
        unreadable += len(part.read_back)
    return documents, unreadable
