"""Documents that Spark's executors build and write: through a function whose file they do not have."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.document import DOCUMENT_DECODING, DocumentBuilder, LocalWriter, TouchedDocument, load_graph
from penstock.document.spec_location import load_located_spec
from penstock.errors import ConfigurationError
from penstock.search.http import HttpIndex
from penstock.snapshot.source_rows import SourceRows
from penstock.source import connect
from penstock.spark import document_writer
from penstock.spark.document_writer import ExecutorWriter, WriteTask
from penstock.spark.failure import cause_of, error_class_of
from penstock.spark.index_target import IndexTarget
from tests.support.capture import execute, source_of

HOOK = """\
import os


def enrich(document):
    if document["number"] % 10 == 3:
        return None
    return {"number": 7 // (document["number"] - 5), "total": document["total"], "process": os.getpid()}
"""
SPEC = """
index: {1}
transform: {{python: "{2}:enrich", fields: {{process: integer}}}}
root: {{table: {0}.item, fields: [number, total]}}
"""
ROWS = 40
OpenWriter = Callable[[Path, str], tuple[ExecutorWriter, HttpIndex]]


@pytest.fixture
def open_writer(
    spark: SparkSession, mariadb: Any, opensearch: Any, database: Callable[[Any], str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenWriter]:
    """Open the writer of a spec that is written into a folder, with tasks of ten documents, and the index."""
    monkeypatch.setattr(document_writer, "LEAST_FOR_EXECUTORS", ROWS)
    monkeypatch.setattr(document_writer, "_DOCUMENTS_PER_TASK", 10)
    schema, source = database(mariadb), source_of(mariadb)
    execute(
        mariadb,
        f"CREATE TABLE {schema}.item (id INT PRIMARY KEY, number INT, total DECIMAL(20, 10))",
        f"INSERT INTO {schema}.item SELECT seq, seq, seq * 1.0000000001 FROM {schema}.seq_1_to_{ROWS}",
    )
    with ExitStack() as opened:

        def open_in(folder: Path, location: str) -> tuple[ExecutorWriter, HttpIndex]:
            (folder / "item.yml").write_text(SPEC.format(schema, schema.replace("_", "-"), location))
            spec = load_located_spec(folder / "item.yml")
            with closing(connect(source)) as connection, connection.cursor() as cursor:
                graph = load_graph(cursor, spec).graph
            rows = opened.enter_context(closing(SourceRows(source, DOCUMENT_DECODING)))
            index = opened.enter_context(closing(HttpIndex.open(opensearch.url, spec.index)))
            index.prepare(graph.field_kinds, graph.layout)
            target = IndexTarget(opensearch.url, spec.index)
            local = LocalWriter(DocumentBuilder(graph, rows), rows, index)
            return ExecutorWriter(spark, WriteTask(graph, frozenset(), source, target), local), index

        yield open_in


def touched(*keys: int) -> list[TouchedDocument]:
    return [TouchedDocument((key,), 7) for key in keys]


def read_document(index: HttpIndex, key: int) -> dict[str, Any]:
    return index.get(str(key)) or {}


@pytest.mark.timeout(200)
def test_executors_run_a_function_whose_file_they_do_not_have(open_writer: OpenWriter, tmp_path: Path) -> None:
    (tmp_path / "hook.py").write_text(HOOK)
    writer, index = open_writer(tmp_path, "hook.py")
    (tmp_path / "hook.py").unlink()
    counts = writer.write_documents(touched(*range(1, ROWS + 1)))
    assert (counts.written, counts.deleted) == (ROWS - 5, 4), "numbers with a 3 at their end are hidden, and 5 fails"
    (rejection,) = counts.rejected
    assert (rejection.id, rejection.version, rejection.before_transform) == ("5", 7, True)
    assert rejection.reason.startswith("transform hook.py:enrich, line 7: ZeroDivisionError: ")
    assert rejection.document == '{"number":5,"total":5.0000000005}'
    index.refresh()
    assert index.count() == ROWS - 5
    documents = [read_document(index, key) for key in (1, 20, 40)]
    assert [row["total"] for row in documents] == [1.0000000001, 20.000000002, 40.000000004]
    assert os.getpid() not in {row["process"] for row in documents}, "built by executors"
    few = writer.write_documents(touched(1, 3))
    assert (few.written, few.deleted) == (1, 1)
    assert read_document(index, 1)["process"] == os.getpid(), "a few are built by the driver"


def test_a_module_that_executors_do_not_have_is_told(
    open_writer: OpenWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "rules_of_the_driver.py").write_text(HOOK)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    writer, _ = open_writer(tmp_path, "rules_of_the_driver")
    with pytest.raises(Exception, match="rules_of_the_driver") as failure:
        writer.write_documents(touched(*range(1, ROWS + 1)))
    assert error_class_of(failure.value) is ConfigurationError
    assert cause_of(failure.value).startswith(
        "cannot import rules_of_the_driver: No module named 'rules_of_the_driver'"
    )
