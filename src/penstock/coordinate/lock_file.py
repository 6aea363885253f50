"""One process per folder of data, where there is no ZooKeeper to say so.

The kernel holds the lock, and lets go of it however the process ends; what the file says is only for who is refused.
"""

import errno
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from penstock.disk import FileLock
from penstock.errors import ConfigurationError

_NAME = "server.lock"
_NOT_SUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


@dataclass(frozen=True, slots=True)
class LockWords:
    """What a process that is refused is told about the one that has the folder."""

    user: str = "server"  # what uses the folder
    option: str = "data_dir"  # by which the folder is named
    advice: str = ""  # what else can be done


class LockFile:
    """A lock on a folder of data, held from `take` to `close`, or for a `with`. The file is in the folder, or at
    `path`; processes that share it keep those out that want it alone.

    with LockFile(data_dir / "shop"):
        instance.start()
    """

    def __init__(
        self, folder: Path, *, path: Path | None = None, words: LockWords | None = None, is_shared: bool = False
    ) -> None:
        self.path = path or folder / _NAME
        self._folder, self._words, self._is_shared = folder, words or LockWords(), is_shared
        self._lock = FileLock(self.path)

    def take(self) -> None:
        """Lock the folder for this process. Raises ConfigurationError when another one has it, or when it cannot be
        locked or written."""
        try:
            self._lock.acquire(is_shared=self._is_shared)
            self._lock.write_note(f"pid={os.getpid()} since={datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n")
        except OSError as error:
            self.close()
            raise ConfigurationError(self._refusal(error)) from None

    def _refusal(self, error: OSError) -> str:
        folder, words = self._folder, self._words
        if isinstance(error, BlockingIOError):
            note = self._lock.read_note()
            return (
                f"{folder} is in use by another {words.user}, {note or 'which has not said its pid yet'}: stop that"
                f" one, or give this one a {words.option} of its own{words.advice}"
            )
        if error.errno in _NOT_SUPPORTED:
            return (
                f"the file system of {folder} knows no locks (flock: {error.strerror}): choose a {words.option} on"
                " another"
            )
        return f"{folder} cannot be written: {error.strerror}"

    def close(self) -> None:
        """Release the lock. The file stays: another process may have it open already."""
        self._lock.release()

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
