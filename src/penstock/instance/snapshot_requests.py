"""What people have asked of the snapshots of an instance, persisted where its cursors are: a server that takes over
knows it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock.config import InstanceSettings
from penstock.coordinate import Tree
from penstock.disk import replace_file
from penstock.errors import MetaError
from penstock.meta.zookeeper_backend import ROOT

_FILE = "snapshots.json"
_NODE = "snapshots"


@dataclass(frozen=True, slots=True)
class SnapshotRequests:
    """What operators requested: whether snapshots are paused, and which tables to read again, each with the number of
    its last request."""

    is_paused: bool = False
    again: dict[str, int] = field(default_factory=dict[str, int])

    def to_bytes(self) -> bytes:
        """Return the requests as JSON."""
        return json.dumps({"paused": self.is_paused, "again": self.again}).encode()

    @classmethod
    def from_bytes(cls, raw: bytes, where: str) -> "SnapshotRequests":
        """Return the requests that `to_bytes` made JSON of; none for an empty text."""
        if not raw:
            return cls()
        try:
            saved: dict[str, Any] = json.loads(raw)
            return cls(bool(saved["paused"]), {str(name): int(number) for name, number in saved["again"].items()})
        except (ValueError, KeyError, TypeError, AttributeError):
            raise MetaError(
                f"{where} does not say what was asked of snapshots, but {raw[:80]!r}: remove it, then pause snapshots"
                " or ask for tables again"
            ) from None


class RequestStore(Protocol):
    """Loads and saves the requests of one destination. Both methods raise MetaError or CoordinationError."""

    def load(self) -> SnapshotRequests:
        """Return what was saved last, by whichever server; no requests when nothing was."""
        ...

    def save(self, requests: SnapshotRequests) -> None:
        """Save the requests."""
        ...


class MemoryRequests:
    """Holds the requests in memory; they are lost with the process."""

    def __init__(self) -> None:
        self._requests = SnapshotRequests()

    def load(self) -> SnapshotRequests:
        """Return what this process has saved last."""
        return self._requests

    def save(self, requests: SnapshotRequests) -> None:
        """Remember the requests until the process ends."""
        self._requests = requests


class FileRequests:
    """Persists the requests in `snapshots.json` beside `meta.dat`; the file is replaced as a whole."""

    def __init__(self, destination: str, folder: Path) -> None:
        self._path = folder / destination / _FILE

    def load(self) -> SnapshotRequests:
        """Return the requests in the file; none when it does not exist."""
        try:
            return SnapshotRequests.from_bytes(self._path.read_bytes(), str(self._path))
        except FileNotFoundError:
            return SnapshotRequests()
        except OSError as error:
            raise MetaError(f"{self._path} cannot be read: {error.strerror}") from None

    def save(self, requests: SnapshotRequests) -> None:
        """Replace the file."""
        try:
            replace_file(self._path, requests.to_bytes())
        except OSError as error:
            raise MetaError(f"{self._path} cannot be written: {error.strerror}") from None


class ZooKeeperRequests:
    """Persists the requests in the node /otter/canal/destinations/{destination}/snapshots."""

    def __init__(self, destination: str, tree: Callable[[], Tree]) -> None:
        """`tree` returns that of the running instance, which is opened again when the instance is."""
        self._path, self._tree = f"{ROOT}/{destination}/{_NODE}", tree

    def load(self) -> SnapshotRequests:
        """Return the requests in the node; none when it does not exist."""
        node = self._tree().read(self._path)
        return SnapshotRequests.from_bytes(node[0] if node else b"", self._path)

    def save(self, requests: SnapshotRequests) -> None:
        """Write the node. Any server may: people have asked for it."""
        self._tree().commit({self._path: requests.to_bytes()})


def open_request_store(settings: InstanceSettings, tree: Callable[[], Tree]) -> RequestStore:
    """Return the store of the requests: where the cursors are, or else where the events are."""
    if settings.meta_kind in {"zookeeper", "mixed", "period-mixed"}:
        return ZooKeeperRequests(settings.destination, tree)
    return MemoryRequests() if settings.data_dir is None else FileRequests(settings.destination, settings.data_dir)
