"""Values of declared fields: found in a document by path, brought to one canonical text per kind.

Invariant: two spellings of the same value (`7`, `"7"`, `7.0` for an INTEGER) have the same canonical text, in a
document and in a search; what is accepted and what is refused follows Elasticsearch's coercion.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from penstock.search.index import FieldKind

# Longer keywords are kept in the document but not searchable: a term has at most 32,766 bytes.
MAX_KEYWORD_CHARS = 8191

_RANGES = {
    FieldKind.INTEGER: (Decimal(-(2**63)), Decimal(2**63 - 1)),
    FieldKind.UNSIGNED: (Decimal(0), Decimal(2**64 - 1)),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_CHARS = len("2024-01-31")


def values_at(document: Mapping[str, Any], path: str) -> Iterator[Any]:
    """Yield the scalars under a dotted path, through objects and lists; nulls and absent steps give nothing."""
    values: list[Any] = [document]
    for step in path.split("."):
        values = [
            cast("dict[str, Any]", item)[step]
            for item in _flatten(values)
            if isinstance(item, dict) and cast("dict[str, Any]", item).get(step) is not None
        ]
    for value in _flatten(values):
        if isinstance(value, dict):
            raise ValueError(f"field '{path}' is an object, but a value is declared")  # noqa: TRY004 - the document's fault
        if value is not None:
            yield value


def _flatten(items: list[Any]) -> Iterator[Any]:
    """Yield the items of nested lists."""
    for item in items:
        if isinstance(item, list):
            yield from _flatten(cast("list[Any]", item))
        else:
            yield item


def canonical_text(kind: FieldKind, value: Any) -> str:
    """Return the canonical text of a value; ValueError if the kind does not accept it."""
    match kind:
        case FieldKind.TEXT | FieldKind.KEYWORD:
            return value if isinstance(value, str) else _boolean_text(value) if isinstance(value, bool) else str(value)
        case FieldKind.INTEGER | FieldKind.UNSIGNED:
            return _canonical_integer(value, *_RANGES[kind])
        case FieldKind.FLOAT:
            return _canonical_float(value)
        case FieldKind.BOOLEAN:
            return _canonical_boolean(value)
        case FieldKind.DATE:
            return _canonical_date(value)


def exact_terms(path: str, kind: FieldKind, value: Any) -> Iterator[str]:
    """Yield the entries of the search index that lead an exact-match query to a document with this field value."""
    text = canonical_text(kind, value)
    if kind is FieldKind.KEYWORD and len(text) > MAX_KEYWORD_CHARS:
        return
    yield f"{path}={text}"
    if kind is FieldKind.DATE:
        yield f"{path}={text[:_DAY_CHARS]}"


def exact_term(path: str, text: str) -> str:
    """Return the term that finds a searched value, given as `canonical_search_text` returned it."""
    return f"{path}={text}"


def canonical_search_text(kind: FieldKind, text: str) -> str | None:
    """Return the canonical text of what somebody typed; None if no stored value can be equal to it. A date without a
    time stays a date: it means the whole day.
    """
    try:
        full = canonical_text(kind, text)
    except ValueError:
        return None
    return full[:_DAY_CHARS] if kind is FieldKind.DATE and len(text) <= _DAY_CHARS else full


def _boolean_text(value: bool) -> str:
    """Return `true` or `false`."""
    return "true" if value else "false"


def _canonical_integer(value: Any, least: Decimal, most: Decimal) -> str:
    """Return the canonical text of an integer between two bounds."""
    if isinstance(value, bool):
        raise ValueError(f"{value} is not an integer")  # noqa: TRY004 - the document's fault, not the caller's
    try:
        number = Decimal(value)
        # Compared before it is made an int: 1e999999999 would have a thousand million digits.
        is_in_range = least <= number <= most
    except InvalidOperation as error:
        raise ValueError(f"{value!r} is not an integer") from error
    if not is_in_range:
        raise ValueError(f"{value!r} is out of range for an integer from {least} to {most}")
    return str(int(number))


def _canonical_float(value: Any) -> str:
    """Return the canonical text of a float."""
    if isinstance(value, bool):
        raise ValueError(f"{value} is not a number")  # noqa: TRY004 - the document's fault, not the caller's
    try:
        number = float(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{value!r} is not a number") from error
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not a finite number")
    return repr(number + 0.0)  # so that -0.0 is 0.0


def _canonical_boolean(value: Any) -> str:
    """Return the canonical text of a boolean."""
    if isinstance(value, bool):
        return _boolean_text(value)
    if value in ("true", "false", ""):
        return value or "false"
    raise ValueError(f"{value!r} is neither true nor false")


def _canonical_date(value: Any) -> str:
    """Return the canonical text of a date and time."""
    if isinstance(value, bool):
        raise ValueError(f"{value} is not a date")  # noqa: TRY004 - the document's fault, not the caller's
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        else:
            moment = _EPOCH + timedelta(milliseconds=value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{value!r} is not a date") from error
    return moment.replace(tzinfo=None).isoformat()
