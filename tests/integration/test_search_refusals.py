"""Values that a real server refuses: each rejects its own document, and nothing else."""

import json
import secrets
from collections.abc import Iterator

import pytest

from penstock.search import FieldKind
from penstock.search.http import HttpIndex
from penstock.search.transport import PooledTransport
from tests.support.search_contract import CHAIR, LAMP, contents, table

FIELDS = {
    "name": FieldKind.TEXT,
    "sku": FieldKind.KEYWORD,
    "stock": FieldKind.INTEGER,
    "serial": FieldKind.UNSIGNED,
    "price": FieldKind.FLOAT,
    "is_new": FieldKind.BOOLEAN,
    "added": FieldKind.DATE,
    "maker.name": FieldKind.TEXT,
}

REFUSED = {
    "zero date": '{"added": "0000-00-00"}',
    "zero date and time": '{"added": "0000-00-00 00:00:00"}',
    "day that no month has": '{"added": "2024-02-30"}',
    "month zero": '{"added": "2024-00-10"}',
    "BIGINT UNSIGNED in a signed field": f'{{"stock": {2**63}}}',
    "number that no integer has": '{"stock": 1e400}',
    "number that no double has": '{"price": 1e400}',
    "not a number": '{"price": NaN}',
    "text in a number": '{"stock": "12 pieces"}',
    "number in a boolean": '{"is_new": 2}',
    "object in a value": '{"sku": {"a": 1}}',
    "value in an object": '{"maker": 7}',
    "cut off": '{"name": "lam',
    "control character": '{"name": "a\x01b"}',
    "bad escape": '{"name": "\\x"}',
    "half a surrogate pair": '{"name": "\\ud800"}',
    "upper case half of a surrogate pair": '{"name": "\\uD800"}',
    "no value": '{"name": }',
}
# Products and versions of them differ in what they take; the neighbours are what counts.
ODD = {
    "negative in an unsigned field": '{"serial": -1}',
    "too large for an unsigned field": f'{{"serial": {2**64}}}',
    "bytes behind the end": '{"name": "lamp"}}',
    "two documents": '{"name": "lamp"} {"name": "chair"}',
    "same key twice": '{"name": "lamp", "name": "chair"}',
    "carriage returns": '{"name":\r"a"\r}',
    "empty name of a field": '{"": 1}',
    "dots as the name of a field": '{"..": 1}',
    "deeper than any parser": f'{{"name": {"[" * 5000}{"]" * 5000}}}',
    "keyword longer than a term": json.dumps({"sku": "x" * 40_000}),
    "text longer than a term": json.dumps({"name": "x" * 40_000}),
}


@pytest.fixture(params=["opensearch", "elasticsearch"])
def index(request: pytest.FixtureRequest) -> Iterator[HttpIndex]:
    url, name = request.getfixturevalue(request.param).url, f"test-{secrets.token_hex(4)}"
    with HttpIndex.open(url, name) as index:
        index.prepare(FIELDS)
        yield index
    transport = PooledTransport(url)
    transport.request("DELETE", f"/{name}")
    transport.close()


@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "together"])
def test_each_refused_document_is_rejected_alone(index: HttpIndex, is_alone: bool) -> None:
    bad = [(f"bad {what}", 1, text) for what, text in REFUSED.items()]
    ids = [("", 1, "{}"), ("é" * 300, 1, "{}"), ("x" * 600, 1, None)]
    for number, some in enumerate([[document] for document in (*bad, *ids)] if is_alone else [[*bad, *ids]], start=1):
        report = index.write(table(("first", number, LAMP), *some, ("last", number, CHAIR), ("gone", number, None)))
        assert (report.written, report.deleted, report.stale) == (2, 1, 0)
        assert {item.id for item in report.rejected} == {key for key, _, _ in some}
        assert all(item.reason and item.version == 1 for item in report.rejected)
        index.refresh()
        assert contents(index) == {"first": (number, LAMP), "last": (number, CHAIR)}


@pytest.mark.parametrize("what", ODD)
def test_an_odd_document_leaves_its_neighbours_alone(index: HttpIndex, what: str) -> None:
    report = index.write(table(("first", 1, LAMP), ("odd", 1, ODD[what]), ("last", 1, CHAIR), ("gone", 1, None)))
    assert (report.written + len(report.rejected), report.deleted, report.stale) == (3, 1, 0)
    assert {item.id for item in report.rejected} <= {"odd"}
    index.refresh()
    assert {"first": (1, LAMP), "last": (1, CHAIR)}.items() <= contents(index).items()


@pytest.mark.parametrize("length", [600, 40_000])
def test_a_long_routing_leaves_its_neighbours_alone(index: HttpIndex, length: int) -> None:
    report = index.write(table(("first", 1, LAMP), ("odd", 1, CHAIR, "r" * length), ("last", 1, CHAIR)))
    assert report.written + len(report.rejected) == 3
    assert {item.id for item in report.rejected} <= {"odd"}
