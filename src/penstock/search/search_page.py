"""Documents in the answers of Elasticsearch and OpenSearch, with their text as it was written.

Invariant: the text of a document is never parsed and written again, so that it can be compared byte by byte: both
products store and return it as they got it.
"""

from collections.abc import Sequence

import pyarrow as pa

from penstock.errors import MissingExtraError
from penstock.search.index import STORED_DOCUMENTS

try:
    from msgspec import Raw, Struct, field
    from msgspec.json import Decoder
except ImportError as error:
    raise MissingExtraError.for_extra("search", "reading documents") from error

__all__ = [
    "MultiGetAnswer",
    "SearchPage",
    "StoredHit",
    "decode_multi_get",
    "decode_page",
    "stored_table",
]


class StoredHit(Struct, frozen=True):
    """One document that a search returns; its text is empty where only ids were asked for."""

    id: str = field(name="_id")
    version: int = field(name="_version", default=0)
    routing: str | None = field(name="_routing", default=None)
    source: Raw = field(name="_source", default=Raw(b""))


class _Hits(Struct, frozen=True):
    """The hits of a page."""

    hits: list[StoredHit]


class _Shards(Struct, frozen=True):
    """The count of shards that did not answer."""

    failed: int


class SearchPage(Struct, frozen=True):
    """One page of a scroll."""

    shards: _Shards = field(name="_shards")
    hits: _Hits
    scroll_id: str = field(name="_scroll_id")


class _FetchedDocument(StoredHit, frozen=True):
    """One document of a multi-get, or why there is none."""

    exists: bool = field(name="found", default=False)
    error: Raw = Raw(b"")  # empty for none


class MultiGetAnswer(Struct, frozen=True):
    """The answer to a multi-get."""

    docs: list[_FetchedDocument]


decode_page = Decoder(SearchPage).decode
decode_multi_get = Decoder(MultiGetAnswer).decode


def stored_table(hits: Sequence[StoredHit]) -> pa.Table:
    """Return documents as a table of STORED_DOCUMENTS."""
    columns = [
        pa.array([hit.id for hit in hits], pa.string()),
        pa.array([hit.version for hit in hits], pa.int64()),
        pa.array([hit.routing for hit in hits], pa.string()),
        pa.array([bytes(hit.source) for hit in hits], pa.binary()).cast(pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=STORED_DOCUMENTS)
