"""Bulk answers: each item is done, stale, to be sent again, rejected, or a reason to stop."""

import json

import pytest

from penstock.errors import ProtocolError
from penstock.search.bulk import BulkOutcome, classify_outcome, read_answer, read_refusal


@pytest.mark.parametrize(
    ("status", "error_type", "outcome"),
    [
        (200, "", BulkOutcome.DONE),
        (201, "", BulkOutcome.DONE),
        (404, "", BulkOutcome.DONE),
        (409, "version_conflict_engine_exception", BulkOutcome.STALE),
        (429, "es_rejected_execution_exception", BulkOutcome.TRANSIENT),
        (429, "circuit_breaking_exception", BulkOutcome.TRANSIENT),
        (429, "cluster_block_exception", BulkOutcome.TRANSIENT),
        (500, "circuit_breaking_exception", BulkOutcome.TRANSIENT),
        (502, "", BulkOutcome.TRANSIENT),
        (503, "unavailable_shards_exception", BulkOutcome.TRANSIENT),
        (504, "", BulkOutcome.TRANSIENT),
        (408, "", BulkOutcome.TRANSIENT),
        (400, "mapper_parsing_exception", BulkOutcome.REJECTED),
        (400, "document_parsing_exception", BulkOutcome.REJECTED),
        (400, "strict_dynamic_mapping_exception", BulkOutcome.REJECTED),
        (400, "illegal_argument_exception", BulkOutcome.REJECTED),
        (400, "index_closed_exception", BulkOutcome.FATAL),
        (401, "security_exception", BulkOutcome.FATAL),
        (403, "cluster_block_exception", BulkOutcome.FATAL),
        (404, "index_not_found_exception", BulkOutcome.FATAL),
        (302, "", BulkOutcome.FATAL),
        (418, "teapot_exception", BulkOutcome.FATAL),
        (500, "null_pointer_exception", BulkOutcome.FATAL),
    ],
)
def test_an_item_is_known_by_status_and_type(status: int, error_type: str, outcome: BulkOutcome) -> None:
    assert classify_outcome(status, error_type) is outcome


def test_without_errors_items_are_not_looked_at() -> None:
    answer = read_answer(b'{"errors":false,"items":"not even a list"}', 3)
    assert answer.outcomes.tolist() == [BulkOutcome.DONE] * 3
    assert answer.failures == {}


def test_with_errors_each_item_has_its_own_outcome() -> None:
    parse = {"type": "mapper_parsing_exception", "reason": "field [stock]", "caused_by": {"reason": "not a number"}}
    items = [
        {"index": {"status": 201}},
        {"index": {"status": 400, "error": parse}},
        {"delete": {"status": 404}},
        {"index": {"status": 409, "error": {"type": "version_conflict_engine_exception", "reason": "older"}}},
        {"index": {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "full"}}},
    ]
    answer = read_answer(json.dumps({"errors": True, "items": items}).encode(), 5)
    assert answer.outcomes.tolist() == [
        BulkOutcome.DONE,
        BulkOutcome.REJECTED,
        BulkOutcome.DONE,
        BulkOutcome.STALE,
        BulkOutcome.TRANSIENT,
    ]
    assert {number: str(failure) for number, failure in answer.failures.items()} == {
        1: "HTTP 400 mapper_parsing_exception: field [stock]: not a number",
        4: "HTTP 429 es_rejected_execution_exception: full",
    }


@pytest.mark.parametrize("content", [b"", b"<html>", b"[]", b"{}", b'{"errors":true,"items":[]}', b'{"errors":true}'])
def test_an_answer_that_is_none_is_refused(content: bytes) -> None:
    with pytest.raises(ProtocolError, match="bulk request"):
        read_answer(content, 1)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "HTTP 502 "),
        (b"<html>bad gateway", "HTTP 502 <html>bad gateway"),
        (b'{"error":"plain"}', "HTTP 502 plain"),
        (b'{"error":{"type":"x_exception","reason":"why"}}', "HTTP 502 x_exception: why"),
        (b"[1]", "HTTP 502 [1]"),
        (b"\xff" * 2000, "HTTP 502 " + "\ufffd" * 500),
    ],
)
def test_any_refusal_can_be_shown(content: bytes, text: str) -> None:
    assert str(read_refusal(502, content)) == text
