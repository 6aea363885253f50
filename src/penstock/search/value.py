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

_LEAST, _MOST = Decimal(-(2**63)), Decimal(2**63 - 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_CHARS = len("2024-01-31")


def values_at(document: Mapping[str, Any], path: str) -> Iterator[Any]:
    """The scalars under a dotted path, through objects and lists; nulls and absent steps give nothing."""
    found: list[Any] = [document]
    for step in path.split("."):
        found = [
            cast("dict[str, Any]", item)[step]
            for item in _flat(found)
            if isinstance(item, dict) and cast("dict[str, Any]", item).get(step) is not None
        ]
    for value in _flat(found):
        if isinstance(value, dict):
            raise ValueError(f"field '{path}' is an object, but a value is declared")  # noqa: TRY004 - the document's fault
        if value is not None:
            yield value


def _flat(items: list[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, list):
            yield from _flat(cast("list[Any]", item))
        else:
            yield item


def canonical(kind: FieldKind, value: Any) -> str:
    """The one text of a value; ValueError when the kind does not take it."""
    match kind:
        case FieldKind.TEXT | FieldKind.KEYWORD:
            return value if isinstance(value, str) else _lower(value) if isinstance(value, bool) else str(value)
        case FieldKind.INTEGER:
            return _integer(value)
        case FieldKind.FLOAT:
            return _float(value)
        case FieldKind.BOOLEAN:
            return _boolean(value)
        case FieldKind.DATE:
            return _date(value)


def exact_terms(path: str, kind: FieldKind, value: Any) -> Iterator[str]:
    """The terms that a stored value answers to, see `exact_term`."""
    text = canonical(kind, value)
    if kind is FieldKind.KEYWORD and len(text) > MAX_KEYWORD_CHARS:
        return
    yield f"{path}={text}"
    if kind is FieldKind.DATE:
        yield f"{path}={text[:_DAY_CHARS]}"


def exact_term(path: str, text: str) -> str:
    """The term that finds a searched value, given as `searched` returned it."""
    return f"{path}={text}"


def searched(kind: FieldKind, text: str) -> str | None:
    """The canonical text of what somebody typed, None when no stored value can be equal to it. A date without a
    time stays a date: it means the whole day.
    """
    try:
        full = canonical(kind, text)
    except ValueError:
        return None
    return full[:_DAY_CHARS] if kind is FieldKind.DATE and len(text) <= _DAY_CHARS else full


def _lower(value: bool) -> str:
    return "true" if value else "false"


def _integer(value: Any) -> str:
    if isinstance(value, bool):
        raise ValueError(f"{value} is not an integer")  # noqa: TRY004 - the document's fault, not the caller's
    try:
        number = Decimal(value)
        # Compared before it is made an int: 1e999999999 would have a thousand million digits.
        is_in_range = _LEAST <= number <= _MOST
    except InvalidOperation as error:
        raise ValueError(f"{value!r} is not an integer") from error
    if not is_in_range:
        raise ValueError(f"{value!r} is out of range for a 64-bit integer")
    return str(int(number))


def _float(value: Any) -> str:
    if isinstance(value, bool):
        raise ValueError(f"{value} is not a number")  # noqa: TRY004 - the document's fault, not the caller's
    try:
        number = float(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{value!r} is not a number") from error
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not a finite number")
    return repr(number + 0.0)  # so that -0.0 is 0.0


def _boolean(value: Any) -> str:
    if isinstance(value, bool):
        return _lower(value)
    if value in ("true", "false", ""):
        return value or "false"
    raise ValueError(f"{value!r} is neither true nor false")


def _date(value: Any) -> str:
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
