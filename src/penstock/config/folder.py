"""A conf folder over time: what it says now, once that has settled."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from penstock.config.file_events import FileEvents
from penstock.config.folder_files import FileContents, list_conf
from penstock.config.folder_look import look_at
from penstock.config.server_settings import ServerSettings
from penstock.config.snapshot import SERVER, FoundInstance, Snapshot
from penstock.config.yaml_file import load_yaml
from penstock.errors import ConfigurationError

SETTLE_S = 0.25
_TRIES = 20
_TURN_S = 0.1  # in which somebody may say that it is to stop
Contents = Mapping[Path, bytes | None]
Stats = dict[Path, tuple[int, ...] | None]


def load_server_settings(path: Path) -> ServerSettings:
    """Of a YAML file, or of a conf folder as it is now."""
    return look_at(path).settings() if path.is_dir() else load_yaml(path, ServerSettings)


class ConfFolder:
    """Snapshots of a folder, or of one file, that is being edited.

    When something is not as it was read last, the folder is looked at twice, `settle_s` apart. A file has settled when
    both looks find the same bytes in it (or do not find it), and when it is not empty while it had something before:
    so a file in the middle of being written, truncated, or swapped is no change. An instance of which a file has not
    settled, `${file:…}` included, stays as it was in the last snapshot; a new one is left out. When a file of the
    server has not settled, the last snapshot stays as a whole. `unsettled` says so, and the next read looks again.

    Not for several threads at a time.
    """

    def __init__(self, path: Path, settle_s: float = SETTLE_S, pause: Callable[[float], None] = time.sleep) -> None:
        self.path = path
        self._settle_s = settle_s
        self._pause = pause
        self._last: Snapshot | None = None
        self._contents: Contents = {}
        self._stats: Stats = {}
        self._events: FileEvents | None = None

    def has_changed(self) -> bool:
        """A quick look, by names, times and sizes: whether `read` may find something else."""
        return self._last is None or bool(self._last.unsettled) or _stats_of(self.path, self._contents) != self._stats

    def wait(self, stopping: threading.Event, timeout_s: float) -> None:
        """Until a file was touched, for so long at most."""
        events = self._events = self._events or FileEvents()
        if not events.can_tell:
            stopping.wait(timeout_s)
            return
        folder = self.path if self.path.is_dir() else self.path.parent
        events.watch({folder, *(path.parent for path in self._contents)})
        until = time.monotonic() + timeout_s
        while not stopping.is_set() and (left := until - time.monotonic()) > 0:
            if events.wait(min(left, _TURN_S)):
                return

    def read(self) -> Snapshot:
        """Raises when what the server's files say is wrong."""
        for _ in range(_TRIES):
            stats = _stats_of(self.path, self._contents)
            first = FileContents()
            _, error = _try(self.path, first)
            if self._last is not None and error is None and first.contents == self._contents:
                self._stats = stats
                self._last = replace(self._last, unsettled={})
                return self._last
            self._pause(self._settle_s)
            second = FileContents()
            found, error = _try(self.path, second)
            moving = self._moving(first.contents, second.contents)
            if error is not None and not moving:
                self._stats = stats
                raise error
            taken = self._take(found, moving, second.contents)
            if taken is not None:
                self._stats = stats
                return taken
        raise ConfigurationError(f"the files in {self.path} keep changing, or are empty")

    def _moving(self, first: Contents, second: Contents) -> dict[Path, str]:
        found = {path: "is being written" for path in first.keys() | second.keys() if _differ(path, first, second)}
        for path, content in second.items():
            if content == b"" and self._contents.get(path):
                found[path] = "is empty, and was not before"
        return found

    def _take(self, found: Snapshot | None, moving: Mapping[Path, str], contents: Contents) -> Snapshot | None:
        last = self._last
        servers = () if last is None else last.paths
        paths = (*servers, *(() if found is None else found.paths))
        if found is None or any(path in moving for path in paths):
            if last is None:
                return None
            said = "; ".join(f"{path} {why}" for path, why in moving.items())
            self._last = replace(last, unsettled={SERVER: said})
            return self._last
        instances, unsettled = dict(found.instances), dict[str, str]()
        before = dict[str, FoundInstance]() if last is None else last.instances
        for name in found.instances.keys() | before.keys():
            why = _why(moving, found.instances.get(name), before.get(name))
            if not why:
                continue
            unsettled[name] = why
            if name in before:
                instances[name] = before[name]
            else:
                del instances[name]
        self._last = replace(found, instances=instances, unsettled=unsettled)
        kept = {path: self._contents[path] for path in moving if path in self._contents}
        self._contents = {path: data for path, data in contents.items() if path not in moving} | kept
        return self._last


def _try(path: Path, files: FileContents) -> tuple[Snapshot | None, ConfigurationError | None]:
    try:
        return look_at(path, files), None
    except ConfigurationError as error:
        return None, error


def _differ(path: Path, first: Contents, second: Contents) -> bool:
    return path not in first or path not in second or first[path] != second[path]


def _why(moving: Mapping[Path, str], *several: FoundInstance | None) -> str:
    paths = dict.fromkeys(path for one in several if one is not None for path in one.paths)
    return "; ".join(f"{path} {moving[path]}" for path in paths if path in moving)


def _stats_of(folder: Path, known: Contents) -> Stats:
    """Of all files that are listed, and of those that they refer to; links are followed."""
    try:
        paths = {*list_conf(folder), *known}
    except ConfigurationError:
        return {folder: None}
    return {path: _stat(path) for path in paths}


def _stat(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev
