"""The position at which capture resumes after a restart: the last one before which no client needs anything.

Events reach the store before clients ack them, so the end of what was read is safe to resume from only if the store is
persistent. A manager is given `EventStore.acked`.
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
from penstock.meta.zookeeper_backend import ROOT

log = logging.getLogger(__name__)


class LogPositions(Protocol):
    """Loads and saves capture's position for one destination. Both methods raise MetaError, CoordinationError or
    FencedError."""

    def load(self) -> Cursor | None:
        """Return the position that was saved last; None when there is none."""
        ...

    def save(self, cursor: Cursor) -> None:
        """Save the position at which capture resumes after a restart."""
        ...


class MemoryPositions:
    """Holds the position in memory, for reconnections; it is lost with the process.

    positions = MemoryPositions()
    positions.save(cursor)
    """

    def __init__(self) -> None:
        self._cursor: Cursor | None = None

    def load(self) -> Cursor | None:
        """Return the position that this process has saved last; None before the first."""
        return self._cursor

    def save(self, cursor: Cursor) -> None:
        """Remember the position until the process ends."""
        self._cursor = cursor


class FilePositions:
    """Persists the position in `parse.dat`, where canal has it; the file is replaced as a whole.

    positions = FilePositions("shop", data_dir / "shop")
    cursor = positions.load()
    """

    def __init__(self, destination: str, folder: Path) -> None:
        self.path = folder / destination / "parse.dat"

    def load(self) -> Cursor | None:
        """Return the position in the file; None when the file does not exist. Raises MetaError when it cannot be
        read."""
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise MetaError(f"{self.path} cannot be read: {error.strerror}") from None
        return _parse_cursor(raw, str(self.path))

    def save(self, cursor: Cursor) -> None:
        """Replace the file by one with this position. Raises MetaError when it cannot be written."""
        try:
            replace_file(self.path, json.dumps(cursor.to_json()).encode())
        except OSError as error:
            raise MetaError(f"{self.path} cannot be written: {error.strerror}") from None


class ZooKeeperPositions:
    """Persists the position in the node /otter/canal/destinations/{destination}/parse, where canal has it.

    positions = ZooKeeperPositions("shop", ZooKeeperTree("zk1:2181"))
    cursor = positions.load()
    """

    def __init__(self, destination: str, tree: Tree, *, fence: Fence | None = None) -> None:
        self._path = f"{ROOT}/{destination}/parse"
        self._tree, self._fence = tree, fence

    def load(self) -> Cursor | None:
        """Return the position in the node; None when the node does not exist or is empty."""
        node = self._tree.read(self._path)
        return _parse_cursor(node[0], self._path) if node and node[0] else None

    def save(self, cursor: Cursor) -> None:
        """Write the position into the node. Raises FencedError when another server has claimed the destination."""
        raw = json.dumps(cursor.to_json(with_type=True), separators=(",", ":")).encode()
        self._tree.commit({self._path: raw}, self._fence.check if self._fence else None)


class CursorPositions:
    """Takes the lowest cursor of the clients as the position; cursors are persisted by their manager.

    positions = CursorPositions(meta.lowest_cursor)
    cursor = positions.load()
    """

    def __init__(self, lowest: Callable[[], Cursor | None]) -> None:
        self._lowest = lowest

    def load(self) -> Cursor | None:
        """Return the lowest cursor of the clients; None when no client has one."""
        return self._lowest()

    def save(self, cursor: Cursor) -> None:
        """Do nothing: the manager of the clients persists their cursors."""


class FailoverPositions:
    """Uses several stores of positions: loads from the first that can be read and has one, saves to the first that can
    be written. An older position than the last leads to duplicates, never to a gap.

        positions = FailoverPositions(MemoryPositions(), FilePositions("shop", folder))
        cursor = positions.load()
    """

    def __init__(self, *stores: LogPositions, destination: str = "") -> None:
        self._stores, self._destination = stores, destination

    def load(self) -> Cursor | None:
        """Return the position of the first store that can be read and has one; None when all can be read and none has
        one. Raises the first error when a store cannot be read and no other has a position."""
        problem: MetaError | CoordinationError | None = None
        for store in self._stores:
            try:
                cursor = store.load()
            except (MetaError, CoordinationError) as error:
                log.warning(
                    "capture position not loaded destination=%s reason=%s: the next entry of the setting `positions`"
                    " is tried",
                    self._destination,
                    error,
                )
                problem = problem or error
                continue
            if cursor is not None:
                return cursor
        if problem is not None:
            raise problem  # that no position was read does not mean that there is none
        return None

    def save(self, cursor: Cursor) -> None:
        """Save the position to the first store that can be written. Raises the error of the last store when none
        can."""
        *earlier, last = self._stores
        for store in earlier:
            try:
                store.save(cursor)
            except (MetaError, CoordinationError) as error:
                log.warning(
                    "capture position not saved destination=%s reason=%s: the next entry of the setting `positions`"
                    " is tried",
                    self._destination,
                    error,
                )
                continue
            return
        last.save(cursor)


def _parse_cursor(raw: bytes, where: str) -> Cursor:
    try:
        value: Any = json.loads(raw)
    except ValueError:
        raise MetaError(f"{where} holds no position: {raw[:80]!r}") from None
    return Cursor.from_json(value)
