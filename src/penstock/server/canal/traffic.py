"""Counts the packets, bytes and latencies of canal's port, by destination."""

import threading
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

LATENCY_MS = (2.5, 10.0, 25.0, 100.0)  # canal's buckets


@dataclass(slots=True)
class TrafficCounts:
    """The counters of one destination."""

    packets: Counter[str] = field(default_factory=Counter[str])  # by type
    errors: Counter[int] = field(default_factory=Counter[int])  # by code
    sent_bytes: int = 0  # of batches
    empty_batches: int = 0
    latencies: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_MS) + 1))  # by bucket, the last beyond all
    latency_ms: float = 0.0  # of all together

    def copy(self) -> "TrafficCounts":
        """Return a copy that does not change any more."""
        return TrafficCounts(
            Counter(self.packets),
            Counter(self.errors),
            self.sent_bytes,
            self.empty_batches,
            list(self.latencies),
            self.latency_ms,
        )


class Traffic:
    """The counters of all destinations. Any thread may call it. Names of destinations that do not exist are counted
    together, so that clients cannot fill the memory with them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_destination = {"": TrafficCounts()}

    def add_destination(self, destination: str) -> None:
        """Count a destination under its own name from now on: it exists."""
        with self._lock:
            self._by_destination.setdefault(destination, TrafficCounts())

    def count_answer(self, destination: str, packet: str, seconds: float) -> None:
        """Count a packet that was answered, and how long that took."""
        with self._lock:
            counts = self._counts_for(destination)
            counts.packets[packet] += 1
            counts.latencies[bisect_left(LATENCY_MS, seconds * 1e3)] += 1
            counts.latency_ms += seconds * 1e3

    def count_sent(self, destination: str, size_bytes: int, *, is_empty: bool) -> None:
        """Count the bytes of a batch that was sent."""
        self.add_destination(destination)
        with self._lock:
            counts = self._counts_for(destination)
            counts.sent_bytes += size_bytes
            counts.empty_batches += is_empty

    def count_refusal(self, destination: str, packet: str, code: int) -> None:
        """Count a packet that was answered with an error."""
        with self._lock:
            counts = self._counts_for(destination)
            counts.packets[packet] += 1
            counts.errors[code] += 1

    def counts(self) -> dict[str, TrafficCounts]:
        """Return a copy of the counters, by destination."""
        with self._lock:
            return {name: counts.copy() for name, counts in self._by_destination.items()}

    def _counts_for(self, destination: str) -> TrafficCounts:
        """Return the counters of a destination, or those for unknown destinations."""
        return self._by_destination.get(destination) or self._by_destination[""]
