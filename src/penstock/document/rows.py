"""What documents need of a database: reads of one moment, by column."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa

from penstock.binlog.values.column import DecodeOptions
from penstock.model import LogRequirement
from penstock.snapshot.source_rows import SelectQuery

# Dates are texts as the server prints them, as in the JSON of the stream.
DOCUMENT_DECODING = DecodeOptions(dates="text")


class DocumentRows(Protocol):
    """Reads rows of a database.

    with rows.open_view():
        table = rows.read(query)
    """

    requirement: LogRequirement | None  # what the database must have executed before a view is opened

    def open_view(self) -> AbstractContextManager[None]:
        """Return a context in which all reads see one moment: not older than the database's log was when it began."""
        ...

    def read(self, query: SelectQuery) -> pa.Table:
        """Return all rows of a SELECT."""
        ...

    def stream(self, query: SelectQuery) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a SELECT as they come; nothing else is read until the last."""
        ...
