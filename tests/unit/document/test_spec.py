"""The grammar of document specs: what may be written, what it means, and that each mistake names its key."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from penstock.document import DocumentFieldSpec, DocumentSpec, load_spec
from penstock.errors import ConfigurationError
from penstock.model import TableName
from penstock.search.index import FieldKind

ORDERS = """
index: orders
root:
  table: shop.orders
  id: [shop_id, id]
  routing: customer_id
  where: "state <> 'draft'"
  soft_delete: deleted_at
  fields: [number, {reference: order_no}, {gross: {sql: total * 1.2, type: float}}]
  joins:
    customer:
      table: shop.customer
      on: {customer_id: id}
      fields: {name: name, channel: {value: web}}
      joins:
        country: {table: shop.country, on: {country_id: id}, fields: [name]}
    lines:
      table: shop.order_line
      many: true
      nested: true
      on: {shop_id: shop_id, id: order_id}
      filter: quantity > 0
      order: [position, "-price"]
      limit: 50
      fields: [quantity]
    tags:
      table: shop.tag
      many: true
      through: {table: shop.order_tag, on: {id: order_id}, to: {tag_id: id}}
      order: name
      fields: [name]
alias: sales
mapping: {dynamic: false}
settings: {number_of_shards: 3}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "orders.yml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_whole_grammar_is_read(tmp_path: Path) -> None:
    spec = load_spec(write(tmp_path, ORDERS))
    root = spec.root
    assert (spec.index, spec.alias, root.table, root.id) == ("orders", "sales", "shop.orders", ("shop_id", "id"))
    assert (root.routing, root.where, root.soft_delete) == ("customer_id", "state <> 'draft'", "deleted_at")
    assert root.fields == {
        "number": DocumentFieldSpec(column="number"),
        "reference": DocumentFieldSpec(column="order_no"),
        "gross": DocumentFieldSpec(sql="total * 1.2", type=FieldKind.FLOAT),
    }
    customer, lines, tags = (root.joins[name] for name in ("customer", "lines", "tags"))
    assert customer.on == {"customer_id": "id"}, "`on` is a word, not a boolean"
    assert not customer.many
    assert customer.fields == {"name": DocumentFieldSpec(column="name"), "channel": DocumentFieldSpec(value="web")}
    assert customer.joins["country"].on == {"country_id": "id"}
    assert (lines.many, lines.nested, lines.filter, lines.limit) == (True, True, "quantity > 0", 50)
    assert lines.order == ("position", "-price")
    assert tags.order == ("name",)
    assert tags.through is not None
    assert (tags.through.table, tags.through.on, tags.through.to) == (
        "shop.order_tag",
        {"id": "order_id"},
        {"tag_id": "id"},
    )
    assert (spec.mapping, spec.settings) == ({"dynamic": False}, {"number_of_shards": 3})


@pytest.mark.parametrize("text", ["hook.py:enrich", "{python: 'hook.py:enrich', fields: {score: float, a.b: keyword}}"])
def test_a_transform_is_a_text_or_says_its_fields(tmp_path: Path, text: str) -> None:
    (tmp_path / "hook.py").write_text("def enrich(document):\n    return document\n")
    transform = load_spec(write(tmp_path, f"{ORDERS}\ntransform: {text}")).transform
    assert transform is not None
    assert transform.python.text == "hook.py:enrich"
    assert transform.fields == ({"score": FieldKind.FLOAT, "a.b": FieldKind.KEYWORD} if "{" in text else {})
    assert load_spec(write(tmp_path, ORDERS)).transform is None


def test_the_tables_of_a_spec_come_once_and_the_root_first(tmp_path: Path) -> None:
    text = ORDERS.replace("shop.country", "shop.tag")
    assert load_spec(write(tmp_path, text)).tables == tuple(
        TableName("shop", name) for name in ("orders", "customer", "tag", "order_line", "order_tag")
    )


