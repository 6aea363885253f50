r"""The `_bulk` protocol of Elasticsearch and OpenSearch as plain data: encode, cut, read the answer. No I/O.

Invariant: one entry of the encoded array is one whole operation, so any selection of entries, joined, is a valid body.

    {"index":{"_id":"7","version":12,"version_type":"external_gte"}}\n{"name":"lamp"}\n
    {"delete":{"_id":"8","version":12,"version_type":"external_gte","routing":"3"}}\n

The answer has one item per operation in the same order; a failed item has an `error`, a stale one status 409.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.errors import ProtocolError
from penstock.search import _json

# What is needed of an answer: without errors it is 30 bytes an item.
FILTER_PATH = "errors,items.*.status,items.*.error.type,items.*.error.reason,items.*.error.caused_by.reason"

_MAX_REASON_CHARS = 500
_TRANSIENT_STATUS = frozenset({408, 429, 502, 503, 504})
_TRANSIENT_TYPES = frozenset({"circuit_breaking_exception", "es_rejected_execution_exception"})
# Reasons that have nothing to do with the document, whatever their status.
_FATAL_TYPES = frozenset({"index_closed_exception", "index_not_found_exception", "security_exception"})


class BulkOutcome(IntEnum):
    """What the server did with one operation; PENDING until it has answered."""

    PENDING = 0
    DONE = 1
    STALE = 2
    TRANSIENT = 3
    REJECTED = 4
    FATAL = 5


@dataclass(frozen=True, slots=True)
class BulkFailure:
    """The reason why an operation, or a whole request, was not done."""

    status: int
    type: str
    reason: str

    def __str__(self) -> str:
        return f"HTTP {self.status} {self.type}: {self.reason}" if self.type else f"HTTP {self.status} {self.reason}"


@dataclass(frozen=True, slots=True)
class BulkAnswer:
    """The outcome of each operation of a request, and the failures by their index in it."""

    outcomes: NDArray[np.uint8]
    failures: dict[int, BulkFailure]


def encode_operations(
    ids: pa.StringArray,
    versions: NDArray[np.int64],
    documents: pa.StringArray,
    routings: pa.StringArray | None = None,
) -> pa.LargeStringArray:
    """Encode operations for the body of a bulk request, one text each. Documents are on one line, see
    `operation.admit_operations`."""
    quoted = _escape_texts(ids).cast(pa.large_string())
    numbers = pa.array(versions).cast(pa.large_string())
    tail: Any = pa.scalar(',"version_type":"external_gte"}}\n', pa.large_string())
    if routings is not None and routings.null_count < len(routings):
        routed = _escape_texts(routings).cast(pa.large_string())
        tail = pc.coalesce(_join_columns(',"version_type":"external_gte","routing":"', routed, '"}}\n'), tail)
    index = _join_columns(
        '{"index":{"_id":"', quoted, '","version":', numbers, tail, documents.cast(pa.large_string()), "\n"
    )
    if not documents.null_count:
        return index
    return pc.coalesce(index, _join_columns('{"delete":{"_id":"', quoted, '","version":', numbers, tail))


def _join_columns(*parts: Any) -> Any:
    """Join columns and constants value by value."""
    texts = [pa.scalar(part, pa.large_string()) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*texts, pa.scalar("", pa.large_string()))


def _escape_texts(texts: pa.StringArray) -> pa.StringArray:
    """Escape ids or routings as JSON strings."""
    if not pc.any(pc.match_substring_regex(texts, r'[\x00-\x1f"\\]')).as_py():
        return texts
    texts = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    for code in range(0x20):
        texts = pc.replace_substring(texts, chr(code), f"\\u{code:04x}")
    return texts


def operation_sizes(lines: pa.LargeStringArray) -> NDArray[np.int64]:
    """Return the size in bytes of each encoded bulk operation."""
    return pc.binary_length(lines).to_numpy(zero_copy_only=False)


def count_fitting(sizes_bytes: NDArray[np.int64], limit_bytes: int) -> int:
    """Return how many operations from the start fit into one bulk request of at most `limit_bytes`; one always
    does."""
    return max(1, int(np.searchsorted(np.cumsum(sizes_bytes), limit_bytes, side="right")))


def build_bulk_body(lines: pa.LargeStringArray, chosen: NDArray[np.int64]) -> memoryview:
    """Return the body of a bulk request with the chosen operations, without a copy if they are neighbours."""
    first, count = int(chosen[0]), chosen.size
    neighbours = int(chosen[-1]) - first + 1 == count
    part = lines.slice(first, count) if neighbours else lines.take(pa.array(chosen))
    _, offsets, data = part.buffers()
    bounds = np.frombuffer(offsets, np.int64)
    return memoryview(data)[bounds[part.offset] : bounds[part.offset + count]]


def classify_outcome(status: int, error_type: str) -> BulkOutcome:
    """Return the outcome of one operation of a bulk request, or of a request that was refused as a whole, by the HTTP
    status and the type of the error; an unknown error is fatal."""
    if status < 300 or (status == 404 and not error_type):  # a delete of what is not there keeps its version
        return BulkOutcome.DONE
    if status == 409:
        return BulkOutcome.STALE
    if error_type in _FATAL_TYPES:
        return BulkOutcome.FATAL
    if status in _TRANSIENT_STATUS or error_type in _TRANSIENT_TYPES:
        return BulkOutcome.TRANSIENT
    if status == 400:
        return BulkOutcome.REJECTED
    return BulkOutcome.FATAL


def read_answer(content: bytes, count: int) -> BulkAnswer:
    """Read the response to a bulk request of `count` operations; items are looked at only when some have failed."""
    try:
        answer: dict[str, Any] = _json.loads(content)
        if not answer["errors"]:
            return BulkAnswer(np.full(count, BulkOutcome.DONE, np.uint8), {})
        items: list[dict[str, dict[str, Any]]] = answer["items"]
    except (_json.JSONDecodeError, KeyError, TypeError) as error:
        raise ProtocolError(f"the answer to a bulk request is not one: {content[:200]!r}") from error
    if len(items) != count:
        raise ProtocolError(f"the answer to a bulk request of {count} operations has {len(items)} items")
    outcomes = np.empty(count, np.uint8)
    failures: dict[int, BulkFailure] = {}
    for number, item in enumerate(items):
        (result,) = item.values()
        failure = read_failure(result["status"], result.get("error"))
        outcomes[number] = outcome = classify_outcome(failure.status, failure.type)
        if outcome > BulkOutcome.STALE:
            failures[number] = failure
    return BulkAnswer(outcomes, failures)


def read_failure(status: int, error: Any) -> BulkFailure:
    """Read the `error` object of a response to an Elasticsearch or OpenSearch bulk request: of one item (operation) in
    it, or of the whole response."""
    if not isinstance(error, dict):
        return BulkFailure(status, "", str(error or "")[:_MAX_REASON_CHARS])
    details = cast("dict[str, Any]", error)
    cause: dict[str, Any] = details.get("caused_by") or {}
    reason = ": ".join(str(text) for text in (details.get("reason"), cause.get("reason")) if text)
    return BulkFailure(status, str(details.get("type") or "unknown"), reason[:_MAX_REASON_CHARS])


def read_refusal(status: int, content: bytes) -> BulkFailure:
    """Return the failure that an HTTP error response describes; a proxy may answer in HTML, or with nothing."""
    try:
        answer: Any = _json.loads(content)
    except _json.JSONDecodeError:
        return BulkFailure(status, "", content[:_MAX_REASON_CHARS].decode("utf-8", "replace"))
    return read_failure(status, cast("dict[str, Any]", answer).get("error") if isinstance(answer, dict) else answer)
