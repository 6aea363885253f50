"""An index on Elasticsearch or OpenSearch, by the parts of their HTTP interface that are the same.

Invariant: the server checks the versions (`external_gte`), and a write never creates an index: a bulk request to a
missing one would create it again without its mapping, so each request asks first whether it is there.
"""

import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import ConfigurationError
from penstock.search import _json, bulk, dsl
from penstock.search.bulk import BulkOutcome
from penstock.search.delivery import BulkSender, HttpResponse, RetryClock, RetryPolicy
from penstock.search.fields import check_exact_field
from penstock.search.http_requests import HttpTransport, IndexRequests
from penstock.search.http_schema import IndexSchema
from penstock.search.index import DOCUMENTS, FieldKind, Hit, IndexLayout, WriteReport
from penstock.search.operation import AdmittedOperations, admit_operations
from penstock.search.question import parse_question
from penstock.search.search_page import stored_table
from penstock.search.transport import PooledTransport
from penstock.search.writer_term import WriterTerm

API_KEY_VARIABLE = "PENSTOCK_INDEX_API_KEY"
CA_VARIABLE = "PENSTOCK_INDEX_CA"
_PAGE = 1000
_VALUES_PER_QUERY = 10_000  # index.max_terms_count of both products is 65,536
_MAX_HITS = 10_000  # index.max_result_window of both products
_NAME = re.compile(r"[^\s\\/*?\"<>|,#:A-Z._+-][^\s\\/*?\"<>|,#:A-Z]*")


