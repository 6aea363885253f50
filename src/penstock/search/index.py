"""The one interface through which documents reach a search index.

Invariant: versions are external and only rise. An operation older than what the index holds for its id, deletes
included, changes nothing and is counted as stale; an equal or newer one is applied. So replaying a batch is harmless.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import pyarrow as pa

# One operation per document: a null document deletes.
OPERATIONS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("document", pa.string()),
    ]
)

# What `SearchIndex.documents` returns.
DOCUMENTS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("document", pa.string(), nullable=False),
    ]
)


class FieldKind(StrEnum):
    """The way in which a field of the document is searched; fields that are not declared are kept but not searched."""

    TEXT = "text"  # full text, found by the search box
    KEYWORD = "keyword"  # exact, case and all
    INTEGER = "integer"  # 64 bits, signed
    FLOAT = "float"
    BOOLEAN = "boolean"
    DATE = "date"  # ISO 8601 or MySQL's text, in UTC when no zone is given; a number is epoch milliseconds


@dataclass(frozen=True, slots=True)
class Rejection:
    """An operation that the index will never accept as it is."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class WriteReport:
    """What became of a batch: every operation is counted exactly once."""

    written: int = 0
    deleted: int = 0  # deletes applied, whether or not there was a document
    stale: int = 0
    rejected: tuple[Rejection, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """One document that a search found."""

    id: str
    score: float
    document: dict[str, Any]


class SearchIndex(Protocol):
    """A search index, whichever product holds it."""

    def prepare(self, fields: Mapping[str, FieldKind]) -> None:
        """Create the index if it is missing.

        Keys are paths into the document (`brand.name`, through objects and lists). An index that is there must have
        every one of them with the same kind, else ConfigurationError; what it has besides stays as it is.
        """
        ...

    def write(self, operations: pa.Table) -> WriteReport:
        """Apply a table of OPERATIONS whose ids are unique. Whatever was not applied is in the report or raised."""
        ...

    def refresh(self) -> None:
        """Make everything written searchable."""
        ...

    def search(self, text: str, limit: int = 10) -> list[Hit]:
        """Answer a search box: every word must match, the last one also as a prefix, over the TEXT fields;
        `field:value` narrows to one field. No text finds everything, and no text raises.
        """
        ...

    def get(self, id: str) -> dict[str, Any] | None:  # noqa: A002 - the word of both products
        """Return the document with this id as last written; None if there is none."""
        ...

    def count(self) -> int:
        """Return how many documents a search can find."""
        ...

    def documents(self) -> pa.Table:
        """Return everything a search can find, as a table of DOCUMENTS in no particular order."""
        ...

    def close(self) -> None:
        """Release connections and locks; a second call does nothing."""
        ...
