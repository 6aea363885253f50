"""Writes touched documents: builds those that exist, deletes the others, and reports what the index refused."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import pyarrow as pa

from penstock.document.build import BuiltDocuments, DocumentBuilder
from penstock.document.document_id import document_id
from penstock.document.root_range import RootRange
from penstock.document.rows import DocumentRows
from penstock.document.sql_text import Key, split_keys
from penstock.model import LogRequirement
from penstock.search.index import OPERATIONS, Rejection, SearchIndex

DOCUMENTS_PER_WRITE = 2_000


@dataclass(frozen=True, slots=True)
class TouchedDocument:
    """A document to be written as it is now: the key of its root row, the version it gets, and routings it had."""

    key: Key
    version: int
    old_routings: tuple[str | None, ...] = ()


@dataclass(slots=True)
class DocumentCounts:
    """What became of some documents, with those that were refused."""

    written: int = 0
    deleted: int = 0
    stale: int = 0  # the index had a newer version
    rejected: list[Rejection] = field(default_factory=list[Rejection])

    def add(self, other: "DocumentCounts") -> None:
        """Add the counts of another part."""
        self.written += other.written
        self.deleted += other.deleted
        self.stale += other.stale
        self.rejected += other.rejected

    @property
    def total(self) -> int:
        """Return how many documents were looked at."""
        return self.written + self.deleted + self.stale + len(self.rejected)


@dataclass(slots=True)
class DocumentTotals:
    """What became of any number of documents."""

    written: int = 0
    deleted: int = 0
    stale: int = 0
    rejected: int = 0

    def add(self, counts: DocumentCounts) -> None:
        """Add the counts of a part."""
        self.written += counts.written
        self.deleted += counts.deleted
        self.stale += counts.stale
        self.rejected += len(counts.rejected)

    @property
    def total(self) -> int:
        """Return how many documents were looked at."""
        return self.written + self.deleted + self.stale + self.rejected


class DocumentWriter(Protocol):
    """Builds and writes documents, here or on other machines."""

    def write_documents(self, touched: Sequence[TouchedDocument]) -> DocumentCounts:
        """Write each document in the source's present state. Doing so again is harmless."""
        ...

    def write_operations(self, operations: pa.Table) -> DocumentCounts:
        """Write documents that are built already; the operations of one document follow each other."""
        ...


@dataclass(frozen=True, slots=True)
class WrittenRange:
    """What became of the documents of a range of root rows."""

    range: RootRange
    counts: DocumentCounts


@runtime_checkable
class RangeWriter(Protocol):
    """A DocumentWriter that writes several ranges of documents at once, on other machines."""

    def write_ranges(self, ranges: Iterable[RootRange], version: int) -> Iterator[WrittenRange]:
        """Build and write all documents of ranges with a version; yield what became of each range, in their order."""
        ...


class LocalWriter:
    """Builds documents in this process and writes them to an index.

    counts = LocalWriter(builder, rows, index).write_documents([TouchedDocument((7,), version)])
    """

    def __init__(self, builder: DocumentBuilder, rows: DocumentRows, index: SearchIndex) -> None:
        self._builder, self._rows, self._index = builder, rows, index

    @property
    def requirement(self) -> LogRequirement | None:
        """Return what the database must have executed before it is read."""
        return self._rows.requirement

    def write_documents(self, touched: Sequence[TouchedDocument]) -> DocumentCounts:
        """Build and write the documents, in parts of bounded size; each part is one read of the database."""
        counts = DocumentCounts()
        by_key = {document.key: document for document in touched}
        for keys in split_keys(list(by_key), DOCUMENTS_PER_WRITE):
            with self._rows.open_view():
                built = self._builder.build_documents(keys)
            counts.add(write_built(self._index, [by_key[key] for key in keys], built))
        return counts

    def write_range(self, part: RootRange, version: int) -> DocumentCounts:
        """Build and write all documents of a range of root rows with a version, page by page."""
        counts = DocumentCounts()
        for built in self._builder.build_pages(DOCUMENTS_PER_WRITE, part.condition(self._builder.graph)):
            counts.add(write_built(self._index, [TouchedDocument(key, version) for key in built.keys], built))
        return counts

    def write_operations(self, operations: pa.Table) -> DocumentCounts:
        """Write the operations, in parts of bounded size."""
        counts = DocumentCounts()
        for part in split_operations(operations, DOCUMENTS_PER_WRITE):
            counts.add(write_operations(self._index, part))
        return counts


def split_operations(operations: pa.Table, size: int) -> Iterator[pa.Table]:
    """Yield operations in parts of about this size; those of one document, which follow each other, stay together."""
    ids, first = operations.column("id"), 0
    while first < operations.num_rows:
        stop = first + size
        while stop < operations.num_rows and ids[stop].as_py() == ids[stop - 1].as_py():
            stop += 1
        yield operations.slice(first, stop - first)
        first = stop


def write_built(index: SearchIndex, touched: Sequence[TouchedDocument], built: BuiltDocuments) -> DocumentCounts:
    """Bring an index to what was built, and return what became of the documents. What the transform of a spec failed on
    is rejected; what is rejected is kept as it was before the transform, so that it can run again."""
    counts = write_operations(index, make_operations(touched, built))
    if built.before_transform is None or not (counts.rejected or built.failures):
        return counts
    texts, rows = built.before_transform, {name: number for number, name in enumerate(built.ids)}
    counts.rejected = [
        item if item.document is None else replace(item, document=texts[rows[item.id]].as_py(), before_transform=True)
        for item in counts.rejected
    ]
    for document in touched:
        row = rows.get(document_id(document.key))
        if row is not None and row in built.failures:
            routing = built.routings[row] if built.routings is not None else None
            failure = Rejection(built.ids[row], built.failures[row], document.version, routing, texts[row].as_py())
            counts.rejected.append(replace(failure, before_transform=True))
    return counts


def make_operations(touched: Sequence[TouchedDocument], built: BuiltDocuments) -> pa.Table:
    """Return the operations that bring an index to what was built: what was not is deleted, and so is a document where
    its old routing had it. What a transform failed on stays in the index as it is."""
    rows = {name: number for number, name in enumerate(built.ids)}
    ids: list[str] = []
    versions: list[int] = []
    routings: list[str | None] = []
    sources: list[int | None] = []
    for document in touched:
        name = document_id(document.key)
        row = rows.get(name)
        routing = built.routings[row] if row is not None and built.routings is not None else None
        if row is not None and row not in built.failures:
            ids.append(name)
            versions.append(document.version)
            routings.append(routing)
            sources.append(row)
        gone = [old for old in document.old_routings if row is None or old != routing]
        for old in gone or ([None] if row is None else []):
            ids.append(name)
            versions.append(document.version)
            routings.append(old)
            sources.append(None)
    texts = built.documents.take(pa.array(sources, pa.int64())).cast(pa.string())
    columns = {"id": pa.array(ids, pa.string()), "version": pa.array(versions, pa.int64())}
    columns |= {"routing": pa.array(routings, pa.string()), "document": texts}
    return pa.table([columns[part.name] for part in OPERATIONS], schema=OPERATIONS)


def write_operations(index: SearchIndex, operations: pa.Table) -> DocumentCounts:
    """Write operations, and return what became of them."""
    if not operations.num_rows:
        return DocumentCounts()
    report = index.write(operations)
    return DocumentCounts(report.written, report.deleted, report.stale, list(report.rejected))
