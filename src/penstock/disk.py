"""Files that outlive a crash, and that only their owner can read: replaced as a whole, with names that are on the disk
too. Open to all rooms."""

import logging
import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger(__name__)

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_CONFIGURATION = {".properties", ".yml", ".yaml", ".xml"}
_QUIET_S = 60.0


def replace_file(path: Path, raw: bytes) -> None:
    """A crash leaves the old one or the new one."""
    make_private_folder(path.parent)
    new = path.with_name(f"{path.name}.new")
    write_private(new, raw)
    new.replace(path)
    sync_folder(path.parent)


def write_private(path: Path, raw: bytes) -> None:
    """Write a file that only its owner can read, and bring it to the disk."""
    path.unlink(missing_ok=True)  # what a crash left may be readable by others
    path.touch(mode=0o600, exist_ok=False)
    with path.open("wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """So that names are on the disk too."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def make_private_folder(folder: Path) -> None:
    """Create a folder, and those above it that are missing, for their owner only. One that is there stays as it is."""
    if not folder.is_dir():
        if folder.parent != folder:
            make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def make_tree_private(folder: Path) -> None:
    """Take the rights of others away from a folder that holds data, and from all that is in it.

    Files of configuration, as in a conf folder of canal, where its data lies too, stay as they are; so does a folder
    with such files.
    """
    for parent, folders, files in os.walk(folder):
        configuration = {name for name in files if Path(name).suffix in _CONFIGURATION}
        if not configuration:
            _make_private(Path(parent))
        for name in set(files) - configuration:
            _make_private(Path(parent) / name)
        folders[:] = [name for name in folders if not (Path(parent) / name).is_symlink()]


def _make_private(path: Path) -> None:
    try:
        found = path.lstat().st_mode
        if found & _OTHERS and not stat.S_ISLNK(found):
            path.chmod(stat.S_IMODE(found) & ~_OTHERS)
    except FileNotFoundError:
        pass  # removed meanwhile
    except OSError as error:
        log.warning("permissions not changed path=%s reason=%s: others may be able to read it", path, error.strerror)


class WriteWarnings:
    """Warnings about writes that are tried again and again: one when they begin to fail, one when they succeed again.

    On a disk that has a little room now and then, both come once a minute at most; a failure that lasts is never
    hidden for longer than that.

        warnings = WriteWarnings(log, "cursors not kept destination=shop", "cursors kept again destination=shop")
        warnings.failed(error)
    """

    def __init__(
        self, logger: logging.Logger, begins: str, ends: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._logger, self._begins, self._ends, self._clock = logger, begins, ends, clock
        self._lock = threading.Lock()  # of the next two
        self._has_warned = False
        self._ended_s: float | None = None

    def failed(self, reason: object) -> None:
        with self._lock:
            is_quiet = self._ended_s is not None and self._clock() - self._ended_s < _QUIET_S
            if self._has_warned or is_quiet:
                return
            self._has_warned = True
        self._logger.warning("%s reason=%s", self._begins, reason)

    def succeeded(self) -> None:
        with self._lock:
            if not self._has_warned:
                return
            self._has_warned, self._ended_s = False, self._clock()
        self._logger.warning("%s", self._ends)
