"""An index on Elasticsearch or OpenSearch, by the parts of their HTTP interface that are the same.

Invariant: the server checks the versions (`external_gte`), and a write never creates an index: a bulk request to a
missing one would create it again without its mapping, so each request asks first whether it is there.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa

from penstock.errors import ConfigurationError, SinkUnavailableError
from penstock.search import _json, bulk, dsl, mapping
from penstock.search.bulk import BulkOutcome
from penstock.search.delivery import BulkSender, HttpResponse, RetryClock, RetryPolicy, refusal_error
from penstock.search.fields import check_fields, check_same_fields
from penstock.search.index import DOCUMENTS, FieldKind, Hit, Rejection, WriteReport
from penstock.search.operation import admit_operations
from penstock.search.question import parse_question
from penstock.search.transport import PooledTransport

log = logging.getLogger(__name__)

_PAGE = 1000
_MAX_HITS = 10_000  # index.max_result_window of both products
_SCROLL = "2m"
_NAME = re.compile(r"[^\s\\/*?\"<>|,#:A-Z._+-][^\s\\/*?\"<>|,#:A-Z]*")


class HttpTransport(Protocol):
    """What an index needs of an HTTP transport."""

    where: str

    def request(self, method: str, path: str, body: Any = None, content_type: str = ...) -> HttpResponse:
        """Send one request, and return the answer whatever its status."""
        ...

    def close(self) -> None:
        """Close idle connections."""


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
    ) -> None:
        if not _NAME.fullmatch(index):
            raise ConfigurationError(f"'{index}' is not the name of one index: lower case, no pattern, no list")
        self._transport = transport
        self._index = index
        self._where = f"index '{index}' at {transport.where}"
        self._sender = BulkSender(self._send_bulk, self._where, policy or RetryPolicy(), retry_clock or RetryClock())
        self._fields: dict[str, FieldKind] | None = None

    @classmethod
    def open(
        cls,
        url: str,
        index: str,
        *,
        timeout_s: float = 60.0,
        ca_certs: str | None = None,
        policy: RetryPolicy | None = None,
    ) -> Self:
        """Return the index at a server; `url` may carry user:password@ and a path. Certificates are verified,
        `ca_certs` names a file of them.
        """
        return cls(PooledTransport(url, timeout_s=timeout_s, ca_certs=ca_certs), index, policy)

    def __repr__(self) -> str:
        return f"HttpIndex({self._where})"

    def prepare(self, fields: Mapping[str, FieldKind]) -> None:
        """Create the index if it is missing, or check that it has these fields."""
        check_fields(fields)
        there = self._load_fields()
        if there is None:
            answer = self._transport.request("PUT", f"/{self._index}", _json.dumps(mapping.build_creation_body(fields)))
            if answer.status < 300:
                log.info("search index created index=%s", self._where)
                self._fields = dict(fields)
                return
            if b"resource_already_exists_exception" not in answer.content:
                self._check_answer(answer)
            there = self._load_fields() or {}
        check_same_fields(fields, there, self._where)
        self._retain_deletes()
        self._fields = _declared_kinds(there)

    def write(self, operations: pa.Table) -> WriteReport:
        """Apply operations by bulk requests."""
        batch = admit_operations(operations)
        if not len(batch.ids):
            return WriteReport(rejected=batch.rejected)
        answer = self._sender.deliver_operations(bulk.encode_operations(batch.ids, batch.versions, batch.documents))
        done = answer.outcomes == BulkOutcome.DONE
        deletes = batch.documents.is_null().to_numpy(zero_copy_only=False)
        refused = (Rejection(batch.ids[row].as_py(), str(failure)) for row, failure in answer.failures.items())
        return WriteReport(
            written=int(np.count_nonzero(done & ~deletes)),
            deleted=int(np.count_nonzero(done & deletes)),
            stale=int(np.count_nonzero(answer.outcomes == BulkOutcome.STALE)),
            rejected=(*batch.rejected, *refused),
        )

    def refresh(self) -> None:
        """Make everything written searchable."""
        self._request_json("POST", f"/{self._index}/_refresh?filter_path=_shards.failed")

    def search(self, text: str, limit: int = 10) -> list[Hit]:
        """Return the best matching documents for the text of a search box."""
        if limit < 1:
            return []
        fields = self._known_fields()
        request = {"query": dsl.build_query(parse_question(text, fields), fields), "size": min(limit, _MAX_HITS)}
        only = "filter_path=hits.hits._id,hits.hits._score,hits.hits._source"
        answer = self._request_json("POST", f"/{self._index}/_search?{only}", request)
        return [
            Hit(hit["_id"], hit.get("_score") or 0.0, hit.get("_source", {}))
            for hit in answer.get("hits", {}).get("hits", [])
        ]

    def get(self, id: str) -> dict[str, Any] | None:  # noqa: A002 - the word of both products
        """Return the document with this id; None if there is none."""
        (document,) = self._request_json("POST", f"/{self._index}/_mget", {"ids": [id]})["docs"]
        if "error" in document:
            raise refusal_error(self._where, bulk.read_failure(404, document["error"]))
        return document["_source"] if document["found"] else None

    def count(self) -> int:
        """Return how many documents a search can find."""
        return self._request_json("GET", f"/{self._index}/_count?filter_path=count")["count"]

    def documents(self) -> pa.Table:
        """Return all documents as a table."""
        batches = [
            pa.record_batch(
                [
                    pa.array([hit["_id"] for hit in page], pa.string()),
                    pa.array([hit["_version"] for hit in page], pa.int64()),
                    pa.array([_json.dumps(hit["_source"]) for hit in page], pa.binary()).cast(pa.string()),
                ],
                schema=DOCUMENTS,
            )
            for page in self._scroll_pages()
        ]
        return pa.Table.from_batches(batches, DOCUMENTS)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _scroll_pages(self) -> Iterator[list[dict[str, Any]]]:
        """Yield all documents of one consistent view, page by page. Scroll is the only way that both products spell
        alike.
        """
        request = {"size": _PAGE, "sort": ["_doc"], "version": True}
        start = f"/{self._index}/_search?scroll={_SCROLL}&allow_partial_search_results=false"
        answer = self._request_json("POST", start, request)
        try:
            while page := answer["hits"]["hits"]:
                yield page
                answer = self._request_json(
                    "POST", "/_search/scroll", {"scroll": _SCROLL, "scroll_id": answer["_scroll_id"]}
                )
        finally:
            self._request_json("DELETE", "/_search/scroll", {"scroll_id": [answer["_scroll_id"]]})

    def _known_fields(self) -> dict[str, FieldKind]:
        """Return the fields of the index that are declared."""
        if self._fields is None:
            there = self._load_fields()
            if there is None:
                return {}
            self._fields = _declared_kinds(there)
        return self._fields

    def _load_fields(self) -> dict[str, str] | None:
        """Return the fields of the index as the server has them; None if there is no index."""
        answer = self._transport.request("GET", f"/{self._index}/_mapping")
        if answer.status == 404:
            return None
        self._check_answer(answer)
        mappings: dict[str, Any] = _json.loads(answer.content)
        if len(mappings) != 1:
            raise ConfigurationError(
                f"{self._where} is an alias of {len(mappings)} indexes; name one of them: {sorted(mappings)}"
            )
        (only,) = mappings.values()
        return mapping.read_mapping(only["mappings"])

    def _retain_deletes(self) -> None:
        """Raise `gc_deletes` from the default of a minute; a value that somebody set is respected."""
        settings = self._request_json("GET", f"/{self._index}/_settings/index.gc_deletes?flat_settings=true")
        if not any(entry["settings"] for entry in settings.values()):
            self._request_json("PUT", f"/{self._index}/_settings", {"index.gc_deletes": mapping.GC_DELETES})

    def _send_bulk(self, body: memoryview) -> HttpResponse:
        """Send a bulk body, after checking that the index exists."""
        there = self._transport.request("HEAD", f"/{self._index}")
        if there.status == 404:
            return HttpResponse(404, b'{"error":{"type":"index_not_found_exception","reason":"no such index"}}')
        if there.status >= 300:
            return there
        path = f"/{self._index}/_bulk?filter_path={bulk.FILTER_PATH}"
        return self._transport.request("POST", path, body, "application/x-ndjson")

    def _request_json(self, method: str, path: str, request: Any = None) -> Any:
        """Send a request, and return the JSON that it answers with."""
        answer = self._transport.request(method, path, None if request is None else _json.dumps(request))
        self._check_answer(answer)
        return _json.loads(answer.content)

    def _check_answer(self, answer: HttpResponse) -> None:
        """Raise the error that an answer describes."""
        if answer.status < 300:
            return
        failure = bulk.read_refusal(answer.status, answer.content)
        if bulk.classify_outcome(failure.status, failure.type) is BulkOutcome.TRANSIENT:
            raise SinkUnavailableError(f"{self._where} cannot answer now: {failure}")
        raise refusal_error(self._where, failure)


def _declared_kinds(there: Mapping[str, str]) -> dict[str, FieldKind]:
    """Return the fields whose type is one of ours."""
    known = set(FieldKind)
    return {name: FieldKind(kind) for name, kind in there.items() if kind in known}
