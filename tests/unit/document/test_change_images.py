"""What an update touches: the same as its two images alone, also where both lead to the same documents."""

from typing import Any

import pytest

from penstock.document import ChangeReader
from tests.support.document_shop import (
    CUSTOMER,
    CUSTOMER_JOIN,
    LINE,
    LINES_JOIN,
    ORDERS,
    batch,
    change,
    graph_of,
    order,
)

OLD, NEW = {"order_id": 1, "position": 1, "quantity": 2, "product_id": 7}, {"quantity": 3}


@pytest.mark.parametrize(
    ("table", "before", "after"),
    [
        (ORDERS, order(1, customer_id=5), {"number": "N9"}),
        (ORDERS, order(1, customer_id=5), {"customer_id": 6}),
        (ORDERS, order(1, customer_id=5), {"customer_id": None}),
        (ORDERS, order(1), {"id": 2}),
        (ORDERS, order(1, state="open"), {"state": "paid"}),
        (CUSTOMER, {"id": 5, "name": "Ann", "city": "Porto", "country_id": 1}, {"name": "Eve"}),
        (CUSTOMER, {"id": 5, "name": "Ann", "city": "Porto", "country_id": 1}, {"id": 6}),
        (LINE, OLD, NEW),
        (LINE, OLD, {"order_id": 2}),
        (LINE, OLD, {"product_id": None}),
    ],
)
def test_an_update_touches_what_its_images_touch(table: Any, before: dict[str, Any], after: dict[str, Any]) -> None:
    reader = ChangeReader(graph_of({"customer": CUSTOMER_JOIN, "lines": LINES_JOIN}, routing="state"))
    after = before | after
    update = reader.read_changes(batch(change(table, 9, before, after)))
    images = reader.read_changes(batch(change(table, 9, before), change(table, 9, None, after)))
    assert (update.roots, update.routings, update.lookups) == (images.roots, images.routings, images.lookups)
    assert update.roots or update.lookups


def test_integers_that_are_no_numbers_in_json_are_read_all_the_same() -> None:
    touched = ChangeReader(graph_of()).read_changes(batch(change(ORDERS, 9, None, order("17"))))  # type: ignore[arg-type]
    assert touched.roots == {(17,): 9}
