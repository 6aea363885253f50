"""A mistake in a document spec names the file, the line, and what may have been meant."""

from pathlib import Path

import pytest

from penstock.document.spec_location import load_checked, load_located_spec
from penstock.errors import ConfigurationError, SchemaError
from tests.support.fake_catalog import FakeCatalog, FakeSqlError, FakeTable

TABLES = {
    "shop.product": FakeTable({"id": "int", "name": "text", "price": "decimal", "store_id": "int", "deleted": "text"}),
    "shop.store": FakeTable({"id": "int", "name": "text", "city": "text"}),
    "shop.tag": FakeTable({"id": "int", "label": "text"}),
    "shop.product_tag": FakeTable({"product_id": "int", "tag_id": "int"}, key=["product_id", "tag_id"]),
}
SPEC = """\
index: product
root:
  table: shop.product
  where: "price > 0"
  fields:
    - name
    - gross: {sql: price * 2}
  joins:
    store:
      table: shop.store
      on: {store_id: id}
      fields: [name, city]
    tags:
      table: shop.tag
      many: true
      through:
        table: shop.product_tag
        on: {id: product_id}
        to: {tag_id: id}
      order: label
      fields: [label]
transform:
  python: product_hook.py:enrich
  fields: {score: float}
"""
HOOK = """\
def enrich(document):
    return document | {"score": 1}
"""


def write(folder: Path, *changes: tuple[str, str]) -> Path:
    text = SPEC
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / "product.yml"
    path.write_text(text)
    (folder / "product_hook.py").write_text(HOOK)
    return path


def test_a_spec_without_mistakes_is_loaded(tmp_path: Path) -> None:
    loaded = load_checked(FakeCatalog(TABLES), write(tmp_path))
    assert [node.name for node in loaded.graph.nodes] == ["root", "store", "tags"]


