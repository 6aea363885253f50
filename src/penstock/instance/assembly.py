"""The parts of an instance, as its settings choose them."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.config import InstanceSettings
from penstock.coordinate import Fence, Tree, ZooKeeperTree, claim
from penstock.coordinate.canal import epoch_path
from penstock.errors import PenstockError
from penstock.instance.prepared import PreparedTransactions
from penstock.instance.prepared_files import PreparedFiles
from penstock.instance.source_log import SourceLog
from penstock.meta import (
    CursorPositions,
    FailoverPositions,
    FileKeeper,
    FilePositions,
    FileRecords,
    KeptMeta,
    LogPositions,
    MemoryMeta,
    MemoryPositions,
    MemoryRecords,
    SourceRecord,
    SourceRecords,
    ZooKeeperKeeper,
    ZooKeeperPositions,
    ZooKeeperRecords,
)
from penstock.model import Position
from penstock.store import EventStore, EvictionPolicy, FileShelf, MemoryShelf, MixedShelf, Retention
from penstock.store.catch_up import LogReader
from penstock.store.shelf import Shelf


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """Cursors, from where capture goes on, and in which log."""

    meta: MemoryMeta
    positions: LogPositions
    records: SourceRecords
    tree: Tree | None

    def close(self) -> None:
        try:
            self.meta.stop()
        finally:
            if self.tree is not None:
                self.tree.close()


def open_bookkeeping(settings: InstanceSettings, fence: Fence | None = None) -> Bookkeeping:
    """With ZooKeeper, this takes over, unless an election has done so and gives the fence: from now on another server
    that has the destination cannot write."""
    destination = settings.destination
    tree = None
    if settings.zookeeper is not None:
        tree = ZooKeeperTree(settings.zookeeper)
        try:
            fence = fence or claim(tree, fence_path(destination))
        except PenstockError:
            tree.close()
            raise
    meta = _meta(settings, tree, fence)
    managers = {
        "memory": MemoryPositions,
        "cursors": lambda: CursorPositions(meta.lowest_cursor),
        "file": lambda: FilePositions(destination, _folder(settings)),
        "zookeeper": lambda: ZooKeeperPositions(destination, _tree(tree), fence=fence),
    }
    several = [managers[kind]() for kind in settings.positions]
    positions = several[0] if len(several) == 1 else FailoverPositions(*several)
    return Bookkeeping(meta, positions, _records(settings, tree, fence), tree)


def _records(settings: InstanceSettings, tree: Tree | None, fence: Fence | None) -> SourceRecords:
    """Where cursors are, or else where the store is."""
    if settings.meta_kind in {"zookeeper", "mixed", "period-mixed"}:
        return ZooKeeperRecords(settings.destination, _tree(tree), fence=fence)
    return MemoryRecords() if settings.data_dir is None else FileRecords(settings.destination, settings.data_dir)


def kept_record(settings: InstanceSettings) -> SourceRecord:
    """Which log an instance follows, for who does not run it."""
    if settings.zookeeper is None or settings.meta_kind in {"memory", "file"}:
        return _records(settings, None, None).load()
    with closing(ZooKeeperTree(settings.zookeeper)) as tree:
        return _records(settings, tree, None).load()


def fence_path(destination: str) -> str:
    return epoch_path(destination)


def _meta(settings: InstanceSettings, tree: Tree | None, fence: Fence | None) -> MemoryMeta:
    destination, period_s = settings.destination, settings.meta.period_s
    match settings.meta_kind:
        case "memory":
            return MemoryMeta(destination)
        case "file":
            elected: dict[str, Any] = {"fence": fence.epoch, "check": fence.require} if fence else {}
            keeper = FileKeeper(destination, _folder(settings), **elected)
            return KeptMeta(destination, keeper, period_s=period_s or None)
        case "zookeeper":
            return KeptMeta(destination, ZooKeeperKeeper(destination, _tree(tree), fence=fence), period_s=None)
        case "mixed":
            return KeptMeta(destination, ZooKeeperKeeper(destination, _tree(tree), fence=fence), period_s=0)
        case "period-mixed":
            keeper = ZooKeeperKeeper(destination, _tree(tree), fence=fence, with_batches=False)
            return KeptMeta(destination, keeper, period_s=period_s or None)


def open_store(settings: InstanceSettings, start: Position, source_log: LogReader) -> EventStore:
    shelf = _shelf(settings)
    policy = EvictionPolicy(settings.store.absent_after_s, settings.store.slow_clients == "catch_up")
    try:
        return EventStore(shelf, start, source_log=source_log, policy=policy)
    except PenstockError:
        shelf.close()
        raise


def open_prepared(settings: InstanceSettings, source_log: SourceLog) -> PreparedTransactions:
    """XA transactions that are prepared in the log; with a folder they are saved there."""
    is_eager, files = settings.source.semi_sync, None
    if settings.data_dir is not None:
        files = PreparedFiles(settings.data_dir / settings.destination / "prepared", sync=is_eager)
    return PreparedTransactions(source_log, files=files, is_eager=is_eager, on_lost=source_log.leave_out_lost)


def _shelf(settings: InstanceSettings) -> Shelf:
    store = settings.store
    if store.kind == "memory":
        return MemoryShelf(store.memory, slots=store.slots)
    files = FileShelf(
        _folder(settings) / settings.destination / "store",
        segment_bytes=store.segment,
        sync="batch" if settings.source.semi_sync else store.sync,
        interval_s=store.sync_interval_s,
        retention=Retention(store.keep, store.keep_s, store.limit, store.limit_s),
    )
    is_eager = settings.source.semi_sync
    return files if store.kind == "file" else MixedShelf(store.memory, files, is_eager=is_eager)


def _folder(settings: InstanceSettings) -> Path:
    assert settings.data_dir is not None  # noqa: S101 - the settings have seen to it
    return settings.data_dir


def _tree(tree: Tree | None) -> Tree:
    assert tree is not None  # noqa: S101 - the settings have seen to it
    return tree
