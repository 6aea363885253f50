"""The documents of an index beside the expected ones: which are missing, stale or extra, with the first examples."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

EXAMPLES = 3


@dataclass
class Differences:
    """What is wrong with an index; false when nothing is. `examples` has the first of each kind, in words."""

    missing: list[str] = field(default_factory=list[str])
    stale: list[str] = field(default_factory=list[str])
    extra: list[str] = field(default_factory=list[str])
    examples: list[str] = field(default_factory=list[str])

    def __bool__(self) -> bool:
        return bool(self.missing or self.stale or self.extra)

    def add(self, ids: list[str], key: str, example: str) -> None:
        """Record a document that is wrong."""
        ids.append(key)
        if len(ids) <= EXAMPLES:
            self.examples.append(example)

    def __str__(self) -> str:
        counts = f"missing {len(self.missing)}, stale {len(self.stale)}, extra {len(self.extra)}"
        return "\n  ".join((counts, *self.examples))


def compare(
    expected: Mapping[str, dict[str, Any]], documents: Iterable[tuple[str, str | dict[str, Any]]]
) -> Differences:
    """Compare the documents of an index, as JSON texts or parsed with `parse_float=Decimal`, with what it must hold. A
    second document with one id is extra."""
    differences = Differences()
    seen: set[str] = set()
    for key, document in documents:
        if key not in expected or key in seen:
            reason = "twice" if key in seen else "extra"
            differences.add(differences.extra, key, f"{reason} {key!r}: {str(document)[:200]}")
            continue
        seen.add(key)
        actual = json.loads(document, parse_float=Decimal) if isinstance(document, str) else document
        path = find_difference(expected[key], actual)
        if path:
            differences.add(differences.stale, key, f"stale {key!r}: {path}")
    for key in expected.keys() - seen:
        differences.add(differences.missing, key, f"missing {key!r}: {str(expected[key])[:200]}")
    return differences


def find_difference(expected: Any, actual: Any, path: str = "") -> str:
    """Return where two values differ and how, or nothing. Numbers keep their kind: 1 is not true, 35.0 is not 35.00;
    a float is compared by its value, for JSON writes it in more than one way."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name in (*expected, *(actual.keys() - expected.keys())):
            if name not in expected or name not in actual:
                return f"{path}.{name} is {'not expected' if name in actual else 'not there'}"
            if difference := find_difference(expected[name], actual[name], f"{path}.{name}"):
                return difference
        return ""
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = enumerate(zip(expected, actual, strict=True))
        return next((text for i, pair in pairs if (text := find_difference(*pair, f"{path}[{i}]"))), "")
    return "" if _is_same(expected, actual) else f"{path} is {_shown(actual)}, expected {_shown(expected)}"


def _is_same(expected: Any, actual: Any) -> bool:
    """Return whether two values that are no objects are the same one."""
    if isinstance(expected, float):
        return type(actual) in (int, Decimal) and float(actual) == expected
    return type(expected) is type(actual) and str(expected) == str(actual)


def _shown(value: Any) -> str:
    """Return a value in words that fit a line."""
    return str(value)[:160] if isinstance(value, Decimal) else repr(value)[:160]
