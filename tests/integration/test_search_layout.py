"""How an index is created on real servers: nested objects, given mappings and settings, unsigned integers."""

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.errors import ConfigurationError, SinkError
from penstock.search import FieldKind, IndexLayout
from penstock.search.http import HttpIndex
from penstock.search.mapping import build_creation_body
from penstock.search.transport import PooledTransport
from tests.support.search_contract import listed, search_ids, table, write

FIELDS = {
    "name": FieldKind.TEXT,
    "serial": FieldKind.UNSIGNED,
    "lines.sku": FieldKind.KEYWORD,
    "lines.note": FieldKind.TEXT,
    "lines.parts.code": FieldKind.KEYWORD,
}
NESTED = IndexLayout(nested=frozenset({"lines", "lines.parts"}))
ORDER = {
    "name": "first order",
    "lines": [
        {"sku": "lamp", "note": "broken glass", "parts": [{"code": "L1"}, {"code": "L2"}]},
        {"sku": "chair", "note": "ok", "parts": [{"code": "C1"}]},
    ],
}


class Server:
    """A search server and the name of one index on it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = f"test-{secrets.token_hex(4)}"
        self.transport = PooledTransport(url)

    def ask(self, method: str, path: str = "", body: Any = None) -> Any:
        answer = self.transport.request(method, f"/{self.name}{path}", body and json.dumps(body))
        assert answer.status < 300, answer
        return json.loads(answer.content)

    def count(self, query: dict[str, Any]) -> int:
        return self.ask("POST", "/_count", {"query": query})["count"]


@pytest.fixture(params=["opensearch", "elasticsearch"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    server = Server(request.getfixturevalue(request.param).url)
    yield server
    server.transport.request("DELETE", f"/{server.name}?ignore_unavailable=true")
    server.transport.close()


@pytest.fixture
def index(server: Server) -> Iterator[HttpIndex]:
    with HttpIndex.open(server.url, server.name) as index:
        yield index


def pair(sku: str, note: str) -> dict[str, Any]:
    """Return the query for a sku and a note; of plain objects any sku goes with any note."""
    return {"bool": {"filter": [{"term": {"lines.sku": sku}}, {"match": {"lines.note": note}}]}}


def test_objects_of_an_array_are_plain_by_default(server: Server, index: HttpIndex) -> None:
    index.prepare(FIELDS)
    write(index, ("1", 1, ORDER))
    assert server.count(pair("lamp", "ok")) == 1
    assert listed(index.find_ids("lines.parts.code", ["L2", "x"])) == [("1", 1, None)]
    with pytest.raises(ConfigurationError, match=r"lines, lines\.parts are plain objects, declared nested"):
        index.prepare(FIELDS, NESTED)


def test_nested_objects_are_searched_one_by_one(server: Server, index: HttpIndex) -> None:
    index.prepare(FIELDS, NESTED)
    index.prepare(FIELDS, NESTED)
    write(index, ("1", 1, ORDER, "fr"), ("2", 1, {"name": "empty", "lines": []}))
    for sku, note, count in (("lamp", "ok", 0), ("lamp", "broken", 1)):
        assert server.count({"nested": {"path": "lines", "query": pair(sku, note)}}) == count
    assert index.count() == 2
    assert listed(index.scan_ids()) == [("1", 1, "fr"), ("2", 1, None)]
    for field, value in (("lines.sku", "chair"), ("lines.parts.code", "L2")):
        assert listed(index.find_ids(field, [value, "x"])) == [("1", 1, "fr")]
    assert search_ids(index, "first glass lines.sku:chair") == {"1"}
    assert write(index, ("1", 2, {"lines": [{"sku": "sofa"}]}, "fr")).written == 1
    assert listed(index.find_ids("lines.sku", ["chair"])) == []


def test_nested_objects_of_an_index_made_by_hand_are_found(server: Server, index: HttpIndex) -> None:
    """Without `include_in_root` only a nested query finds them."""
    plain = {"type": "nested", "include_in_root": False}
    given = {"properties": {"lines": {**plain, "properties": {"parts": plain}}}}
    body = build_creation_body(FIELDS, IndexLayout(NESTED.nested, given), has_unsigned=False)
    assert body["mappings"]["properties"]["lines"]["properties"]["parts"]["include_in_root"] is False
    server.ask("PUT", body=body)
    write(index, ("1", 1, ORDER))
    for field, value in (("lines.sku", "chair"), ("lines.parts.code", "L2")):
        assert server.count({"term": {field: value}}) == 0
        assert listed(index.find_ids(field, [value])) == [("1", 1, None)]


def test_given_mapping_and_settings_win_and_are_taken_again(server: Server, index: HttpIndex) -> None:
    layout = IndexLayout(
        mapping={"properties": {"name": {"type": "keyword"}, "place": {"type": "geo_point"}}},
        settings={"number_of_shards": 3, "index": {"gc_deletes": "2h"}, "refresh_interval": "100ms"},
    )
    for _ in range(2):
        index.prepare(FIELDS, layout)
    (state,) = server.ask("GET").values()
    assert state["mappings"]["properties"]["name"] == {"type": "keyword"}
    assert state["mappings"]["properties"]["place"] == {"type": "geo_point"}
    settings = state["settings"]["index"]
    assert (settings["number_of_shards"], settings["gc_deletes"], settings["refresh_interval"]) == ("3", "2h", "100ms")
    with pytest.raises(ConfigurationError, match="'name' is keyword, declared text"):
        index.prepare(FIELDS)


@pytest.mark.parametrize(("present", "kept"), [(None, "1h"), ("1h", "1h"), ("45m", "45m"), ("3d", "3d")])
def test_an_index_that_is_there_keeps_its_deletes(
    server: Server, index: HttpIndex, present: str | None, kept: str
) -> None:
    server.ask("PUT", body={"settings": {"index.gc_deletes": present} if present else {}})
    server.ask("PUT", "/_mapping", {"properties": {"name": {"type": "text"}}})
    for _ in range(2):
        index.prepare({"name": FieldKind.TEXT}, IndexLayout(settings={"gc_deletes": "9h"}))
        (state,) = server.ask("GET", "/_settings").values()
        assert state["settings"]["index"]["gc_deletes"] == kept


def test_unsigned_integers_have_the_best_type_of_the_server(server: Server, index: HttpIndex) -> None:
    index.prepare(FIELDS)
    (state,) = server.ask("GET", "/_mapping").values()
    kind = state["mappings"]["properties"]["serial"]["type"]
    probe = {"mappings": {"properties": {"a": {"type": "unsigned_long"}}}}
    has_type = server.transport.request("PUT", f"/{server.name}-probe", json.dumps(probe)).status < 300
    server.transport.request("DELETE", f"/{server.name}-probe?ignore_unavailable=true")
    assert kind == ("unsigned_long" if has_type else "keyword")
    write(index, ("1", 1, {"serial": 2**64 - 1}), ("2", 1, {"serial": 7}))
    index.prepare(FIELDS)
    assert (search_ids(index, f"serial:{2**64 - 1}"), search_ids(index, "serial:007")) == ({"1"}, {"2"})


def test_an_alias_leads_to_the_first_index_that_asks_for_it(server: Server, index: HttpIndex) -> None:
    alias = f"{server.name}-alias"
    index.prepare(FIELDS)
    assert index.add_alias(alias) == (server.name,)
    assert index.add_alias(alias) == (server.name,)
    write(index, ("1", 7, ORDER))
    index.refresh()
    with HttpIndex.open(server.url, alias) as by_alias:
        assert by_alias.count() == 1
    with HttpIndex.open(server.url, f"{server.name}-2") as other:
        other.prepare(FIELDS)
        assert other.add_alias(alias) == (server.name,), "it is left where it leads to"
        with pytest.raises(SinkError, match="alias"):
            other.add_alias(server.name)
        server.transport.request("DELETE", f"/{server.name}-2")


def test_an_alias_is_moved_in_one_step_and_keeps_its_filter(server: Server, index: HttpIndex) -> None:
    alias = f"{server.name}-alias"
    index.prepare(FIELDS)
    body = {"actions": [{"add": {"index": server.name, "alias": alias, "filter": {"term": {"serial": 7}}}}]}
    assert server.transport.request("POST", "/_aliases", json.dumps(body)).status < 300
    with HttpIndex.open(server.url, f"{server.name}-2") as other:
        other.prepare(FIELDS)
        write(other, ("1", 1, {"serial": 7}), ("2", 1, {"serial": 8}))
        assert other.move_alias(alias) == (server.name,)
        assert other.move_alias(alias) == (f"{server.name}-2",)
        other.refresh()
        with HttpIndex.open(server.url, alias) as by_alias:
            assert by_alias.count() == 1, "the alias has its filter"
        with pytest.raises(ConfigurationError, match="is the name of an index"):
            other.move_alias(server.name)
        server.transport.request("DELETE", f"/{server.name}-2")


def test_a_load_gives_back_the_settings_that_were_there(server: Server, index: HttpIndex) -> None:
    def settings() -> tuple[str | None, str | None]:
        (state,) = server.ask("GET", "/_settings").values()
        present = state["settings"]["index"]
        return present.get("refresh_interval"), present.get("number_of_replicas")

    index.prepare(FIELDS, IndexLayout(settings={"refresh_interval": "7s", "number_of_replicas": 2}))
    index.end_load()
    assert settings() == ("7s", "2"), "without a load there is nothing to give back"
    index.begin_load()
    index.begin_load()  # a load that was killed begins again
    assert settings() == ("-1", "0")
    index.write(table(("1", 7, ORDER)))
    assert index.count() == 0
    index.end_load()
    assert (settings(), index.count()) == (("7s", "2"), 1)
    index.end_load()
    assert settings() == ("7s", "2")
