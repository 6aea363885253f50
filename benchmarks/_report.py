"""Timing and printing that benchmarks share."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def best_of(rounds: int, works: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Shortest seconds of each work; they take turns, so that a busy moment hits all alike."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, work in works.items():
            best[name] = min(best.get(name, float("inf")), seconds(work))
    return best


def print_table(title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """First column to the left, the others to the right."""
    widths = [max(len(line[i]) for line in (head, *lines)) for i in range(len(head))]
    print(f"\n{title}\n")
    for line in (head, ["-" * width for width in widths], *lines):
        cells = [
            line[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
        ]
        print("  ".join(cells))


def print_figures(benchmark: str, figures: Mapping[str, Any]) -> None:
    """The last line, for machines."""
    print()
    print(json.dumps({"benchmark": benchmark, **figures}), flush=True)
