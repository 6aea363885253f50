"""How fields of documents are searched, by the types of their columns and values."""

from penstock.document.spec import Scalar
from penstock.model import Column, WireType
from penstock.search.index import FieldKind

_NOT_SEARCHED = {WireType.JSON, WireType.VECTOR, WireType.GEOMETRY}
_LABELS = {WireType.ENUM, WireType.SET}
_KINDS = {
    **dict.fromkeys(
        (WireType.TINY, WireType.SHORT, WireType.INT24, WireType.LONG, WireType.LONGLONG, WireType.YEAR, WireType.BIT),
        FieldKind.INTEGER,
    ),
    **dict.fromkeys((WireType.FLOAT, WireType.DOUBLE, WireType.NEWDECIMAL), FieldKind.FLOAT),
    **dict.fromkeys((WireType.DATE, WireType.DATETIME2, WireType.TIMESTAMP2), FieldKind.DATE),
}


def kind_of_column(column: Column) -> FieldKind | None:
    """Return how a column is searched; None for documents, vectors and shapes, which are kept and not searched."""
    if column.type in _NOT_SEARCHED:
        return None
    if column.type is WireType.LONGLONG and column.unsigned:
        return FieldKind.UNSIGNED
    is_text = column.charset not in ("", "binary") and column.type not in _LABELS and not column.declared
    return _KINDS.get(column.type, FieldKind.TEXT if is_text else FieldKind.KEYWORD)


def kind_of_value(value: Scalar) -> FieldKind:
    """Return how a constant is searched."""
    if isinstance(value, bool):
        return FieldKind.BOOLEAN
    if isinstance(value, int):
        return FieldKind.INTEGER
    return FieldKind.FLOAT if isinstance(value, float) else FieldKind.KEYWORD
