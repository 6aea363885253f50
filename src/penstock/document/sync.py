"""Changes → documents → index, for one document spec. Knows neither Spark nor a driver: tables in, operations out."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.document.batch_images import BatchImages, ImageReader
from penstock.document.build import DocumentBuilder, read_keys
from penstock.document.changes import ChangeReader, TouchedKeys
from penstock.document.content_change import find_changed_tables
from penstock.document.document_id import document_id, parse_document_id
from penstock.document.document_tables import DocumentTables
from penstock.document.graph import REFERENCES_FIELD, DocumentGraph
from penstock.document.image_rules import find_read_back_reasons
from penstock.document.key_spool import spool_rows
from penstock.document.outcome import OutcomeLog, StrictOutcome
from penstock.document.queries import RootLookup
from penstock.document.references import reference_text
from penstock.document.root_range import RootRange, plan_ranges
from penstock.document.rows import DocumentRows
from penstock.document.sql_text import Key, split_keys
from penstock.document.write import (
    DocumentTotals,
    DocumentWriter,
    RangeWriter,
    TouchedDocument,
    WrittenRange,
    write_built,
    write_operations,
)
from penstock.errors import ConfigurationError, ProtocolError, SchemaError
from penstock.model import LogRequirement, TableName
from penstock.model import Sequence as ChangeSequence
from penstock.search.index import OPERATIONS, FieldKind, SearchIndex

log = logging.getLogger(__name__)

KEYS_PER_LOOKUP = 500
# Documents that are collected before they are written: a change that touches more is followed in several parts.
MOST_COLLECTED = 20_000
DOCUMENTS_PER_PAGE = 1_000
ROOTS_PER_RANGE = 20_000  # that an executor builds and writes in one task


@dataclass(frozen=True, slots=True)
class LoadedGraph:
    """A document graph as the source has its tables now, and the tables that are not there."""

    graph: DocumentGraph
    missing: frozenset[TableName] = frozenset()
    known: DocumentTables = field(default_factory=DocumentTables)  # of all tables, the missing ones as they were

    @property
    def fingerprint(self) -> tuple[object, ...]:
        """Return what two graphs of the same tables have in common, and graphs of altered tables do not."""
        return self.known, self.missing, self.graph.reference_names


@dataclass(slots=True)
class BatchCounts:
    """Counts of one batch: the changes that it had, and the documents that were written, deleted, stale or rejected."""

    changes: int = 0  # of tables of the document
    unused: int = 0  # of them, those of columns that no document uses
    from_log: int = 0  # documents that were built from row images, without a read
    documents: DocumentTotals = field(default_factory=DocumentTotals)


class DocumentSync:
    """Follows the changes of one document spec into an index.

    sync = DocumentSync(load_graph, rows, index, lambda builder: LocalWriter(builder, rows, index))
    counts = sync.apply_changes(batch)
    """

    def __init__(
        self,
        load_graph: Callable[[], LoadedGraph],
        rows: DocumentRows,
        index: SearchIndex,
        create_writer: Callable[[DocumentBuilder], DocumentWriter],
        outcome: OutcomeLog | None = None,
    ) -> None:
        """Follow into `index`; `outcome` keeps what the index refuses, else the first refusal is an error."""
        self._load_graph, self._rows, self._index, self._create_writer = load_graph, rows, index, create_writer
        self._outcome = outcome or StrictOutcome()
        self._epoch = -1  # that the index knows to be ours
        self._use(load_graph())
        self._followed = self.graph.reference_names  # by which all documents are written

    @property
    def graph(self) -> DocumentGraph:
        """Return the graph as it was last loaded."""
        return self._loaded.graph

    def _use(self, loaded: LoadedGraph) -> None:
        """Work with a graph from now on."""
        self._loaded = loaded
        self._reader = ChangeReader(loaded.graph)
        is_read_back = loaded.missing or find_read_back_reasons(loaded.graph)
        self._image_reader = None if is_read_back else ImageReader(loaded.graph)
        self._builder = DocumentBuilder(loaded.graph, self._rows, loaded.missing)
        self._writer = self._create_writer(self._builder)

    def prepare_index(self) -> None:
        """Create the index if it is missing, or check that it has the fields of the documents.

        A new index has the field of references in any case: a foreign key that cascades may be added later. One that
        somebody made by hand needs it only when there is such a key.
        """
        kinds, layout = self.graph.field_kinds, self.graph.layout
        if not self.graph.references:
            with suppress(ConfigurationError):
                self._index.prepare({**kinds, REFERENCES_FIELD: FieldKind.KEYWORD}, layout)
                return
        self._index.prepare(kinds, layout)

    def reload(self) -> None:
        """Load the graph again, as the tables are now."""
        self._use(self._load_graph())

    def apply_changes(
        self,
        changes: pa.Table,
        read_whole: Callable[[], pa.Table] | None = None,
        find_requirement: Callable[[], LogRequirement] | None = None,
    ) -> BatchCounts:
        """Write every document that these changes touch: as its last row image has it where that is all it depends on,
        else in the source's present state.

        Each is written with the highest `_seq` that touched it. Applying the same changes again is harmless. Images may
        have only the columns that documents depend on if `read_whole` returns the same changes with all of them: after
        tables were altered, documents may depend on others. Where something is read back, `find_requirement` says what
        the source must have executed for it; SourceBehindError when it has not.
        """
        self._claim_epoch(pc.max(changes.column("_seq")).as_py() or 0)
        try:
            images = self._image_reader.read_changes(changes) if self._image_reader is not None else None
            if images is not None:
                counts = BatchCounts(images.changes, images.unused)
                read_back = self._write_images(images, counts)
                if read_back.roots:
                    self._require(find_requirement)
                    self._write_touched(read_back, counts)
                return counts
            self._require(find_requirement)
            return self._apply_read_back(self._reader.read_changes(changes))
        except (SchemaError, ProtocolError) as error:
            # A table was altered or dropped after the graph was loaded: documents are read as the source is now.
            log.info("re-reading table schemas after an error index=%s reason=%s", self.graph.spec.index, error)
            self._require(find_requirement)
            self._check_reached()
            self.reload()
            whole = changes if read_whole is None else read_whole()
            return self._apply_read_back(self._reader.read_changes(whole, skips_unfit=True))

    def _require(self, find_requirement: Callable[[], LogRequirement] | None) -> None:
        """Let views be opened only where the source has executed what the changes of a batch need."""
        self._rows.requirement = None if find_requirement is None else find_requirement()

    def _check_reached(self) -> None:
        """Raise SourceBehindError when the source has not executed what is required: its tables are old as well."""
        if self._rows.requirement is not None:
            with self._rows.open_view():
                pass

    def _apply_read_back(self, touched: TouchedKeys) -> BatchCounts:
        """Apply a batch by reading the documents that it touches back from the source, in their present state, instead
        of building them from row images. DDL of the batch is followed first. If that changed the keys by which
        documents are found, the rebuild after it has written all documents, and the keys in the batch are not looked
        up."""
        counts = BatchCounts(touched.changes, touched.unused)
        keys = self._reader.key_names
        is_rebuilt = bool(touched.statements) and self._follow_statements(touched, counts)
        if touched.unknown and not is_rebuilt:
            log.warning(
                "affected documents cannot be determined from the changes, all documents are compared with the source"
                " index=%s",
                self.graph.spec.index,
            )
            counts.documents, is_rebuilt = self.rebuild(touched.unknown), True
        if not is_rebuilt or self._reader.key_names == keys:
            self._write_touched(touched, counts)
        return counts

    def load_all(
        self,
        version: int,
        progress: Callable[[int], None] = lambda _: None,
        requirement: LogRequirement | None = None,
        *,
        begin: Key | None = None,
        on_part: Callable[[Key], None] = lambda _: None,
    ) -> DocumentTotals:
        """Write every document with a version, the `_seq` of a position from before, so that any later change wins; the
        source must have executed what is required, all before that position. A load that was interrupted begins behind
        the last key that `on_part` was told."""
        self._rows.requirement = requirement
        totals = DocumentTotals()
        for part in self._load_parts(version, begin):
            totals.add(part.counts)
            if part.range.until is not None:
                on_part(part.range.until)
            progress(totals.total)
        self._outcome.record_rebuild(version)
        return totals

    def _load_parts(self, version: int, begin: Key | None = None) -> Iterator[WrittenRange]:
        """Write every document behind a key with a version, in ranges of keys."""
        self._claim_epoch(version)
        if isinstance(self._writer, RangeWriter) and self.graph.root.table.name not in self._loaded.missing:
            for part in self._writer.write_ranges(plan_ranges(self._rows, self.graph, ROOTS_PER_RANGE, begin), version):
                self._outcome.record_range(part.counts.total, part.counts.rejected)
                yield part
            return
        for built in self._builder.build_pages(DOCUMENTS_PER_PAGE, begin=begin):
            touched = [TouchedDocument(key, version) for key in built.keys]
            page = write_built(self._index, touched, built)
            self._outcome.record(dict.fromkeys(built.ids, version), page.rejected)
            yield WrittenRange(RootRange(begin, built.keys[-1]), page)
            begin = built.keys[-1]

    def _claim_epoch(self, version: int) -> None:
        """Tell the index the epoch of a version before it is written: an index that has seen a higher one refuses."""
        epoch = ChangeSequence.from_int(version).epoch
        if epoch > self._epoch:
            self._index.claim_epoch(epoch)
            self._epoch = epoch

    def _follow_statements(self, touched: TouchedKeys, counts: BatchCounts) -> bool:
        """Load the graph again after DDL, and rebuild the index where a statement may have changed rows unseen. Return
        whether it was rebuilt."""
        used = self.graph.used_columns
        tables: set[TableName] = set()
        sequence = 0
        for statement in touched.statements:
            changed = find_changed_tables(statement, used, self._loaded.missing, folds_names=self.graph.folds_names)
            if changed:
                tables |= changed
                sequence = max(sequence, statement.sequence)
                log.warning(
                    "statement changes rows without logging them, all documents are compared index=%s table=%s"
                    " statement=%s",
                    *(self.graph.spec.index, ",".join(sorted(map(str, changed))), statement.text[:200]),
                )
        self._check_reached()
        self.reload()
        if self.graph.reference_names != self._followed:  # also when an earlier try has failed after it was loaded
            log.warning(
                "foreign keys that cascade have changed, all documents are written again index=%s references=%s",
                *(self.graph.spec.index, ",".join(sorted(self.graph.reference_names)) or "none"),
            )
            self.prepare_index()
            sequence = max(statement.sequence for statement in touched.statements)
            tables |= {self.graph.root.table.name}
        if tables:
            counts.documents = self.rebuild(sequence)  # nothing was written before it
        self._followed = self.graph.reference_names
        return bool(tables)

    def rebuild(self, version: int) -> DocumentTotals:
        """Write every document with this version, and delete what the index has besides."""
        counts = DocumentTotals()
        refused = set[str]()  # they stay in the index as they are
        for part in self._load_parts(version):
            counts.add(part.counts)
            refused |= {rejection.id for rejection in part.counts.rejected}
        self._index.refresh()
        for ids in self._index.scan_ids():
            older = ids.filter(pc.less(ids.column("version"), version))
            rows = [
                (name, version, routing, None)
                for name, routing in zip(*(older.column(part).to_pylist() for part in ("id", "routing")), strict=True)
                if name not in refused
            ]
            deleted = write_operations(self._index, _operations(rows))
            self._outcome.record({name: version for name, *_ in rows}, deleted.rejected)
            counts.add(deleted)
        self._outcome.record_rebuild(version)
        log.info(
            "index rebuilt after a statement index=%s written=%d deleted=%d rejected=%d",
            *(self.graph.spec.index, counts.written, counts.deleted, counts.rejected),
        )
        return counts

    def _write_images(self, images: BatchImages, counts: BatchCounts) -> TouchedKeys:
        """Write the documents that are built from row images, and return those that must be read back after all."""
        read_back = TouchedKeys()
        for part in images.build_parts():
            ids, versions = (part.operations.column(name).to_pylist() for name in ("id", "version"))
            written = self._writer.write_operations(part.operations)
            self._outcome.record(dict(zip(ids, versions, strict=True)), written.rejected)
            counts.documents.add(written)
            read_back.roots |= part.read_back
            read_back.routings |= part.routings
        counts.from_log = len(images) - len(read_back.roots)
        return read_back

    def _write_touched(self, touched: TouchedKeys, counts: BatchCounts) -> None:
        """Find all documents that are touched, and write them in parts of bounded size."""
        collected = dict(touched.roots)
        for number, values in touched.lookups.items():
            for keys, version in self._find_roots(self._reader.lookups[number], values):
                for key in keys:
                    collected[key] = max(collected.get(key, 0), version)
                if len(collected) >= MOST_COLLECTED:
                    self._write_collected(collected, touched.routings, counts)
                    collected = {}
        for keys, version in self._find_referring(touched):
            for key in keys:
                collected[key] = max(collected.get(key, 0), version)
            if len(collected) >= MOST_COLLECTED:
                self._write_collected(collected, touched.routings, counts)
                collected = {}
        self._write_collected(collected, touched.routings, counts)

    def _find_referring(self, touched: TouchedKeys) -> Iterator[tuple[Sequence[Key], int]]:
        """Yield the keys of documents that depend on rows by foreign keys that cascade, and add the routings that they
        have. Where the documents' own rows are such rows, those that depend on them follow."""
        root = self.graph.root
        names = {column.name for column in root.key}
        leads_to_itself = any(
            reference.parent.name == root.table.name and {column.name for column in reference.parent_columns} == names
            for reference in self.graph.references
        )
        pending: dict[str, int] = dict(touched.references)
        seen = set(pending)
        while pending:
            version = max(pending.values())
            followers: dict[str, int] = {}
            for documents in self._find_naming(pending):
                keys: list[Key] = []
                for name, routing in documents:
                    key = parse_document_id(name, root.key)
                    if key is None:
                        raise SchemaError(
                            f"document {name} of index '{self.graph.spec.index}' follows a foreign key that cascades,"
                            " and its key is too long to be found by its id: build the index again"
                        )
                    keys.append(key)
                    if self.graph.routing is not None:
                        touched.routings.setdefault(key, set()).add(routing)
                    text = reference_text(root.table.name, key) if leads_to_itself else ""
                    if text and text not in seen:
                        seen.add(text)
                        followers[text] = version
                yield keys, version
            pending = followers

    def _find_naming(self, references: Mapping[str, int]) -> Iterator[Iterable[tuple[str, str | None]]]:
        """Yield the ids and routings of documents that name one of these rows: in the index, and among those that it
        has refused."""
        for page in self._index.find_ids(REFERENCES_FIELD, list(references)):
            yield zip(*(page.column(part).to_pylist() for part in ("id", "routing")), strict=True)
        yield self._outcome.find_referring(references)

    def _write_collected(
        self, versions: Mapping[Key, int], routings: Mapping[Key, set[str | None]], counts: BatchCounts
    ) -> None:
        """Write documents with their versions."""
        documents = [
            TouchedDocument(
                key, version, tuple(sorted(routings.get(key, ()), key=lambda text: (text is not None, text)))
            )
            for key, version in versions.items()
        ]
        if documents:
            written = self._writer.write_documents(documents)
            self._outcome.record({document_id(key): version for key, version in versions.items()}, written.rejected)
            counts.documents.add(written)

    def _find_roots(self, lookup: RootLookup, values: Mapping[Key, int]) -> Iterator[tuple[Sequence[Key], int]]:
        """Yield the keys of root rows that changed rows belong to, each with the version to write."""
        if lookup.names_roots:
            for key, version in values.items():
                yield [key], version
            return
        if lookup.uses_any(self._loaded.missing):
            return
        in_order = sorted(values, key=lambda key: values[key])
        for keys in split_keys(in_order, KEYS_PER_LOOKUP):
            version = values[keys[-1]]
            with ExitStack() as opened:
                with self._rows.open_view():
                    spooled = opened.enter_context(spool_rows(self._rows.stream(lookup.select_roots(keys))))
                for batch in spooled:
                    yield read_keys(pa.Table.from_batches([batch]), batch.num_columns), version


def _operations(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Return a table of operations from rows of id, version, routing and document."""
    names = ("id", "version", "routing", "document")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(names, ())
    return pa.table([pa.array(columns[part.name], part.type) for part in OPERATIONS], schema=OPERATIONS)
