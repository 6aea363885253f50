"""Questions to the last commit of an embedded index.

Invariant: nothing here changes the index, and tombstones are seen by `versions` and `tombstones_until` only.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import SinkError
from penstock.search import _json
from penstock.search._tantivy import TantivySchema, tantivy
from penstock.search.fields import check_exact_field
from penstock.search.index import DOCUMENT_IDS, DOCUMENTS, STORED_DOCUMENTS, FieldKind, Hit
from penstock.search.question import parse_question

UNSEEN = -1  # below every version
_LATEST_S = 1 << 40  # later than any tombstone
_PAGE = 10_000
_IDS_PER_PAGE = 5000
_VALUES_PER_QUERY = 10_000


class IndexReader:
    """Reads the last commit of an embedded index, and creates the index if it is missing. Several threads may use
    it.
    """

    def __init__(self, folder: Path, fields: dict[str, FieldKind]) -> None:
        self._folder = folder
        self.fields = fields
        self.layout = TantivySchema(fields)
        with self._translate_errors():
            self.index = tantivy.Index(self.layout.schema, path=str(folder))
            self.layout.register(self.index)
            self.index.reload()

    def reload(self) -> None:
        """Make everything visible that any process has committed until now."""
        with self._translate_errors():
            self.index.reload()

    def search(self, text: str, limit: int) -> list[Hit]:
        """Return the best matching documents for the text of a search box."""
        question = self.layout.query_question(parse_question(text, self.fields))
        return [
            Hit(str(stored.get_first("_id")), score, _json.loads(stored.get_first("_source") or b""))
            for score, stored in self._find_documents(question, limit)
        ]

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the document with this id; None if there is none."""
        for _, stored in self._find_documents(self.layout.query_living(self.layout.query_ids([key])), 1):
            return _json.loads(stored.get_first("_source") or b"")
        return None

    def count(self) -> int:
        """Return how many documents are not deleted."""
        searcher = self.index.searcher()
        return searcher.num_docs - _count_matches(searcher, self.layout.query_tombstones())

    def count_tombstones_until(self, moment_s: int) -> int:
        """Return how many tombstones are at least this old."""
        return _count_matches(self.index.searcher(), self.layout.query_tombstones_until(moment_s))

    def find_newest_tombstone(self) -> int:
        """Return the time of the newest tombstone; 0 if there is none."""
        total, low, high = self.count_tombstones_until(_LATEST_S), 0, _LATEST_S
        while total and low < high:  # the time until which all of them are
            middle = (low + high) // 2
            if self.count_tombstones_until(middle) < total:
                low = middle + 1
            else:
                high = middle
        return low

    def documents(self) -> pa.Table:
        """Return all documents that are not deleted; addresses are found at once, documents are read and packed page by
        page.
        """
        with self._translate_errors():
            searcher = self.index.searcher()
            hits = searcher.search(self.layout.query_living(), max(1, searcher.num_docs), count=False).hits
            pages = [_stored_table(searcher, hits[start : start + _PAGE]) for start in range(0, len(hits), _PAGE)]
        return pa.concat_tables([DOCUMENTS.empty_table(), *(page.select(DOCUMENTS.names) for page in pages)])

    def scan_documents(self, part: int, parts: int) -> Iterator[pa.Table]:
        """Yield the documents that are not deleted, or one of several parts of them, page by page."""
        searcher, living = self.index.searcher(), self.layout.query_living()
        with self._translate_errors():
            pages = parts * max(1, -(-_count_matches(searcher, living) // (_IDS_PER_PAGE * parts)))
            for number in range(part * pages // parts, (part + 1) * pages // parts):
                page = self.layout.query_both(living, self.layout.query_slice(number, pages))
                if count := _count_matches(searcher, page):
                    yield _stored_table(searcher, searcher.search(page, count, count=False).hits)

    def read_documents(self, keys: list[str]) -> pa.Table:
        """Return the documents with these ids that are not deleted."""
        if not keys:
            return STORED_DOCUMENTS.empty_table()
        searcher = self.index.searcher()
        with self._translate_errors():
            query = self.layout.query_living(self.layout.query_ids(keys))
            return _stored_table(searcher, searcher.search(query, len(keys), count=False).hits)

    def scan_ids(self) -> Iterator[pa.Table]:
        """Yield id, version and routing of all documents that are not deleted, page by page."""
        yield from self._read_ids(self.index.searcher(), self.layout.query_living())

    def find_ids(self, field: str, values: Sequence[str]) -> Iterator[pa.Table]:
        """Yield id, version and routing of the documents whose field has one of these values, page by page."""
        check_exact_field(field, self.fields, f"the index in {self._folder}")
        searcher = self.index.searcher()
        for first in range(0, len(values), _VALUES_PER_QUERY):
            some = values[first : first + _VALUES_PER_QUERY]
            wanted = self.layout.query_values(field, self.fields[field], some)
            yield from self._read_ids(searcher, self.layout.query_living(wanted))

    def _read_ids(self, searcher: tantivy.Searcher, query: tantivy.Query) -> Iterator[pa.Table]:
        """Yield id, version and routing of the documents that match; many are divided by their slices, so that no page
        needs memory for all of them.
        """
        with self._translate_errors():
            parts = -(-_count_matches(searcher, query) // _IDS_PER_PAGE)
            for part in range(parts):
                page = self.layout.query_both(query, self.layout.query_slice(part, parts)) if parts > 1 else query
                if count := _count_matches(searcher, page):
                    yield _ids_table(searcher, searcher.search(page, count, count=False).hits)

    def versions(self, keys: list[str]) -> NDArray[np.int64]:
        """Return the version stored for each id, tombstones included, by one query."""
        searcher = self.index.searcher()
        if not keys or not searcher.num_docs:
            return np.full(len(keys), UNSEEN, np.int64)
        hits = searcher.search(self.layout.query_ids(keys), len(keys), count=False).hits
        addresses = [address for _, address in hits]
        ids = [searcher.doc(address).get_first("_id") for address in addresses]
        held = dict(zip(ids, searcher.fast_field_values("_version", addresses), strict=True))
        return np.fromiter((held.get(key, UNSEEN) for key in keys), np.int64, len(keys))

    def _find_documents(self, query: tantivy.Query, limit: int) -> Iterator[tuple[float, tantivy.Document]]:
        """Yield the score and the document of the best matches of a query."""
        searcher = self.index.searcher()
        most = min(limit, searcher.num_docs)
        if most < 1:
            return
        with self._translate_errors():
            for score, address in searcher.search(query, most, count=False).hits:
                yield score, searcher.doc(address)

    @contextmanager
    def _translate_errors(self) -> Generator[None]:
        """Raise tantivy's errors as SinkErrors."""
        try:
            yield
        except (ValueError, OSError) as error:
            raise SinkError(f"the index in {self._folder} cannot be read: {error}") from error


def _stored_table(searcher: tantivy.Searcher, hits: Sequence[tuple[float, Any]]) -> pa.Table:
    """Return the documents at the addresses that a search found."""
    addresses = [address for _, address in hits]
    page = [searcher.doc(address) for address in addresses]
    columns = [
        pa.array([stored.get_first("_id") for stored in page], pa.string()),
        pa.array(searcher.fast_field_values("_version", addresses), pa.int64()),
        pa.array([stored.get_first("_routing") for stored in page], pa.binary()).cast(pa.string()),
        pa.array([stored.get_first("_source") for stored in page], pa.binary()).cast(pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=STORED_DOCUMENTS)


def _ids_table(searcher: tantivy.Searcher, hits: Sequence[tuple[float, Any]]) -> pa.Table:
    """Return id, version and routing of the documents that a search of tantivy found. A hit is a score and the address
    by which tantivy finds a stored document."""
    addresses = [address for _, address in hits]
    page = [searcher.doc(address) for address in addresses]
    columns = [
        pa.array([stored.get_first("_id") for stored in page], pa.string()),
        pa.array(searcher.fast_field_values("_version", addresses), pa.int64()),
        pa.array([stored.get_first("_routing") for stored in page], pa.binary()).cast(pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=DOCUMENT_IDS)


def _count_matches(searcher: tantivy.Searcher, query: tantivy.Query) -> int:
    """Return how many documents match a query."""
    return searcher.search(query, 1, count=True).count
