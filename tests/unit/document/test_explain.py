"""What is said about a document spec, over a catalogue without rows: as data, as text, and as a picture."""

import json
from dataclasses import asdict
from pathlib import Path
from xml.dom import minidom

import pytest

from penstock.document.explain import IndexReport
from penstock.document.explain_live import explain_spec
from penstock.document.explain_picture import draw_report
from penstock.document.explain_text import WIDTH, write_report
from penstock.document.query_plan import read_plan_step
from tests.support.fake_catalog import FakeCatalog, FakeTable

SPEC = """
index: orders
settings: {number_of_shards: 3}
mapping: {_source: {excludes: [gross]}}
root:
  table: shop.orders
  where: "state <> 'draft'"
  routing: customer_id
  fields: [number, {gross: {sql: "total * 1.2", type: float}}]
  joins:
    customer:
      table: shop.customer
      on: {customer_id: id}
      fields: [name]
      joins: {country: {table: shop.country, on: {country_id: id}, fields: [name]}}
    lines:
      table: shop.order_line
      many: true
      on: {id: order_id}
      filter: "quantity > 0"
      order: "-position"
      limit: 5
      nested: true
      fields: [quantity]
    tags:
      table: shop.tag
      many: true
      through: {table: shop.order_tag, on: {id: order_id}, to: {tag_id: id}}
      fields: [name]
"""
TABLES = {
    "shop.orders": FakeTable(
        {"id": "int", "number": "text", "state": "text", "total": "decimal", "customer_id": "int", "note": "text"},
        indexes=[["customer_id"]],
    ),
    "shop.customer": FakeTable(
        {"id": "int", "name": "text", "country_id": "int", "city": "text"},
        foreign_keys="CONSTRAINT `c` FOREIGN KEY (`country_id`) REFERENCES `country` (`id`) ON DELETE SET NULL\n",
    ),
    "shop.country": FakeTable({"id": "int", "name": "text"}),
    "shop.order_line": FakeTable(
        {"order_id": "int", "position": "int", "quantity": "int"},
        key=["order_id", "position"],
        foreign_keys="CONSTRAINT `o` FOREIGN KEY (`order_id`) REFERENCES `orders` (`id`) ON DELETE CASCADE\n",
    ),
    "shop.tag": FakeTable({"id": "int", "name": "text"}),
    "shop.order_tag": FakeTable({"order_id": "int", "tag_id": "int"}, key=["order_id", "tag_id"]),
}


@pytest.fixture
def report(tmp_path: Path) -> IndexReport:
    (tmp_path / "orders.yml").write_text(SPEC)
    return explain_spec(FakeCatalog(TABLES, full_scans=["WHERE l0.`tag_id` IN"]), tmp_path / "orders.yml")


def test_the_tables_of_a_document_with_their_joins(report: IndexReport) -> None:
    assert [(".".join(node.path), node.join, node.through) for node in report.nodes] == [
        ("", "root", ""),
        ("customer", "one", ""),
        ("customer.country", "one", ""),
        ("lines", "many", ""),
        ("tags", "many", "shop.order_tag"),
    ]
    lines = report.nodes[3]
    assert (lines.on, lines.filter, lines.order, lines.limit) == (
        ("id = order_id",), "quantity > 0", ("position descending",), 5
    )  # fmt: skip


def test_columns_say_what_they_are_used_for(report: IndexReport) -> None:
    touches = {(touch.table, touch.node): touch for touch in report.touches}
    root = touches["shop.orders", "root"]
    assert root.columns == {
        "id": ("key", "join lines", "join tags"),
        "number": ("field number",),
        "total": ("field gross",),
        "state": ("where",),
        "customer_id": ("routing", "join customer"),
    }
    assert touches["shop.order_line", "lines"].columns == {
        "order_id": ("key", "join"),
        "position": ("key", "order"),
        "quantity": ("field quantity", "filter"),
    }
    assert touches["shop.order_tag", "tags, link table"].columns == {"order_id": ("join",), "tag_id": ("join",)}


def test_lookups_are_shown_where_they_are_needed(report: IndexReport) -> None:
    queries = {touch.node: touch.query for touch in report.touches}
    assert queries["root"] is None
    assert queries["lines"] is None  # order_id is the key of the document
    country = queries["customer.country"]
    assert country is not None
    assert "FROM `shop`.`customer` AS n1 JOIN `shop`.`orders` AS n2" in country.sql
    tags = queries["tags"]
    assert tags is not None
    assert tags.has_full_scan
    assert len(report.queries) == len(report.nodes)


def test_missing_indexes_foreign_keys_and_the_mapping(report: IndexReport) -> None:
    assert report.missing_indexes == (
        "CREATE INDEX `customer_country_id` ON `shop`.`customer` (`country_id`)",
        "CREATE INDEX `order_tag_tag_id` ON `shop`.`order_tag` (`tag_id`)",
    )
    followed = {key.table: key.followed for key in report.foreign_keys}
    assert followed == {
        "shop.customer": "documents name the row of shop.country in `penstock_references`, and are found by it",
        "shop.order_line": "a change of the row of shop.orders leads to its documents by the join",
    }
    properties = report.creation["mappings"]["properties"]
    assert properties["gross"] == {"type": "double"}
    assert properties["customer"]["properties"]["country"]["properties"]["name"] == {"type": "text"}
    assert properties["penstock_references"]["type"] == "keyword"
    assert properties["lines"]["type"] == "nested"
    assert report.creation["mappings"]["_source"] == {"excludes": ["gross"]}
    assert "3" in str(report.creation["settings"])


