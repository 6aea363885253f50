"""The change that a page asks for, read from JSON."""

from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from penstock.demo.change import ShopChange
from penstock.demo.order_changes import AddLine, DeleteOrder, NewOrder, PutOnTag, RemoveLine, SetState, TakeOffTag
from penstock.demo.shared_changes import ChangeProduct, RaisePrices, RenameTag

_CHANGE: TypeAdapter[ShopChange] = TypeAdapter(
    Annotated[
        NewOrder
        | SetState
        | AddLine
        | RemoveLine
        | PutOnTag
        | TakeOffTag
        | DeleteOrder
        | ChangeProduct
        | RenameTag
        | RaisePrices,
        Field(discriminator="kind"),
    ]
)


def read_change(body: Any) -> ShopChange:
    """Return the change that was sent, or raise a ValueError with the sentence to show."""
    try:
        return _CHANGE.validate_python(body)
    except ValidationError as error:
        (first, *_) = error.errors(include_url=False)
        path = ".".join(map(str, first["loc"][1:])) or "the change"
        own = first.get("ctx", {}).get("error")  # of our own checks, which are whole sentences
        raise ValueError(f"{path}: {first['msg']}" if own is None else str(own)) from None
