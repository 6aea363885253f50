"""Changes into an index through the transform of a spec: what is written, deleted, and kept as a dead letter."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.document import DeadLetterOutcome, DocumentBuilder, DocumentSync, LocalWriter, TouchedDocument
from penstock.document import build as build_module
from penstock.document.build import BuiltDocuments
from penstock.document.graph import REFERENCES_FIELD, DocumentGraph
from penstock.document.graph_builder import resolve_spec
from penstock.document.references import with_references
from penstock.document.spec import read_spec
from penstock.document.write import write_built
from penstock.errors import SinkRejectedError
from penstock.model import Column, WireType
from penstock.schema.foreign_keys import CascadingKey
from penstock.search.dead_letters import DeadLetters
from penstock.search.index import FieldKind, Rejection
from tests.support.document_orders import build_by_id, create_orders
from tests.support.document_shop import (
    CUSTOMER,
    CUSTOMER_JOIN,
    ORDERS,
    TABLES,
    batch,
    change,
    graph_of,
    integer,
    order,
    table,
)
from tests.support.memory_sync import MemorySync

HOOK = """
def enrich(document):
    customer = document["customer"]
    if customer and customer["name"] == "hidden":
        return None
    if customer and customer["name"] == "broken":
        raise ValueError("no such customer")
    if customer and customer["name"] == "odd":
        return [document]
    return {"number": document["number"].lower(), "customer": customer, "size": len(document["number"])}
