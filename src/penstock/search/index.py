"""The one interface through which documents reach a search index.

Invariant: versions are external and only rise. An operation older than what the index holds for its id, deletes
included, changes nothing and is counted as stale; an equal or newer one is applied. So replaying a batch is harmless.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import pyarrow as pa

# One operation per id and routing: a null document deletes. A table without the column `routing` has none.
OPERATIONS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("document", pa.string()),
        pa.field("routing", pa.string()),
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

# What `SearchIndex.scan_ids` and `SearchIndex.find_ids` yield.
DOCUMENT_IDS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("routing", pa.string()),
    ]
)

# What `SearchIndex.scan_documents` yields, and `SearchIndex.read_documents` returns: each text as it was written.
STORED_DOCUMENTS = pa.schema([*DOCUMENT_IDS, pa.field("document", pa.string(), nullable=False)])


class FieldKind(StrEnum):
    """The way in which a field of the document is searched; fields that are not declared are kept but not searched."""

    TEXT = "text"  # full text, found by the search box
    KEYWORD = "keyword"  # exact, case and all
    INTEGER = "integer"  # 64 bits, signed
    UNSIGNED = "unsigned"  # 64 bits, from 0 up; a keyword where the server has no type for it
    FLOAT = "float"
    BOOLEAN = "boolean"
    DATE = "date"  # ISO 8601 or MySQL's text, in UTC when no zone is given; a number is epoch milliseconds


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """What an index is created with besides its fields. It counts for Elasticsearch and OpenSearch, and only when the
    index is created; an index that is there keeps its settings.
    """

    nested: frozenset[str] = frozenset()
    """Paths of arrays whose objects can be searched one by one."""
    mapping: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Parts of the mapping (`properties`, `dynamic`, …) that replace what is derived from the fields."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings of the index, with or without the leading `index`."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """An operation that the index will never accept as it is, with all that a later attempt needs."""

    id: str
    reason: str
    version: int = 0
    routing: str | None = None
    document: str | None = None  # None for a delete
    before_transform: bool = False  # the document is as it was before the transform of its spec


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

    def prepare(self, fields: Mapping[str, FieldKind], layout: IndexLayout | None = None) -> None:
        """Create the index if it is missing.

        Keys are paths into the document (`brand.name`, through objects and lists). An index that is there must have
        every one of them with the same kind, else ConfigurationError; what it has besides stays as it is.
        """
        ...

    def add_alias(self, alias: str) -> tuple[str, ...]:
        """Let an alias lead to this index unless it leads to another one; return the names of the indexes to which it
        leads then. For an index in a folder, it is a symbolic link beside the folder.
        """
        ...

    def find_owners(self, alias: str) -> tuple[str, ...]:
        """Return the names of the indexes to which an alias leads; none if there is no such alias."""
        ...

    def check_alias(self, alias: str) -> None:
        """Raise ConfigurationError if `move_alias` could not move an alias, because something else has its name, or
        because it leads to several indexes.
        """
        ...

    def move_alias(self, alias: str) -> tuple[str, ...]:
        """Let an alias lead to this index alone, from one moment to the next; return the names of the indexes to which
        it led before. ConfigurationError if an index has that name itself.
        """
        ...

    def begin_load(self) -> None:
        """Prepare for the load of very many documents: nothing is refreshed or copied to replicas until it ends."""
        ...

    def end_load(self) -> None:
        """Give the index back the settings that it had before `begin_load`, and make what was loaded searchable.
        Without `begin_load` before, it is a refresh.
        """
        ...

    def claim_epoch(self, epoch: int) -> None:
        """Remember the epoch of the versions that will be written; SinkError if the index has seen a higher one, which
        makes every write of this epoch stale.
        """
        ...

    def remember_load(self, load_id: str) -> None:
        """Remember which load has filled the index; it is forgotten when somebody deletes the index."""
        ...

    def read_load_id(self) -> str:
        """Return the id of the load that has filled the index; empty if none has."""
        ...

    def write(self, operations: pa.Table) -> WriteReport:
        """Apply a table of OPERATIONS, unique by id and routing. Whatever was not applied is in the report or raised.

        A document whose routing changes is a delete with the old routing and a document with the new one, both of the
        same version: deletes are applied first.
        """
        ...

    def refresh(self) -> None:
        """Make everything written searchable."""
        ...

    def search(self, text: str, limit: int = 10) -> list[Hit]:
        """Answer a search box: every word must match, the last one also as a prefix, over the TEXT fields;
        `field:value` narrows to one field. An empty text finds everything. Whatever the text is, it is not an error.
        """
        ...

    def get(self, id: str, routing: str | None = None) -> dict[str, Any] | None:  # noqa: A002 - the word of both products
        """Return the document with this id as last written; None if there is none, or none with this routing."""
        ...

    def count(self) -> int:
        """Return how many documents are visible to searches now, that is since the last refresh."""
        ...

    def documents(self) -> pa.Table:
        """Return everything a search can find, as a table of DOCUMENTS in no particular order."""
        ...

    def scan_ids(self) -> Iterator[pa.Table]:
        """Yield id, version and routing of every document written before the call, as tables of DOCUMENT_IDS in no
        particular order; memory does not grow with the index.
        """
        ...

    def scan_documents(self, part: int = 0, parts: int = 1) -> Iterator[pa.Table]:
        """Yield every document written before the call, as tables of STORED_DOCUMENTS in no particular order, or one
        of several parts of about the same size; memory does not grow with the index.
        """
        ...

    def read_documents(self, wanted: Sequence[tuple[str, str | None]]) -> pa.Table:
        """Return the documents with these ids and routings as last written, searchable or not, as a table of
        STORED_DOCUMENTS; those that do not exist are left out.
        """
        ...

    def find_ids(self, field: str, values: Sequence[str]) -> Iterator[pa.Table]:
        """Yield, as `scan_ids` does, the documents written before the call whose field has one of these values exactly.

        The field is declared, and not TEXT. Of very many values (more than 10,000), a document that has several may be
        yielded more than once.
        """
        ...

    def close(self) -> None:
        """Release connections and locks; a second call does nothing."""
        ...
