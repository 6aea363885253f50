"""Requests to one index of Elasticsearch or OpenSearch: JSON in and out, pages of a scroll, errors with what to do.

Invariant: an answer is checked before it is read; what the server cannot do now is a SinkUnavailableError.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

import pyarrow as pa

from penstock.errors import SinkError, SinkUnavailableError
from penstock.search import _json, bulk
from penstock.search.bulk import BulkOutcome
from penstock.search.delivery import HttpResponse, refusal_error
from penstock.search.index import DOCUMENT_IDS
from penstock.search.search_page import SearchPage, StoredHit, decode_multi_get, decode_page, stored_table

_IDS_PER_PAGE = 5000
_SCROLL = "10m"  # between two pages, while the caller works with one


class HttpTransport(Protocol):
    """What an index needs of an HTTP transport."""

    where: str

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = ..., *, is_repeatable: bool = True
    ) -> HttpResponse:
        """Send one request, and return the answer whatever its status; unless `is_repeatable`, at most once."""
        ...

    def close(self) -> None:
        """Close idle connections."""


class IndexRequests:
    """Sends requests about one index; `path` begins behind its name."""

    def __init__(self, transport: HttpTransport, index: str) -> None:
        self.transport = transport
        self.index = index
        self.where = f"index '{index}' at {transport.where}"

    def request(self, method: str, path: str = "", body: Any = None, content_type: str = "application/json") -> Any:
        """Send one request about the index, and return the answer whatever its status."""
        return self.transport.request(method, f"/{self.index}{path}", body, content_type)

    def request_json(self, method: str, path: str, request: Any = None) -> Any:
        """Send a request about the index, and return the JSON that it answers with."""
        return self._read_json(self.request(method, path, None if request is None else _json.dumps(request)))

    def check_answer(self, answer: HttpResponse) -> None:
        """Raise the error that an answer describes."""
        if answer.status < 300:
            return
        failure = bulk.read_refusal(answer.status, answer.content)
        if bulk.classify_outcome(failure.status, failure.type) is BulkOutcome.TRANSIENT:
            raise SinkUnavailableError(f"{self.where} cannot answer now: {failure}")
        raise refusal_error(self.where, failure)

    def scroll_ids(self, query: dict[str, Any]) -> Iterator[pa.Table]:
        """Yield id, version and routing of the documents that a query finds, page by page."""
        for page in self.scroll_pages({"size": _IDS_PER_PAGE, "query": query, "_source": False}):
            yield stored_table(page).select(DOCUMENT_IDS.names)

    def scroll_pages(self, request: dict[str, Any]) -> Iterator[list[StoredHit]]:
        """Yield what a search request finds in one consistent view, page by page. Scroll is the only way that both
        products spell alike.
        """
        start = f"/_search?scroll={_SCROLL}&allow_partial_search_results=false"
        body = _json.dumps({**request, "sort": ["_doc"], "version": True})
        answer = self._read_page(self.request("POST", start, body))
        scroll_id = answer.scroll_id
        try:
            while page := answer.hits.hits:
                yield page
                answer = self._read_page(self._request_scroll("POST", {"scroll": _SCROLL, "scroll_id": scroll_id}))
                scroll_id = answer.scroll_id
        finally:
            with suppress(SinkError):  # the server forgets it by itself
                self._request_scroll("DELETE", {"scroll_id": [scroll_id]})

    def fetch_documents(self, wanted: Sequence[tuple[str, str | None]]) -> list[StoredHit]:
        """Return the documents with these ids and routings as last written; those that do not exist are left out."""
        docs = [{"_id": name} | ({"routing": routing} if routing else {}) for name, routing in wanted]
        answer = self.request("POST", "/_mget", _json.dumps({"docs": docs}))
        self.check_answer(answer)
        fetched = decode_multi_get(answer.content).docs
        failed = next((document for document in fetched if bytes(document.error)), None)
        if failed is not None:
            raise refusal_error(self.where, bulk.read_failure(404, _json.loads(bytes(failed.error))))
        return [document for document in fetched if document.exists]

    def _request_scroll(self, method: str, request: dict[str, Any]) -> HttpResponse:
        """Send a request about a scroll, which belongs to no index; sent twice, it would skip a page."""
        return self.transport.request(method, "/_search/scroll", _json.dumps(request), is_repeatable=False)

    def _read_page(self, answer: HttpResponse) -> SearchPage:
        """Return a page of a scroll, or raise if a shard did not answer: the page would lack its documents."""
        self.check_answer(answer)
        page = decode_page(answer.content)
        if page.shards.failed:
            raise SinkUnavailableError(f"{self.where} cannot be listed now: {page.shards.failed} shards did not answer")
        return page

    def _read_json(self, answer: HttpResponse) -> Any:
        """Return the JSON of an answer, or raise the error that it describes."""
        self.check_answer(answer)
        return _json.loads(answer.content)
