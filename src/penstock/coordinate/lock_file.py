"""One server per data folder, where there is no ZooKeeper to say so.

The kernel holds the lock, and lets go of it however the process ends; what the file says is only for who is refused.
"""

import errno
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from penstock.disk import FileLock
from penstock.errors import ConfigurationError

_NAME = "server.lock"
_NOT_SUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


class LockFile:
    """A lock on the data folder of a server, held from `take` to `close`, or for a `with`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _NAME
        self._lock = FileLock(self.path)

    def take(self) -> None:
        """Lock the data folder for this process. Raises ConfigurationError when another server has it, or when it
        cannot be locked or written."""
        try:
            self._lock.acquire()
            self._lock.write_note(f"pid={os.getpid()} since={datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n")
        except OSError as error:
            self.close()
            raise ConfigurationError(self._refusal(error)) from None

    def _refusal(self, error: OSError) -> str:
        folder = self.path.parent
        if isinstance(error, BlockingIOError):
            note = self._lock.read_note()
            return (
                f"{folder} is in use by another server, {note or 'which has not said its pid yet'}: stop that one, or"
                " give this one a data_dir of its own"
            )
        if error.errno in _NOT_SUPPORTED:
            return f"the file system of {folder} knows no locks (flock: {error.strerror}): choose a data_dir on another"
        return f"{folder} cannot be written: {error.strerror}"

    def close(self) -> None:
        """Release the lock. The file stays: another process may have it open already."""
        self._lock.release()

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
