"""Table names as people type them."""

import pytest

from penstock.errors import ConfigurationError
from penstock.model import ChangeKind, Column, TableName, TableSchema, WireType


def test_parse_and_print() -> None:
    name = TableName.parse(" shop.order.items ")
    assert (name.schema, name.table, str(name)) == ("shop", "order.items", "shop.order.items")


@pytest.mark.parametrize("text", ["", "shop", "shop.", ".orders", " . "])
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"database\.table"):
        TableName.parse(text)


def test_columns_are_found_by_name() -> None:
    table = TableSchema(TableName("shop", "orders"), (Column("id", WireType.LONG), Column("note", WireType.BLOB)))
    assert table.column("note") == Column("note", WireType.BLOB)
    assert table.column("Note") is None


def test_kinds_have_the_texts_of_the_change_feed() -> None:
    assert [kind.text for kind in ChangeKind] == ["insert", "update_preimage", "update_postimage", "delete"]
