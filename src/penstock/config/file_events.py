"""Notices changes of files in folders by inotify; where that is not available, callers poll."""

import ctypes
import os
import select
import weakref
from collections.abc import Iterable
from pathlib import Path

_NONBLOCK, _CLOSE_ON_EXEC = 0o4000, 0o2000000
_MODIFY, _ATTRIBUTES, _WRITTEN, _MOVED, _CREATED, _DELETED, _GONE = 0x2, 0x4, 0x8, 0xC0, 0x100, 0x200, 0xC00
_ALL = _MODIFY | _ATTRIBUTES | _WRITTEN | _MOVED | _CREATED | _DELETED | _GONE
_PIECE = 1 << 16


class FileEvents:
    """Watches folders for changes. For one thread. Network folders, and folders behind a symlink, may change
    unnoticed."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._add = getattr(libc, "inotify_add_watch", None)
        begin = getattr(libc, "inotify_init1", None)
        self._events: int = begin(_NONBLOCK | _CLOSE_ON_EXEC) if begin is not None else -1
        if self.can_tell:
            weakref.finalize(self, os.close, self._events)

    @property
    def can_tell(self) -> bool:
        """Return whether this system has inotify."""
        return self._add is not None and self._events >= 0

    def watch(self, folders: Iterable[Path]) -> None:
        """Watch these folders, too. Folders that do not exist are left out."""
        if self._add is not None and self.can_tell:
            for folder in folders:
                self._add(self._events, os.fsencode(folder), _ALL)

    def wait(self, timeout_s: float) -> bool:
        """Wait until something has changed, and return whether it has."""
        poll = select.poll()
        poll.register(self._events, select.POLLIN)
        if not poll.poll(max(1, round(timeout_s * 1000))):
            return False
        try:
            while os.read(self._events, _PIECE):
                pass
        except BlockingIOError:
            pass
        return True
