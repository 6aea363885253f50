"""The filter of an instance as people write it."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from penstock.config import ColumnSettings, FilterSettings, load_server_settings
from penstock.config.filter_settings import parse_canal_columns
from penstock.errors import ConfigurationError


def of(**given: object) -> FilterSettings:
    return FilterSettings.model_validate(given)


def test_texts_and_lists() -> None:
    assert of(allow="a.b,c.d").allow == ("a.b,c.d",)
    assert of(allow=["a.b", "c.d"], deny=[]) == FilterSettings(allow=("a.b", "c.d"), deny=())
    assert of().deny == ("mysql\\.slave_.*",)
    assert "ddl" in of().kinds


def test_canals_lists_of_columns() -> None:
    assert of(columns={"keep": "shop.a:id/name, shop.b:id", "drop": "crm.a:secret"}).columns == (
        ColumnSettings(table="shop\\.a", keep=("id", "name")),
        ColumnSettings(table="shop\\.b", keep=("id",)),
        ColumnSettings(table="crm\\.a", drop=("secret",)),
    )
    assert parse_canal_columns() == ()
    assert of(columns=[{"table": "shop\\..*", "drop": "secret"}]).columns[0].drop == ("secret",)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"allow": "a.("}, r"rule 1 of the allow list, 'a\.\('"),
        ({"deny": ["a.b", "["]}, "rule 2 of the deny list"),
        ({"kinds": ["inserts"]}, "Input should be 'insert', 'update'"),
        ({"columns": [{"table": "a.b"}]}, "set either keep or drop"),
        ({"columns": [{"table": "a.b", "keep": "a", "drop": "b"}]}, "set either keep or drop"),
        ({"columns": [{"table": "(", "keep": "a"}]}, "rule 1 of the columns list"),
        ({"columns": {"keep": "shop.a"}}, "'shop.a' is no list of columns"),
        ({"columns": {"keep": "shop:a"}}, "not a table name: 'shop'"),
        ({"columns": {"hide": "shop.a:a"}}, "there is keep and drop, not hide"),
        ({"columns": {"keep": "shop.a:a", "drop": "shop.a:b"}}, "two lists of columns"),
        ({"black": "a.b"}, "Extra inputs"),
    ],
)
def test_mistakes(given: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        of(**given)


def test_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "penstock.yml"
    path.write_text(
        "instances:\n- filter:\n    allow: shop\\..*\n    columns: {drop: 'shop.a:x'}\n    kinds: [insert]\n"
    )
    settings = load_server_settings(path).instances[0].filter
    assert (settings.allow, settings.kinds) == (("shop\\..*",), ("insert",))
    path.write_text("instances:\n- filter:\n    deny: [a.b, '(']\n")
    with pytest.raises(ConfigurationError, match=r"instances\.0\.filter\.deny: .*rule 2 of the deny list"):
        load_server_settings(path)
