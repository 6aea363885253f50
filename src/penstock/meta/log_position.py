"""From where capture goes on after a restart: the last place before which no client needs anything.

What the log says is put into the store before clients have it, so the end of what was read is no such place unless the
store outlives the process. A manager is given `EventStore.acked`.
"""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from penstock.coordinate import Fence, Tree
from penstock.disk import replace_file
from penstock.errors import CoordinationError, MetaError
from penstock.meta.cursor import Cursor
from penstock.meta.zookeeper import ROOT

log = logging.getLogger(__name__)


class LogPositions(Protocol):
    """Of one destination. Both raise MetaError, CoordinationError or FencedError."""

    def load(self) -> Cursor | None: ...

    def save(self, place: Cursor) -> None: ...


class MemoryPositions:
    """For reconnections; gone with the process."""

    def __init__(self) -> None:
        self._place: Cursor | None = None

    def load(self) -> Cursor | None:
        return self._place

    def save(self, place: Cursor) -> None:
        self._place = place


class FilePositions:
    """`parse.dat`, where canal has it; replaced as a whole."""

    def __init__(self, destination: str, folder: Path) -> None:
        self.path = folder / destination / "parse.dat"

    def load(self) -> Cursor | None:
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise MetaError(f"{self.path} cannot be read: {error.strerror}") from None
        return _cursor(raw, str(self.path))

    def save(self, place: Cursor) -> None:
        try:
            replace_file(self.path, json.dumps(place.to_json()).encode())
        except OSError as error:
            raise MetaError(f"{self.path} cannot be written: {error.strerror}") from None


class ZooKeeperPositions:
    """/otter/canal/destinations/{destination}/parse"""

    def __init__(self, destination: str, tree: Tree, *, fence: Fence | None = None) -> None:
        self._path = f"{ROOT}/{destination}/parse"
        self._tree, self._fence = tree, fence

    def load(self) -> Cursor | None:
        found = self._tree.read(self._path)
        return _cursor(found[0], self._path) if found and found[0] else None

    def save(self, place: Cursor) -> None:
        raw = json.dumps(place.to_json(with_type=True), separators=(",", ":")).encode()
        self._tree.commit({self._path: raw}, self._fence.check if self._fence else None)


class CursorPositions:
    """The lowest cursor of the clients; these are kept by their manager."""

    def __init__(self, lowest: Callable[[], Cursor | None]) -> None:
        self._lowest = lowest

    def load(self) -> Cursor | None:
        return self._lowest()

    def save(self, place: Cursor) -> None:
        """They are."""


class FailoverPositions:
    """The first that has one, or can be read; kept in the first that can be written. An older place than the last gives
    duplicates, never a gap."""

    def __init__(self, *several: LogPositions) -> None:
        self._several = several

    def load(self) -> Cursor | None:
        problem: MetaError | CoordinationError | None = None
        for one in self._several:
            try:
                found = one.load()
            except (MetaError, CoordinationError) as error:
                log.warning("a position cannot be read: %s", error)
                problem = problem or error
                continue
            if found is not None:
                return found
        if problem is not None:
            raise problem  # none is not the same as not known
        return None

    def save(self, place: Cursor) -> None:
        *others, last = self._several
        for one in others:
            try:
                one.save(place)
            except (MetaError, CoordinationError) as error:
                log.warning("a position is kept elsewhere: %s", error)
                continue
            return
        last.save(place)


def _cursor(raw: bytes, where: str) -> Cursor:
    try:
        value: Any = json.loads(raw)
    except ValueError:
        raise MetaError(f"{where} holds no position: {raw[:80]!r}") from None
    return Cursor.from_json(value)
