"""One case on a small disk of its own, in a mount namespace of its own: `unshare -m python -m … CASE FOLDER [KIND …]`.

Linux refuses to make a disk read-only while a file on it is open for writing, as a store's lock always is. There the
same disk is mounted read-only on top: what is open stays open, and whatever is opened, made or removed meets EROFS.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from pathlib import Path

import numpy as np

import penstock.meta.persistent_manager
import penstock.store.store
import penstock.store.tiered_storage
from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.errors import PenstockError, StoreFullError
from penstock.meta import Cursor, FileMetaBackend, PersistentMetaManager
from penstock.model import Position
from penstock.store import BatchSize, ClientState, EventStore, FileStorage, Start, TieredStorage
from penstock.store.frame import Part
from penstock.store.segment import Segment
from tests.twins.blocks import block_of

START = Position("binlog.000001", 4)
_DEADLINE_S = 8.0
_MOMENT_S = 0.02
_RETRY_S = 0.05  # of a write to a full disk: sooner than in production
_IN_MEMORY = 40_000
FULL = "No space left on device"
READ_ONLY = "Read-only file system"


class WithoutPandas(MetaPathFinder):
    """Pyarrow would import it with the first array, which takes longer than most cases."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


@dataclass(frozen=True, slots=True)
class Disk:
    folder: Path

    @classmethod
    def of(cls, folder: Path, options: str) -> "Disk":
        _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder))
        return cls(folder)

    def remount(self, options: str) -> None:
        _run("mount", "-o", f"remount,{options}", str(self.folder))

    def cover(self) -> None:
        """Between the two steps a thread may open a file there: then once more."""
        deadline = time.monotonic() + _DEADLINE_S
        while True:
            _run("mount", "--bind", str(self.folder), str(self.folder))
            try:
                _run("mount", "-o", "remount,bind,ro", str(self.folder))
            except subprocess.CalledProcessError:
                if time.monotonic() > deadline:
                    raise
                _run("umount", "--lazy", str(self.folder))
                time.sleep(_MOMENT_S)
            else:
                return

    def uncover(self) -> None:
        _run("umount", str(self.folder))

    def fill(self, *, leave: int = 0) -> Path:
        """All but so many bytes, with a file to be removed."""
        path = self.folder / "filler"
        with path.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - leave)
        return path


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


class Source:
    """A log of transactions."""

    def __init__(self, at: Position = START) -> None:
        self.at = at

    def next(self, size: int = 8000, *, is_whole: bool = True) -> Block:
        block, _ = block_of(transaction(size, is_whole=is_whole), start=self.at.offset)
        self.at = block.end
        return block


