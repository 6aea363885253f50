"""What goes over canal's port, counted by destination and packet."""

import threading
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

LATENCY_MS = (2.5, 10.0, 25.0, 100.0)  # canal's buckets


@dataclass(slots=True)
class TrafficCounts:
    """Of one destination."""

    packets: Counter[str] = field(default_factory=Counter[str])  # by type
    errors: Counter[int] = field(default_factory=Counter[int])  # by code
    sent_bytes: int = 0  # of batches
    empty_batches: int = 0
    latencies: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_MS) + 1))  # by bucket, the last beyond all
    latency_ms: float = 0.0  # of all together

    def copy(self) -> "TrafficCounts":
        return TrafficCounts(
            Counter(self.packets),
            Counter(self.errors),
            self.sent_bytes,
            self.empty_batches,
            list(self.latencies),
            self.latency_ms,
        )


class Traffic:
    """Any thread may call it. What clients make up as a destination is counted without a name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found = {"": TrafficCounts()}

    def knows(self, destination: str) -> None:
        """There is one of that name."""
        with self._lock:
            self._found.setdefault(destination, TrafficCounts())

    def count_answer(self, destination: str, packet: str, seconds: float) -> None:
        with self._lock:
            found = self._of(destination)
            found.packets[packet] += 1
            found.latencies[bisect_left(LATENCY_MS, seconds * 1e3)] += 1
            found.latency_ms += seconds * 1e3

    def count_sent(self, destination: str, size_bytes: int, *, is_empty: bool) -> None:
        self.knows(destination)
        with self._lock:
            found = self._of(destination)
            found.sent_bytes += size_bytes
            found.empty_batches += is_empty

    def count_refusal(self, destination: str, packet: str, code: int) -> None:
        with self._lock:
            found = self._of(destination)
            found.packets[packet] += 1
            found.errors[code] += 1

    def counts(self) -> dict[str, TrafficCounts]:
        """A copy, by destination."""
        with self._lock:
            return {name: one.copy() for name, one in self._found.items()}

    def _of(self, destination: str) -> TrafficCounts:
        return self._found.get(destination) or self._found[""]
