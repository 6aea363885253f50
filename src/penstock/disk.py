"""Files that survive a crash and that only their owner can read, replaced as a whole; and locks on files.

Every room may import it.
"""

import errno
import fcntl
import logging
import os
import shutil
import stat
import threading
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

log = logging.getLogger(__name__)

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_CONFIGURATION = {".properties", ".yml", ".yaml", ".xml"}
_QUIET_S = 60.0
_TAKEN = {errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN}


def replace_file(path: Path, raw: bytes, *, previous: Path | None = None) -> None:
    """Replace a private file atomically: a crash leaves the old content or the new one. The old content remains as
    `previous`, if that is given."""
    make_private_folder(path.parent)
    with open_replacement(path, previous=previous) as file:
        file.write(raw)


@contextmanager
def open_replacement(
    path: Path, *, suffix: str = ".new", mode: int = 0o600, is_synced: bool = True, previous: Path | None = None
) -> Generator[BinaryIO]:
    """Open a file that takes the name `path` when all of it is written, and on the disk if `is_synced`.

    A crash or an error before that leaves what was there. Writers that may run at the same time need a `suffix` each.

        with open_replacement(folder / "state.json") as file: file.write(raw)
    """
    new = path.with_name(f"{path.name}{suffix}")
    try:
        new.unlink(missing_ok=True)  # what a crash left may be readable by others
        new.touch(mode=mode, exist_ok=False)
        with new.open("wb") as file:
            yield file
            file.flush()
            if is_synced:
                os.fsync(file.fileno())
        if previous is not None:
            _link_copy(path).replace(previous)
        new.replace(path)
    except BaseException:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise
    if is_synced:
        sync_folder(path.parent)


def _link_copy(path: Path) -> Path:
    """Give a file a second name, so that there is always one under its own name."""
    copy = path.with_name(f"{path.name}.old")
    copy.unlink(missing_ok=True)
    os.link(path, copy)
    return copy


def write_private(path: Path, raw: bytes) -> None:
    """Write a file that only its owner can read, and bring it to the disk."""
    path.unlink(missing_ok=True)  # what a crash left may be readable by others
    path.touch(mode=0o600, exist_ok=False)
    with path.open("wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that the names in it are on the disk too."""
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
    """Take the rights of others away from one file or folder."""
    try:
        mode = path.lstat().st_mode
        if mode & _OTHERS and not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
    except FileNotFoundError:
        pass  # removed meanwhile
    except OSError as error:
        log.warning(
            "file permissions not restricted path=%s reason=%s: other users may be able to read it",
            path,
            error.strerror,
        )


class FileLock:
    """A lock on a file, held from `acquire` to `release`: by one process alone, or shared by several.

    The kernel holds the lock and releases it however the process ends. The file itself stays: another process may have
    it open already. A forked child gives its copy back, so that it does not hold the lock on when its parent is gone.

        lock = FileLock(folder / "lock")
        lock.acquire()  # BlockingIOError: another process has it
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = -1

    @property
    def is_held(self) -> bool:
        """Tell whether this object holds the lock."""
        return self._file >= 0

    def acquire(self, *, is_shared: bool = False) -> None:
        """Take the lock, and create the file and its folder for that; with `is_shared`, beside others that share it.

        Raises BlockingIOError when another process holds it, and OSError when the file cannot be written or its file
        system has no locks.
        """
        make_private_folder(self.path.parent)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock_file(file, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX)
        except OSError:
            os.close(file)
            raise
        self._file = file
        _held_locks.add(self)

    def release(self) -> None:
        """Give the lock back, if it is held."""
        _held_locks.discard(self)
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def fileno(self) -> int:
        """Return the descriptor of the held lock. A process that inherits it holds the lock, too, until it closes it or
        ends."""
        if self._file < 0:
            raise ValueError(f"the lock on {self.path} is not held")
        return self._file

    def is_taken(self) -> bool:
        """Tell whether some process holds the lock; nothing is created or taken."""
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            _lock_file(file, fcntl.LOCK_SH)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def write_note(self, text: str) -> None:
        """Write a text into the lock file, for processes that find it taken."""
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, text.encode(), 0)

    def write_at(self, offset: int, raw: bytes) -> None:
        """Write bytes into the lock file, at an offset."""
        os.pwrite(self._file, raw, offset)

    def read_note(self) -> str:
        """Return what the holder has written into the file."""
        return self.path.read_bytes()[:200].decode("utf-8", "replace").strip()


_held_locks: "weakref.WeakSet[FileLock]" = weakref.WeakSet()
os.register_at_fork(after_in_child=lambda: [lock.release() for lock in list(_held_locks)])


def remove_abandoned_folders(parent: Path, prefix: str, lock_name: str) -> None:
    """Remove folders of this user that processes have left which were killed: the lock in them is free.

    A folder without a lock file, or with one that was made within the last minute, may belong to a process that is
    about to take the lock, and stays.
    """
    for path in parent.glob(f"{prefix}*/{lock_name}"):
        lock = FileLock(path)
        try:
            details = path.stat()
            if details.st_uid != os.geteuid() or time.time() - details.st_mtime < _QUIET_S:
                continue
            lock.acquire()
            shutil.rmtree(path.parent, ignore_errors=True)
        except OSError:
            continue  # its process lives, or another one has removed it
        finally:
            lock.release()


def _lock_file(file: int, kind: int) -> None:
    """Lock or unlock an open file without waiting."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            raise BlockingIOError(error.errno, error.strerror) from None
        raise


class WriteWarnings:
    """Warnings about writes that are tried again and again: one when they begin to fail, one when they succeed again.

    On a disk that has a little room now and then, both come once a minute at most; a failure that lasts is never
    hidden for longer than that.

        warnings = WriteWarnings(log, "cursors not kept destination=shop", "cursors kept again destination=shop")
        warnings.report_failure(error)
    """

    def __init__(
        self, logger: logging.Logger, begins: str, ends: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._logger, self._begins, self._ends, self._clock = logger, begins, ends, clock
        self._lock = threading.Lock()  # of the next two
        self._has_warned = False
        self._ended_s: float | None = None

    def report_failure(self, reason: object) -> None:
        """Log a warning if writes begin to fail, or still fail after a minute."""
        with self._lock:
            is_quiet = self._ended_s is not None and self._clock() - self._ended_s < _QUIET_S
            if self._has_warned or is_quiet:
                return
            self._has_warned = True
        self._logger.warning("%s reason=%s", self._begins, reason)

    def report_success(self) -> None:
        """Log that writes succeed again, if they had failed."""
        with self._lock:
            if not self._has_warned:
                return
            self._has_warned, self._ended_s = False, self._clock()
        self._logger.warning("%s", self._ends)
