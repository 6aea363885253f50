"""Merges the transactions of several logs into one order, by commit time.

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
class PendingTransactions:
    """The waiting transactions of one log, in their order, as arrays."""

    times: NDArray[np.int64]  # they never fall
    entries: NDArray[np.int64]
    sizes: NDArray[np.int64]  # in bytes
    are_statements: NDArray[np.bool_]
    is_open: bool  # the last one has no end yet
    bound: int  # as a time
    overdue: int  # the first ones, this many, have waited for the others long enough

    def __len__(self) -> int:
        return self.times.size


@dataclass(frozen=True, slots=True, eq=False)
class MergePlan:
    """The plan of a merge: it says from which log each of the next transactions is taken."""

    order: NDArray[np.int64]
    is_part: bool  # the next transaction is incomplete, or larger than a batch: a part of it is delivered

    @property
    def is_empty(self) -> bool:
        """Return whether no transaction can be delivered now."""
        return not self.order.size


EMPTY_PLAN = MergePlan(np.empty(0, np.int64), is_part=False)


def plan_merge(logs: Sequence[PendingTransactions], size: BatchSize, *, is_ddl_alone: bool = False) -> MergePlan:
    """Return which transactions to deliver next, in the order of their commit times: as many as need not wait for an
    earlier one of another log, and as fit into a batch."""
    which = np.repeat(np.arange(len(logs)), [len(log) for log in logs])
    if not which.size:
        return EMPTY_PLAN
    times = np.concatenate([log.times for log in logs])
    order = np.argsort(times, kind="stable")
    order = order[: _count_mergeable(logs, times, order)]
    if not order.size:
        return EMPTY_PLAN
    ends = np.zeros(times.size, np.bool_)
    last = np.cumsum([len(log) for log in logs]) - 1
    ends[[int(at) for at, log in zip(last, logs, strict=True) if log.is_open]] = True
    if ends[order[0]]:
        return MergePlan(which[order[:1]], is_part=True)
    order = _cut_at_first(order, ends[order])
    if is_ddl_alone:
        statements = np.concatenate([log.are_statements for log in logs])[order]
        order = order[:1] if statements[0] else _cut_at_first(order, statements)
    weights = np.concatenate([log.entries if size.unit == "items" else log.sizes for log in logs])[order]
    room = size.count if size.unit == "items" else size.bytes
    count = int(np.searchsorted(np.cumsum(weights), room, "right"))
    return MergePlan(which[order[: max(count, 1)]], is_part=not count)


def _cut_at_first(order: NDArray[np.int64], marks: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return `order` up to the first mark."""
    return order[: int(np.argmax(marks))] if marks.any() else order


def _count_mergeable(logs: Sequence[PendingTransactions], times: NDArray[np.int64], order: NDArray[np.int64]) -> int:
    """Return how many transactions can be delivered now: no other log can still bring an earlier one, or that was
    waited for long enough."""
    bounds = [log.bound for log in logs]
    others = [min(bounds[:i] + bounds[i + 1 :], default=NEVER) for i in range(len(logs))]
    limits = np.repeat(np.array(others, np.int64), [len(log) for log in logs])
    is_held = (times > limits)[order]
    is_overdue = np.concatenate([np.arange(len(log)) < log.overdue for log in logs])[order]
    free = int(np.argmax(is_held)) if is_held.any() else order.size
    late = order.size - int(np.argmax(is_overdue[::-1])) if is_overdue.any() else 0
    return max(free, late)
