"""One file of frames: appended to, cut at its end, read at any offset, deleted as a whole."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.errors import StoreError
from penstock.store.block_info import BlockEntries
from penstock.store.frame import HEAD_BYTES, Head, Part, decode, is_whole, read_head

SUFFIX = ".blocks"
_MAX_PARTS = 512  # of one write; the system takes 1024


class Segment:
    """One segment file, named by the sequence of its first entry. The next frame is written at `size`."""

    def __init__(self, path: Path, *, is_new: bool = False) -> None:
        self.path = path
        self.number = int(path.name.removesuffix(SUFFIX))  # of its first entry
        truncate = os.O_TRUNC if is_new else 0
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | truncate, 0o600)
        self.size = os.fstat(self._file).st_size
        self.last = -1  # sequence of the last entry in it
        self._is_torn = False  # the file is longer than `size`
        self._lock = threading.Lock()  # protects _file, while others read
        self.written_s = path.stat().st_mtime

    def append(self, parts: Sequence[Part]) -> int:
        """Append a frame and return where it begins. What an error leaves behind lies after `size`."""
        self.repair()
        at = self.size
        self._is_torn = True
        for first in range(0, len(parts), _MAX_PARTS):
            remaining = [memoryview(part) for part in parts[first : first + _MAX_PARTS] if len(part)]
            while remaining:
                written = os.pwritev(self._file, remaining, at)
                at += written
                while remaining and written >= len(remaining[0]):
                    written -= len(remaining.pop(0))
                if written:
                    remaining[0] = remaining[0][written:]
        begin, self.size, self._is_torn = self.size, at, False
        return begin

    def cut(self, size: int) -> None:
        """Truncate the file to this size: the next frame is written there."""
        os.ftruncate(self._file, size)
        self.size, self._is_torn = size, False

    def discard_after(self, size: int) -> None:
        """Discard what was written after `size`; if the file cannot be cut now, it is cut before the next frame is
        written."""
        self.size, self._is_torn = size, True
        with suppress(OSError):
            self.repair()

    def repair(self) -> None:
        """Cut off what a failed write has left after `size`."""
        if self._is_torn:
            self.cut(self.size)

    def sync(self) -> None:
        """Sync the file; readers do not wait for it, and a removed file is ignored."""
        with self._lock:
            if self._file < 0:
                return
            file = os.dup(self._file)
        try:
            os.fdatasync(file)
        finally:
            os.close(file)

    def heads(self) -> Iterator[tuple[int, Head]]:
        """Yield the offset and the head of each frame, up to the first that is shorter than it says."""
        at = 0
        while head := read_head(os.pread(self._file, HEAD_BYTES, at)):
            if at + head.length > self.size:
                return
            yield at, head
            at += head.length

    def is_whole(self, at: int, head: Head) -> bool:
        """Return whether the frame at an offset has the length that its head says, and fits its checksums."""
        raw = self._read(at, head.length)
        return raw is not None and is_whole(head, raw)

    def entries(self, at: int, length: int) -> BlockEntries | None:
        """Return the entries of the frame at an offset; None when the file was removed."""
        raw = self._read(at, length)
        if raw is None:
            return None
        head = read_head(raw[:HEAD_BYTES].tobytes())
        if head is None or not is_whole(head, raw):
            raise StoreError(
                f"{self.path} is damaged at byte {at}: stop the server and remove this file and those after it"
            )
        return BlockEntries.of(decode(head, raw))

    def _read(self, at: int, length: int) -> NDArray[np.uint8] | None:
        raw = np.empty(length, np.uint8)
        done = 0
        with self._lock:
            if self._file < 0:
                return None
            while done < length:
                size = os.preadv(self._file, [raw[done:].data], at + done)
                if not size:
                    return raw[:done]
                done += size
        return raw

    def close(self) -> None:
        """Close the file; nothing can be read from it afterwards."""
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def remove(self) -> None:
        """Remove the file; an error leaves it as it was."""
        self.path.unlink(missing_ok=True)
        self.close()
