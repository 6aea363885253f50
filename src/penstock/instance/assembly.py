"""The components of an instance, as its settings choose them."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.capture.prepared import PreparedTransactions
from penstock.capture.prepared_files import PreparedFiles
from penstock.capture.source_log import SourceLog
from penstock.config import InstanceSettings
from penstock.coordinate import Fence, Tree, ZooKeeperTree, claim
from penstock.coordinate.canal import epoch_path
from penstock.errors import PenstockError
from penstock.meta import (
    CursorPositions,
    FailoverPositions,
    FileMetaBackend,
    FilePositions,
    FileRecords,
    LogPositions,
    MemoryPositions,
    MemoryRecords,
    MetaManager,
    PersistentMetaManager,
    SourceRecord,
    SourceRecords,
    ZooKeeperMetaBackend,
    ZooKeeperPositions,
    ZooKeeperRecords,
)
from penstock.model import Position
from penstock.store import EventStore, EvictionPolicy, FileStorage, MemoryStorage, Retention, TieredStorage
from penstock.store.block_storage import BlockStorage
from penstock.store.catch_up import LogReader


@dataclass(frozen=True, slots=True)
class MetaStores:
    """Cursors, from where capture goes on, and in which log."""

    meta: MetaManager
    positions: LogPositions
    records: SourceRecords
    tree: Tree | None

    def close(self) -> None:
        try:
            self.meta.stop()
        finally:
            if self.tree is not None:
                self.tree.close()


def open_meta_stores(settings: InstanceSettings, fence: Fence | None = None) -> MetaStores:
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
    positions = several[0] if len(several) == 1 else FailoverPositions(*several, destination=destination)
    return MetaStores(meta, positions, _records(settings, tree, fence), tree)


def _records(settings: InstanceSettings, tree: Tree | None, fence: Fence | None) -> SourceRecords:
    """Where cursors are, or else where the store is."""
    if settings.meta_kind in {"zookeeper", "mixed", "period-mixed"}:
        return ZooKeeperRecords(settings.destination, _tree(tree), fence=fence)
    return MemoryRecords() if settings.data_dir is None else FileRecords(settings.destination, settings.data_dir)


def load_source_record(settings: InstanceSettings) -> SourceRecord:
    """Which log an instance follows, for who does not run it."""
    if settings.zookeeper is None or settings.meta_kind in {"memory", "file"}:
        return _records(settings, None, None).load()
    with closing(ZooKeeperTree(settings.zookeeper)) as tree:
        return _records(settings, tree, None).load()


def fence_path(destination: str) -> str:
    return epoch_path(destination)


def _meta(settings: InstanceSettings, tree: Tree | None, fence: Fence | None) -> MetaManager:
    destination, period_s = settings.destination, settings.meta.period_s
    match settings.meta_kind:
        case "memory":
            return MetaManager(destination)
        case "file":
            elected: dict[str, Any] = {"fence": fence.epoch, "check": fence.require} if fence else {}
            backend = FileMetaBackend(destination, _folder(settings), **elected)
            return PersistentMetaManager(destination, backend, period_s=period_s or None)
        case "zookeeper":
            return PersistentMetaManager(
                destination, ZooKeeperMetaBackend(destination, _tree(tree), fence=fence), period_s=None
            )
        case "mixed":
            return PersistentMetaManager(
                destination, ZooKeeperMetaBackend(destination, _tree(tree), fence=fence), period_s=0
            )
        case "period-mixed":
            backend = ZooKeeperMetaBackend(destination, _tree(tree), fence=fence, with_batches=False)
            return PersistentMetaManager(destination, backend, period_s=period_s or None)


def open_store(settings: InstanceSettings, start: Position, source_log: LogReader) -> EventStore:
    storage = _storage(settings)
    policy = EvictionPolicy(settings.store.absent_after_s, settings.store.slow_clients == "catch_up")
    try:
        return EventStore(storage, start, destination=settings.destination, source_log=source_log, policy=policy)
    except PenstockError:
        storage.close()
        raise


def open_prepared(settings: InstanceSettings, source_log: SourceLog) -> PreparedTransactions:
    """XA transactions that are prepared in the log; with a folder they are saved there."""
    is_eager, files = settings.source.semi_sync, None
    if settings.data_dir is not None:
        files = PreparedFiles(settings.data_dir / settings.destination / "prepared", sync=is_eager)
    return PreparedTransactions(
        source_log,
        files=files,
        is_eager=is_eager,
        on_lost=source_log.handle_lost_rows,
        destination=settings.destination,
    )


def _storage(settings: InstanceSettings) -> BlockStorage:
    store = settings.store
    if store.kind == "memory":
        return MemoryStorage(store.memory, slots=store.slots)
    files = FileStorage(
        _folder(settings) / settings.destination / "store",
        destination=settings.destination,
        segment_bytes=store.segment,
        sync="batch" if settings.source.semi_sync else store.sync,
        interval_s=store.sync_interval_s,
        retention=Retention(store.keep, store.keep_s, store.limit, store.limit_s),
    )
    is_eager = settings.source.semi_sync
    return files if store.kind == "file" else TieredStorage(store.memory, files, is_eager=is_eager)


def _folder(settings: InstanceSettings) -> Path:
    assert settings.data_dir is not None  # noqa: S101 - the settings have seen to it
    return settings.data_dir


def _tree(tree: Tree | None) -> Tree:
    assert tree is not None  # noqa: S101 - the settings have seen to it
    return tree
