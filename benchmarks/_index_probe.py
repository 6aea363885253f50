"""Searches of `benchmarks/index.py`: what somebody who only searches sees of an index, on a server or in a folder.

Invariant: a search on a server never refreshes the index; what it finds, the index has refreshed by itself.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from penstock.search.embedded import EmbeddedIndex
from penstock.search.http_requests import IndexRequests
from penstock.search.transport import PooledTransport

_MOST_HITS = 10_000


class SearchProbe(Protocol):
    """Finds documents by their mark, or by another field."""

    def find_products(self, marks: Sequence[int]) -> list[int]:
        """Return the keys of products that have one of these marks, which rise; others between them may be among
        them."""
        ...

    def count(self, field: str, value: str) -> int:
        """Return how many documents have this value."""
        ...

    def close(self) -> None:
        """Close what is open."""


class HttpProbe:
    """Searches an index of a search server."""

    def __init__(self, url: str, index: str) -> None:
        self._transport = PooledTransport(url)
        self._requests = IndexRequests(self._transport, index)

    def find_products(self, marks: Sequence[int]) -> list[int]:
        """Search for a range of marks."""
        query = {"range": {"mark": {"gte": marks[0], "lte": marks[-1]}}}
        request = {"query": query, "_source": False, "size": _MOST_HITS, "track_total_hits": False}
        answer = self._requests.request_json("POST", "/_search?filter_path=hits.hits._id", request)
        return [int(hit["_id"]) for hit in answer.get("hits", {}).get("hits", [])]

    def count(self, field: str, value: str) -> int:
        """Count the documents with a term."""
        return self._requests.request_json("POST", "/_count", {"query": {"term": {field: value}}})["count"]

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()


class EmbeddedProbe:
    """Searches an embedded index that another process writes."""

    def __init__(self, folder: Path) -> None:
        self._index = EmbeddedIndex.open(folder, read_only=True)

    def find_products(self, marks: Sequence[int]) -> list[int]:
        """Search for these marks in the last commit of the writer."""
        return [
            int(key)
            for page in self._index.find_ids("mark", [str(mark) for mark in marks])
            for key in page.column("id").to_pylist()
        ]

    def count(self, field: str, value: str) -> int:
        """Count the documents with a term."""
        return sum(page.num_rows for page in self._index.find_ids(field, [value]))

    def close(self) -> None:
        """Close the index."""
        self._index.close()
