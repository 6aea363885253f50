"""OpenSearch and Elasticsearch keep the contract of every index, and fail in the ways the adapter knows."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.errors import ConfigurationError, FencedError, SinkError, SinkUnavailableError
from penstock.search import FieldKind, IndexLayout, WriteReport
from penstock.search.delivery import RetryPolicy
from penstock.search.http import HttpIndex
from penstock.search.writer_term import WriterTerm
from tests.support.routing_contract import RoutingContract
from tests.support.search_contract import CHAIR, FIELDS, LAMP, SearchIndexContract, contents, listed, table, write
from tests.support.search_server import Server


@pytest.fixture(params=["opensearch", "elasticsearch"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    server = Server(request.getfixturevalue(request.param).url)
    yield server
    server.transport.request("DELETE", f"/{server.name}?ignore_unavailable=true")
    server.transport.close()


@pytest.fixture
def index(server: Server) -> Iterator[HttpIndex]:
    with server.open() as index:
        index.prepare(FIELDS)
        yield index


class TestHttpIndex(SearchIndexContract):
    """The contract, on each product."""


class TestRouting(RoutingContract):
    """Routings and lists of ids, on each product, with one shard and with several."""

    @pytest.fixture(params=[1, 5])
    def index(self, server: Server, request: pytest.FixtureRequest) -> Iterator[HttpIndex]:
        with server.open() as index:
            index.prepare(FIELDS, IndexLayout(settings={"number_of_shards": request.param}))
            yield index


def test_the_mapping_is_explicit_and_deletes_are_kept(server: Server, index: HttpIndex) -> None:
    (state,) = server.ask("GET").values()
    assert str(state["mappings"]["dynamic"]).lower() == "false"
    assert state["mappings"]["properties"]["brand"]["properties"]["name"] == {"type": "text"}
    assert state["settings"]["index"]["gc_deletes"] == "1h"
    write(index, ("1", 1, {"undeclared": {"deep": [1, "x"]}}))
    (after,) = server.ask("GET").values()
    assert after["mappings"] == state["mappings"]


def test_the_epoch_lies_in_the_mapping_beside_what_others_keep_there(server: Server, index: HttpIndex) -> None:
    server.ask("PUT", "/_mapping", {"_meta": {"team": "shop", "penstock": {"note": 1}}})
    (before,) = server.ask("GET", "/_mapping").values()
    index.claim_epoch(7)
    (after,) = server.ask("GET", "/_mapping").values()
    assert after["mappings"].pop("_meta") == {"team": "shop", "penstock": {"note": 1, "epoch": 7}}
    del before["mappings"]["_meta"]
    assert after == before
    with server.open() as other, pytest.raises(SinkError, match="epoch 7"):
        other.claim_epoch(6)
    server.ask("DELETE")
    with pytest.raises(SinkError, match="index_not_found"):
        index.claim_epoch(8)


def test_of_two_writers_the_one_of_the_older_term_is_refused_before_it_writes(server: Server, index: HttpIndex) -> None:
    def open_in_term(number: int) -> HttpIndex:
        return HttpIndex.open(server.url, server.name, term=WriterTerm("shop", number, lambda: None))

    index.claim_epoch(7)
    with open_in_term(3) as older, open_in_term(4) as newer:
        older.prepare(FIELDS)
        assert write(older, ("1", 1, LAMP)) == WriteReport(written=1)
        newer.prepare(FIELDS)
        (state,) = server.ask("GET", "/_mapping").values()
        assert state["mappings"]["_meta"] == {"penstock": {"epoch": 7, "terms": {"shop": 4}}}
        with pytest.raises(FencedError, match=r"written in term 4 of pipeline 'shop', and this is term 3"):
            write(older, ("2", 9, CHAIR))
        with pytest.raises(FencedError, match="this is term 3"):
            older.prepare(FIELDS)
        # Whoever replaces what the mapping remembers, the next write of the newer one brings it back.
        server.ask("PUT", "/_mapping", {"_meta": {"penstock": {"epoch": 7, "terms": {"shop": 3, "other": 9}}}})
        assert write(newer, ("3", 1, LAMP)) == WriteReport(written=1)
        with pytest.raises(FencedError, match="term 4"):
            write(older, ("2", 9, CHAIR))
    index.refresh()
    assert contents(index).keys() == {"1", "3"}


@pytest.mark.parametrize(("own", "then"), [(None, "1h"), ("2h", "2h")])
def test_an_index_made_by_hand_is_taken_as_it_is(server: Server, own: str | None, then: str) -> None:
    settings = {"gc_deletes": own} if own else {}
    properties = {
        "name": {"type": "text", "analyzer": "keyword"},
        "stock": {"type": "short"},
        "place": {"type": "geo_point"},
    }
    server.ask("PUT", body={"settings": {"index": settings}, "mappings": {"properties": properties}})
    with server.open() as index:
        index.prepare({"name": FieldKind.TEXT, "stock": FieldKind.INTEGER})
        assert write(index, ("1", 1, {"name": "lamp", "stock": 3})) == WriteReport(written=1)
        assert [hit.id for hit in index.search("lam stock:3")] == ["1"]
        with pytest.raises(ConfigurationError, match="'place' is geo_point, declared text"):
            index.prepare({"place": FieldKind.TEXT})
    (state,) = server.ask("GET").values()
    assert state["settings"]["index"]["gc_deletes"] == then


def test_an_alias_of_two_indexes_is_refused(server: Server) -> None:
    for suffix in ("-a", "-b"):
        server.ask("PUT", suffix, {"aliases": {server.name: {}}})
    try:
        with server.open() as index, pytest.raises(ConfigurationError, match="alias of 2"):
            index.prepare(FIELDS)
    finally:
        for suffix in ("-a", "-b"):
            server.ask("DELETE", suffix)


def test_a_reader_needs_no_preparation(server: Server, index: HttpIndex) -> None:
    write(index, ("1", 1, LAMP))
    with server.open() as reader:
        assert [hit.id for hit in reader.search("tele stock:7")] == ["1"]


def test_a_missing_index_is_not_made_by_a_write(server: Server, index: HttpIndex) -> None:
    server.ask("DELETE")
    with pytest.raises(SinkError, match=f"index '{server.name}' at .*404 index_not_found.*preparing"):
        index.write(table(("1", 1, LAMP)))
    for question in (index.count, index.refresh, index.documents, lambda: index.get("1"), lambda: index.search("x")):
        with pytest.raises(SinkError, match="index_not_found"):
            question()
    assert server.transport.request("HEAD", f"/{server.name}").status == 404


def test_a_blocked_index_says_so_at_once(server: Server, index: HttpIndex) -> None:
    server.ask("PUT", "/_settings", {"index.blocks.write": True})
    with pytest.raises(SinkError, match=r"403 cluster_block_exception.*index\.blocks") as caught:
        index.write(table(("1", 1, LAMP)))
    assert not caught.value.transient


def test_a_closed_index_says_so_at_once(server: Server, index: HttpIndex) -> None:
    server.ask("POST", "/_close")
    with pytest.raises(SinkError, match=r"index_closed_exception.*Open the index"):
        index.write(table(("1", 1, LAMP)))


def test_a_full_disk_is_waited_for(server: Server, index: HttpIndex) -> None:
    """What the server does by itself at the flood stage, and takes back when there is room."""
    write(index, ("1", 1, LAMP))
    server.ask("PUT", "/_settings", {"index.blocks.read_only_allow_delete": True})
    with server.open(deadline_s=0.3) as hasty, pytest.raises(SinkUnavailableError, match="429 cluster_block") as caught:
        hasty.write(table(("2", 1, CHAIR), ("1", 2, None)))
    assert caught.value.transient
    server.ask("PUT", "/_settings", {"index.blocks.read_only_allow_delete": None})
    assert write(index, ("2", 1, CHAIR), ("1", 2, None)) == WriteReport(written=1, deleted=1)
    assert contents(index) == {"2": (1, CHAIR)}


def test_a_large_batch_is_cut_by_bytes(server: Server, index: HttpIndex) -> None:
    rows = [(str(row), 1, {"name": f"thing {row}", "padding": "x" * 1000}) for row in range(300)]
    with server.open(bulk_bytes=20_000) as small:
        assert write(small, *rows) == WriteReport(written=300)
    assert index.count() == 300


def test_a_node_that_is_down_is_passed_over(server: Server, index: HttpIndex) -> None:
    with HttpIndex.open(f"http://127.0.0.1:9,{server.url}", server.name, policy=RetryPolicy(deadline_s=0.0)) as other:
        assert write(other, ("1", 1, LAMP)) == WriteReport(written=1)
        assert listed(other.scan_ids()) == [("1", 1, None)]
    assert index.get("1") == LAMP


def test_nobody_there_is_transient() -> None:
    with HttpIndex.open("http://me:secret@127.0.0.1:9", "things", policy=RetryPolicy(deadline_s=0.2)) as index:
        with pytest.raises(SinkUnavailableError, match=r"http://127.0.0.1:9") as caught:
            index.write(table(("1", 1, LAMP)))
        assert "secret" not in str(caught.value)
        with pytest.raises(SinkUnavailableError):
            index.count()


@pytest.mark.opensearch
def test_a_server_with_little_room_gets_smaller_pieces(private_server: Any) -> None:
    limits = {"http.max_content_length": "1mb", "indexing_pressure.memory.limit": "400kb"}
    server = Server(private_server("opensearch", options=limits).url)
    rows = [(str(row), 1, {"name": f"thing {row}", "padding": "x" * 10_000}) for row in range(500)]
    with server.open(first_delay_s=0.01) as index:
        index.prepare(FIELDS)
        report = write(index, *rows, ("huge", 1, {"padding": "x" * 2_000_000}))
        assert (report.written, report.stale) == (500, 0)
        assert [(rejection.id, "more than the server takes" in rejection.reason) for rejection in report.rejected] == [
            ("huge", True)
        ]
        assert index.count() == 500
    server.transport.close()


@pytest.mark.opensearch
def test_a_server_that_dies_and_returns_has_every_batch(private_server: Any) -> None:
    service = private_server("opensearch")
    server = Server(service.url)
    with server.open(deadline_s=None) as index:
        index.prepare(FIELDS)
        # A lone node is never green with a replica to place, and green is what its start waits for.
        server.ask("PUT", "/_settings", {"index.number_of_replicas": 0})
        assert write(index, ("1", 1, LAMP)) == WriteReport(written=1)
        service.kill()
        with server.open(deadline_s=0.2) as hasty, pytest.raises(SinkUnavailableError):
            hasty.write(table(("2", 1, CHAIR)))
        service.start()
        assert write(index, ("2", 1, CHAIR), ("1", 0, CHAIR)) == WriteReport(written=1, stale=1)
        assert contents(index) == {"1": (1, LAMP), "2": (1, CHAIR)}
    server.transport.close()
