"""`penstock index explain` on real servers: plans, missing indexes, foreign keys, and mistakes with their lines."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.dom import minidom

import pytest
from typer.testing import CliRunner

from penstock.cli import app
from penstock.document.explain_text import WIDTH
from penstock.errors import SchemaError
from penstock.testing import DatabaseServer
from tests.support.capture import execute
from tests.support.shop.schema import ShopSize, create_shop, drop_shop
from tests.support.shop.specs import FROM_LOG, INDEXES, spec_texts

DATABASE = "explained"
SIZE = ShopSize(customers=400, products=600, orders=800)


@pytest.fixture(scope="module", params=["mariadb", "mysql80"])
def shop(request: pytest.FixtureRequest) -> Iterator[DatabaseServer]:
    server: DatabaseServer = request.getfixturevalue(request.param)
    drop_shop(server, DATABASE)
    create_shop(server, DATABASE, SIZE)
    tables = "country, customer, store, category, product, orders, order_line, tag, product_tag"
    execute(server, *(f"ANALYZE TABLE {DATABASE}.{table.strip()}" for table in tables.split(",")))
    yield server
    drop_shop(server, DATABASE)


def run_explain(server: DatabaseServer, spec: Path, *arguments: str) -> str:
    source = ["--host", server.host, "--port", str(server.port), "--user", server.user, "--password", server.password]
    result = CliRunner().invoke(app, ["index", "explain", str(spec), *source, *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def explain_as_json(server: DatabaseServer, spec: Path) -> dict[str, Any]:
    return json.loads(run_explain(server, spec, "--output", "json"))


def write_spec(folder: Path, text: str) -> Path:
    path = folder / "spec.yml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("index", INDEXES)
def test_every_kind_of_document_is_explained(shop: DatabaseServer, tmp_path: Path, index: str) -> None:
    spec = write_spec(tmp_path, spec_texts(DATABASE)[index])
    picture = tmp_path / "spec.svg"
    text = run_explain(shop, spec, "--svg", str(picture))
    assert max(map(len, text.splitlines())) <= WIDTH
    report = explain_as_json(shop, spec)
    queries = report["queries"] + [touch["query"] for touch in report["touches"] if touch["query"]]
    assert len(report["queries"]) == len(report["nodes"])
    for query in queries:
        assert query["example"], query["sql"]
        assert query["plan"], query["sql"]
    steps = [step for query in queries for step in query["plan"] if step["access"]]
    assert {step["access"] for step in steps} <= {
        "const",
        "system",
        "eq_ref",
        "ref",
        "range",
        "index",
        "ALL",
        "hash_ALL",
    }
    if steps:  # else there is one query, and the row that it was tried with is not searchable
        assert {step["table"].split(".")[0] for step in steps if "." in step["table"]} == {DATABASE}
    assert report["built_from"] == ("log" if index in FROM_LOG else "database")
    assert bool(report["read_back_reasons"]) == (report["built_from"] == "database")
    assert f"What changed documents are built from\n  the {'rows' if index in FROM_LOG else 'database'}" in text
    assert report["missing_indexes"] == []
    assert report["creation"]["mappings"]["properties"]
    drawn = {
        text.firstChild.data  # type: ignore[union-attr]
        for text in minidom.parseString(picture.read_text()).getElementsByTagName("text")  # noqa: S318 - our own
    }
    assert {node["table"] for node in report["nodes"]} <= drawn


def test_a_missing_index_is_a_full_scan_until_it_is_created(shop: DatabaseServer, tmp_path: Path) -> None:
    spec = write_spec(
        tmp_path,
        f"""
index: products
root:
  table: {DATABASE}.product
  fields: [name]
  joins:
    lookalikes: {{table: {DATABASE}.orders, many: true, on: {{remark: remark}}, fields: [order_no]}}
