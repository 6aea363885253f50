"""Delivers encoded operations to a search server that may be busy: send, check the outcome of each, retry where needed.

Invariant: an operation leaves the sender done, stale or rejected, or the sender raises. Only operations the server
asked to send again are sent again, later, in smaller requests; order among them is free because ids are unique.
"""

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.backoff import Backoff
from penstock.errors import SinkError, SinkUnavailableError
from penstock.search import bulk
from penstock.search.bulk import BulkAnswer, BulkFailure, BulkOutcome

log = logging.getLogger(__name__)

_SMALLEST_LIMIT_BYTES = 64 * 1024
_SPREAD = 0.5  # of delays, as a share of them
_QUIET_S = 10.0  # between two lines about the same trouble


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """Status and content of an HTTP answer."""

    status: int
    content: bytes


class SendBulk(Protocol):
    """Sends one bulk body to the server; a connection that fails or times out is a SinkUnavailableError."""

    def __call__(self, body: memoryview, /) -> HttpResponse:
        """Send a body, and return the answer."""
        ...


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The limits of bulk requests: how large they may be, and how often and how long they are retried."""

    bulk_bytes: int = 5 * 1024 * 1024
    # Time in which the server takes nothing at all, after which a write gives up; None waits until it is stopped.
    deadline_s: float | None = 60.0
    first_delay_s: float = 0.1
    longest_delay_s: float = 10.0


@dataclass(frozen=True, slots=True)
class RetryClock:
    """The clock, the sleep and the random numbers of retries, so that tests control them; and what stops them."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    random: Callable[[], float] = field(default_factory=lambda: Random().random)  # noqa: S311 - spreads retries, hides nothing
    is_stopped: Callable[[], bool] = lambda: False

    @classmethod
    def stopped_by(cls, stopped: threading.Event) -> "RetryClock":
        """Return a clock whose sleep ends when the event is set, and with it all retries."""
        return cls(sleep=stopped.wait, is_stopped=stopped.is_set)


@dataclass(slots=True)
class _DeliveryState:
    """State of one delivery."""

    outcomes: NDArray[np.uint8]
    failures: dict[int, BulkFailure]
    last_taken: float
    delays: int = 0


