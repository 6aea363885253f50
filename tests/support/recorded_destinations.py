"""Destinations that only remember what they were asked for, and fail when told to."""

import threading
from collections.abc import Callable

from penstock.config import InstanceSettings
from penstock.errors import SourceConnectionError
from penstock.testing import poll_until


class RecordedDestinations:
    """`failing` says how many calls of a kind for a name will fail: `("start", "shop"): 2`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running: dict[str, InstanceSettings] = {}
        self.calls: list[tuple[str, str]] = []
        self.failing: dict[tuple[str, str], int] = {}
        self.held: dict[str, threading.Event] = {}
        self.busy: set[str] = set()
        self.mistakes: list[str] = []

    def start(self, settings: InstanceSettings) -> None:
        self._call("start", settings.destination)
        with self.lock:
            if settings.destination in self.running:
                self.mistakes.append(f"{settings.destination} runs already")
            self.running[settings.destination] = settings
            self.busy.discard(settings.destination)

    def reload(self, settings: InstanceSettings) -> None:
        self._call("reload", settings.destination)
        with self.lock:
            if settings.destination not in self.running:
                self.mistakes.append(f"{settings.destination} does not run")
            self.running[settings.destination] = settings
            self.busy.discard(settings.destination)

    def stop(self, name: str) -> None:
        self._call("stop", name)
        with self.lock:
            self.running.pop(name, None)
            self.busy.discard(name)

    def called(self, call: str, name: str) -> int:
        with self.lock:
            return self.calls.count((call, name))

    def _call(self, call: str, name: str) -> None:
        with self.lock:
            self.calls.append((call, name))
            if name in self.busy:
                self.mistakes.append(f"two calls at a time for {name}")
            self.busy.add(name)
            held = self.held.get(name)
        if held is not None:
            held.wait(10)
        with self.lock:
            left = self.failing.get((call, name), 0)
            if left:
                self.failing[call, name] = left - 1
                self.busy.discard(name)
                raise SourceConnectionError(f"{name} cannot {call}")


def poll(condition: Callable[[], object], timeout_s: float = 10) -> bool:
    """Wait until a condition holds, and return whether it does."""
    return poll_until(lambda: bool(condition()), timeout_s)
