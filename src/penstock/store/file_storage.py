"""The storage of blocks in segment files, which outlive the process.

A frame that a crash left half written is cut off when the files are opened again, and reported. So is everything after
a damaged head; capture reads it from the source's log again. Damage inside a block is found when the block is read.
"""

import errno
import logging
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from penstock.disk import FileLock, WriteWarnings, make_private_folder, sync_folder
from penstock.errors import StoreError, StoreFullError
from penstock.store.block_index import FileBlockIndex
from penstock.store.block_info import BlockEntries, BlockInfo
from penstock.store.block_storage import BlockGoneError
from penstock.store.frame import encode
from penstock.store.segment import SUFFIX, Segment

log = logging.getLogger(__name__)

SyncPolicy = Literal["batch", "interval", "none"]
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
_CACHED = 8  # blocks that were read last
_ASIDE = ".damaged"


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention of blocks in files. Acked blocks are retained while they are among the newest `keep_bytes` bytes,
    or younger than `keep_s` seconds. Beyond `limit_bytes` or `limit_s` the oldest are dropped even if a client has not
    acked them; without these limits they stay.

        storage = FileStorage(folder, retention=Retention(keep_bytes=1 << 30, keep_s=86_400))
    """

    keep_bytes: int = 0
    keep_s: float = 0
    limit_bytes: int | None = None
    limit_s: float | None = None


class FileStorage:
    """Stores blocks in segment files of a folder, which one process opens at a time.

    storage = FileStorage(Path("shop/store"), destination="shop", retention=Retention(keep_s=3600))
    """

    def __init__(
        self,
        folder: Path,
        *,
        destination: str = "",
        segment_bytes: int = 64 << 20,
        sync: SyncPolicy = "interval",
        interval_s: float = 1.0,
        retention: Retention | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder, self.destination = folder, destination
        self.blocks = FileBlockIndex()
        self.is_persistent = True
        self.problem = ""
        self.wake: Callable[[], None] = lambda: None
        self.recovered = ""  # what was cut off when the files were opened
        self._segment_bytes, self._sync, self._interval_s = segment_bytes, sync, interval_s
        self._retention, self._clock = retention or Retention(), clock
        self._segments: list[Segment] = []
        self._written: dict[int, tuple[int, int, int]] = {}  # by first sequence: locations of what is not added yet
        self._cache: OrderedDict[int, tuple[BlockInfo, BlockEntries]] = OrderedDict()
        self._cache_lock = threading.Lock()  # protects _cache
        self._segments_lock = threading.Lock()  # protects _segments, while one thread writes and another frees
        self._writes_from: int | None = None  # sequence of the first entry that is being written
        self._is_dirty = False  # something was written and not synced
        self._warnings = WriteWarnings(
            log, f"store not synced destination={destination}", f"store synced again destination={destination}"
        )
        self._synced_s = clock()
        try:
            make_private_folder(folder)
            self._lock = FileLock(folder / "lock")
            self._lock.acquire()
        except BlockingIOError:
            raise StoreError(f"{folder} is in use by another process") from None
        except OSError as error:
            raise StoreError(f"{folder} cannot be opened: {error.strerror}") from None
        try:
            self._recover()
        except OSError as error:
            self._release_folder()
            raise StoreError(f"{folder} cannot be opened: {error.strerror}") from None
        if self.recovered:
            log.warning(
                "store files repaired destination=%s folder=%s: %s; what is missing is read from the source's"
                " binlog again",
                destination, folder, self.recovered,
            )  # fmt: skip
        self._closing = threading.Event()
        self._syncer: threading.Thread | None = None
        if sync == "interval":
            self._syncer = threading.Thread(
                target=self._run_syncs, name=f"penstock-store-sync-{destination}", daemon=True
            )
            self._syncer.start()

    # -- opening

    def _recover(self) -> None:
        paths = sorted(path for path in self.folder.glob(f"*{SUFFIX}") if path.stem.isdigit())
        for number, path in enumerate(paths):
            segment = Segment(path)
            end, is_last, is_next = 0, number == len(paths) - 1, True
            for at, head in segment.heads():
                info = head.info
                is_next = not len(self.blocks) or info.first == self.blocks[self.blocks.tail - 1].last + 1
                if not is_next or (is_last and not segment.is_whole(at, head)):
                    break
                self._note(segment, at, head.length, info)
                end = at + head.length
            if end < segment.size or not end:
                self._cut_off(segment, end, paths[number + 1 :], is_next=is_next)
                return
            self._segments.append(segment)

    def _cut_off(self, segment: Segment, end: int, later: list[Path], *, is_next: bool) -> None:
        """Cut off what a crash left at the end of the last file. Damage before that, or a file that does not follow the
        one before it, is set aside with everything after it: the source may no longer have it."""
        size = segment.size - end
        if later or not is_next:
            names = ", ".join(path.name for path in [segment.path, *later])
            self.recovered = f"{segment.path.name} is damaged at byte {end}; what follows is kept aside ({names})"
            # Whatever a crash leaves of this, the next start does the rest.
            aside = segment.path.with_name(f"{segment.path.name}{_ASIDE}")
            aside.touch(mode=0o600)
            shutil.copyfile(segment.path, aside)
            for path in reversed(later):
                path.rename(path.with_name(f"{path.name}{_ASIDE}"))
        elif size:
            self.recovered = f"{size} bytes of {segment.path.name} were no whole block and are cut off"
        if end:
            segment.cut(end)
            self._segments.append(segment)
        else:
            segment.remove()

    def _note(self, segment: Segment, at: int, length: int, info: BlockInfo) -> None:
        segment.last = info.last
        self.blocks.append(info, (segment.number, at, length))

    # -- writing

    def has_room(self, waiting: int, blocks: Sequence[BlockEntries]) -> bool:
        """Return True: the disk says when there is no room."""
        del waiting, blocks
        return True

    def write(self, blocks: Sequence[tuple[BlockInfo, BlockEntries]]) -> None:
        """Append blocks to the segment files, all or none, and sync them as the policy says. Raises StoreFullError when
        the disk has no room, StoreError when it cannot be written to."""
        with self._segments_lock:
            self._writes_from = blocks[0][0].first if blocks else None
            before = [(segment, segment.size, segment.last) for segment in self._segments[-1:]]
        opened: list[Segment] = []
        try:
            for info, entries in blocks:
                if not self._segments or self._segments[-1].size >= self._segment_bytes:
                    self._finish_last_segment()
                    opened.append(Segment(self.folder / f"{info.first:020}{SUFFIX}", is_new=True))
                    if self._sync != "none":
                        sync_folder(self.folder)
                    self._segments.append(opened[-1])
                segment = self._segments[-1]
                at = segment.append(encode(info, entries))
                self._written[info.first] = segment.number, at, segment.size - at
                segment.last, segment.written_s, self._is_dirty = info.last, self._clock(), True
            self._sync_if_due()
            self.problem = ""
        except OSError as error:
            for info, _ in blocks:
                self._written.pop(info.first, None)
            for segment in opened:
                self._segments.remove(segment)
                with suppress(OSError):
                    segment.remove()
            for segment, size, last in before:
                segment.discard_after(size)
                segment.last = last
            raise self._note_failure(error) from None
        finally:
            with self._segments_lock:
                self._writes_from = None

    def _note_failure(self, error: OSError) -> StoreError | StoreFullError:
        self.problem = f"{self.folder} cannot be written to: {error.strerror}"
        return StoreFullError(self.problem) if error.errno in _NO_ROOM else StoreError(self.problem)

    def _finish_last_segment(self) -> None:
        if self._segments:
            self._segments[-1].repair()
            if self._sync != "none":
                self._segments[-1].sync()

    def _sync_if_due(self) -> None:
        now = self._clock()
        if self._segments and (
            self._sync == "batch" or (self._sync == "interval" and now - self._synced_s >= self._interval_s)
        ):
            self._segments[-1].sync()
            self._synced_s, self._is_dirty = now, False

    def _run_syncs(self) -> None:
        """Sync the last file every interval, also when nothing more is written."""
        while not self._closing.wait(self._interval_s):
            with self._segments_lock:
                dirty = self._segments[-1:] if self._is_dirty else []
                self._is_dirty = False
            for segment in dirty:
                try:
                    segment.sync()
                except OSError as error:
                    self._is_dirty = True
                    self.problem = f"{self.folder} cannot be synced: {error.strerror}"
                    self._warnings.report_failure(self.problem)
                else:
                    self._warnings.report_success()

    def add(self, info: BlockInfo, entries: BlockEntries) -> None:
        """Make a block that was written readable."""
        self._cache_block(info, entries)
        self.blocks.append(info, self._written.pop(info.first))

    # -- reading

    def is_near(self, sequence: int) -> bool:
        """Return True: all blocks are in files, where every client reads."""
        del sequence
        return True

    def entries(self, info: BlockInfo) -> BlockEntries:
        """Return the entries of a block, from the cache or from its file. Raises BlockGoneError when it was freed,
        StoreError when the file is damaged."""
        with self._cache_lock:
            remembered = self._cache.get(info.first)
            if remembered is not None and remembered[0].is_same(info):
                self._cache.move_to_end(info.first)
                return remembered[1]
        location = self.blocks.location_of(info)
        segment = self._segment(location[0]) if location is not None else None
        if location is None or segment is None:
            raise BlockGoneError.of(info)
        entries = segment.entries(*location[1:])
        if entries is None or self.blocks.location_of(info) != location:
            raise BlockGoneError.of(info)  # maybe others were written there in the meantime
        self._cache_block(info, entries)
        return entries

    def _cache_block(self, info: BlockInfo, entries: BlockEntries) -> None:
        with self._cache_lock:
            self._cache[info.first] = info, entries
            while len(self._cache) > _CACHED:
                self._cache.popitem(last=False)

    # -- removing

    def free(self, sequence: int) -> BlockInfo | None:
        """Free whole segments: those that all clients have acked and that need not be retained, and those beyond the
        limits."""
        dropped = None
        with self._segments_lock:
            while self._segments and self._may_remove(self._segments[0], sequence):
                oldest = self._segments[0]
                try:
                    oldest.remove()
                except OSError as error:
                    self._note_failure(error)
                    break  # what is acked stays until it can go
                del self._segments[0]
                dropped = self.blocks.drop_until(oldest.last) or dropped
        if dropped is not None:
            self._uncache(0, dropped.first)
        return dropped

    def _uncache(self, first: int, last: int) -> None:
        """Drop the blocks that begin with these entries from the cache."""
        with self._cache_lock:
            for number in [number for number in self._cache if first <= number <= last]:
                del self._cache[number]

    def _segment(self, number: int) -> Segment | None:
        with self._segments_lock:
            return next((segment for segment in self._segments if segment.number == number), None)

    def _may_remove(self, segment: Segment, sequence: int) -> bool:
        retention = self._retention
        first = self._writes_from
        if first is not None and (segment.last >= first or segment is self._segments[-1]):
            return False
        remaining_bytes, age_s = self.size_bytes - segment.size, self._clock() - segment.written_s
        if segment.last <= sequence and remaining_bytes >= retention.keep_bytes and age_s >= retention.keep_s:
            return True
        is_large = retention.limit_bytes is not None and self.size_bytes > retention.limit_bytes
        is_old = retention.limit_s is not None and age_s > retention.limit_s
        return len(self._segments) > 1 and (is_large or is_old)

    def clear(self) -> None:
        """Remove all segments, from the last to the first, so that an error leaves a readable beginning."""
        with self._segments_lock:
            while self._segments:
                newest = self._segments[-1]
                try:
                    newest.remove()
                except OSError as error:
                    raise self._note_failure(error) from None
                del self._segments[-1]
                while len(self.blocks) and self.blocks.segment_of(self.blocks.tail - 1) == newest.number:
                    first = self.blocks.drop_last().first
                    self._uncache(first, first)

    @property
    def first_volatile(self) -> int | None:
        """Return None: there is no entry to wait for, because with `sync: batch`, the only setting for which this is
        asked, entries are durable when the write returns."""
        return None

    def drop_last(self) -> BlockEntries:
        """Remove the newest block of events from the segment files, and return its entries."""
        info = self.blocks[self.blocks.tail - 1]
        entries = self.entries(info)
        self.unwrite(info)
        self.blocks.drop_last()
        return entries

    def unwrite(self, info: BlockInfo) -> None:
        """Remove the newest block of events from the segment file that it was written to."""
        location = self._written.get(info.first) or self.blocks.location_of(info)
        segment = self._segment(location[0]) if location is not None else None
        with self._segments_lock:
            try:
                if location is None or segment is None:
                    pass  # all clients have acked it already
                elif at := location[1]:
                    segment.cut(at)
                    segment.last = info.first - 1
                else:
                    segment.remove()
                    self._segments.remove(segment)
            except OSError as error:
                raise self._note_failure(error) from None
        self._written.pop(info.first, None)
        self._uncache(info.first, info.first)

    @property
    def size_bytes(self) -> int:
        """Return the size of all segment files, in bytes."""
        return sum(segment.size for segment in self._segments)

    def close(self) -> None:
        """Close the segment files, synced unless the policy is `none`, and release the folder for other processes."""
        if not self._lock.is_held:
            return
        self._closing.set()
        if self._syncer is not None:
            self._syncer.join()
        try:
            self._finish_last_segment()
        finally:
            self._release_folder()

    def _release_folder(self) -> None:
        for segment in self._segments:
            segment.close()
        self._segments = []
        self._written.clear()
        self.blocks.clear()
        with self._cache_lock:
            self._cache.clear()
        self._lock.release()
