"""Documents over a database that lives in a few dictionaries: SQL shape, affected roots, JSON, errors."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.document import DocumentBuilder, DocumentPlan, DocumentSpec, apply_changes, load_all_documents
from penstock.document.affected import find_changed_keys
from penstock.document.sync import find_affected_documents
from penstock.errors import SchemaError, SinkRejectedError
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.search.index import FieldKind, Rejection, WriteReport

PRODUCT, STORE = TableName("shop", "product"), TableName("shop", "store")
STRUCTS = {PRODUCT: "product", STORE: "store"}


def table(name: TableName, *columns: Column, key: tuple[str, ...] = ("id",)) -> TableSchema:
    return TableSchema(name, columns, key)


TABLES = {
    PRODUCT: table(
        PRODUCT,
        Column("id", WireType.LONG),
        Column("name", WireType.VARCHAR, charset="utf8mb4"),
        Column("price", WireType.NEWDECIMAL, precision=10, scale=2),
        Column("state", WireType.ENUM, labels=("on", "off")),
        Column("made", WireType.DATETIME2),
        Column("store_id", WireType.LONG),
    ),
    STORE: table(STORE, Column("id", WireType.LONG), Column("city", WireType.VARCHAR, charset="utf8mb4")),
}


def spec(**changes: Any) -> DocumentSpec:
    raw: dict[str, Any] = {
        "index": "product",
        "root": {"table": "shop.product", "id": "id", "columns": ["name", "price", "made"], "where": {"state": "on"}},
        "joins": {"store": {"table": "shop.store", "on": {"store_id": "id"}, "columns": ["city"]}},
    }
    return DocumentSpec.model_validate(raw | changes)


class FakeRows:
    """Answers the three statements of a plan from dictionaries."""

    def __init__(self, products: dict[int, dict[str, Any]], stores: dict[int, str]) -> None:
        self.products, self.stores = products, stores
        self.statements: list[str] = []
        self.waits: list[int] = []  # how many statements had been run at each

    def wait_until_visible(self) -> None:
        self.waits.append(len(self.statements))

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        self.statements.append(sql)
        assert sql.count("%s") == len(parameters)
        if sql.startswith("SELECT root.`id` FROM"):
            *keys, limit = parameters
            after = keys.pop() if "root.`id` > %s" in sql else -1
            found = sorted(i for i, p in self.products.items() if p["store_id"] in keys and i > after)
            return [(i,) for i in found[:limit]]
        if "ORDER BY" in sql:
            after = parameters[1] if "root.`id` > %s" in sql else -1
            wanted = [i for i in sorted(self.products) if i > after]
            return [row for i in wanted if (row := self._row(i))][: parameters[-1]]
        return [row for i in parameters[:-1] if (row := self._row(int(i)))]

    def _row(self, key: int) -> tuple[Any, ...] | None:
        product = self.products.get(key)
        if product is None or product.get("state", "on") != "on":
            return None
        store = product["store_id"]
        city = self.stores.get(store)
        return (key, product["name"], Decimal("1.50"), datetime(2024, 1, 2, 3), city, store if city else None)  # noqa: DTZ001


class FakeIndex:
    def __init__(self) -> None:
        self.documents: dict[str, tuple[int, Any]] = {}
        self.reject: tuple[Rejection, ...] = ()

    def write(self, operations: pa.Table) -> WriteReport:
        for row in operations.to_pylist():
            version, _ = self.documents.get(row["id"], (-1, None))
            if row["version"] >= version:
                self.documents[row["id"]] = row["version"], row["document"] and json.loads(row["document"])
        return WriteReport(rejected=self.reject)

    @property
    def live(self) -> dict[str, Any]:
        return {key: document for key, (_, document) in self.documents.items() if document is not None}


def changes(*rows: tuple[TableName, int | None, int]) -> pa.Table:
    """(table, key, seq)"""
    structs = {name: pa.struct([("id", pa.int32())]) for name in STRUCTS.values()}
    columns: dict[str, Any] = {"_table": pa.array([str(name) for name, _, _ in rows], pa.string())}
    for name, struct in STRUCTS.items():
        values = [{"id": key} if own == name else None for own, key, _ in rows]
        columns[struct] = pa.array(values, structs[struct])
    columns["_seq"] = pa.array([seq for _, _, seq in rows], pa.int64())
    return pa.table(columns)


def test_the_plan_reads_without_locks_and_with_bound_values() -> None:
    plan = DocumentPlan.from_spec(spec(), TABLES)
    sql, values = plan.select_by_id(2)
    assert sql == (
        "SELECT root.`id`, root.`name`, root.`price`, root.`made`, `join store`.`city`, `join store`.`id`"
        " FROM `shop`.`product` AS root LEFT JOIN `shop`.`store` AS `join store` ON `join store`.`id` = root.`store_id`"
        " WHERE root.`id` IN (%s, %s) AND root.`state` IN (%s)"
    )
    assert values == ("on",)
    assert plan.fields == {
        "name": FieldKind.TEXT,
        "price": FieldKind.FLOAT,
        "made": FieldKind.DATE,
        "store.city": FieldKind.TEXT,
    }
    assert plan.key_columns == {PRODUCT: "id", STORE: "id"}


def test_an_id_that_is_no_number_and_no_text_is_refused() -> None:
    odd = TableName("d", "t")
    tables = {odd: table(odd, Column("id", WireType.TIMESTAMP2), Column("a", WireType.LONG))}
    raw = {"index": "x", "root": {"table": "d.t", "columns": ["a"]}}
    with pytest.raises(SchemaError, match=r"id d\.t\.id has type TIMESTAMP2"):
        DocumentPlan.from_spec(DocumentSpec.model_validate(raw), tables)


def test_names_with_odd_characters_are_quoted() -> None:
    odd = TableName("sh`op", "pro%duct")
    tables = {odd: table(odd, Column("i`d", WireType.LONG), Column("na%me", WireType.VARCHAR), key=("i`d",))}
    raw = {"index": "x", "root": {"table": str(odd), "id": "i`d", "columns": ["na%me"]}}
    sql, _ = DocumentPlan.from_spec(DocumentSpec.model_validate(raw), tables).select_by_id(1)
    assert "`sh``op`.`pro%%duct`" in sql
    assert "root.`i``d`" in sql
    assert sql.count("%s") == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"root": {"table": "shop.product", "columns": ["nmae"]}}, "has no column nmae; it has id, name"),
        ({"root": {"table": "shop.product", "id": "name", "columns": ["price"]}}, "primary key of shop.product"),
        ({"joins": {"s": {"table": "shop.store", "on": {"shop_id": "id"}, "columns": ["city"]}}}, "no column shop_id"),
        ({"joins": {"s": {"table": "shop.store", "on": {"store_id": "city"}, "columns": ["city"]}}}, "join 's'"),
    ],
)
def test_a_spec_that_does_not_fit_the_tables_is_explained(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        DocumentPlan.from_spec(spec(**change), TABLES)


def test_a_document_has_exact_values_and_its_join() -> None:
    rows = FakeRows({1: {"name": 'k"ö', "store_id": 5}, 2: {"name": "b", "store_id": 9}}, {5: "Lisbon"})
    builder = DocumentBuilder(DocumentPlan.from_spec(spec(), TABLES), rows)
    documents = dict(builder.build_documents([1, 2, 3]))
    assert documents["1"] == '{"name":"k\\"ö","price":1.50,"made":"2024-01-02T03:00:00","store":{"city":"Lisbon"}}'
    assert json.loads(documents["2"])["store"] is None
    assert "3" not in documents


def test_values_that_json_has_no_word_for() -> None:
    from penstock.document.build import _to_json_value, orjson

    row = {"a": timedelta(hours=-1), "b": b"\x00\xff", "c": Decimal("1E+3"), "d": Decimal("-0.10")}
    assert orjson.dumps(row, default=_to_json_value) == b'{"a":"-1 day, 23:00:00","b":"AP8=","c":1000,"d":-0.10}'
    with pytest.raises(TypeError):
        orjson.dumps({"a": object()}, default=_to_json_value)


def test_both_images_and_both_tables_name_documents_with_their_highest_sequence() -> None:
    rows = FakeRows(
        {1: {"name": "a", "store_id": 5}, 2: {"name": "b", "store_id": 6}, 3: {"name": "c", "store_id": 5}}, {}
    )
    plan = DocumentPlan.from_spec(spec(), TABLES)
    batch = changes((PRODUCT, 1, 10), (PRODUCT, 1, 12), (STORE, 5, 11), (PRODUCT, 9, 13), (STORE, None, 20))
    versions = find_affected_documents(batch, STRUCTS, plan, DocumentBuilder(plan, rows))
    assert versions == {1: 12, 3: 11, 9: 13}


def test_a_row_that_is_gone_or_hidden_is_deleted_with_its_version() -> None:
    rows = FakeRows({1: {"name": "a", "store_id": 5, "state": "off"}, 2: {"name": "b", "store_id": 5}}, {5: "Porto"})
    plan, index = DocumentPlan.from_spec(spec(), TABLES), FakeIndex()
    batch = changes((PRODUCT, 1, 7), (PRODUCT, 2, 8), (PRODUCT, 3, 9))
    assert apply_changes(batch, STRUCTS, plan, DocumentBuilder(plan, rows), index) == 3
    assert rows.waits == [0], "one wait, before anything is read"
    assert index.documents["1"] == (7, None)
    assert index.documents["3"] == (9, None)
    assert index.live["2"]["name"] == "b"


def test_a_refused_document_stops_the_batch() -> None:
    rows = FakeRows({1: {"name": "a", "store_id": 5}}, {})
    plan, index = DocumentPlan.from_spec(spec(), TABLES), FakeIndex()
    index.reject = (Rejection("1", "bad date"),)
    with pytest.raises(SinkRejectedError, match="id 1: bad date"):
        apply_changes(changes((PRODUCT, 1, 7)), STRUCTS, plan, DocumentBuilder(plan, rows), index)


def test_the_first_load_reads_every_page() -> None:
    rows = FakeRows({i: {"name": str(i), "store_id": 5} for i in range(2500)}, {})
    plan, index, seen = DocumentPlan.from_spec(spec(), TABLES), FakeIndex(), []
    assert load_all_documents(DocumentBuilder(plan, rows), index, 3, seen.append) == 2500
    assert len(index.live) == 2500
    assert seen == [1000, 2000, 2500]
    assert rows.waits == [0], "one wait, before anything is read"


def test_a_join_that_touches_many_documents_is_paged() -> None:
    rows = FakeRows({i: {"name": str(i), "store_id": 5} for i in range(2500)}, {5: "Porto"})
    builder = DocumentBuilder(DocumentPlan.from_spec(spec(), TABLES), rows)
    assert list(builder.find_roots(spec().joins["store"], [5])) == list(range(2500))


@given(st.lists(st.tuples(st.sampled_from([PRODUCT, STORE]), st.integers(0, 5), st.integers(0, 10**12)), max_size=40))
def test_changed_keys_keep_the_highest_sequence(rows: list[tuple[TableName, int, int]]) -> None:
    expected: dict[TableName, dict[int, int]] = {}
    for name, key, seq in rows:
        own = expected.setdefault(name, {})
        own[key] = max(own.get(key, -1), seq)
    assert find_changed_keys(changes(*rows), STRUCTS, {PRODUCT: "id", STORE: "id"}) == expected


@given(st.data())
def test_replaying_any_suffix_of_batches_changes_nothing(data: st.DataObject) -> None:
    """A crash repeats the last batch, or several: the index ends the same."""
    rows = FakeRows({}, {5: "Porto"})
    plan, index = DocumentPlan.from_spec(spec(), TABLES), FakeIndex()
    builder = DocumentBuilder(plan, rows)
    batches: list[pa.Table] = []
    for seq in range(data.draw(st.integers(1, 8))):
        key = data.draw(st.integers(0, 3))
        if data.draw(st.booleans()):
            rows.products[key] = {"name": f"n{seq}", "store_id": 5}
        else:
            rows.products.pop(key, None)
        batches.append(changes((PRODUCT, key, seq)))
        apply_changes(batches[-1], STRUCTS, plan, builder, index)
    before = dict(index.live)
    for batch in batches[data.draw(st.integers(0, len(batches))) :]:
        apply_changes(batch, STRUCTS, plan, builder, index)
    assert index.live == before