def root_of(**content: Any) -> DocumentSpec:
    return DocumentSpec.model_validate({"index": "x", "root": {"table": "a.b", "fields": ["n"]} | content})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (["n"], {"n": DocumentFieldSpec(column="n")}),
        ([{"m": "n"}, "n"], {"m": DocumentFieldSpec(column="n"), "n": DocumentFieldSpec(column="n")}),
        ([{"a": "x", "b": "y"}], {"a": DocumentFieldSpec(column="x"), "b": DocumentFieldSpec(column="y")}),
        ({"m": "n"}, {"m": DocumentFieldSpec(column="n")}),
        ({"m": {"column": "n", "type": "date"}}, {"m": DocumentFieldSpec(column="n", type=FieldKind.DATE)}),
        ({"m": {"sql": "1 + 1"}}, {"m": DocumentFieldSpec(sql="1 + 1")}),
        ({"m": {"value": 0}}, {"m": DocumentFieldSpec(value=0)}),
        ({"m": {"value": False}}, {"m": DocumentFieldSpec(value=False)}),
        ({"m": {"value": ""}}, {"m": DocumentFieldSpec(value="")}),
        ({"m": {"value": 1.5}}, {"m": DocumentFieldSpec(value=1.5)}),
    ],
)
def test_fields_are_a_list_or_a_mapping(fields: Any, expected: Any) -> None:
    read = root_of(fields=fields).root.fields
    assert read == expected
    assert list(read) == list(expected), "documents have their fields in the order of the spec"


def test_a_constant_keeps_its_type() -> None:
    fields = root_of(fields={"a": {"value": True}, "b": {"value": 1}, "c": {"value": "1"}, "d": {"value": 1.0}}).root
    assert [type(part.value) for part in fields.fields.values()] == [bool, int, str, float]


def test_defaults_and_single_values() -> None:
    root = root_of(id="n", where={"state": "on", "kind": [1, 2]}).root
    assert root.id == ("n",)
    assert root.where == {"state": ["on"], "kind": [1, 2]}
    assert (root.routing, root.soft_delete, root.joins) == (None, None, {})
    assert root_of().root.id == ()
    assert root_of().root.where is None


