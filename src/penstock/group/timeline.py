"""Transactions of several logs in one order, by time.

The order within a log is never changed: a transaction that has an earlier time than one before it in its log counts as
if it had the later one. What is known of a log's future is its bound: nothing that is to come of it is earlier.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.store import BatchSize

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class Pending:
    """Transactions of one log that wait, in their order. Nothing is said of any by an object of its own."""

    times: NDArray[np.int64]  # they never fall
    entries: NDArray[np.int64]
    sizes: NDArray[np.int64]  # in bytes
    are_statements: NDArray[np.bool_]
    is_open: bool  # the last one has no end yet
    bound: int  # as a time
    overdue: int  # so many have waited for the others long enough

    def __len__(self) -> int:
        return self.times.size


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """From which log each of the next transactions comes."""

    order: NDArray[np.int64]
    is_piece: bool  # the one that is next has no end yet, or is larger than a batch: what there is of it comes, alone

    @property
    def is_empty(self) -> bool:
        return not self.order.size


NOTHING = Plan(np.empty(0, np.int64), is_piece=False)


def plan(logs: Sequence[Pending], size: BatchSize, *, is_ddl_alone: bool = False) -> Plan:
    """As many as may come now and as a batch has room for."""
    which = np.repeat(np.arange(len(logs)), [len(log) for log in logs])
    if not which.size:
        return NOTHING
    times = np.concatenate([log.times for log in logs])
    order = np.argsort(times, kind="stable")
    order = order[: _allowed(logs, times, order)]
    if not order.size:
        return NOTHING
    ends = np.zeros(times.size, np.bool_)
    last = np.cumsum([len(log) for log in logs]) - 1
    ends[[int(at) for at, log in zip(last, logs, strict=True) if log.is_open]] = True
    if ends[order[0]]:
        return Plan(which[order[:1]], is_piece=True)
    order = _before(order, ends[order])
    if is_ddl_alone:
        statements = np.concatenate([log.are_statements for log in logs])[order]
        order = order[:1] if statements[0] else _before(order, statements)
    weights = np.concatenate([log.entries if size.unit == "items" else log.sizes for log in logs])[order]
    room = size.count if size.unit == "items" else size.bytes
    count = int(np.searchsorted(np.cumsum(weights), room, "right"))
    return Plan(which[order[: max(count, 1)]], is_piece=not count)


def _before(order: NDArray[np.int64], marks: NDArray[np.bool_]) -> NDArray[np.int64]:
    return order[: int(np.argmax(marks))] if marks.any() else order


def _allowed(logs: Sequence[Pending], times: NDArray[np.int64], order: NDArray[np.int64]) -> int:
    """How many of the first ones: nothing earlier can come of another log, or that was waited for long enough."""
    bounds = [log.bound for log in logs]
    others = [min(bounds[:i] + bounds[i + 1 :], default=NEVER) for i in range(len(logs))]
    limits = np.repeat(np.array(others, np.int64), [len(log) for log in logs])
    is_held = (times > limits)[order]
    is_overdue = np.concatenate([np.arange(len(log)) < log.overdue for log in logs])[order]
    free = int(np.argmax(is_held)) if is_held.any() else order.size
    late = order.size - int(np.argmax(is_overdue[::-1])) if is_overdue.any() else 0
    return max(free, late)
