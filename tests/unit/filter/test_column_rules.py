"""Columns to show of a table."""

import pytest

from penstock.config import ColumnSettings
from penstock.errors import ConfigurationError
from penstock.filter import ColumnRules
from penstock.model import Column, TableName, TableSchema, WireType

USER = TableSchema(
    TableName("shop", "user"), tuple(Column(name, WireType.LONG) for name in ("id", "Name", "secret", "day")), ("id",)
)


def shown(*settings: ColumnSettings) -> list[str]:
    return [column.name for column in ColumnRules.from_settings(settings).columns_to_show(USER)]


def test_keep_and_drop_in_the_tables_order() -> None:
    assert shown() == ["id", "Name", "secret", "day"]
    assert shown(ColumnSettings(table="crm\\..*", drop=("id",))) == ["id", "Name", "secret", "day"]
    assert shown(ColumnSettings(table="SHOP\\..*", drop=("SECRET", "none"))) == ["id", "Name", "day"]
    assert shown(ColumnSettings(table="shop\\.user", keep=("day", "id"))) == ["id", "day"]


def test_the_first_that_matches_counts() -> None:
    first, second = ColumnSettings(table=".*\\.user", drop=("day",)), ColumnSettings(table="shop\\..*", drop=("name",))
    assert shown(first, second) == ["id", "Name", "secret"]
    assert shown(second, first) == ["id", "secret", "day"]


@pytest.mark.parametrize(
    "settings", [ColumnSettings(table="shop.user", drop=("ID",)), ColumnSettings(table="shop.user", keep=("name",))]
)
def test_a_key_cannot_be_left_out(settings: ColumnSettings) -> None:
    with pytest.raises(ConfigurationError, match=r"rule 1 of the columns, for shop\.user, leaves out id of the key"):
        shown(settings)


def test_one_expression_each() -> None:
    with pytest.raises(ConfigurationError, match="one regular expression"):
        shown(ColumnSettings(table="a.b,c.d", keep=("x",)))