def test_the_text_fits_into_a_terminal(report: IndexReport) -> None:
    lines = list(write_report(report))
    assert max(map(len, lines)) <= WIDTH
    assert lines[:14] == [
        "Index 'orders'",
        "",
        "Documents",
        "  shop.orders (one document per row)",
        "  │  fields number, gross",
        "  │  where (state <> 'draft')",
        "  ├─ customer: shop.customer (object or null, customer_id = id)",
        "  │  │  fields name",
        "  │  └─ country: shop.country (object or null, country_id = id)",
        "  │        fields name",
        "  ├─ lines: shop.order_line (array, id = order_id)",
        "  │     fields quantity",
        "  │     filter quantity > 0",
        "  │     order position descending, limit 5",
    ]
    assert "    plan       FULL SCAN, shop.orders: ALL, no key, rows 90000" in lines


def test_the_picture_has_a_box_for_each_table_and_an_arrow_for_each_join(report: IndexReport) -> None:
    document = minidom.parseString(draw_report(report))  # noqa: S318 - our own
    texts = [node.firstChild.data for node in document.getElementsByTagName("text")]  # type: ignore[union-attr]
    assert {node.table for node in report.nodes} <= set(texts)
    assert {"customer_id = id", "country_id = id", "through shop.order_tag", "full scan"} <= set(texts)
    arrows = [path for path in document.getElementsByTagName("path") if path.getAttribute("marker-end")]
    assert len(arrows) == len(report.nodes) - 1


def test_a_transform_is_shown(tmp_path: Path) -> None:
    (tmp_path / "hook.py").write_text("def enrich(document):\n    return document\n")
    transform = "transform: {python: 'hook.py:enrich', fields: {score: float, customer.initials: keyword}}\n"
    (tmp_path / "orders.yml").write_text(transform + SPEC)
    report = explain_spec(FakeCatalog(TABLES), tmp_path / "orders.yml")
    fields = {"score": "float", "customer.initials": "keyword"}
    assert asdict(report)["transform"] == {"python": "hook.py:enrich", "fields": fields}
    json.dumps(asdict(report))
    properties = report.creation["mappings"]["properties"]
    assert properties["score"] == {"type": "double"}
    assert properties["customer"]["properties"]["initials"]["type"] == "keyword"
    text = "\n".join(write_report(report))
    assert (
        "\n\nTransform\n  hook.py:enrich is called with each document; what it returns is indexed\n"
        "  adds score (float), customer.initials (keyword)\n\nWhat touches documents\n"
    ) in text
    picture = draw_report(report)
    assert ">transform hook.py:enrich<" in picture
    assert ">+ score, + customer.initials<" in picture


def test_without_a_transform_none_is_shown(report: IndexReport) -> None:
    assert report.transform is None
    assert "transform" not in "\n".join(write_report(report)).lower()
    assert "transform" not in draw_report(report)


def test_a_row_of_explain_names_the_table_of_an_alias() -> None:
    row = {"table": "n2", "type": "index", "key": "PRIMARY", "rows": "12", "extra": None}
    step = read_plan_step(row, "SELECT 1 FROM `a`.`b` AS n1 JOIN `a`.`c d` AS n2 ON n1.x = n2.x")
    assert (step.table, step.key, step.rows, step.is_full_scan) == ("a.c d", "PRIMARY", 12, True)


def test_what_documents_are_built_from_is_said_with_the_reasons(report: IndexReport, tmp_path: Path) -> None:
    assert report.built_from == "database"
    assert report.read_back_reasons == (
        "it has joins",
        "a foreign key that cascades changes rows that the log does not have",
        "field gross is an SQL expression",
        "where is an SQL condition",
    )
    text = "\n".join(write_report(report))
    assert "the database, in which they are read back, because\n  - it has joins\n" in text
    (tmp_path / "tag.yml").write_text("index: tag\nroot: {table: shop.tag, fields: [name]}\n")
    plain = explain_spec(FakeCatalog(TABLES), tmp_path / "tag.yml")
    assert (plain.built_from, plain.read_back_reasons) == ("log", ())
    assert "What changed documents are built from\n  the rows in the log;" in "\n".join(write_report(plain))


def test_parents_that_are_read_for_their_keys_are_shown_once_each(tmp_path: Path) -> None:
    """Foreign keys lead from orders over a customer to a country, and from there to customers again."""
    key = "CONSTRAINT `{0}` FOREIGN KEY (`{0}`) REFERENCES `{1}` (`id`) ON DELETE CASCADE\n"
    tables = {
        "shop.orders": FakeTable(
            {"id": "int", "number": "text", "customer_id": "int"}, foreign_keys=key.format("customer_id", "customer")
        ),
        "shop.customer": FakeTable(
            {"id": "int", "country_id": "int"}, foreign_keys=key.format("country_id", "country")
        ),
        "shop.country": FakeTable({"id": "int", "best_id": "int"}, foreign_keys=key.format("best_id", "customer")),
    }
    (tmp_path / "orders.yml").write_text("index: orders\nroot: {table: shop.orders, fields: [number]}\n")
    report = explain_spec(FakeCatalog(tables), tmp_path / "orders.yml")
    paths = [node.path for node in report.nodes]
    assert paths == [
        (),
        ("parent shop.customer",),
        ("parent shop.customer", "parent shop.country"),
        ("parent shop.customer", "parent shop.country", "parent shop.customer"),
    ]
    assert {node.join for node in report.nodes[1:]} == {"parent"}
    assert [query.purpose for query in report.queries][1:] == [f"read {'.'.join(path)}" for path in paths[1:]]
    assert "`shop`.`customer` AS p JOIN `shop`.`country` AS c" in report.queries[2].sql
    assert all("penstock_references" in reported.followed for reported in report.foreign_keys)
    text = "\n".join(write_report(report))
    assert text.count("not in the document, read for its foreign keys") == 3
    assert "parent shop.country" in draw_report(report)
