"""What a change of the shop is: values that somebody sent, statements in one transaction, and the orders it touches.

Each kind of change can tell by a document alone whether the document shows it, so that it can be timed from its commit
until every order that it touches is found as it now is.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pymysql.cursors import Cursor

from penstock.demo.shop import SEARCHABLE

Document = dict[str, Any]
UNCHANGED = "nothing was different, nothing to do"


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """What a change did: in words, the orders whose documents it touches, and whether a document shows it."""

    text: str
    orders: tuple[int, ...] = ()
    shows: Callable[[Document | None], bool] = lambda _: True
    order: int | None = None  # the order that was changed or made; None for a change of many


class ShopChange(BaseModel, ABC):
    """A kind of change with its values.

    with connection.cursor() as cursor:
        applied = change.apply(cursor)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    title: ClassVar[str]

    @abstractmethod
    def apply(self, cursor: Cursor) -> AppliedChange:
        """Run the statements; the caller commits. Raises LookupError for a row that is not there."""


@dataclass(frozen=True, slots=True)
class OrderRow:
    """The row of an order that is about to be changed."""

    key: int
    number: str
    state: str

    def apply_change(self, text: str, shows: Callable[[Document | None], bool]) -> AppliedChange:
        """Return what a change of this order did; a draft has no document that could show it."""
        return AppliedChange(text, (self.key,) if self.state in SEARCHABLE else (), shows, self.key)

    def keep(self) -> AppliedChange:
        """Return the result of a change that left this order as it was."""
        return AppliedChange(UNCHANGED, order=self.key)


def find_order(cursor: Cursor, key: int) -> OrderRow:
    """Return an order, locked until the end of the transaction."""
    number, state = _find(cursor, f"order {key}", "number, state FROM shop.orders WHERE id = %s FOR UPDATE", key)
    return OrderRow(key, number, state)


def find_product(cursor: Cursor, key: int) -> str:
    """Return the name of a product."""
    (name,) = _find(cursor, f"product {key}", "name FROM shop.product WHERE id = %s", key)
    return name


def find_tag(cursor: Cursor, key: int) -> str:
    """Return the name of a tag."""
    (name,) = _find(cursor, f"tag {key}", "name FROM shop.tag WHERE id = %s", key)
    return name


def find_line(cursor: Cursor, key: int) -> tuple[int, str]:
    """Return the order of a line and the name of its product."""
    columns = "line.order_id, product.name"
    tables = "shop.order_line AS line JOIN shop.product AS product ON product.id = line.product_id"
    order, name = _find(cursor, f"line {key}", f"{columns} FROM {tables} WHERE line.id = %s", key)
    return order, name


def _find(cursor: Cursor, what: str, query: str, key: int) -> tuple[Any, ...]:
    """Return one row, or raise LookupError."""
    cursor.execute(f"SELECT {query}", (key,))
    row = cursor.fetchone()
    if row is None:
        raise LookupError(f"there is no {what} any more")
    return row


def _read_name(value: Any) -> str:
    """Return a name without spaces around it, or raise the sentence to show."""
    name = value.strip() if isinstance(value, str) else ""
    if not 1 <= len(name) <= 80:
        raise ValueError("a name has 1 to 80 characters")
    if any("\ud800" <= sign <= "\udfff" for sign in name):  # half of a sign, which JSON can have and UTF-8 cannot
        raise ValueError("a name is made of whole characters")
    return name


def _read_price(value: Any) -> Decimal:
    """Return a price with two digits, or raise the sentence to show."""
    try:
        price = Decimal(str(value)).quantize(Decimal("0.01"))
    except InvalidOperation:
        raise ValueError("a price is a number such as 12.50") from None
    if not price.is_finite() or not 0 <= price < 100_000:
        raise ValueError("a price lies between 0 and 99999.99")
    return price


def _read_quantity(value: Any) -> int:
    """Return a quantity, or raise the sentence to show."""
    text = str(value).strip()
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:4]) <= 999):
        raise ValueError("a quantity is a whole number from 1 to 999")
    return int(text)


Key = Annotated[int, Field(ge=1, le=2**32 - 1)]
Name = Annotated[str, BeforeValidator(_read_name)]
Price = Annotated[Decimal, BeforeValidator(_read_price)]
Quantity = Annotated[int, BeforeValidator(_read_quantity)]
