"""Reads a conf folder that people edit while the server runs."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from penstock.config.file_events import FileEvents
from penstock.config.folder_files import FileContents, list_config_files
from penstock.config.folder_reader import read_configuration
from penstock.config.server_settings import ServerSettings
from penstock.config.snapshot import SERVER, ConfigSnapshot, ConfiguredInstance
from penstock.config.yaml_file import load_yaml
from penstock.errors import ConfigurationError

SETTLE_S = 0.25
_MAX_TRIES = 20
_POLL_S = 0.1  # in which somebody may say that it is to stop
Contents = Mapping[Path, bytes | None]
Stats = dict[Path, tuple[int, ...] | None]


def load_server_settings(path: Path) -> ServerSettings:
    """Return the server's settings from a YAML file, or from a conf folder as it is now. Raises ConfigurationError."""
    return read_configuration(path).settings() if path.is_dir() else load_yaml(path, ServerSettings)


class ConfFolder:
    """Reads a conf folder, or one file, again and again, and never takes a half-written file for a change.

    When something has changed since the last read, the folder is read twice, `settle_s` apart. A file has settled when
    both reads find the same bytes in it (or do not find it), and when it was not emptied: so a file in the middle of
    being written, truncated or replaced is no change. An instance of which a file has not settled, `${file:…}`
    included, stays as it was in the last snapshot; a new one is left out. When a file of the server has not settled,
    the last snapshot stays as a whole. `unsettled` says so, and the next read looks again.

    Not for several threads at a time.

        folder = ConfFolder(Path("conf"))
        settings = folder.read().instances["shop"].settings
    """

    def __init__(self, path: Path, settle_s: float = SETTLE_S, pause: Callable[[float], None] = time.sleep) -> None:
        self.path = path
        self._settle_s = settle_s
        self._pause = pause
        self._last: ConfigSnapshot | None = None
        self._contents: Contents = {}
        self._stats: Stats = {}
        self._events: FileEvents | None = None

    def has_changed(self) -> bool:
        """Return whether `read` may find something new: a cheap check of names, times and sizes."""
        return self._last is None or bool(self._last.unsettled) or _stat_files(self.path, self._contents) != self._stats

    def wait(self, stopping: threading.Event, timeout_s: float) -> None:
        """Wait until a file was touched, for at most `timeout_s`, or until `stopping` is set."""
        events = self._events = self._events or FileEvents()
        if not events.can_tell:
            stopping.wait(timeout_s)
            return
        folder = self.path if self.path.is_dir() else self.path.parent
        events.watch({folder, *(path.parent for path in self._contents)})
        until = time.monotonic() + timeout_s
        while not stopping.is_set() and (left := until - time.monotonic()) > 0:
            if events.wait(min(left, _POLL_S)):
                return

    def read(self) -> ConfigSnapshot:
        """Return the configuration as it is now. Raises ConfigurationError when the server's own files are wrong."""
        for _ in range(_MAX_TRIES):
            stats = _stat_files(self.path, self._contents)
            first = FileContents()
            _, error = _try_read(self.path, first)
            if self._last is not None and error is None and first.contents == self._contents:
                self._stats = stats
                self._last = replace(self._last, unsettled={})
                return self._last
            self._pause(self._settle_s)
            second = FileContents()
            read, error = _try_read(self.path, second)
            unsettled_files = self._find_unsettled(first.contents, second.contents)
            if error is not None and not unsettled_files:
                self._stats = stats
                raise error
            snapshot = self._make_snapshot(read, unsettled_files, second.contents)
            if snapshot is not None:
                self._stats = stats
                return snapshot
        raise ConfigurationError(f"the files in {self.path} keep changing, or are empty")

    def _find_unsettled(self, first: Contents, second: Contents) -> dict[Path, str]:
        """Return the files that are being written, or have just become empty, with the reason."""
        unsettled = {path: "is being written" for path in first.keys() | second.keys() if _differs(path, first, second)}
        for path, content in second.items():
            if content == b"" and self._contents.get(path):
                unsettled[path] = "is empty, and was not before"
        return unsettled

    def _make_snapshot(
        self, read: ConfigSnapshot | None, unsettled_files: Mapping[Path, str], contents: Contents
    ) -> ConfigSnapshot | None:
        """Return a snapshot in which instances with unsettled files are as they were before; None when there is none
        yet."""
        last = self._last
        server_paths = () if last is None else last.paths
        paths = (*server_paths, *(() if read is None else read.paths))
        if read is None or any(path in unsettled_files for path in paths):
            if last is None:
                return None
            reasons = "; ".join(f"{path} {reason}" for path, reason in unsettled_files.items())
            self._last = replace(last, unsettled={SERVER: reasons})
            return self._last
        instances, unsettled = dict(read.instances), dict[str, str]()
        before = dict[str, ConfiguredInstance]() if last is None else last.instances
        for name in read.instances.keys() | before.keys():
            reason = _describe_unsettled(unsettled_files, read.instances.get(name), before.get(name))
            if not reason:
                continue
            unsettled[name] = reason
            if name in before:
                instances[name] = before[name]
            else:
                del instances[name]
        self._last = replace(read, instances=instances, unsettled=unsettled)
        previous = {path: self._contents[path] for path in unsettled_files if path in self._contents}
        self._contents = {path: data for path, data in contents.items() if path not in unsettled_files} | previous
        return self._last


def _try_read(path: Path, files: FileContents) -> tuple[ConfigSnapshot | None, ConfigurationError | None]:
    """Read the folder; return the snapshot, or the error."""
    try:
        return read_configuration(path, files), None
    except ConfigurationError as error:
        return None, error


def _differs(path: Path, first: Contents, second: Contents) -> bool:
    """Return whether two reads found different bytes in a file."""
    return path not in first or path not in second or first[path] != second[path]


def _describe_unsettled(unsettled_files: Mapping[Path, str], *instances: ConfiguredInstance | None) -> str:
    """Return why the files of an instance have not settled; empty when they have."""
    paths = dict.fromkeys(path for instance in instances if instance is not None for path in instance.paths)
    return "; ".join(f"{path} {unsettled_files[path]}" for path in paths if path in unsettled_files)


def _stat_files(folder: Path, known: Contents) -> Stats:
    """Return time, size and identity of all configuration files, and of the files that they refer to. Links are
    followed."""
    try:
        paths = {*list_config_files(folder), *known}
    except ConfigurationError:
        return {folder: None}
    return {path: _stat(path) for path in paths}


def _stat(path: Path) -> tuple[int, ...] | None:
    """Return time, size and identity of a file, or None if it cannot be read."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev
