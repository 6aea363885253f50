"""Prometheus' text format 0.0.4: families of samples, each family once."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})

Kind = Literal["counter", "gauge"]


class Exposition:
    """Samples may come in any order; what has no value is left out."""

    def __init__(self) -> None:
        self._families: dict[str, tuple[str, str, list[str]]] = {}

    def add(self, kind: Kind, name: str, about: str, value: float | None, **labels: object) -> None:
        if value is not None:
            self._family(kind, name, about).append(f"{name}{_labels(labels)} {_number(value)}")

    def histogram(
        self, name: str, about: str, bounds: Sequence[float], counts: Sequence[int], total: float, **labels: object
    ) -> None:
        """`counts` has one more than `bounds`: what lies beyond all."""
        lines, seen = self._family("histogram", name, about), 0
        for bound, count in zip([*bounds, math.inf], counts, strict=True):
            seen += count
            lines.append(f"{name}_bucket{_labels({**labels, 'le': _number(bound)})} {seen}")
        lines += [f"{name}_sum{_labels(labels)} {_number(total)}", f"{name}_count{_labels(labels)} {seen}"]

    def _family(self, kind: str, name: str, about: str) -> list[str]:
        return self._families.setdefault(name, (kind, about, []))[2]

    def text(self) -> str:
        lines: list[str] = []
        for name, (kind, about, samples) in self._families.items():
            lines += [f"# HELP {name} {about.translate(_HELP_ESCAPES)}", f"# TYPE {name} {kind}", *samples]
        return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, object]) -> str:
    inside = ",".join(f'{name}="{str(value).translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{inside}}}" if inside else ""


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
