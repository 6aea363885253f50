"""SQL text of document queries: names, values of keys, and conditions over lists of keys.

Values of keys travel as plain Python values: integers, Decimal, bytes, and texts; dates and times are texts as the
server prints them. The server compares a literal with a column by the type and the collation of the column.
"""

import base64
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from penstock.binlog.values.column import DEFAULT, Family, kernel_family_of
from penstock.binlog.values.decode import Fields, decode_column
from penstock.errors import IncompatibleColumnError, SchemaError
from penstock.model import Column, TableName, WireType
from penstock.snapshot.key_column import quote_name

KeyValue = int | Decimal | str | bytes
Key = tuple[KeyValue, ...]

_NUMBERS = {Family.INTEGER, Family.YEAR, Family.BIT}
_DATES = {Family.DATE, Family.DATETIME, Family.TIMESTAMP}
_INEXACT = {Family.REAL, Family.JSON, Family.VECTOR}
# Types that the log does not tell from BINARY, with a character that their texts have and base64 has not.
_ADDRESSES = {Family.UUID: "-", Family.INET4: ".", Family.INET6: ":"}


def quote_table(name: TableName) -> str:
    """Return the name of a table in SQL."""
    return f"{quote_name(name.schema)}.{quote_name(name.table)}"


def quote_text(text: str) -> str:
    """Return a text as an SQL literal, for a session with backslash escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def literal(value: KeyValue) -> str:
    """Return the SQL literal of a key's value."""
    match value:
        case bytes():
            return f"x'{value.hex()}'"
        case str():
            return quote_text(value)
        case Decimal():
            return format(value, "f")
        case _:
            return str(int(value))


def order_literal(column: Column, value: KeyValue) -> str:
    """Return the SQL literal by which a value of a key is ordered: the server orders ENUM and SET by their numbers, and
    compares them with a text by their labels."""
    if not column.labels:
        return literal(value)
    numbers = {label: number for number, label in enumerate(column.labels, 1)}
    labels = [str(value)] if column.type is WireType.ENUM else str(value).split(",")
    if unknown := next((label for label in labels if label and label not in numbers), None):
        raise SchemaError(f"column {column.name} has the label '{unknown}' since its table was read: start again")
    if column.type is WireType.ENUM:
        return str(numbers.get(str(value), 0))
    return str(sum(1 << (numbers[label] - 1) for label in labels if label))


def can_be_key(column: Column) -> bool:
    """Return whether rows can be found by values of a column: that of a FLOAT or of a JSON document is not exact."""
    return kernel_family_of(column)[0] not in _INEXACT


def value_from_json(column: Column, value: Any) -> KeyValue | None:
    """Return a value of a row image, which the stream has as JSON, as a key's value; None for NULL."""
    if value is None:
        return None
    family = kernel_family_of(column)[0]
    try:
        if family in _NUMBERS:
            return int(value)
        if family is Family.DECIMAL:
            return Decimal(value)
        if family is Family.BYTES:
            return base64.b64decode(value, validate=True)
        if family in _ADDRESSES and _ADDRESSES[family] not in value:
            return _address_text(column, base64.b64decode(value, validate=True))
    except (ValueError, TypeError, InvalidOperation) as error:
        raise IncompatibleColumnError(
            f"column {column.name} has the value {str(value)[:60]!r}, which is not of its type"
        ) from error
    text = str(value)
    return text.removesuffix("Z").replace("T", " ", 1) if family in _DATES else text


def _address_text(column: Column, raw: bytes) -> str:
    """Return the bytes of a UUID or of an internet address as the server prints them."""
    size = np.array([len(raw)], np.int32)
    fields = Fields(np.frombuffer(raw, np.uint8), np.zeros(1, np.int32), size, 0, np.empty(0, np.uint8))
    return decode_column(column, DEFAULT, fields)[0].as_py()


def value_from_text(column: Column, text: str) -> KeyValue:
    """Return a value of a key from the text that a document id has for it."""
    family = kernel_family_of(column)[0]
    if family in _NUMBERS:
        return int(text)
    if family is Family.DECIMAL:
        return Decimal(text)
    return bytes.fromhex(text) if family is Family.BYTES else text


def condition_in(columns: Sequence[str], keys: Sequence[Key]) -> str:
    """Return the condition that columns, given in SQL, have one of these keys. Several columns are compared one by one:
    not every server finds rows of a list of tuples by an index."""
    if len(columns) == 1:
        return f"{columns[0]} IN ({', '.join(literal(value) for (value,) in keys)})"
    tuples = (
        " AND ".join(f"{column} = {literal(value)}" for column, value in zip(columns, key, strict=True)) for key in keys
    )
    return "(" + " OR ".join(f"({text})" for text in tuples) + ")"


def split_keys(keys: Sequence[Key], size: int) -> Iterator[Sequence[Key]]:
    """Yield keys in lists of at most this size."""
    for first in range(0, len(keys), size):
        yield keys[first : first + size]
