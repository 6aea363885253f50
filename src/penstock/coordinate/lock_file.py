"""One server per data folder, where there is no ZooKeeper to say so.

The kernel holds the lock, and lets go of it however the process ends; what the file says is only for who is refused.
"""

import errno
import fcntl
import os
import weakref
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from penstock.disk import make_private_folder
from penstock.errors import ConfigurationError

_NAME = "server.lock"
_TAKEN = {errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN}
_NOT_SUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


class LockFile:
    """Held from `take` to `close`, or for a `with`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _NAME
        self._file = -1

    def take(self) -> None:
        try:
            make_private_folder(self.path.parent)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigurationError(f"{self.path.parent} cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"pid={os.getpid()} since={datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n".encode(), 0)
        except OSError as error:
            raise ConfigurationError(self._refusal(error)) from None
        _taken.add(self)

    def _refusal(self, error: OSError) -> str:
        found = os.pread(self._file, 200, 0).decode("utf-8", "replace").strip()
        self.close()
        folder = self.path.parent
        if error.errno in _TAKEN:
            return (
                f"{folder} is in use by another server, {found or 'which has not said its pid yet'}: stop that one, or"
                " give this one a data_dir of its own"
            )
        if error.errno in _NOT_SUPPORTED:
            return f"the file system of {folder} knows no locks (flock: {error.strerror}): choose a data_dir on another"
        return f"{self.path} cannot be written: {error.strerror}"

    def close(self) -> None:
        """The file stays: another process may have it open already."""
        _taken.discard(self)
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# A process that was forked would hold it on when we are gone.
_taken: "weakref.WeakSet[LockFile]" = weakref.WeakSet()
os.register_at_fork(after_in_child=lambda: [one.close() for one in list(_taken)])