""",
    )
    report = explain_as_json(shop, spec)
    lookup = report["touches"][1]
    assert lookup["table"] == f"{DATABASE}.orders"
    assert [(step["access"], step["is_full_scan"]) for step in lookup["query"]["plan"]] == [("ALL", True)]
    assert report["missing_indexes"] == [
        f"CREATE INDEX `product_remark` ON `{DATABASE}`.`product` (`remark`)",
        f"CREATE INDEX `orders_remark` ON `{DATABASE}`.`orders` (`remark`)",
    ]
    assert f"FULL SCAN, {DATABASE}.product: ALL, no key, rows 6" in run_explain(shop, spec)
    try:
        execute(shop, *report["missing_indexes"])
        report = explain_as_json(shop, spec)
        assert report["missing_indexes"] == []
        plan = report["touches"][1]["query"]["plan"]
        assert [(step["access"], step["key"], step["is_full_scan"]) for step in plan] == [
            ("ref", "product_remark", False)
        ]
    finally:
        execute(
            shop,
            f"DROP INDEX product_remark ON {DATABASE}.product",
            f"DROP INDEX orders_remark ON {DATABASE}.orders",
        )


def test_cascading_foreign_keys_are_named_with_the_way_they_are_followed(shop: DatabaseServer, tmp_path: Path) -> None:
    spec = write_spec(
        tmp_path,
        f"""
index: parts
root:
  table: {DATABASE}.part
  fields: [name]
  joins:
    screws: {{table: {DATABASE}.screw, many: true, on: {{id: part_id}}, fields: [size]}}
""",
    )
    execute(
        shop,
        f"CREATE TABLE {DATABASE}.machine (id INT PRIMARY KEY)",
        f"CREATE TABLE {DATABASE}.part (id INT PRIMARY KEY, name VARCHAR(20), machine_id INT,"
        f" FOREIGN KEY (machine_id) REFERENCES {DATABASE}.machine (id) ON DELETE CASCADE)",
        f"CREATE TABLE {DATABASE}.screw (id INT PRIMARY KEY, size INT, part_id INT,"
        f" FOREIGN KEY (part_id) REFERENCES {DATABASE}.part (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    )
    try:
        report = explain_as_json(shop, spec)
        keys = {key["table"]: key for key in report["foreign_keys"]}
        assert keys[f"{DATABASE}.part"]["on"] == ["DELETE"]
        assert "penstock_references" in keys[f"{DATABASE}.part"]["followed"]
        assert keys[f"{DATABASE}.screw"]["on"] == ["DELETE", "UPDATE"]
        assert keys[f"{DATABASE}.screw"]["followed"].endswith("by the join")
        assert report["creation"]["mappings"]["properties"]["penstock_references"]["type"] == "keyword"
        assert report["touches"][-1]["table"] == f"{DATABASE}.machine"
        # The tables are empty: queries are explained with any values, and it is said.
        assert report["queries"][0]["example"] is None
        assert "without a row" in run_explain(shop, spec)
    finally:
        execute(shop, *(f"DROP TABLE {DATABASE}.{name}" for name in ("screw", "part", "machine")))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("number: order_no", "number: order_nr", "has no column order_nr: did you mean order_no?"),
        ("billing_id: id", "biling_id: id", "has no column biling_id: did you mean billing_id?"),
        ("{0}.store", "{0}.stroe", "there is no table {0}.stroe that this user can see: did you mean {0}.store?"),
        ("state <> 'draft'", "stat <> 'draft'", "did you mean state?"),
        ("quantity > 0", "quantity > > 0", "the server refuses the SQL 'quantity > > 0' for {0}.order_line: "),
        ('sql: "total * 1.2"', 'sql: "totl * 1.2"', "did you mean total?"),
        ("routing: billing_id", "routing: biling_id", "has no column biling_id: did you mean billing_id?"),
        ("-price", "-prise", "has no column prise: did you mean price?"),
    ],
)
def test_a_mistake_names_the_line_and_what_may_have_been_meant(
    shop: DatabaseServer, tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = spec_texts(DATABASE)["orders"]
    old, new, message = (part.format(DATABASE) for part in (old, new, message))
    assert old in text
    wrong = text.replace(old, new, 1)
    line = next(
        number
        for number, (left, right) in enumerate(zip(text.splitlines(), wrong.splitlines(), strict=True), 1)
        if left != right
    )
    spec = write_spec(tmp_path, wrong)
    with pytest.raises(SchemaError) as failure:
        run_explain(shop, spec)
    assert str(failure.value).startswith(f"{spec}, line {line}: ")
    assert message in str(failure.value)


def test_a_mistake_of_a_whole_join_names_the_line_at_which_it_begins(shop: DatabaseServer, tmp_path: Path) -> None:
    text = spec_texts(DATABASE)["orders"].replace("on: {owner_id: id}", "on: {owner_id: last_name}")
    line = text.splitlines().index("        owner:") + 1
    spec = write_spec(tmp_path, text)
    with pytest.raises(SchemaError) as failure:
        run_explain(shop, spec)
    assert str(failure.value).startswith(f"{spec}, line {line}: join 'store.owner' may find several rows")