@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [
        ("- name", "- nmae", 6, "table shop.product has no column nmae: did you mean name?"),
        ("store_id: id", "stor_id: id", 11, "table shop.product has no column stor_id: did you mean store_id?"),
        ("[name, city]", "[name, town]", 12, "table shop.store has no column town; it has id, name, city"),
        ("tag_id: id", "tag_ids: id", 19, "table shop.product_tag has no column tag_ids: did you mean tag_id?"),
        ("order: label", "order: -lable", 20, "table shop.tag has no column lable: did you mean label?"),
        ("table: shop.store", "table: shop.stores", 10, "there is no table shop.stores that this user can see: did"),
        ("many: true", "many: false", 13, "join 'tags' may find several rows of shop.tag"),
        ("  where: \"price > 0\"", "  soft_delete: deleted", 4, "soft_delete: shop.product.deleted is a text"),
        ('"price > 0"', '"price > (0"', 4, "the SQL 'price > (0' has a parenthesis without an end"),
        ("{score: float}", "{name: text}", 24, "the transform adds the field 'name', which the document has without"),
        ("{score: float}", "{store: text}", 24, "the transform adds the field 'store', which the document has without"),
        ("{score: float}", "{gross.net: float}", 24, "the transform adds the field 'gross.net', but 'gross' is"),
        ("{score: float}", "{score: float, score.x: float}", 24, "the transform adds the field 'score.x', but 'score'"),
        ("{score: float}", "{penstock_references: text}", 24, "the transform adds the field 'penstock_references'"),
        ("{score: float}", "{store..x: text}", 24, "a field cannot be called 'store..x': a name is missing"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_tables(tmp_path: Path, old: str, new: str, line: int, text: str) -> None:
    path = write(tmp_path, (old, new), *([("      order: label\n", "")] if "many: false" in new else []))
    with pytest.raises(SchemaError) as failure:
        load_checked(FakeCatalog(TABLES), path)
    assert str(failure.value).startswith(f"{path}, line {line}: {text}")


def test_what_the_server_refuses(tmp_path: Path) -> None:
    errors = {"prize * 2": FakeSqlError(1054, "Unknown column 'prize' in 'field list'")}
    path = write(tmp_path, ("price * 2", "prize * 2"))
    with pytest.raises(SchemaError, match=r"line 7: the server refuses the SQL .*field list': did you mean price\?"):
        load_checked(FakeCatalog(TABLES, errors), path)


def test_an_error_that_is_not_the_spec_s_is_not_hidden(tmp_path: Path) -> None:
    errors = {"price > 0": FakeSqlError(2013, "Lost connection")}
    with pytest.raises(FakeSqlError):
        load_checked(FakeCatalog(TABLES, errors), write(tmp_path))


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("index: product", "indx: product", "line 1: the spec: the key `index` is missing (and 1 more)"),
        ("      many: true", "      may: true", "line 15: root.joins.tags.may: there is no such key: did you mean"),
        ("      order: label", "      xyzw: label", "line 20: root.joins.tags.xyzw: there is no such key; there are"),
        ("{sql: price * 2}", "{sqll: price * 2}", "line 7: root.fields.gross.sqll: there is no such key: did you mean"),
        ("      table: shop.tag\n", "", "line 13: root.joins.tags: the key `table` is missing"),
        ("      on: {store_id: id}\n", "", "line 9: root.joins.store: a join has one of `on` and `through`"),
        ("        to: {tag", "        too: {tag", "line 16: root.joins.tags.through: the key `to` is missing"),
        ("  python: product", "  pythn: product", "line 22: transform: the key `python` is missing (and 1 more)"),
        ("  fields: {score", "  field: {score", "line 24: transform.field: there is no such key: did you mean fields?"),
        ("{score: float}", "{score: flaot}", "line 24: transform.fields.score: Input should be 'text', 'keyword',"),
        ("{score: float}", "[score]", "line 24: transform.fields: Input should be a valid dictionary"),
        ("product_hook.py:enrich", "7", "line 23: transform.python: a function is named as FILE.py:FUNCTION, or"),
        ("product_hook.py:enrich", "other.py:enrich", "line 23: transform.python: cannot read "),
        ("product_hook.py:enrich", "product_hook.py:enrch", "line 23: transform.python: "),
    ],
)  # fmt: skip
def test_what_is_no_spec(tmp_path: Path, old: str, new: str, text: str) -> None:
    path = write(tmp_path, (old, new))
    with pytest.raises(ConfigurationError) as failure:
        load_located_spec(path)
    assert f"{path}, {text}" in str(failure.value)


def test_a_transform_that_cannot_be_loaded_says_what_to_do(tmp_path: Path) -> None:
    path = write(tmp_path, ("product_hook.py:enrich", "product_hook.py:enrch"))
    with pytest.raises(ConfigurationError) as failure:
        load_located_spec(path)
    hook = tmp_path / "product_hook.py"
    assert str(failure.value) == (
        f"{path}, line 23: transform.python: {hook} has no function enrch: did you mean enrich?"
    )
    hook.write_text("def enrich(document:\n")
    with pytest.raises(
        ConfigurationError, match=r"line 23: transform.python: .*product_hook.py, line 1: '\(' was never"
    ):
        load_located_spec(path)
    path.write_text(SPEC.partition("transform:")[0] + "transform: product_hook.py:enrich\n")
    with pytest.raises(
        ConfigurationError, match=r"line 22: transform: .*product_hook.py, line 1: '\(' was never closed"
    ):
        load_located_spec(path)


def test_a_transform_is_found_beside_the_spec_wherever_the_process_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path)
    monkeypatch.chdir("/")
    transform = load_located_spec(path).transform
    assert transform is not None
    assert transform.python.load()({}) == {"score": 1}
    loaded = load_checked(FakeCatalog(TABLES), path).graph.spec.transform
    assert loaded == transform


def test_a_mistake_beside_a_transform_is_found_where_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, ("- name", "- nmae"))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[21:] + lines[:21]))  # the transform first
    with pytest.raises(SchemaError, match=r"line 9: table shop.product has no column nmae"):
        load_checked(FakeCatalog(TABLES), path)
