"""Changes that the demo's page asks for, read from JSON: what is right is a change, what is wrong is told in words."""

import re
from decimal import Decimal
from typing import Any

import pytest

from penstock.demo.change_request import read_change
from penstock.demo.order_changes import AddLine, NewOrder
from penstock.demo.shared_changes import ChangeProduct, RenameTag

TAG: dict[str, Any] = {"kind": "rename_tag", "tag": 1}
PRODUCT: dict[str, Any] = {"kind": "change_product", "product": 1, "name": "kettle"}
LINE: dict[str, Any] = {"kind": "add_line", "order": 1, "product": 2}
A_NAME, A_PRICE = "a name has 1 to 80 characters", "a price lies between 0 and 99999.99"
A_QUANTITY = "a quantity is a whole number from 1 to 999"


def test_what_a_page_sends_becomes_a_change() -> None:
    assert read_change({"kind": "new_order"}) == NewOrder()
    assert read_change({**TAG, "name": "  <b>gift</b> "}) == RenameTag(tag=1, name="<b>gift</b>")
    assert read_change({**LINE, "quantity": " 12 "}) == AddLine(order=1, product=2, quantity=12)
    change = read_change({**PRODUCT, "price": "12.5"})
    assert isinstance(change, ChangeProduct)
    assert str(change.price) == "12.50"
    assert read_change({**PRODUCT, "price": "0"}) == ChangeProduct(product=1, name="kettle", price=Decimal(0))


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({**TAG, "name": ""}, A_NAME),
        ({**TAG, "name": "x" * 81}, A_NAME),
        ({**TAG, "name": None}, A_NAME),
        ({**TAG, "name": "half \ud83d"}, "a name is made of whole characters"),
        ({**PRODUCT, "price": "cheap"}, "a price is a number such as 12.50"),
        ({**PRODUCT, "price": "1e999999"}, "a price is a number such as 12.50"),
        ({**PRODUCT, "price": "NaN"}, A_PRICE),
        ({**PRODUCT, "price": "-0.01"}, A_PRICE),
        ({**PRODUCT, "price": "100000"}, A_PRICE),
        *(({**LINE, "quantity": quantity}, A_QUANTITY) for quantity in ("0", "1.5", "²", "1000", "99999", "", True)),
        ({"kind": "set_state", "order": 1, "state": "lost"}, "a state is one of open, paid, shipped, draft"),
        ({**LINE, "order": 0}, "order: Input should be greater than or equal to 1"),
        ({**LINE, "order": 1, "colour": "red"}, "colour: Extra inputs are not permitted"),
        (TAG, "name: Field required"),
        ([1, 2], "the change: "),
        ({"kind": "drop_table"}, "the change: "),
        ({}, "the change: "),
    ],
)
def test_what_is_wrong_is_told_in_words(body: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        read_change(body)
