"""Tells whether two JSON values are the same: `true` is not 1, and numbers count with all of their digits."""

import json
from decimal import Decimal
from typing import Any, cast


def parse_json(text: str) -> Any:
    """Return the value of a JSON text with all digits of its numbers. Raises ValueError for a text that is no JSON."""
    return json.loads(text, parse_float=Decimal)


def is_same_json(left: Any, right: Any) -> bool:
    """Return whether two values of `parse_json` are the same, whatever the order of keys."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        first, second = cast("dict[str, Any]", left), cast("dict[str, Any]", right)
        return first.keys() == second.keys() and all(is_same_json(first[name], second[name]) for name in first)
    if isinstance(left, list) and isinstance(right, list):
        values, others = cast("list[Any]", left), cast("list[Any]", right)
        return len(values) == len(others) and all(map(is_same_json, values, others))
    return bool(left == right)
