"""A document sync over tables in memory, which shows what was asked of its parts."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.document import DocumentCounts, DocumentGraph, DocumentSync, LoadedGraph, LocalWriter, TouchedDocument
from penstock.model import TableName
from penstock.search.index import Rejection
from tests.support.document_shop import MemoryIndex, MemoryRows


class MemorySync:
    """A sync over tables in memory, with what was asked of it."""

    def __init__(self, graph: DocumentGraph) -> None:
        self.rows, self.index = MemoryRows(), MemoryIndex()
        self.loads = 0
        self.missing: frozenset[TableName] = frozenset()
        self.parts: list[list[TouchedDocument]] = []
        self.outcomes: list[tuple[dict[str, int], list[str]]] = []  # versions by id, and ids that were refused
        self.rejections: list[Rejection] = []  # of the last outcome
        self.graph = graph
        self.sync = DocumentSync(self.load, self.rows, self.index, self._watch, self)  # type: ignore[arg-type]

    def load(self) -> LoadedGraph:
        self.loads += 1
        return LoadedGraph(self.graph, self.missing)

    def record(self, versions: Mapping[str, int], rejected: Sequence[Rejection]) -> None:
        """Take what became of documents, as an OutcomeLog does."""
        self.outcomes.append((dict(versions), [item.id for item in rejected]))
        self.rejections = list(rejected)

    def record_range(self, documents: int, rejected: Sequence[Rejection]) -> None:  # noqa: ARG002
        self.record({}, rejected)

    def find_referring(self, references: Collection[str]) -> Iterator[tuple[str, str | None]]:  # noqa: ARG002
        """Yield what was refused, as an OutcomeLog does: here nothing."""
        return iter(())

    def record_rebuild(self, version: int) -> None:
        """Take it that the index was rebuilt, as an OutcomeLog does."""

    def _watch(self, builder: Any) -> "WatchedWriter":
        return WatchedWriter(LocalWriter(builder, self.rows, self.index), self.parts)  # type: ignore[arg-type]

    def insert_orders(self, *keys: int, customer: int | None = None, number: str = "N") -> None:
        rows = ((key, f"{number}{key}", customer) for key in keys)
        self.rows.insert("orders", *rows, columns="(id, number, customer_id)")


class WatchedWriter:
    def __init__(self, writer: LocalWriter, parts: list[list[TouchedDocument]]) -> None:
        self._writer, self._parts = writer, parts

    def write_documents(self, touched: Sequence[TouchedDocument]) -> DocumentCounts:
        self._parts.append(list(touched))
        return self._writer.write_documents(touched)

    def write_operations(self, operations: pa.Table) -> DocumentCounts:
        return self._writer.write_operations(operations)