def transaction(size: int, *, is_whole: bool = True) -> list[tuple[int, int]]:
    return [(10, Entry.BEGIN), *[(size // 4, Entry.ROWS)] * 4, *[(10, Entry.END)] * is_whole]


def put_until_refused(store: EventStore, source: Source) -> tuple[list[Block], Block]:
    """What went in, and the block that did not."""
    done, block, until = list[Block](), source.next(), time.monotonic() + _DEADLINE_S
    while True:
        if store.put(block, _MOMENT_S):
            done.append(block)
            block = source.next()
        elif store.problem:
            return done, block
        assert time.monotonic() < until, "there is always room, or no reason why not"


@contextmanager
def waiting_put(store: EventStore, block: Block) -> Iterator[None]:
    """It waits before what is done inside, and continues after it by itself."""
    done = list[bool]()
    thread = threading.Thread(target=lambda: done.append(store.put(block, 10 * _DEADLINE_S)), daemon=True)
    thread.start()
    thread.join(2 * _RETRY_S)
    assert thread.is_alive(), "the put did not wait"
    yield
    thread.join(_DEADLINE_S)
    assert done == [True], "the put did not continue"


def opened(folder: Path, *, segment_bytes: int = 30_000) -> EventStore:
    return EventStore(FileStorage(folder, segment_bytes=segment_bytes, sync="batch"), START)


def opened_mixed(folder: Path, *, segment_bytes: int = 30_000) -> EventStore:
    files = FileStorage(folder, segment_bytes=segment_bytes, sync="batch")
    return EventStore(TieredStorage(_IN_MEMORY, files), START)


def read(store: EventStore, name: str) -> list[Position]:
    """Ends of all that is left for the client, which lies byte for byte where it was in the log; acks nothing."""
    ends, at = list[Position](), None
    while batch := store.get(name, BatchSize(5)):
        assert at in {None, batch.start}
        for block in batch.blocks:
            assert at in {None, block.start}
            assert is_right(block), f"{block.start} to {block.end} is damaged"
            at = block.end
            ends.append(at)
    return ends


def is_right(block: Block) -> bool:
    data, starts, sizes = block.raw
    events = zip(starts.tolist(), sizes.tolist(), block.column("position").tolist(), strict=True)
    return all((data[first : first + size] == np.arange(at, at + size) % 256).all() for first, size, at in events)


def check_all_there(store: EventStore, start: Position, blocks: list[Block]) -> None:
    """From `start` on: these blocks, whole and in order, and nothing more."""
    assert store.add_client("reader", Start.at(start)) == start
    expected = [block.end for block in blocks if block.end > start]
    ends = read(store, "reader")
    store.forget_client("reader")
    assert [end for end in ends if end in set(expected)] == expected
    assert ends[-1:] == expected[-1:]
    assert store.latest == blocks[-1].end


def check_says(problem: str, folder: Path, reason: str) -> None:
    assert problem == f"{folder} cannot be written to: {reason}", problem


def error_of(action: Callable[[], object]) -> str:
    """What it says; nothing when it works."""
    try:
        action()
    except PenstockError as error:
        return str(error)
    return ""


def get_and_ack(store: EventStore, name: str, entries: int) -> Position:
    batch = store.get(name, BatchSize(entries))
    assert batch is not None
    assert all(map(is_right, batch.blocks))
    store.ack(name, batch.end, batch.end_sequence)
    return batch.end


# -- the file store


def full_until_acked(folder: Path) -> None:
    Disk.of(folder, "size=200k")
    store, source = opened(folder), Source()
    store.add_client("one")
    store.add_client("late")
    done, refused = put_until_refused(store, source)
    assert len(done) > 15
    assert not store.put(refused, 0)
    check_says(store.problem, folder, FULL)
    assert store.latest == done[-1].end
    assert read(store, "one")[-1] == done[-1].end
    store.ack("one", done[-1].end)
    with waiting_put(store, refused):
        acked = get_and_ack(store, "late", 6 * 8)
    assert store.problem == ""
    done.append(refused)
    blocks, refused = put_until_refused(store, source)
    done += [*blocks, refused]
    check_says(store.problem, folder, FULL)
    store.ack("one", read(store, "one")[-1])
    with waiting_put(store, refused):
        acked = get_and_ack(store, "late", 6 * 8)
    check_all_there(store, acked, done)
    store.stop()
    store = opened(folder)
    check_all_there(store, acked, done)
    store.stop()


def full_until_larger(folder: Path) -> None:
    disk = Disk.of(folder, "size=200k")
    store, source = opened(folder), Source()
    store.add_client("one")
    done, refused = put_until_refused(store, source)
    check_says(store.problem, folder, FULL)
    with waiting_put(store, refused):
        disk.remount("size=400k")
    done.append(refused)
    blocks, _ = put_until_refused(store, source)
    assert len(blocks) > 15
    done += blocks
    check_all_there(store, START, done)
    store.stop()
    store = opened(folder)
    check_all_there(store, START, done)
    store.stop()


def full_and_opened_again(folder: Path) -> None:
    """While it is still full."""
    disk = Disk.of(folder, "size=200k")
    store, source = opened(folder), Source()
    done, _ = put_until_refused(store, source)
    store.stop()
    for _ in range(2):
        store = opened(folder)
        assert store.discard_incomplete() == done[-1].end
        check_all_there(store, START, done)
        store.stop()
    store, source = opened(folder), Source(done[-1].end)
    blocks, refused = put_until_refused(store, source)
    check_says(store.problem, folder, FULL)
    with waiting_put(store, refused):
        disk.remount("size=400k")
    store.stop()
    store = opened(folder)
    check_all_there(store, START, [*done, *blocks, refused])
    store.stop()


def smaller_after_refused(folder: Path) -> None:
    """A part of the refused block lies where the smaller ones go, and ends after them."""
    disk = Disk.of(folder, "size=200k")
    store, source = opened(folder), Source()
    done = [source.next() for _ in range(3)]
    assert store.put(done)
    filler = disk.fill(leave=6 * 4096)
    assert not store.put(source.next(60_000), _MOMENT_S)
    check_says(store.problem, folder, FULL)
    source.at = done[-1].end
    done.append(source.next())
    assert store.put(done[-1], _MOMENT_S)
    filler.unlink()
    for _ in range(6):
        done.append(source.next())
        assert store.put(done[-1], _MOMENT_S)
    check_all_there(store, START, done)
    store.stop()
    store = opened(folder)
    check_all_there(store, START, done)
    store.stop()


def some_of_several_refused(folder: Path) -> None:
    """The first of them had room: all go in or none, also when the store is opened again."""
    disk = Disk.of(folder, "size=200k")
    store, source = opened(folder), Source()
    store.add_client("one")
    done = [source.next() for _ in range(2)]
    assert store.put(done)
    disk.fill(leave=6 * 4096)
    blocks = [source.next(), source.next(), source.next()]
    assert not store.put(blocks, _MOMENT_S)
    check_says(store.problem, folder, FULL)
    assert store.sequences("one")[0] == 2 * 6 - 1
    check_all_there(store, START, done)
    store.stop()
    store = opened(folder)
    check_all_there(store, START, done)
    store.stop()


def acked_while_it_writes(folder: Path, kind: str) -> None:
    """The last ack comes just when a write fails: there is nobody else to make room."""
    Disk.of(folder, "size=200k")
    make = opened if kind == "file" else opened_mixed
    store, source = make(folder, segment_bytes=1 << 20), Source()
    store.add_client("one")
    done, refused = put_until_refused(store, source)
    ends, append = read(store, "one"), Segment.append

    def append_and_ack(self: Segment, parts: Sequence[Part]) -> int:
        try:
            return append(self, parts)
        except OSError:
            if ends:
                store.ack("one", ends.pop())
                ends.clear()
            raise

    with waiting_put(store, refused):
        Segment.append = append_and_ack
        wait_for(lambda: not ends)
    Segment.append = append
    assert store.sequences("one")[2] == 6 * len(done) - 1
    assert read(store, "one")[-1] == refused.end
    store.stop()


def no_more_files(folder: Path) -> None:
    """There is room, but not for another name."""
    disk = Disk.of(folder, "size=1m,nr_inodes=5")  # the folder, the lock, three segments
    store, source = opened(folder), Source()
    store.add_client("one")
    done, refused = put_until_refused(store, source)
    check_says(store.problem, folder, FULL)
    with waiting_put(store, refused):
        disk.remount("nr_inodes=50")
    done.append(refused)
    store.stop()
    store = opened(folder)
    check_all_there(store, START, done)
    store.stop()


def read_only_for_a_while(folder: Path) -> None:
    disk = Disk.of(folder, "size=1m")
    store, source = opened(folder), Source()
    store.add_client("one")
    store.add_client("late")
    done = [source.next() for _ in range(5)]
    assert store.put(done)
    disk.cover()
    blocks, refused = put_until_refused(store, source)
    done += blocks
    check_says(store.problem, folder, READ_ONLY)
    assert store.latest == done[-1].end
    assert read(store, "one")[-1] == done[-1].end
    store.ack("one", done[-1].end)
    with waiting_put(store, refused):
        disk.uncover()
    assert store.problem == ""
    done += [refused, source.next()]
    assert store.put(done[-1], _MOMENT_S)
    check_all_there(store, START, done)
    store.stop()
    store = opened(folder)
    check_all_there(store, START, done)
    store.stop()


def acks_while_read_only(folder: Path, kind: str) -> None:
    """Files that cannot be removed do not stop a client, and nothing is lost by them."""
    disk = Disk.of(folder, "size=1m")
    store, source = (opened if kind == "file" else opened_mixed)(folder), Source()
    store.add_client("one")
    done = [source.next() for _ in range(20)]
    for block in done:
        assert store.put(block, _DEADLINE_S)
    disk.cover()
    acked = get_and_ack(store, "one", 8 * 6)
    assert store.sequences("one")[2] == 8 * 6 - 1
    disk.uncover()
    acked = get_and_ack(store, "one", 4 * 6)
    for _ in range(20):
        done.append(source.next())
        assert store.put(done[-1], _DEADLINE_S)
        acked = get_and_ack(store, "one", 6)
    check_all_there(store, acked, done)
    store.stop()
    store = opened(folder)
    check_all_there(store, acked, done)
    store.add_client("one", Start.at(acked))
    store.ack("one", read(store, "one")[-1])
    assert list(folder.glob("*.blocks")) == []
    store.stop()


def forgotten_while_read_only(folder: Path) -> None:
    disk = Disk.of(folder, "size=1m")
    store, source = opened(folder), Source()
    store.add_client("slow")
    store.add_client("fast")
    done = [source.next() for _ in range(12)]
    assert store.put(done)
    store.ack("fast", read(store, "fast")[-1])
    disk.cover()
    store.forget_client("slow")
    assert list(store.states()) == ["fast"]
    disk.uncover()
    done.append(source.next())
    assert store.put(done[-1], _MOMENT_S)
    assert read(store, "fast")[-1] == done[-1].end
    store.stop()
    store = opened(folder)
    check_all_there(store, done[-2].end, done)
    store.stop()


def reconnects_while_read_only(folder: Path) -> None:
    """Capture drops the transaction whose end has not come: now, or when the disk lets it."""
    disk = Disk.of(folder, "size=1m")
    store, source = opened(folder), Source()
    done = [source.next() for _ in range(4)]
    assert store.put(done)
    assert store.put(source.next(is_whole=False))  # in a file of its own
    disk.cover()
    says = error_of(store.discard_incomplete)
    assert not says or str(folder) in says, says
    disk.uncover()
    assert store.discard_incomplete() == done[-1].end
    source.at = done[-1].end
    done.append(source.next())
    assert store.put(done[-1], _MOMENT_S)
    check_all_there(store, START, done)
    store.stop()
    store = opened(folder)
    check_all_there(store, START, done)
    store.stop()


def opened_on_read_only(folder: Path, kind: str) -> None:
    disk = Disk.of(folder, "size=1m")
    inner = folder / "store"
    if kind != "missing":
        inner.mkdir()
    if kind == "used":
        store = opened(inner)
        assert store.put(Source().next())
        store.stop()
    disk.remount("ro")
    check_refused(inner, READ_ONLY)
    disk.remount("rw")
    store = opened(inner)
    assert store.put(Source(store.latest).next(), _MOMENT_S)
    store.stop()


def opened_without_room(folder: Path, kind: str) -> None:
    """There are so many names: for the disk's own folder, the store's and the lock."""
    disk = Disk.of(folder, f"size=1m,nr_inodes={1 if kind == 'missing' else 2}")
    check_refused(folder / "store", FULL)
    disk.remount("nr_inodes=9")
    store = opened(folder / "store")
    assert store.put(Source().next(), _MOMENT_S)
    store.stop()


def check_refused(folder: Path, reason: str) -> None:
    says = error_of(lambda: opened(folder))
    assert str(folder) in says, says
    assert reason in says, says
    assert "\n" not in says, says


# -- the mixed store


def mixed_waits(folder: Path, kind: str) -> None:
    """For a slow client, on a disk that is full or read-only."""
    disk = Disk.of(folder, "size=120k" if kind == "full" else "size=1m")
    store, source = opened_mixed(folder), Source()
    store.add_client("slow")
    store.add_client("fast")
    done = list[Block]()
    if kind == "read-only":
        for _ in range(12):
            done.append(source.next())
            assert store.put(done[-1], _DEADLINE_S)
        disk.cover()
    blocks, refused = put_until_refused(store, source)
    done += blocks
    check_says(store.problem, folder, FULL if kind == "full" else READ_ONLY)
    store.ack("fast", read(store, "fast")[-1])  # all that was put
    assert store.sequences("fast")[2] == 6 * len(done) - 1
    assert store.states() == {"slow": ClientState.LAGGING, "fast": ClientState.LIVE}
    check_says(store.problem, folder, FULL if kind == "full" else READ_ONLY)
    with waiting_put(store, refused):
        disk.remount("size=1m") if kind == "full" else disk.uncover()
    done.append(refused)
    for _ in range(10):
        done.append(source.next())
        assert store.put(done[-1], _DEADLINE_S)
    assert store.problem == ""
    assert read(store, "fast")[-1] == done[-1].end
    check_all_there(store, START, done)
    store.stop()
    store = opened_mixed(folder)
    check_all_there(store, START, done)
    store.stop()


def mixed_until_acked(folder: Path) -> None:
    Disk.of(folder, "size=120k")
    store, source = opened_mixed(folder), Source()
    store.add_client("slow")
    done, refused = put_until_refused(store, source)
    check_says(store.problem, folder, FULL)
    with waiting_put(store, refused):
        acked = get_and_ack(store, "slow", 6 * 6)
    done.append(refused)
    blocks, _ = put_until_refused(store, source)
    done += blocks
    check_all_there(store, acked, done)
    store.ack("slow", read(store, "slow")[-1])
    for _ in range(20):
        done.append(source.next())
        assert store.put(done[-1], _DEADLINE_S)
        acked = get_and_ack(store, "slow", 6)
    assert store.problem == ""  # no put waits
    done.append(source.next())
    assert store.put(done[-1], _DEADLINE_S)
    store.stop()
    store = opened_mixed(folder)
    check_all_there(store, acked, done)
    store.stop()


def mixed_stopped_while_full(folder: Path) -> None:
    """What has no room comes from the source's log again; what has is whole."""
    disk = Disk.of(folder, "size=120k")
    store, source = opened_mixed(folder), Source()
    store.add_client("slow")
    done, _ = put_until_refused(store, source)
    with suppress(StoreFullError):
        store.stop()
    store = opened_mixed(folder)
    at = store.discard_incomplete()
    kept = [block for block in done if block.end <= at]
    assert len(kept) >= 10
    check_all_there(store, START, kept)
    disk.remount("size=1m")
    rest = Source(at)
    for _ in range(10):
        kept.append(rest.next())
        assert store.put(kept[-1], _DEADLINE_S)
    check_all_there(store, START, kept)
    store.stop()
    store = opened_mixed(folder)
    check_all_there(store, START, kept)
    store.stop()


def mixed_cut_while_full(folder: Path) -> None:
    """A part of the last block is in a file when the connection breaks, and the block becomes a smaller one."""
    disk = Disk.of(folder, "size=200k")
    store, source = opened_mixed(folder), Source()
    store.add_client("slow")
    done = [source.next() for _ in range(7)]
    for block in done:
        assert store.put(block, _DEADLINE_S)
    wait_for(lambda: store.size_bytes <= _IN_MEMORY // 2)
    filler = disk.fill(leave=8 * 4096)
    large, _ = block_of([*transaction(8000), *transaction(40_000, is_whole=False)], start=source.at.offset)
    assert store.put(large, _DEADLINE_S)
    wait_for(lambda: bool(store.problem))
    done.append(source.next())
    assert store.discard_incomplete() == done[-1].end
    filler.unlink()
    for _ in range(8):
        done.append(source.next())
        assert store.put(done[-1], _DEADLINE_S)
    check_all_there(store, START, done)
    store.stop()
    store = opened_mixed(folder)
    check_all_there(store, START, done)
    store.stop()


# -- meta.dat


def meta_in(folder: Path, period_s: float | None = 3600) -> PersistentMetaManager:
    meta = PersistentMetaManager("d", FileMetaBackend("d", folder), period_s=period_s)
    meta.start()
    return meta


def cursor_at(offset: int) -> Cursor:
    return Cursor(Position("binlog.000001", offset))


def with_many_clients(folder: Path) -> Path:
    """A meta.dat of several pages, so that a part of the next one has room."""
    meta = meta_in(folder)
    for client_id in range(50):
        meta.subscribe(client_id, "shop.a_long_name," * 10)
        meta.update_cursor(client_id, cursor_at(100))
    meta.stop()
    path = folder / "d" / "meta.dat"
    assert path.stat().st_size > 3 * 4096
    return path


def check_kept(folder: Path, offset: int) -> None:
    """As somebody else finds it."""
    backend = FileMetaBackend("d", folder)
    records = {record.client_id: record for record in backend.read_records()}
    assert len(records) == 50
    assert records[7].cursor == cursor_at(offset)
    json.loads(backend.path.read_bytes())  # not that of meta.dat.previous


def check_not_kept(change: Callable[[], object], path: Path, reason: str) -> None:
    says = error_of(change)
    assert says == f"{path} cannot be written: {reason}", says


@contextmanager
def trouble(disk: Disk, kind: str) -> Iterator[str]:
    """A disk on which a part of the file has room, or none; gives the reason."""
    if kind == "full":
        filler = disk.fill(leave=4096)
        yield FULL
        filler.unlink()
    else:
        disk.cover()
        yield READ_ONLY
        disk.uncover()


def meta_before(folder: Path, kind: str) -> None:
    disk = Disk.of(folder, "size=200k")
    path = with_many_clients(folder)
    meta = meta_in(folder, None)
    with trouble(disk, kind) as reason:
        for change in (
            lambda: meta.update_cursor(7, cursor_at(200)),
            lambda: meta.subscribe(9),
            lambda: meta.forget(8),
        ):
            check_not_kept(change, path, reason)
            check_kept(folder, 100)
        assert meta.cursor(7) == meta.cursor(8) == cursor_at(100)
        assert meta.subscriptions()[9]
    meta.update_cursor(7, cursor_at(300))
    check_kept(folder, 300)
    meta.stop()
    check_kept(folder, 300)


def meta_afterwards(folder: Path, kind: str) -> None:
    """Kept soon: it counts, there is a reason, and it is kept when there is room."""
    disk = Disk.of(folder, "size=200k")
    path = with_many_clients(folder)
    meta = meta_in(folder, 0)
    with trouble(disk, kind) as reason:
        meta.update_cursor(7, cursor_at(200))
        wait_for(lambda: bool(meta.problem))
        assert meta.problem == f"{path} cannot be written: {reason}", meta.problem
        assert meta.cursor(7) == cursor_at(200)
        check_kept(folder, 100)
        meta.update_cursor(7, cursor_at(300))
    wait_for(lambda: not meta.problem)
    check_kept(folder, 300)
    meta.stop()


def meta_stopped_while_full(folder: Path) -> None:
    disk = Disk.of(folder, "size=200k")
    path = with_many_clients(folder)
    meta = meta_in(folder, 3600)
    meta.update_cursor(7, cursor_at(200))
    with trouble(disk, "full") as reason:
        check_not_kept(meta.stop, path, reason)
        check_kept(folder, 100)
        meta = meta_in(folder)  # it is in nobody's use
        assert meta.cursor(7) == cursor_at(100)
    meta.update_cursor(7, cursor_at(300))
    meta.stop()
    check_kept(folder, 300)


def meta_on_read_only(folder: Path, kind: str) -> None:
    disk = Disk.of(folder, "size=200k")
    if kind == "used":
        with_many_clients(folder)
    disk.remount("ro")
    for period_s in (None, 0.0, 3600.0):
        check_not_kept(lambda period_s=period_s: meta_in(folder, period_s), folder / "d", READ_ONLY)
    disk.remount("rw")
    meta = meta_in(folder)
    meta.subscribe(1)
    meta.stop()


def wait_for(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not ready():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(_MOMENT_S)


if __name__ == "__main__":
    sys.meta_path.insert(0, WithoutPandas())
    vars(penstock.meta.persistent_manager)["_RETRY_S"] = _RETRY_S
    for module in (penstock.store.tiered_storage, penstock.store.store):
        vars(module)["_DISK_RETRY_S"] = _RETRY_S
    case, where, *kinds = globals()[sys.argv[1]], Path(sys.argv[2]), *sys.argv[3:]
    for number, kind in enumerate(kinds or [()]):
        (where / str(number)).mkdir()
        case(where / str(number), *([kind] if kind else ()))
