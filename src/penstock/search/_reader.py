"""Questions to the last commit of an embedded index.

Invariant: nothing here changes the index, and tombstones are seen by `versions` and `tombstones_until` only.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import SinkError
from penstock.search import _json
from penstock.search._tantivy import Layout, tantivy
from penstock.search.index import DOCUMENTS, FieldKind, Hit
from penstock.search.question import understand

UNSEEN = -1  # below every version
_PAGE = 10_000


class Reader:
    """An opened tantivy index; makes it when it is not there. Free to use from several threads."""

    def __init__(self, folder: Path, fields: dict[str, FieldKind]) -> None:
        self._folder = folder
        self.fields = fields
        self.layout = Layout(fields)
        with self._errors():
            self.index = tantivy.Index(self.layout.schema, path=str(folder))
            self.layout.register(self.index)
            self.index.reload()

    def reload(self) -> None:
        """See what has been committed until now, by whatever process."""
        with self._errors():
            self.index.reload()

    def search(self, text: str, limit: int) -> list[Hit]:
        question = self.layout.question(understand(text, self.fields))
        return [
            Hit(str(stored.get_first("_id")), score, _json.loads(stored.get_first("_source") or b""))
            for score, stored in self._find(question, limit)
        ]

    def get(self, key: str) -> dict[str, Any] | None:
        for _, stored in self._find(self.layout.living(self.layout.with_ids([key])), 1):
            return _json.loads(stored.get_first("_source") or b"")
        return None

    def count(self) -> int:
        searcher = self.index.searcher()
        return searcher.num_docs - _count(searcher, self.layout.tombstones())

    def tombstones_until(self, moment_s: int) -> int:
        return _count(self.index.searcher(), self.layout.tombstones_until(moment_s))

    def documents(self) -> pa.Table:
        """Addresses are found at once, documents are read and packed page by page."""
        batches: list[pa.RecordBatch] = []
        with self._errors():
            searcher = self.index.searcher()
            found = searcher.search(self.layout.living(), max(1, searcher.num_docs), count=False).hits
            for start in range(0, len(found), _PAGE):
                addresses = [address for _, address in found[start : start + _PAGE]]
                page = [searcher.doc(address) for address in addresses]
                columns = [
                    pa.array([stored.get_first("_id") for stored in page], pa.string()),
                    pa.array(searcher.fast_field_values("_version", addresses), pa.int64()),
                    pa.array([stored.get_first("_source") for stored in page], pa.binary()).cast(pa.string()),
                ]
                batches.append(pa.record_batch(columns, schema=DOCUMENTS))
        return pa.Table.from_batches(batches, DOCUMENTS)

    def versions(self, keys: list[str]) -> NDArray[np.int64]:
        """The version held for each id, tombstones included, by one query."""
        searcher = self.index.searcher()
        if not keys or not searcher.num_docs:
            return np.full(len(keys), UNSEEN, np.int64)
        hits = searcher.search(self.layout.with_ids(keys), len(keys), count=False).hits
        addresses = [address for _, address in hits]
        ids = [searcher.doc(address).get_first("_id") for address in addresses]
        held = dict(zip(ids, searcher.fast_field_values("_version", addresses), strict=True))
        return np.fromiter((held.get(key, UNSEEN) for key in keys), np.int64, len(keys))

    def _find(self, query: tantivy.Query, limit: int) -> Iterator[tuple[float, tantivy.Document]]:
        searcher = self.index.searcher()
        most = min(limit, searcher.num_docs)
        if most < 1:
            return
        with self._errors():
            for score, address in searcher.search(query, most, count=False).hits:
                yield score, searcher.doc(address)

    @contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except (ValueError, OSError) as error:
            raise SinkError(f"the index in {self._folder} cannot be read: {error}") from error


def _count(searcher: tantivy.Searcher, query: tantivy.Query) -> int:
    return searcher.search(query, 1, count=True).count
