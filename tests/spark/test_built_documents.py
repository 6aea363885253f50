"""Built documents on a search server: many are written by executors, few by the driver."""

import secrets
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.config import SourceSettings
from penstock.document import DocumentCounts
from penstock.search.index import OPERATIONS, FieldKind, SearchIndex
from penstock.spark import document_writer
from penstock.spark.document_writer import ExecutorWriter, WriteTask
from penstock.spark.index_target import IndexTarget
from tests.support.document_shop import graph_of


class CountingWriter:
    """Stands for the writer of the driver, and counts what it is given."""

    requirement = None  # nothing is read back

    def __init__(self) -> None:
        self.operations = 0

    def write_operations(self, operations: pa.Table) -> DocumentCounts:
        self.operations += operations.num_rows
        return DocumentCounts(written=operations.num_rows)


@pytest.fixture
def target(opensearch: Any) -> IndexTarget:
    return IndexTarget(opensearch.url, f"built-{secrets.token_hex(4)}")


def operations_of(count: int) -> pa.Table:
    """Return a move from one routing to another for each of so many documents, which are in the order of an index."""
    rows = [
        {"id": f"{key}", "version": 7, "document": text, "routing": routing}
        for key in range(count)
        for text, routing in ((None, "old"), (f'{{"number":"n{key}"}}', "new"))
    ]
    return pa.Table.from_pylist(rows, schema=OPERATIONS)


def documents_of(index: SearchIndex) -> dict[str, str]:
    index.refresh()
    table = index.documents()
    return dict(zip(*(table.column(name).to_pylist() for name in ("id", "document")), strict=True))


def test_many_built_documents_are_written_by_executors(
    spark: SparkSession, target: IndexTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_writer, "LEAST_FOR_EXECUTORS", 20)
    monkeypatch.setattr(document_writer, "_DOCUMENTS_PER_TASK", 7)
    graph, local = graph_of(), CountingWriter()
    task = WriteTask(graph, frozenset(), SourceSettings(), target)
    writer = ExecutorWriter(spark, task, local)  # type: ignore[arg-type]
    with closing(target.open()) as index:
        index.prepare({"number": FieldKind.TEXT})
        index.claim_epoch(0)
        counts = writer.write_operations(operations_of(30))
        assert (counts.written, counts.deleted, counts.stale, counts.rejected) == (30, 30, 0, [])
        assert documents_of(index) == {f"{key}": f'{{"number":"n{key}"}}' for key in range(30)}
        assert local.operations == 0
        writer.write_operations(operations_of(5))
        assert local.operations == 10, "few are written here"
        monkeypatch.setattr(document_writer, "_MOST_BYTES", 100)
        writer.write_operations(operations_of(30))
        assert local.operations == 70, "what is too large to be sent is written here"


def test_only_this_process_writes_to_an_embedded_index(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_writer, "LEAST_FOR_EXECUTORS", 20)
    local = CountingWriter()
    task = WriteTask(graph_of(), frozenset(), SourceSettings(), IndexTarget("/nowhere"))
    ExecutorWriter(spark, task, local).write_operations(operations_of(30))  # type: ignore[arg-type]
    assert local.operations == 60
