"""The event store: blocks of a real log through put, get and ack; in memory, in files and in both.

Blocks come from the log of 306 MB that `benchmarks/binlog.py` makes, cut as capture cuts them. What a store does is a
cost per block, not per row: `images/s` says how many row images went through. Writing to files is held against plain
sequential writes of the same bytes to the same disk, as `dd` makes them: into the system's cache, where the difference
is largest (`file_ratio_sequential_write`), and with one sync at the end (`file_ratio_synced`). A stopped client in the
mixed store is held against the same run without it: a fast client gets, decodes all columns and acks what capture reads
from the log file.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np

from benchmarks._binlog_logs import Log, logs_of, say
from benchmarks._binlog_shapes import MARIADB, ORDERS
from benchmarks._report import print_figures, print_table
from benchmarks._scale import scaled
from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import MAGIC, Entry
from penstock.binlog.events.reader import BlockReader
from penstock.binlog.rows.decode import decode_rows
from penstock.cli.heap import keep_freed_memory
from penstock.model import GtidSet, Position
from penstock.store import BatchSize, EventStore, FileStorage, MemoryStorage, TieredStorage
from penstock.store.block_storage import BlockStorage

ROUNDS = scaled(3, 1)
SIZE = BatchSize(1 << 11, "memory")  # 2 MiB
_START = Position("binlog.000001", 4)
_LATENCIES = scaled(2000, 200)
_FILE_ROUNDS = scaled(11, 1)  # pairs of a quarter of a second
_PUT_S = 60.0


def blocks_of(log: Log) -> Iterator[Block]:
    reader = BlockReader(Position(log.path.name, 4, gtids=GtidSet({}, is_mariadb=True)))
    with log.path.open("rb", buffering=0) as file:
        file.seek(len(MAGIC))
        while size := file.readinto(reader.room(1 << 20)[: 1 << 20].data):
            reader.advance(size)
            yield from reader.blocks(flush=False)
    yield from reader.blocks(flush=True)


def put(store: EventStore, block: Block) -> None:
    """Put a block, or fail: no client is so slow that a store stays full."""
    if not store.put(block, timeout_s=_PUT_S):
        raise RuntimeError(f"the store had no room for a block in {_PUT_S:g} s: {store.why_full}")


def through(storage: BlockStorage, blocks: list[Block], clients: int) -> float:
    """Seconds for all blocks: each is put, and got and acked by every client."""
    store = EventStore(storage, _START)
    names = [f"client-{number}" for number in range(clients)]
    for name in names:
        store.add_client(name)
    began = time.perf_counter()
    for block in blocks:
        put(store, block)
        for name in names:
            # A block may be larger than a batch: all of it goes before the next one comes.
            while (batch := store.get(name, SIZE)) is not None:
                store.ack(name, batch.end, batch.end_sequence)
    return time.perf_counter() - began


def write_files(blocks: list[Block], folder: Path) -> tuple[float, float, int]:
    """Seconds to put all blocks into files, and to bring these to the disk; and how large they are."""
    storage = FileStorage(folder, sync="none")
    store = EventStore(storage, _START)
    began = time.perf_counter()
    for block in blocks:
        put(store, block)
    took = time.perf_counter() - began
    size = storage.size_bytes
    for path in folder.glob("*.blocks"):
        _sync(path)
    synced = time.perf_counter() - began
    storage.clear()
    storage.close()
    return took, synced, size


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    os.fdatasync(file)
    os.close(file)


def write_plainly(blocks: list[Block], size: int, folder: Path) -> tuple[float, float]:
    """The bytes of the events, and zeros for what a store adds to them; seconds to write, and to bring to the disk."""
    path, rest = folder / "plain", bytes((size - sum(block.raw[0].size for block in blocks)) // len(blocks))
    began = time.perf_counter()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for block in blocks:
        os.writev(file, [block.raw[0].data, rest])
    os.close(file)
    took = time.perf_counter() - began
    _sync(path)
    synced = time.perf_counter() - began
    path.unlink()
    return took, synced


def beside_plain_writes(blocks: list[Block], folder: Path, figures: dict[str, Any]) -> tuple[float, float]:
    """Seconds to put all blocks into files, and to write as many bytes plainly; one after the other, many times."""
    plain, files, ratios, synced = list[float](), list[float](), list[float](), list[float]()
    for _ in range(_FILE_ROUNDS):
        took, took_synced, size = write_files(blocks, folder)
        alone, alone_synced = write_plainly(blocks, size, folder)
        files.append(took)
        plain.append(alone)
        ratios.append(alone / took)
        synced.append(alone_synced / took_synced)
    figures["file_ratio_sequential_write"] = round(median(ratios), 2)
    figures["file_ratio_synced"] = round(median(synced), 2)
    return median(files), median(plain)


def decode(block: Block) -> None:
    events = np.flatnonzero(block.column("entry") == Entry.ROWS)
    ids = block.column("table_id")[events]
    for number in block.tables:
        table = block.schema_of(number)
        for _ in decode_rows(block, events[ids == number], table, [column.name for column in table.columns]):
            pass


def _wait_for(store: EventStore, name: str) -> None:
    """Until a client has acked everything."""
    until = time.monotonic() + _PUT_S
    while store.sequences(name)[2] < store.sequences(name)[0]:
        if time.monotonic() > until:
            raise RuntimeError(f"client {name} did not ack everything in {_PUT_S:g} s after the last put")
        time.sleep(0.001)


def fast_client(log: Log, folder: Path, *, with_stopped: bool) -> float:
    """Seconds until a client that keeps up has decoded the whole log."""
    storage = TieredStorage(64 << 20, FileStorage(folder, sync="none"))
    store = EventStore(storage, _START)
    store.add_client("fast")
    if with_stopped:
        store.add_client("stopped")
    done = threading.Event()

    def consume() -> None:
        while True:
            batch = store.get("fast", SIZE, 0.2)
            if batch is None:
                if done.is_set():
                    return
                continue
            for block in batch.blocks:
                decode(block)
            store.ack("fast", batch.end, batch.end_sequence)

    consumer = threading.Thread(target=consume)
    began = time.perf_counter()
    consumer.start()
    for block in blocks_of(log):
        put(store, block)
    done.set()
    _wait_for(store, "fast")
    took = time.perf_counter() - began
    consumer.join()
    store.forget_client("stopped")
    storage.close()
    for path in folder.glob("*.blocks"):
        path.unlink()
    return took


def transactions_of(blocks: list[Block]) -> list[Block]:
    """Return one block for each transaction, and two for one that continues in the next block."""
    return [
        block.slice(first, stop) for block in blocks for first, stop in pairwise([0, *(block.boundaries + 1).tolist()])
    ]


def latencies(blocks: list[Block]) -> list[float]:
    """Milliseconds from the put of a small transaction to its get in another thread that waits for it."""
    parts = transactions_of(blocks)[:_LATENCIES]
    store = EventStore(MemoryStorage(64 << 20), _START)
    store.add_client("one", wants_whole=True)
    put_at, took = list[float](), list[float]()

    def consume() -> None:
        while len(took) < len(parts):
            batch = store.get("one", BatchSize(1), 5.0)
            if batch is None:
                return
            took.append(1e3 * (time.perf_counter() - put_at[len(took)]))
            store.ack("one", batch.end)

    consumer = threading.Thread(target=consume)
    consumer.start()
    for part in parts:
        put_at.append(time.perf_counter())
        put(store, part)
        time.sleep(0.001)
    consumer.join()
    return took


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def main() -> None:
    keep_freed_memory()
    log = next(log for log in logs_of(MARIADB) if log.shape is ORDERS)
    before = _resident()
    store = EventStore(MemoryStorage(1 << 40), _START)
    blocks = list[Block]()
    for block in blocks_of(log):
        put(store, block)
        blocks.append(block)
    agreement = store.size_bytes / (_resident() - before)
    del store
    images = log.shape.images()
    rows: list[list[str]] = []
    figures: dict[str, Any] = {}

    def add_row(name: str, took: float, count: int = len(blocks)) -> None:
        rows.append([name, f"{log.size / took / 1e6:,.0f}", f"{images / took:,.0f}", f"{1e6 * took / count:,.0f}"])

    def measured(name: str, run: Callable[[], float]) -> float:
        say(name)
        took = median(run() for _ in range(ROUNDS))
        add_row(name, took)
        return took

    through(MemoryStorage(64 << 20), blocks, 1)
    for clients in (1, 2, 8):
        took = measured(
            f"memory, {clients} client(s)", lambda clients=clients: through(MemoryStorage(64 << 20), blocks, clients)
        )
        figures.setdefault("memory_images_per_s", round(images / took))
    say("memory, every transaction a block")
    small = transactions_of(blocks)
    add_row("memory, small blocks", through(MemoryStorage(64 << 20), small, 1), len(small))
    with tempfile.TemporaryDirectory(dir=Path.home() / ".cache" / "penstock") as name:
        folder = Path(name)
        say("files, beside plain writes of the same size")
        files, plain = beside_plain_writes(blocks, folder, figures)
        add_row("put into files", files)
        add_row("plain sequential writes", plain)
        measured("files, 1 client", lambda: _with_files(folder, blocks))
        measured("mixed, 1 client", lambda: _with_files(folder, blocks, memory_bytes=64 << 20))
        say("mixed, a fast client that decodes, with and without one that has stopped")
        alone, beside = list[float](), list[float]()
        for number in range(2 * ROUNDS):
            for is_beside in (False, True) if number % 2 else (True, False):
                (beside if is_beside else alone).append(fast_client(log, folder, with_stopped=is_beside))
        add_row("mixed, decoding client", median(alone))
        add_row("… beside a stopped one", median(beside))
        figures["fast_client_slowdown"] = round(median(beside) / median(alone) - 1, 3)
    took = latencies(blocks)
    figures["p99_put_get_ms"] = round(quantiles(took, n=100)[98], 3)
    figures["median_put_get_ms"] = round(median(took), 3)
    figures["memory_agreement"] = round(agreement, 2)
    print_table(
        f"a log of {log.size / 1e6:,.0f} MB in {len(blocks)} blocks, medians of {ROUNDS}",
        ["what", "MB/s", "images/s", "µs per block"],
        rows,
    )
    print_figures("store", figures)


def _with_files(folder: Path, blocks: list[Block], memory_bytes: int = 0) -> float:
    storage: BlockStorage = FileStorage(folder, sync="none")
    if memory_bytes:
        storage = TieredStorage(memory_bytes, storage)
    took = through(storage, blocks, 1)
    storage.clear()
    storage.close()
    return took


if __name__ == "__main__":
    main()
