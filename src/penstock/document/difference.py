"""What `verify` compares and what it finds: documents that the index lacks, has otherwise, or has besides."""

import json
from dataclasses import dataclass
from typing import Any

from penstock.model.difference_kind import DifferenceKind
from penstock.model.json_equality import is_same_json, parse_json


@dataclass(frozen=True, slots=True)
class DocumentState:
    """A document as the database makes it, or as the index has it."""

    text: str
    routing: str | None = None
    version: int = 0  # of the index

    def equals(self, other: "DocumentState") -> bool:
        """Return whether both have the same routing and the same JSON, whatever its spaces and the order of keys."""
        if self.routing != other.routing:
            return False
        return self.text == other.text or is_same_json(_parse(self.text), _parse(other.text))


@dataclass(frozen=True, slots=True)
class Difference:
    """A document that is not the same in the database and in the index."""

    id: str
    kind: DifferenceKind
    detail: str  # the first part that differs, for people
    version: int | None = None  # of the index; None where it has no such document
    reason: str = ""  # why it differs, where that is known
    routings: tuple[str | None, ...] = ()  # by which the index has it

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.kind} {self.id}: {self.detail}{why}" if self.detail else f"{self.kind} {self.id}{why}"


def describe_difference(source: DocumentState, stored: DocumentState) -> str:
    """Return the first part in which two documents differ, such as `customer.name is "Ana", the index has "Anna"`."""
    if source.routing != stored.routing:
        return f"routing is {_show(source.routing)}, the index has {_show(stored.routing)}"
    return _describe(_parse(source.text), _parse(stored.text), "")


def _describe(left: Any, right: Any, path: str) -> str:
    """Return the first part in which two parsed documents differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        for name in [*left, *(name for name in right if name not in left)]:  # pyright: ignore[reportUnknownVariableType]
            inner = f"{path}.{name}" if path else str(name)  # pyright: ignore[reportUnknownArgumentType]
            if name not in right:
                return f"{inner} is {_show(left[name])}, the index lacks it"
            if name not in left:
                return f"{inner} does not exist, the index has {_show(right[name])}"
            if not is_same_json(left[name], right[name]):
                return _describe(left[name], right[name], inner)
    if isinstance(left, list) and isinstance(right, list):
        lengths = len(left), len(right)  # pyright: ignore[reportUnknownArgumentType]
        for number, (one_value, other) in enumerate(zip(left, right, strict=False)):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            if not is_same_json(one_value, other):
                return _describe(one_value, other, f"{path}[{number}]")
        if lengths[0] != lengths[1]:
            return f"{path} has {lengths[0]} entries, the index has {lengths[1]}"
    return f"{path} is {_show(left)}, the index has {_show(right)}"


def _parse(text: str) -> Any:
    """Return the JSON of a document with all digits of its numbers; a text that is no JSON as it is."""
    try:
        return parse_json(text)
    except ValueError:
        return text


def _show(value: Any) -> str:
    """Return a value as a short text."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
