"""Prometheus' text format 0.0.4: families of samples, each family once."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})

Kind = Literal["counter", "gauge"]


class Exposition:
    """Collects samples and writes them in Prometheus' text format. Samples may come in any order; those without a value
    are left out."""

    def __init__(self) -> None:
        self._families: dict[str, tuple[str, str, list[str]]] = {}

    def add(self, kind: Kind, name: str, help_text: str, value: float | None, **labels: object) -> None:
        """Add one sample of a counter or gauge, unless its value is None."""
        if value is not None:
            self._get_family(kind, name, help_text).append(f"{name}{_format_labels(labels)} {_format_number(value)}")

    def add_histogram(
        self, name: str, help_text: str, bounds: Sequence[float], counts: Sequence[int], total: float, **labels: object
    ) -> None:
        """Add a histogram. `counts` has one more element than `bounds`, for values beyond all bounds."""
        lines, seen = self._get_family("histogram", name, help_text), 0
        for bound, count in zip([*bounds, math.inf], counts, strict=True):
            seen += count
            lines.append(f"{name}_bucket{_format_labels({**labels, 'le': _format_number(bound)})} {seen}")
        lines += [
            f"{name}_sum{_format_labels(labels)} {_format_number(total)}",
            f"{name}_count{_format_labels(labels)} {seen}",
        ]

    def _get_family(self, kind: str, name: str, help_text: str) -> list[str]:
        """Return the list of samples of a metric, which begins with its first sample."""
        return self._families.setdefault(name, (kind, help_text, []))[2]

    def to_text(self) -> str:
        """Return all samples as text, grouped by metric."""
        lines: list[str] = []
        for name, (kind, help_text, samples) in self._families.items():
            lines += [f"# HELP {name} {help_text.translate(_HELP_ESCAPES)}", f"# TYPE {name} {kind}", *samples]
        return "\n".join(lines) + "\n"


def _format_labels(labels: Mapping[str, object]) -> str:
    """Return labels as `{name="value",…}`."""
    inside = ",".join(f'{name}="{str(value).translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{inside}}}" if inside else ""


def _format_number(value: float) -> str:
    """Return a number as Prometheus reads it."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