"""
OpenShop = Callable[..., MemorySync]


def graph_with(folder: Path, source: str = HOOK, fields: dict[str, str] | None = None, **root: Any) -> DocumentGraph:
    """Return the graph of orders with their customers and with a function in a file."""
    (folder / "hook.py").write_text(source)
    content = {"table": "shop.orders", "fields": ["number"], "joins": {"customer": CUSTOMER_JOIN}} | root
    transform = {"python": "hook.py:enrich", "fields": fields or {"size": "integer"}}
    return resolve_spec(read_spec({"index": "orders", "transform": transform, "root": content}, folder), TABLES)


@pytest.fixture
def open_shop(tmp_path: Path) -> Iterator[OpenShop]:
    made: list[MemorySync] = []

    def create(*arguments: Any, **options: Any) -> MemorySync:
        made.append(MemorySync(graph_with(tmp_path, *arguments, **options)))
        return made[-1]

    yield create
    for shop in made:
        shop.rows.close()


def rename(shop: MemorySync, sequence: int, name: str) -> Any:
    """Give the customer another name, and follow that."""
    shop.rows.execute("DELETE FROM shop.customer")
    shop.rows.insert("customer", (5, name, "Porto", 1))
    return shop.sync.apply_changes(batch(change(CUSTOMER, sequence, {"id": 5, "name": "?"}, {"id": 5, "name": name})))


def test_changes_the_first_load_and_a_rebuild_pass_through_the_function(open_shop: OpenShop) -> None:
    shop = open_shop()
    shop.insert_orders(1, 2)
    expected = {"1": {"number": "n1", "customer": None, "size": 2}, "2": {"number": "n2", "customer": None, "size": 2}}
    shop.sync.apply_changes(batch(change(ORDERS, 10, after=order(1))))
    assert shop.index.documents == {"1": expected["1"]}
    shop.sync.load_all(20)
    assert shop.index.documents == expected
    shop.index.entries["9", None] = 5, {"number": "gone"}
    shop.sync.rebuild(30)
    assert shop.index.documents == expected
    assert shop.index.versions == {"1": 30, "2": 30, "9": 30}


def test_a_rebuild_leaves_the_old_document_where_the_function_fails(open_shop: OpenShop) -> None:
    shop = open_shop()
    shop.insert_orders(1, customer=5)
    shop.insert_orders(2, customer=6)
    shop.sync.load_all(5)
    shop.rows.insert("customer", (5, "broken", "Porto", 1), (6, "hidden", "Lyon", 1))
    counts = shop.sync.rebuild(30)
    assert set(shop.index.documents) == {"1"}
    assert shop.index.versions == {"1": 5, "2": 30}
    assert counts.rejected == 1
    assert [refused for _, refused in shop.outcomes if refused] == [["1"]]


def test_fields_of_the_function_are_fields_of_the_index(open_shop: OpenShop) -> None:
    shop = open_shop(fields={"size": "integer", "customer.initials": "keyword", "extra.a": "date", "extra.b": "text"})
    shop.sync.prepare_index()
    assert shop.index.fields["size"] is FieldKind.INTEGER
    assert shop.index.fields["customer.initials"] is FieldKind.KEYWORD
    assert shop.index.fields["extra.a"] is FieldKind.DATE
    assert shop.index.fields["customer.name"] is FieldKind.TEXT


def test_fields_below_a_json_column_can_be_declared(tmp_path: Path) -> None:
    (tmp_path / "hook.py").write_text(HOOK)
    columns = (integer("id"), Column("attributes", WireType.JSON))
    transform = {"python": "hook.py:enrich", "fields": {"attributes.colour": "keyword"}}
    root = {"table": "shop.orders", "fields": ["attributes"]}
    spec = read_spec({"index": "orders", "transform": transform, "root": root}, tmp_path)
    graph = resolve_spec(spec, {ORDERS: table("orders", *columns)})
    assert graph.field_kinds == {"attributes.colour": FieldKind.KEYWORD}


def test_a_document_that_becomes_none_is_deleted_and_returns(open_shop: OpenShop) -> None:
    shop = open_shop()
    shop.insert_orders(1, customer=5)
    for sequence, name in ((10, "Ann"), (11, "hidden"), (12, "Ann"), (13, "hidden")):
        counts = rename(shop, sequence, name).documents
        assert set(shop.index.documents) == ({"1"} if name == "Ann" else set())
        assert shop.index.versions == {"1": sequence}
        assert (counts.written, counts.deleted, counts.total) == ((1, 0, 1) if name == "Ann" else (0, 1, 1))


def test_a_document_with_a_routing_is_deleted_where_it_is(open_shop: OpenShop) -> None:
    shop = open_shop(routing="customer_id")
    shop.insert_orders(1, customer=5)
    rename(shop, 10, "Ann")
    assert shop.index.entries["1", "5"][1]["size"] == 2
    rename(shop, 11, "hidden")
    assert shop.index.entries == {("1", "5"): (11, None)}


def test_a_failure_is_kept_with_the_document_from_before_and_stops_no_other(open_shop: OpenShop) -> None:
    shop = open_shop(routing="customer_id")
    shop.insert_orders(1, customer=5)
    shop.insert_orders(2, 3, customer=6)
    shop.rows.insert("customer", (6, "Bob", "Lyon", 1))
    for sequence, name, reason in (
        (10, "broken", "transform hook.py:enrich, line 7: ValueError: no such customer"),
        (11, "odd", "transform hook.py:enrich: returned a value of the type list; return a dict, or None"),
    ):
        shop.rows.execute("DELETE FROM shop.customer WHERE id = 5")
        shop.rows.insert("customer", (5, name, "Porto", 1))
        owners = {1: 5, 2: 6, 3: 6}
        changes = (change(ORDERS, sequence, after=order(key, customer_id=owner)) for key, owner in owners.items())
        counts = shop.sync.apply_changes(batch(*changes))
        assert set(shop.index.documents) == {"2", "3"}
        (rejection,) = shop.rejections
        assert json.loads(rejection.document or "") == {
            "number": "N1", "customer": {"name": name, "city": "Porto", "country": None}
        }  # fmt: skip
        assert rejection == Rejection("1", reason, sequence, "5", rejection.document, before_transform=True)
        assert (counts.documents.written, counts.documents.total) == (2, 3)
        assert shop.outcomes[-1] == ({"1": sequence, "2": sequence, "3": sequence}, ["1"])


def test_a_row_that_a_collation_takes_for_another_one_is_left_to_its_own_change(open_shop: OpenShop) -> None:
    built = BuiltDocuments([("ABC",)], ["ABC"], pa.array([None], pa.string()), None, pa.array(["{}"]), {0: "bad"})
    index = open_shop().index
    counts = write_built(index, [TouchedDocument(("abc",), 7)], built)  # type: ignore[arg-type]
    assert (counts.deleted, counts.rejected) == (1, [])
    assert index.entries == {("abc", None): (7, None)}


def test_what_the_index_has_stays_when_the_function_fails(open_shop: OpenShop) -> None:
    shop = open_shop()
    shop.insert_orders(1, customer=5)
    rename(shop, 10, "Ann")
    rename(shop, 11, "broken")
    assert shop.index.documents["1"]["customer"]["name"] == "Ann"
    assert shop.index.versions == {"1": 10}


def test_what_the_index_refuses_is_kept_as_it_was_before(open_shop: OpenShop) -> None:
    shop = open_shop()
    shop.insert_orders(1)
    shop.index.refused["1"] = "bad size"
    counts = shop.sync.apply_changes(batch(change(ORDERS, 10, after=order(1))))
    (rejection,) = shop.rejections
    assert counts.documents.rejected == 1
    assert rejection.reason == "bad size"
    assert rejection.before_transform
    assert json.loads(rejection.document or "") == {"number": "N1", "customer": None}


def test_letters_and_their_limit(open_shop: OpenShop, tmp_path: Path) -> None:
    shop = open_shop()
    shop.insert_orders(1, customer=5)
    with DeadLetters.open(tmp_path / "letters.sqlite") as letters:
        outcome, rows, index = DeadLetterOutcome("orders", letters), shop.rows, shop.index
        shop.sync = DocumentSync(shop.load, rows, index, lambda made: LocalWriter(made, rows, index), outcome)  # type: ignore[arg-type]
        rename(shop, 10, "broken")
        (letter,) = letters.read_page()
        assert (letter.id, letter.version, letter.before_transform) == ("1", 10, True)
        rename(shop, 11, "hidden")
        assert not letters.count(), "a document that the function hides is done"
        rename(shop, 12, "broken")
        rename(shop, 13, "Ann")
        assert not letters.count()
        shop.insert_orders(*range(2, 202), customer=5)
        with pytest.raises(
            SinkRejectedError, match=r"nearly everything: .* no such customer; correct the mapping, the"
        ):
            rename(shop, 14, "broken")
        assert letters.count() == 201
        with pytest.raises(SinkRejectedError, match="nearly everything"):
            shop.sync.load_all(15)


def test_references_outlive_a_function_that_does_not_know_them(open_shop: OpenShop, tmp_path: Path) -> None:
    shop = open_shop()
    key = CascadingKey(ORDERS, ("customer_id",), CUSTOMER, ("id",), follows_deletes=True, follows_updates=True)
    shop.graph = with_references(graph_with(tmp_path), {ORDERS: [key]}, TABLES)
    shop.sync.reload()
    shop.insert_orders(1, customer=5)
    shop.sync.load_all(10)
    assert shop.index.documents["1"] == {
        "number": "n1", "customer": None, "size": 2, REFERENCES_FIELD: ["shop.customer:5"]
    }  # fmt: skip


def test_a_document_without_a_transform_is_never_a_python_object(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(build_module, "DocumentTransform", refuse)
    rows = create_orders()
    assert set(build_by_id(rows, graph_of(), 1, 2)) == {"1", "2"}
    (page,) = DocumentBuilder(graph_of(), rows).build_pages(100)
    assert page.before_transform is None
    rows.close()
