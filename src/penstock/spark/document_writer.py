"""Builds and writes documents on Spark's executors when there are many, and in the driver when there are few."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.config import SourceSettings
from penstock.document import (
    DOCUMENT_DECODING,
    DocumentBuilder,
    DocumentCounts,
    DocumentGraph,
    LocalWriter,
    TouchedDocument,
    split_operations,
)
from penstock.document.root_range import RootRange
from penstock.document.write import WrittenRange
from penstock.errors import WorkerLostError
from penstock.model import LogRequirement, TableName
from penstock.search.index import SearchIndex
from penstock.search.writer_term import WriterTerm
from penstock.snapshot.source_rows import SourceRows
from penstock.spark.failure import cause_of, error_class_of, is_disk_full, is_worker_lost
from penstock.spark.index_target import IndexTarget

T = TypeVar("T")

# Documents from which on the executors are quicker than the driver alone.
LEAST_FOR_EXECUTORS = 4_000
_DOCUMENTS_PER_TASK = 2_000
# Of built documents, which travel to the executors with their tasks: those of a task, and those of all.
_BYTES_PER_TASK = 4 << 20
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class WriteTask:
    """What an executor needs to build and write documents."""

    graph: DocumentGraph
    missing: frozenset[TableName]
    source: SourceSettings
    target: IndexTarget
    term: WriterTerm | None = None  # as an executor can tell whether it lasts
    replica: SourceSettings | None = None  # of the source; rows are read from it
    requirement: LogRequirement | None = None  # what the source must have executed before it is read


class ExecutorWriter:
    """A DocumentWriter that gives large sets of documents to Spark's executors.

    writer = ExecutorWriter(spark, WriteTask(graph, missing, source, target), local_writer)
    """

    def __init__(self, spark: SparkSession, task: WriteTask, local: LocalWriter) -> None:
        self._spark, self._task, self._local = spark, task, local

    def write_documents(self, touched: Sequence[TouchedDocument]) -> DocumentCounts:
        """Build and write documents on the executors; or in the driver, if they are few, or if only the driver's
        process can write to the index."""
        if len(touched) < LEAST_FOR_EXECUTORS or not self._task.target.is_shared:
            return self._local.write_documents(touched)
        parts = [touched[first : first + _DOCUMENTS_PER_TASK] for first in range(0, len(touched), _DOCUMENTS_PER_TASK)]
        return self._run(_write_parts, parts)

    def write_operations(self, operations: pa.Table) -> DocumentCounts:
        """Write documents that are built already: on the executors; or in the driver, if they are few, if only the
        driver's process can write to the index, or if they are too large to be sent to executors."""
        count, size_bytes = operations.num_rows, operations.nbytes
        if count < LEAST_FOR_EXECUTORS or size_bytes > _MOST_BYTES or not self._task.target.is_shared:
            return self._local.write_operations(operations)
        per_task = max(1, min(_DOCUMENTS_PER_TASK, count * _BYTES_PER_TASK // size_bytes))
        parts = [_serialize(part) for part in split_operations(operations, per_task)]
        return self._run(_write_serialized, parts)

    def write_ranges(self, ranges: Iterable[RootRange], version: int) -> Iterator[WrittenRange]:
        """Build and write all documents of ranges on the executors, as many ranges at once as there are cores. Yield
        what became of each range, in their order."""
        most = max(1, self._spark.sparkContext.defaultParallelism)
        window: deque[tuple[RootRange, Future[DocumentCounts]]] = deque()
        pool = ThreadPoolExecutor(most, "write-ranges")
        try:
            for part in ranges:
                window.append((part, pool.submit(self._run, _write_ranges, [(part, version)])))
                if len(window) > most:  # the next one waits for a core already
                    first, future = window.popleft()
                    yield WrittenRange(first, future.result())
            while window:
                first, future = window.popleft()
                yield WrittenRange(first, future.result())
        finally:
            for _, future in window:
                future.cancel()
            pool.shutdown(wait=True)

    def _run(
        self, write: Callable[[WriteTask, Iterable[T]], Iterator[DocumentCounts]], parts: Sequence[T]
    ) -> DocumentCounts:
        """Write parts on the executors, one task for each. An error of ours that stopped a task is raised as if it had
        happened here: a table that was altered meanwhile is read again."""
        task = replace(self._task, requirement=self._local.requirement)
        try:
            results: list[DocumentCounts] = (
                self._spark.sparkContext.parallelize(parts, len(parts))
                .mapPartitions(lambda some: write(task, some))
                .collect()
            )
        except (Py4JJavaError, PySparkException) as error:
            kind = error_class_of(error)
            if kind is None and (is_worker_lost(error) or is_disk_full(error)):
                kind = WorkerLostError
            if kind is None:
                raise
            raise kind(cause_of(error)) from error
        return _sum_counts(results)


def _sum_counts(parts: Iterable[DocumentCounts]) -> DocumentCounts:
    """Return what became of the documents of all parts."""
    counts = DocumentCounts()
    for part in parts:
        counts.add(part)
    return counts


def _serialize(operations: pa.Table) -> bytes:
    """Return operations as bytes, without what else their buffers hold."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, operations.schema) as writer:
        writer.write_table(operations)
    return sink.getvalue().to_pybytes()


# Of this executor process: what it has opened for the task that it worked on last.
_open: dict[tuple[str, IndexTarget, int | None], tuple[SourceRows, SearchIndex]] = {}


def _open_task(task: WriteTask) -> tuple[SourceRows, SearchIndex]:
    """Return the source and the index of a task; connections are reused by the next one."""
    servers = (repr((task.source, task.replica)), task.target, task.term and task.term.number)
    if servers not in _open:
        rows = SourceRows(task.source, DOCUMENT_DECODING, replica=task.replica)
        _open[servers] = rows, task.target.open(task.term)
    return _open[servers]


def _create_writer(task: WriteTask) -> LocalWriter:
    """Return what builds and writes the documents of a task in this process."""
    rows, index = _open_task(task)
    rows.requirement = task.requirement
    return LocalWriter(DocumentBuilder(task.graph, rows, task.missing), rows, index)


def _write_parts(task: WriteTask, parts: Iterable[Sequence[TouchedDocument]]) -> Iterator[DocumentCounts]:
    """Build and write parts of documents on an executor."""
    writer = _create_writer(task)
    for part in parts:
        yield writer.write_documents(part)


def _write_ranges(task: WriteTask, parts: Iterable[tuple[RootRange, int]]) -> Iterator[DocumentCounts]:
    """Build and write all documents of ranges on an executor."""
    writer = _create_writer(task)
    for part, version in parts:
        yield writer.write_range(part, version)


def _write_serialized(task: WriteTask, parts: Iterable[bytes]) -> Iterator[DocumentCounts]:
    """Write documents that are built already on an executor."""
    writer = _create_writer(task)
    for part in parts:
        yield writer.write_operations(pa.ipc.open_stream(part).read_all())