JOIN = "index: x\nroot: {table: a.b, fields: [n], joins: {j: {table: c.d, fields: [m], %s}}}"
ON = "on: {a: b}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("index: [", "is not YAML"),
        ("index: UPPER\nroot: {table: a.b, fields: [x]}", "index: "),
        ("index: -x\nroot: {table: a.b, fields: [x]}", "index: "),
        ("root: {table: a.b, fields: [x]}", "index: "),
        ("index: x\nalias: x\nroot: {table: a.b, fields: [x]}", "`alias` is another name than `index`"),
        ("index: x\nalias: Y*\nroot: {table: a.b, fields: [x]}", "alias: "),
        ("index: x", "root: "),
        ("index: x\nroot: {fields: [x]}", "root.table: "),
        ("index: x\nroot: {table: nodot, fields: [x]}", "root.table: .*database.table"),
        ("index: x\nroot: {table: a.b}", "root.fields: "),
        ("index: x\nroot: {table: a.b, fields: []}", "root.fields: "),
        ("index: x\nroot: {table: a.b, fields: {}}", "root.fields: "),
        ("index: x\nroot: {table: a.b, fields: 7}", "root.fields: "),
        ("index: x\nroot: {table: a.b, fields: [7]}", "root.fields: .*a field is the name of a column"),
        ("index: x\nroot: {table: a.b, fields: {n: 7}}", "root.fields.n: "),
        ("index: x\nroot: {table: a.b, fields: {n: {}}}", "root.fields.n: .*one of `column`, `sql` and `value`"),
        ("index: x\nroot: {table: a.b, fields: {n: {sql: a, value: b}}}", "root.fields.n: .*one of"),
        ("index: x\nroot: {table: a.b, fields: {n: {column: a, sql: b}}}", "root.fields.n: .*one of"),
        ("index: x\nroot: {table: a.b, fields: {n: {sql: ''}}}", "root.fields.n.sql: "),
        ("index: x\nroot: {table: a.b, fields: {n: {column: a, type: number}}}", "root.fields.n.type: .*'keyword'"),
        ("index: x\nroot: {table: a.b, fields: {n: {colum: a}}}", "root.fields.n.colum: "),
        ("index: x\nroot: {table: a.b, fields: [n, x, n]}", "root.fields: .*the field n is named twice$"),
        ("index: x\nroot: {table: a.b, fields: [Name, name]}", "the field name is named twice, first as Name"),
        ("index: x\nroot: {table: a.b, fields: [n, {n: x}]}", "the field n is named twice"),
        ("index: x\nroot: {table: a.b, fields: [n], where: {a: []}}", "root.where: .*a has no values"),
        (
            "index: x\nroot: {table: a.b, fields: [n], where: {a: {b: c}}}",
            "root.where: .*a is compared with",
        ),
        ("index: x\nroot: {table: a.b, fields: [n], where: [a]}", "root.where: .*SQL, or columns with their values"),
        ("index: x\nroot: {table: a.b, columns: [n]}", "root.fields: Field required"),
        ("index: x\nroot: {table: a.b, fields: [n], columns: [n]}", "root.columns: "),
        ("index: x\nroot: {table: a.b, fields: [n]}\njoins: {}", "joins: "),
        ("index: x\nroot: {table: a.b, fields: [n], joins: {j: {table: c.d, on: {a: b}}}}", "root.joins.j.fields: "),
        (JOIN % "on: {}", "root.joins.j.on: "),
        (JOIN % "on: id", "root.joins.j.on: "),
        (JOIN % "many: true", "root.joins.j: .*one of `on` and `through`"),
        (JOIN % f"{ON}, through: {{table: e.f, on: {{a: b}}, to: {{c: d}}}}", "root.joins.j: .*`on` and `through`"),
        (JOIN % "through: {table: e.f, on: {a: b}}", "root.joins.j.through.to: "),
        (JOIN % "through: {table: f, on: {a: b}, to: {c: d}}", "root.joins.j.through.table: .*database.table"),
        (JOIN % f"{ON}, order: a", "root.joins.j: .*`many: true`"),
        (JOIN % f"{ON}, limit: 3", "root.joins.j: .*`many: true`"),
        (JOIN % f"{ON}, nested: true", "root.joins.j: .*`many: true`"),
        (JOIN % f"{ON}, many: true, limit: 0", "root.joins.j.limit: .*greater than or equal to 1"),
        (JOIN % f"{ON}, filter: ''", "root.joins.j.filter: "),
        (JOIN % f"{ON}, fielter: a", "root.joins.j.fielter: "),
        (JOIN % f"{ON}, joins: {{k: {{table: e, on: {{a: b}}, fields: [x]}}}}", "root.joins.j.joins.k.table: "),
        (ORDERS + "\ntransform: no.py:enrich", "transform.python: .*cannot read .*no.py: No such file"),
        (ORDERS + "\nextra: 1", "extra: "),
        (ORDERS + "\nindex: other", "the key index of line 2 is written again"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as raised:
        load_spec(write(tmp_path, text))
    assert "orders.yml" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_joins_are_nested_eight_deep_at_most() -> None:
    def nested(depth: int) -> dict[str, Any]:
        below = {"joins": {"j": nested(depth - 1)}} if depth > 1 else {}
        return {"table": "a.b", "on": {"x": "id"}, "fields": ["n"], **below}

    assert len(root_of(joins={"j": nested(8)}).tables) == 1
    with pytest.raises(ValidationError, match="nested 8 deep at most"):
        root_of(joins={"j": nested(9)})


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        root_of().root.table = "c.d"  # type: ignore[misc]
