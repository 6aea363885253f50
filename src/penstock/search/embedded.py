"""A search index in a folder, inside this process: tantivy, with the versions that tantivy does not have.

Invariant: between two writes nothing is uncommitted, so the last commit is the whole truth: versions are compared with
it, a crash falls back to it, a delete is a tombstone in it. One process writes, any number read.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from penstock.errors import ConfigurationError, SinkError, SinkUnavailableError
from penstock.search import _folder
from penstock.search._reader import UNSEEN, IndexReader
from penstock.search._tantivy import tantivy
from penstock.search.fields import check_epoch, check_fields, check_same_fields
from penstock.search.folder_alias import move_folder_alias, read_folder_alias
from penstock.search.index import FieldKind, Hit, IndexLayout, WriteReport
from penstock.search.operation import AdmittedOperations, admit_operations
from penstock.search.writer_term import WriterTerm

log = logging.getLogger(__name__)

# The least that tantivy takes. Every commit touches memory in proportion, so more makes a small write slower.
_HEAP_BYTES = 15_000_000


class EmbeddedIndex:
    """A `SearchIndex` in a folder; `write` returns when its changes are on disk and searchable.

        index = EmbeddedIndex.open("/var/lib/penstock/product")
        index.prepare({"name": FieldKind.TEXT, "price": FieldKind.FLOAT})

    Writes from several threads queue up; searches run beside them. `_lock` protects `_reader` (the reference),
    `_writer` and `_next_purge_s`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        read_only: bool,
        tombstone_retention_s: float,
        heap_bytes: int,
        clock: Callable[[], float],
        term: WriterTerm | None,
    ) -> None:
        self._folder = folder
        self._where = f"the index in {folder}"
        self._read_only = read_only
        self._retention_s = tombstone_retention_s
        self._heap_bytes = heap_bytes
        self._clock = clock
        self._term = term
        self._is_closed = False
        self._lock = threading.Lock()
        self._reader: IndexReader | None = None
        self._opened_folder: Path | None = None  # that of the reader
        self._writer: tantivy.IndexWriter | None = None
        self._next_purge_s = 0.0
        self._opened_at: float | None = None  # by our clock, as if the index had been open since second 0

    @classmethod
    def open(
        cls,
        folder: str | Path,
        *,
        read_only: bool = False,
        tombstone_retention_s: float = 86_400.0,
        heap_bytes: int = _HEAP_BYTES,
        clock: Callable[[], float] = time.monotonic,
        term: WriterTerm | None = None,
    ) -> Self:
        """Open for writing (`prepare` makes a missing index), or beside a writer for reading.

        A delete is remembered for the retention; an older write that arrives later than that is taken as new. It is
        measured by a clock that nobody sets, and counts only while the index is open: it may last longer, and never
        shorter. With a `term`, nothing is written after it has ended.
        """
        index = cls(
            Path(folder),
            read_only=read_only,
            tombstone_retention_s=tombstone_retention_s,
            heap_bytes=heap_bytes,
            clock=clock,
            term=term,
        )
        if _folder.has_index(index._folder):
            index._open_reader(_folder.read_state(index._folder).fields)
        elif read_only:
            raise ConfigurationError(f"there is no index in {folder}: open it for writing first, and prepare it")
        return index

    def __repr__(self) -> str:
        return f"EmbeddedIndex({str(self._folder)!r})"

    def prepare(self, fields: Mapping[str, FieldKind], layout: IndexLayout | None = None) -> None:  # noqa: ARG002 - for others
        """Create the index if it is missing, or check that it has these fields; a layout changes nothing here."""
        check_fields(fields)
        self._require_term()
        if self._reader is None and not self._is_closed:
            _folder.write_state(self._folder, _folder.FolderState(dict(fields)))
            self._open_reader(dict(fields))
        check_same_fields(fields, self._require_reader().fields, self._where)
        if self._term is not None:
            self._claim_term(self._term)

    def add_alias(self, alias: str) -> tuple[str, ...]:
        """Let an alias, a link beside the folder, lead to it unless it leads to another one; return where it leads."""
        if (owner := read_folder_alias(self._folder, alias)) is None:
            self.move_alias(alias)
            return (self._folder.absolute().name,)
        return (owner,)

    def find_owners(self, alias: str) -> tuple[str, ...]:
        """Return the name of the folder to which an alias leads."""
        owner = read_folder_alias(self._folder, alias)
        return () if owner is None else (owner,)

    def check_alias(self, alias: str) -> None:
        """Raise ConfigurationError if `move_alias` could not move an alias."""
        read_folder_alias(self._folder, alias)

    def move_alias(self, alias: str) -> tuple[str, ...]:
        """Let an alias, a link beside the folder, lead to it; return where it led before."""
        self._require_term()
        before = read_folder_alias(self._folder, alias)
        move_folder_alias(self._folder, alias)
        return () if before is None else (before,)

    def begin_load(self) -> None:
        """Do nothing: what is written is searchable at once."""

    def end_load(self) -> None:
        """Make what was loaded searchable."""
        self.refresh()

    def claim_epoch(self, epoch: int) -> None:
        """Remember the epoch of the versions that will be written; SinkError if the index has seen a higher one."""
        with self._lock:
            self._get_writer(self._require_reader())  # its lock keeps others out
            state = _folder.read_state(self._folder)
            check_epoch(epoch, state.epoch, self._where)
            if epoch > state.epoch:
                self._require_term()
                _folder.write_state(self._folder, replace(state, epoch=epoch))

    def remember_load(self, load_id: str) -> None:
        """Remember which load has filled the index."""
        with self._lock:
            self._get_writer(self._require_reader())
            self._require_term()
            _folder.write_state(self._folder, replace(_folder.read_state(self._folder), load_id=load_id))

    def read_load_id(self) -> str:
        """Return the id of the load that has filled the index; empty if none has."""
        self._require_reader()
        return _folder.read_state(self._folder).load_id

    def _claim_term(self, term: WriterTerm) -> None:
        """Remember a term as the newest of its pipeline; FencedError if the index was written in a newer one."""
        with self._lock:
            self._get_writer(self._require_reader())
            state = _folder.read_state(self._folder)
            seen = state.terms.get(term.pipeline, 0)
            term.check(seen, self._where)
            if term.number > seen:
                _folder.write_state(self._folder, replace(state, terms={**state.terms, term.pipeline: term.number}))

    def _require_term(self) -> None:
        """Raise FencedError if the term of this writer has ended."""
        if self._term is not None:
            self._term.require()

    def write(self, operations: pa.Table) -> WriteReport:
        """Apply operations; they are on disk and searchable when this returns."""
        batch = admit_operations(operations)
        with self._lock:
            reader = self._require_reader()
            writer = self._get_writer(reader)
            try:
                return self._apply_batch(reader, writer, batch)
            except BaseException as error:
                self._roll_back(writer)
                if isinstance(error, ValueError | RuntimeError | OSError):
                    raise SinkError(f"{self._where} did not take a write: {error}") from error
                raise

    def refresh(self) -> None:
        """Make what other processes have committed visible; behind an alias that was moved, the index that it leads to
        now."""
        reader = self._require_reader()
        if self._read_only and self._folder.resolve() != self._opened_folder:
            self._open_reader(_folder.read_state(self._folder).fields)
        else:
            reader.reload()

    def search(self, text: str, limit: int = 10) -> list[Hit]:
        """Return the best matching documents for the text of a search box."""
        return self._require_reader().search(text, limit)

    def get(self, id: str, routing: str | None = None) -> dict[str, Any] | None:  # noqa: A002, ARG002 - the words of both products
        """Return the document with this id, whatever its routing; None if there is none."""
        return self._require_reader().get(id)

    def count(self) -> int:
        """Return how many documents are visible to searches now, that is since the last refresh."""
        return self._require_reader().count()

    def documents(self) -> pa.Table:
        """Return all documents as a table."""
        return self._require_reader().documents()

    def scan_ids(self) -> Iterator[pa.Table]:
        """Yield id, version and routing of every document, page by page."""
        self.refresh()
        return self._require_reader().scan_ids()

    def scan_documents(self, part: int = 0, parts: int = 1) -> Iterator[pa.Table]:
        """Yield all documents, or one of several parts, page by page."""
        self.refresh()
        return self._require_reader().scan_documents(part, parts)

    def read_documents(self, wanted: Sequence[tuple[str, str | None]]) -> pa.Table:
        """Return the documents with these ids, whatever their routings."""
        self.refresh()
        return self._require_reader().read_documents(sorted({name for name, _ in wanted}))

    def find_ids(self, field: str, values: Sequence[str]) -> Iterator[pa.Table]:
        """Yield id, version and routing of every document whose field has one of these values."""
        self.refresh()
        return self._require_reader().find_ids(field, values)

    def close(self) -> None:
        """Release the writer and its lock."""
        with self._lock:
            self._is_closed, self._reader = True, None
            writer, self._writer = self._writer, None
        if writer:
            writer.wait_merging_threads()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_reader(self, fields: dict[str, FieldKind]) -> None:
        """Open the index with these fields."""
        folder = self._folder.resolve()  # an alias may be moved meanwhile
        reader = IndexReader(folder, fields)
        with self._lock:
            if not self._read_only:
                self._get_writer(reader)
            self._reader, self._opened_folder = reader, folder

    def _require_reader(self) -> IndexReader:
        """Return the reader, or raise if the index was not prepared."""
        if self._reader is None:
            state = "closed" if self._is_closed else "not there yet: prepare it first"
            raise SinkError(f"{self._where} is {state}")
        return self._reader

    def _get_writer(self, reader: IndexReader) -> tantivy.IndexWriter:
        """Return the writer, creating it if needed; it holds a lock on the folder that ends with the process."""
        if self._read_only:
            raise SinkError(f"{self._where} was opened for reading only")
        if self._writer is None:
            try:
                self._writer = reader.index.writer(self._heap_bytes, num_threads=1)
            except ValueError as error:
                if "LockBusy" in str(error):
                    raise SinkUnavailableError(
                        f"{self._where} is being written by somebody else: one process writes, others open it read-only"
                    ) from error
                raise SinkError(f"{self._where} cannot be written: {error}") from error
            reader.reload()
        return self._writer

    def _roll_back(self, writer: tantivy.IndexWriter) -> None:
        """Discard what is not committed; a writer that cannot do that is dropped, and the next write creates
        another.
        """
        try:
            writer.rollback()
        except (ValueError, RuntimeError, OSError):
            log.warning(
                "search index writer closed because it cannot roll back folder=%s: the next write opens a new one",
                self._folder,
            )
            self._writer = None

    def _apply_batch(self, reader: IndexReader, writer: tantivy.IndexWriter, batch: AdmittedOperations) -> WriteReport:
        """Apply the operations that are newer than what the index has."""
        now_s = self._tell_time(reader)
        keys: list[str] = batch.ids.to_pylist()
        documents: list[str | None] = batch.documents.to_pylist()
        routings: list[str | None] = batch.routings.to_pylist()
        held = reader.versions(keys)
        is_fresh = batch.versions >= held
        rejected = list(batch.rejected)
        replaced: list[str] = []
        added: dict[str, tantivy.Document] = {}
        written = deleted = 0
        fresh: list[int] = np.flatnonzero(is_fresh).tolist()
        if batch.has_repeated_ids:  # there are no shards: of the operations of one id, a document wins over deletes
            fresh.sort(key=lambda row: (documents[row] is not None, batch.versions[row]))
        for row in fresh:
            key, version, text = keys[row], int(batch.versions[row]), documents[row]
            if text is None:
                added[key] = reader.layout.build_tombstone(key, version, int(now_s))
                deleted += 1
            else:
                try:
                    added[key] = reader.layout.build_document(key, version, text, routings[row])
                except ValueError as error:
                    rejected.append(batch.reject(row, str(error)))
                    continue
                written += 1
            if held[row] != UNSEEN:
                replaced.append(key)
        if replaced:
            writer.delete_documents_by_query(reader.layout.query_ids(replaced))
        for document in added.values():
            writer.add_document(document)
        if self._purge_tombstones(reader, writer, now_s) or added:
            self._require_term()
            writer.commit()
            reader.reload()
        stale = len(keys) - int(np.count_nonzero(is_fresh))
        return WriteReport(written, deleted, stale, tuple(rejected))

    def _tell_time(self, reader: IndexReader) -> float:
        """Return seconds that only rise, whatever becomes of the machine's date: from the newest tombstone on, as long
        as this index is open."""
        if self._opened_at is None:
            self._opened_at = self._clock() - reader.find_newest_tombstone()
        return self._clock() - self._opened_at

    def _purge_tombstones(self, reader: IndexReader, writer: tantivy.IndexWriter, now_s: float) -> bool:
        """Drop old tombstones from time to time; return whether there were any."""
        if now_s < self._next_purge_s:
            return False
        self._next_purge_s = now_s + self._retention_s / 24
        last_s = int(now_s - self._retention_s)
        if not (count := reader.count_tombstones_until(last_s)):
            return False
        log.info(
            "tombstones of documents deleted long ago removed from search index folder=%s count=%d", self._folder, count
        )
        writer.delete_documents_by_query(reader.layout.query_tombstones_until(last_s))
        return True