class BulkSender:
    """Sends bulk requests one at a time, and remembers between deliveries which size the server accepts."""

    def __init__(self, send: SendBulk, where: str, policy: RetryPolicy, retry_clock: RetryClock) -> None:
        self._send = send
        self._where = where
        self._policy = policy
        self._retry_clock = retry_clock
        self._backoff = Backoff(policy.first_delay_s, policy.longest_delay_s, spread=_SPREAD, random=retry_clock.random)
        self._ceiling_bytes = policy.bulk_bytes
        self._limit_bytes = policy.bulk_bytes
        self._quiet_until = -math.inf

    def deliver_operations(self, lines: pa.LargeStringArray) -> BulkAnswer:
        """Send all operations; each is DONE, STALE or REJECTED in the answer."""
        sizes = bulk.operation_sizes(lines)
        state = _DeliveryState(np.zeros(sizes.size, np.uint8), {}, self._retry_clock.clock())
        pending = np.arange(sizes.size)
        while pending.size:
            count = bulk.count_fitting(sizes[pending], self._limit_bytes)
            chosen, rest = pending[:count], pending[count:]
            again = self._send_request(lines, chosen, int(sizes[chosen].sum()), state)
            pending = np.concatenate([again, rest]) if again.size else rest
        return BulkAnswer(state.outcomes, state.failures)

    def _send_request(
        self, lines: pa.LargeStringArray, chosen: NDArray[np.int64], size_bytes: int, state: _DeliveryState
    ) -> NDArray[np.int64]:
        """Send one request, and return the operations that must be sent again."""
        try:
            response = self._send(bulk.build_bulk_body(lines, chosen))
        except SinkUnavailableError as error:
            self._back_off(str(error), size_bytes, state)
            return chosen
        if response.status == 413:
            return self._reduce_size(chosen, size_bytes, state)
        if response.status >= 300:
            failure = bulk.read_refusal(response.status, response.content)
            if bulk.classify_outcome(failure.status, failure.type) is not BulkOutcome.TRANSIENT:
                raise refusal_error(self._where, failure)
            self._back_off(str(failure), size_bytes, state)
            return chosen
        return self._apply_answer(bulk.read_answer(response.content, chosen.size), chosen, size_bytes, state)

    def _apply_answer(
        self, answer: BulkAnswer, chosen: NDArray[np.int64], size_bytes: int, state: _DeliveryState
    ) -> NDArray[np.int64]:
        """Record the outcome of each operation of a request, and return those that must be sent again."""
        busy: BulkFailure | None = None
        for number, failure in answer.failures.items():
            match answer.outcomes[number]:
                case BulkOutcome.FATAL:
                    raise refusal_error(self._where, failure)
                case BulkOutcome.TRANSIENT:
                    busy = failure
                case _:
                    state.failures[int(chosen[number])] = failure
        state.outcomes[chosen] = answer.outcomes
        again = chosen[answer.outcomes == BulkOutcome.TRANSIENT]
        if again.size < chosen.size:
            waited_s = self._retry_clock.clock() - state.last_taken
            if state.delays and waited_s >= _QUIET_S:
                log.warning("search index accepts writes again index=%r waited_s=%.0f", self._where, waited_s)
            state.last_taken, state.delays = self._retry_clock.clock(), 0
        if busy:
            self._back_off(str(busy), size_bytes, state)
        else:
            self._limit_bytes = min(self._limit_bytes * 2, self._ceiling_bytes)
        return again

    def _reduce_size(self, chosen: NDArray[np.int64], size_bytes: int, state: _DeliveryState) -> NDArray[np.int64]:
        """Reduce the size of requests, since the server's limit is below ours, and return the operations to send
        again.
        """
        if chosen.size > 1:
            self._ceiling_bytes = self._limit_bytes = size_bytes // 2
            log.info(
                "bulk request too large, sent again in smaller requests index=%r size_bytes=%d", self._where, size_bytes
            )
            return chosen
        row = int(chosen[0])
        state.outcomes[row] = BulkOutcome.REJECTED
        state.failures[row] = BulkFailure(413, "", f"{size_bytes} bytes are more than the server takes in one request")
        return chosen[:0]

    def _back_off(self, reason: str, size_bytes: int, state: _DeliveryState) -> None:
        """Wait for a doubling delay with a spread, or raise if nothing was accepted for too long, or when stopped."""
        now = self._retry_clock.clock()
        waited_s = now - state.last_taken
        left_s = math.inf if self._policy.deadline_s is None else self._policy.deadline_s - waited_s
        if left_s <= 0:
            raise self._give_up(f"has taken nothing for {waited_s:.0f} s: {reason}", state)
        state.delays += 1
        delay_s = min(self._backoff.delay_s(state.delays), left_s)
        self._limit_bytes = min(self._ceiling_bytes, max(size_bytes // 2, _SMALLEST_LIMIT_BYTES))
        if now >= self._quiet_until:
            self._quiet_until = now + _QUIET_S
            log.warning(
                "bulk request failed, retry scheduled index=%r waited_s=%.0f delay_s=%.2f next_request_bytes_max=%d"
                " reason=%s",
                *(self._where, waited_s, delay_s, self._limit_bytes, reason),
            )
        if not self._retry_clock.is_stopped():
            self._retry_clock.sleep(delay_s)
        if self._retry_clock.is_stopped():
            raise self._give_up(f"was waited for until stopped, for {waited_s:.0f} s: {reason}", state)

    def _give_up(self, what: str, state: _DeliveryState) -> SinkUnavailableError:
        """Return the error for a delivery that ends early."""
        is_left = (state.outcomes == BulkOutcome.PENDING) | (state.outcomes == BulkOutcome.TRANSIENT)
        return SinkUnavailableError(
            f"{self._where} {what}. {int(np.count_nonzero(is_left))} of {state.outcomes.size} operations are not "
            "written; writing the batch again is harmless"
        )


def refusal_error(where: str, failure: BulkFailure) -> SinkError:
    """Return the error for what no retry will fix, with what to do."""
    return SinkError(f"{where} refused: {failure}. {_remedy(failure)}")


def _remedy(failure: BulkFailure) -> str:
    """Return what an operator can do about a failed bulk request, as the end of an error message."""
    if failure.type == "cluster_block_exception":
        return "Remove the block from the index's settings (index.blocks.*)"
    if failure.type == "index_closed_exception":
        return "Open the index"
    if failure.type == "index_not_found_exception":
        return "Create the index by preparing it, then fill it by a full sync"
    if failure.status in {401, 403}:
        return "Grant the user of the URL the right to read, write, create and manage this index"
    return "Check the log of the search server for the cause"
