"""Which columns an expression of a spec uses: never too few, and what is not one expression is refused."""

import pytest

from penstock.document.sql_columns import find_columns
from tests.support.document_shop import integer, table, text

SCHEMA = table("orders", integer("id"), text("state"), integer("total"), text("Größe"), integer("order"), text("na`me"))


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("", set()),
        ("1 = 1", set()),
        ("state <> 'draft'", {"state"}),
        ("STATE <> 'draft'", {"state"}),
        ("`State` = 1 AND total>0", {"state", "total"}),
        ("state = 'total'", {"state"}),
        ("state = 'it''s total'", {"state"}),
        ("state = 'a\\'total'", {"state"}),
        ("COALESCE(total, id) > '/* state */ -- #'", {"total", "id"}),
        ("größe = 1", {"Größe"}),
        ("`order` + 1", {"order"}),
        ("`na``me` IS NULL", {"na`me"}),
        ("orders.total > 1", {"total"}),
        ("CASE WHEN (total) THEN (state) END", {"total", "state"}),
        ("state(1)", {"state"}),
        ("totals > 1", set()),
    ],
)
def test_columns_are_found_by_name(sql: str, columns: set[str]) -> None:
    assert find_columns(sql, SCHEMA) == columns


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("1; DROP TABLE orders", "must be one expression"),
        ("total > 0;", "must be one expression"),
        ("(total", "has a parenthesis without an end"),
        ("total)", "closes a parenthesis that it did not open"),
        ("total) OR (1", "closes a parenthesis that it did not open"),
        ("total > 0 -- ", "has a comment"),
        ("total > 0 # all", "has a comment"),
        ("total /* open", "has a comment"),
        ("'open", "cannot be read"),
        ("`open", "cannot be read"),
    ],
)
def test_what_is_not_one_expression_is_refused(sql: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        find_columns(sql, SCHEMA)
