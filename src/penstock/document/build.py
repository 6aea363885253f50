"""Documents from the source's rows: read back by key, in batches, and written as JSON text."""

import base64
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any, Protocol

from penstock.document.plan import DocumentPlan
from penstock.document.spec import JoinSpec
from penstock.errors import MissingExtraError

try:
    import orjson
except ImportError as error:
    raise MissingExtraError.for_extra("search", "building documents") from error

KEYS_PER_QUERY = 500
ROWS_PER_PAGE = 1000


class RowReader(Protocol):
    """What documents need of a database: plain reads, and a wait for visibility."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        """Return all rows of a plain SELECT."""
        ...

    def wait_until_visible(self) -> None:
        """Return when reads see everything that was in the database's log at the call."""
        ...


class DocumentBuilder:
    """Builds documents from the source's rows, read back by key in batches."""

    def __init__(self, plan: DocumentPlan, reader: RowReader) -> None:
        self._plan = plan
        self._reader = reader
        self._joins = [(name, join.columns) for name, join in plan.spec.joins.items()]

    def wait_until_visible(self) -> None:
        """Wait until documents that are built from now on include every change that the source's log has already."""
        self._reader.wait_until_visible()

    def build_documents(self, ids: Sequence[Any]) -> Iterator[tuple[str, str]]:
        """Yield id and JSON text of the documents whose root row exists and is searchable; the others are to be
        deleted.
        """
        for some in _split_chunks(ids, KEYS_PER_QUERY):
            sql, values = self._plan.select_by_id(len(some))
            yield from map(self._build_document, self._reader.rows(sql, [*some, *values]))

    def build_pages(self, rows_per_page: int = ROWS_PER_PAGE) -> Iterator[list[tuple[str, str]]]:
        """Yield all documents in the order of their ids, page by page."""
        last: Any = None
        while True:
            sql, values = self._plan.select_page(is_first=last is None)
            after = [] if last is None else [last]
            rows = self._reader.rows(sql, [*values, *after, rows_per_page])
            if not rows:
                return
            yield [self._build_document(row) for row in rows]
            last = rows[-1][0]

    def find_roots(self, join: JoinSpec, keys: Sequence[Any]) -> Iterator[Any]:
        """Yield the ids of the root rows that refer to these joined rows."""
        for some in _split_chunks(keys, KEYS_PER_QUERY):
            last: Any = None
            while True:
                sql = self._plan.select_roots(join, len(some), is_first=last is None)
                after = [] if last is None else [last]
                rows = self._reader.rows(sql, [*some, *after, ROWS_PER_PAGE])
                yield from (key for (key,) in rows)
                if len(rows) < ROWS_PER_PAGE:
                    break
                last = rows[-1][0]

    def _build_document(self, row: tuple[Any, ...]) -> tuple[str, str]:
        """Return id and JSON text of a row."""
        key, *values = row
        following = iter(values)
        document: dict[str, Any] = dict(zip(self._plan.spec.root.columns, following, strict=False))
        for name, columns in self._joins:
            joined = dict(zip(columns, islice(following, len(columns)), strict=True))
            document[name] = joined if next(following) is not None else None
        return str(key), orjson.dumps(document, default=_to_json_value).decode()


def _to_json_value(value: Any) -> Any:
    """Return a value that JSON has no type for as a text, always the same one."""
    if isinstance(value, Decimal):
        return orjson.Fragment(format(value, "f"))
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"a document cannot hold {type(value).__name__}")


def _split_chunks(values: Sequence[Any], size: int) -> Iterator[list[Any]]:
    """Yield the values in lists of at most this size."""
    for first in range(0, len(values), size):
        yield list(values[first : first + size])