class HttpIndex:
    """A `SearchIndex` on Elasticsearch or OpenSearch. One writer at a time; other calls may run beside it.

    index = HttpIndex.open("http://127.0.0.1:9200", "product")
    index.prepare({"name": FieldKind.TEXT, "price": FieldKind.FLOAT})
    """

    def __init__(
        self,
        transport: HttpTransport,
        index: str,
        policy: RetryPolicy | None = None,
        retry_clock: RetryClock | None = None,
        term: WriterTerm | None = None,
    ) -> None:
        if not _NAME.fullmatch(index):
            raise ConfigurationError(f"'{index}' is not the name of one index: lower case, no pattern, no list")
        self._requests = IndexRequests(transport, index)
        self._schema = IndexSchema(self._requests)
        self._where = self._requests.where
        self._term = term
        self._sender = BulkSender(self._send_bulk, self._where, policy or RetryPolicy(), retry_clock or RetryClock())

    @classmethod
    def open(
        cls,
        url: str,
        index: str,
        *,
        timeout_s: float = 60.0,
        ca_certs: str | None = None,
        api_key: str | None = None,
        policy: RetryPolicy | None = None,
        stopped: threading.Event | None = None,
        term: WriterTerm | None = None,
    ) -> Self:
        """Return the index at a server; `url` may carry user:password@ and a path, and name several nodes divided by
        commas. Certificates are verified, `ca_certs` names a file of them, by default PENSTOCK_INDEX_CA. An API key is
        encoded, or `id:key`, by default PENSTOCK_INDEX_API_KEY. A write that waits for the server ends when `stopped`
        is set. With a `term`, nothing is written after it has ended, or in a later term of another process.
        """
        key = os.environ.get(API_KEY_VARIABLE) if api_key is None else api_key
        authority = (os.environ.get(CA_VARIABLE) if ca_certs is None else ca_certs) or None
        transport = PooledTransport(url, timeout_s=timeout_s, ca_certs=authority, api_key=key)
        return cls(transport, index, policy, RetryClock.stopped_by(stopped) if stopped else None, term)

    def __repr__(self) -> str:
        return f"HttpIndex({self._where})"

    def prepare(self, fields: Mapping[str, FieldKind], layout: IndexLayout | None = None) -> None:
        """Create the index if it is missing, or check that it has these fields."""
        self._require_term()
        self._schema.prepare(fields, layout or IndexLayout())
        if self._term is not None:
            self._schema.claim_term(self._term)

    def add_alias(self, alias: str) -> tuple[str, ...]:
        """Let an alias lead to this index unless it leads to another one; return to which indexes it leads then."""
        self._require_term()
        return self._schema.add_alias(alias)

    def find_owners(self, alias: str) -> tuple[str, ...]:
        """Return the names of the indexes to which an alias leads."""
        return self._schema.find_owners(alias)

    def check_alias(self, alias: str) -> None:
        """Raise ConfigurationError if `move_alias` could not move an alias."""
        self._schema.check_alias(alias)

    def move_alias(self, alias: str) -> tuple[str, ...]:
        """Let an alias lead to this index alone, in one step of the cluster; return to which indexes it led before."""
        self._require_term()
        return self._schema.move_alias(alias)

    def begin_load(self) -> None:
        """Turn refreshes and replicas off; what they were is remembered in the `_meta` of the mapping."""
        self._require_term()
        self._schema.begin_load()

    def end_load(self) -> None:
        """Give refreshes and replicas back their settings, and refresh."""
        self._require_term()
        self._schema.end_load()
        self.refresh()

    def claim_epoch(self, epoch: int) -> None:
        """Remember the epoch of the versions that will be written, in the `_meta` of the mapping; SinkError if the
        index has seen a higher one.
        """
        self._require_term()
        self._schema.claim_epoch(epoch)

    def remember_load(self, load_id: str) -> None:
        """Remember in the `_meta` of the mapping which load has filled the index."""
        self._require_term()
        self._schema.remember_load(load_id)

    def read_load_id(self) -> str:
        """Return the id of the load that has filled the index; empty if none has."""
        return self._schema.read_load_id()

    def write(self, operations: pa.Table) -> WriteReport:
        """Apply operations by bulk requests."""
        batch = admit_operations(operations)
        if not len(batch.ids):
            return WriteReport(rejected=batch.rejected)
        deletes = batch.documents.is_null().to_numpy(zero_copy_only=False)
        if not batch.has_repeated_ids:
            return self._deliver_operations(batch, deletes)
        # Two routings of one id may lead to the same shard, where a delete that is sent again would delete the document
        # that replaces it. So deletes are over before the first document is sent.
        removed = self._deliver_operations(batch.select(deletes), deletes[deletes])
        report = self._deliver_operations(batch.select(~deletes), deletes[~deletes])
        return WriteReport(
            report.written,
            removed.deleted,
            removed.stale + report.stale,
            (*batch.rejected, *removed.rejected, *report.rejected),
        )

    def refresh(self) -> None:
        """Make everything written searchable."""
        self._requests.request_json("POST", "/_refresh?filter_path=_shards.failed")

    def search(self, text: str, limit: int = 10) -> list[Hit]:
        """Return the best matching documents for the text of a search box."""
        if limit < 1:
            return []
        fields = self._schema.known_fields()
        request = {"query": dsl.build_query(parse_question(text, fields), fields), "size": min(limit, _MAX_HITS)}
        only = "filter_path=hits.hits._id,hits.hits._score,hits.hits._source"
        answer = self._requests.request_json("POST", f"/_search?{only}", request)
        return [
            Hit(hit["_id"], hit.get("_score") or 0.0, hit.get("_source", {}))
            for hit in answer.get("hits", {}).get("hits", [])
        ]

    def get(self, id: str, routing: str | None = None) -> dict[str, Any] | None:  # noqa: A002 - the word of both products
        """Return the document with this id and routing; None if there is none."""
        documents = self._requests.fetch_documents([(id, routing)])
        return _json.loads(bytes(documents[0].source)) if documents else None

    def count(self) -> int:
        """Return how many documents are visible to searches now, that is since the last refresh."""
        return self._requests.request_json("GET", "/_count?filter_path=count")["count"]

    def documents(self) -> pa.Table:
        """Return all documents as a table."""
        pages = [stored_table(page).select(DOCUMENTS.names) for page in self._requests.scroll_pages({"size": _PAGE})]
        return pa.concat_tables([DOCUMENTS.empty_table(), *pages])

    def scan_documents(self, part: int = 0, parts: int = 1) -> Iterator[pa.Table]:
        """Yield all documents, or one of several parts, page by page."""
        self.refresh()
        chosen = {"slice": {"id": part, "max": parts}} if parts > 1 else {}
        for page in self._requests.scroll_pages({"size": _PAGE, **chosen}):
            yield stored_table(page)

    def read_documents(self, wanted: Sequence[tuple[str, str | None]]) -> pa.Table:
        """Return the documents with these ids and routings, by a multi-get."""
        return stored_table(self._requests.fetch_documents(wanted) if wanted else [])

    def scan_ids(self) -> Iterator[pa.Table]:
        """Yield id, version and routing of every document, page by page."""
        self.refresh()
        yield from self._requests.scroll_ids({"match_all": {}})

    def find_ids(self, field: str, values: Sequence[str]) -> Iterator[pa.Table]:
        """Yield id, version and routing of every document whose field has one of these values."""
        check_exact_field(field, self._schema.known_fields(), self._where)
        nested = self._schema.find_nested(field)
        if not values:
            return
        self.refresh()
        for first in range(0, len(values), _VALUES_PER_QUERY):
            query: dict[str, Any] = {"terms": {field: list(values[first : first + _VALUES_PER_QUERY])}}
            yield from self._requests.scroll_ids({"nested": {"path": nested, "query": query}} if nested else query)

    def close(self) -> None:
        """Close the connections."""
        self._requests.transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _deliver_operations(self, batch: AdmittedOperations, deletes: NDArray[np.bool_]) -> WriteReport:
        """Send operations, of which `deletes` says which ones delete, and report on them and on the rejected ones."""
        if not len(batch.ids):
            return WriteReport(rejected=batch.rejected)
        lines = bulk.encode_operations(batch.ids, batch.versions, batch.documents, batch.routings)
        answer = self._sender.deliver_operations(lines)
        done = answer.outcomes == BulkOutcome.DONE
        return WriteReport(
            written=int(np.count_nonzero(done & ~deletes)),
            deleted=int(np.count_nonzero(done & deletes)),
            stale=int(np.count_nonzero(answer.outcomes == BulkOutcome.STALE)),
            rejected=(
                *batch.rejected,
                *(batch.reject(row, str(failure)) for row, failure in answer.failures.items()),
            ),
        )

    def _send_bulk(self, body: memoryview) -> HttpResponse:
        """Send a bulk body, after checking that the index exists, and that no later term has begun."""
        there = self._requests.request("HEAD") if self._term is None else self._schema.check_term(self._term)
        if there.status == 404:
            return HttpResponse(404, b'{"error":{"type":"index_not_found_exception","reason":"no such index"}}')
        if there.status >= 300:
            return there
        path = f"/_bulk?filter_path={bulk.FILTER_PATH}"
        self._require_term()  # as late as possible: this process may have been frozen since
        return self._requests.request("POST", path, body, "application/x-ndjson")

    def _require_term(self) -> None:
        """Raise FencedError if the term of this writer has ended."""
        if self._term is not None:
            self._term.require()
