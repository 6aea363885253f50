"""Opens the stores of an instance (cursors, positions, blocks) as its settings choose them."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.capture.prepared import PreparedTransactions
from penstock.capture.prepared_files import PreparedFiles
from penstock.capture.source_log import SourceLog
from penstock.config import InstanceSettings
from penstock.coordinate import Fence, Tree, ZooKeeperTree, claim
from penstock.coordinate.canal import fencing_epoch_path
from penstock.errors import PenstockError
from penstock.meta import (
    CursorPositions,
    FailoverPositions,
    FileMetaBackend,
    FilePositions,
    FileSourceRecords,
    LogPositions,
    MemoryPositions,
    MemorySourceRecords,
    MetaManager,
    PersistentMetaManager,
    SourceRecord,
    SourceRecords,
    ZooKeeperMetaBackend,
    ZooKeeperPositions,
    ZooKeeperSourceRecords,
)
from penstock.model import Position
from penstock.store import EventStore, EvictionPolicy, FileStorage, MemoryStorage, Retention, TieredStorage
from penstock.store.block_storage import BlockStorage
from penstock.store.catch_up import LogReader


@dataclass(frozen=True, slots=True)
class MetaStores:
    """The persistent state of an instance beside its events: the clients' cursors, capture's position, and the identity
    of the source's log."""

    meta: MetaManager
    positions: LogPositions
    records: SourceRecords
    tree: Tree | None

    def close(self) -> None:
        """Persist the cursors, and close the connection to ZooKeeper."""
        try:
            self.meta.stop()
        finally:
            if self.tree is not None:
                self.tree.close()


def open_meta_stores(settings: InstanceSettings, fence: Fence | None = None) -> MetaStores:
    """Open the stores of cursors, positions and log identity. With ZooKeeper this claims the destination, unless an
    election has done so and passes its fence: another server's writes are refused from then on."""
    destination = settings.destination
    tree = None
    if settings.zookeeper is not None:
        tree = ZooKeeperTree(settings.zookeeper)
        try:
            fence = fence or claim(tree, fence_path(destination))
        except PenstockError:
            tree.close()
            raise
    meta = _open_meta_manager(settings, tree, fence)
    openers = {
        "memory": MemoryPositions,
        "cursors": lambda: CursorPositions(meta.lowest_cursor),
        "file": lambda: FilePositions(destination, _require_folder(settings)),
        "zookeeper": lambda: ZooKeeperPositions(destination, _require_zookeeper(tree), fence=fence),
    }
    stores = [openers[kind]() for kind in settings.positions]
    positions = stores[0] if len(stores) == 1 else FailoverPositions(*stores, destination=destination)
    return MetaStores(meta, positions, _open_source_records(settings, tree, fence), tree)


def _open_source_records(settings: InstanceSettings, tree: Tree | None, fence: Fence | None) -> SourceRecords:
    """Return the store of the log identity: where the cursors are, or else where the events are."""
    if settings.meta_kind in {"zookeeper", "mixed", "period-mixed"}:
        return ZooKeeperSourceRecords(settings.destination, _require_zookeeper(tree), fence=fence)
    return (
        MemorySourceRecords()
        if settings.data_dir is None
        else FileSourceRecords(settings.destination, settings.data_dir)
    )


def load_source_record(settings: InstanceSettings) -> SourceRecord:
    """Return which log an instance follows, for commands that inspect an instance without running it."""
    if settings.zookeeper is None or settings.meta_kind in {"memory", "file"}:
        return _open_source_records(settings, None, None).load()
    with closing(ZooKeeperTree(settings.zookeeper)) as tree:
        return _open_source_records(settings, tree, None).load()


def fence_path(destination: str) -> str:
    """Return the ZooKeeper path whose version fences the writes of a destination."""
    return fencing_epoch_path(destination)


def _open_meta_manager(settings: InstanceSettings, tree: Tree | None, fence: Fence | None) -> MetaManager:
    """Return the manager of cursors that `meta.kind` chooses."""
    destination, period_s = settings.destination, settings.meta.period_s
    match settings.meta_kind:
        case "memory":
            return MetaManager(destination)
        case "file":
            elected: dict[str, Any] = {"fence": fence.epoch, "check": fence.require} if fence else {}
            backend = FileMetaBackend(destination, _require_folder(settings), **elected)
            return PersistentMetaManager(destination, backend, period_s=period_s or None)
        case "zookeeper":
            return PersistentMetaManager(
                destination, ZooKeeperMetaBackend(destination, _require_zookeeper(tree), fence=fence), period_s=None
            )
        case "mixed":
            return PersistentMetaManager(
                destination, ZooKeeperMetaBackend(destination, _require_zookeeper(tree), fence=fence), period_s=0
            )
        case "period-mixed":
            backend = ZooKeeperMetaBackend(destination, _require_zookeeper(tree), fence=fence, with_batches=False)
            return PersistentMetaManager(destination, backend, period_s=period_s or None)


def open_store(settings: InstanceSettings, start: Position, source_log: LogReader) -> EventStore:
    """Open the event store of an instance; an empty one begins at `start`."""
    storage = _open_storage(settings)
    policy = EvictionPolicy(settings.store.absent_after_s, settings.store.slow_clients == "catch_up")
    try:
        return EventStore(storage, start, destination=settings.destination, source_log=source_log, policy=policy)
    except PenstockError:
        storage.close()
        raise


def open_prepared_transactions(settings: InstanceSettings, source_log: SourceLog) -> PreparedTransactions:
    """Return the tracker of XA transactions that are prepared and not yet committed; with a `data_dir` they are saved
    there."""
    is_eager, files = settings.source.semi_sync, None
    if settings.data_dir is not None:
        files = PreparedFiles(
            settings.data_dir / settings.destination / "prepared", sync=is_eager, destination=settings.destination
        )
    return PreparedTransactions(
        source_log,
        files=files,
        is_eager=is_eager,
        on_lost=source_log.handle_lost_rows,
        destination=settings.destination,
    )


def _open_storage(settings: InstanceSettings) -> BlockStorage:
    """Return the block storage that `store.kind` chooses: memory, files, or memory that overflows to files."""
    store = settings.store
    if store.kind == "memory":
        return MemoryStorage(store.memory, slots=store.slots)
    files = FileStorage(
        _require_folder(settings) / settings.destination / "store",
        destination=settings.destination,
        segment_bytes=store.segment,
        sync="batch" if settings.source.semi_sync else store.sync,
        interval_s=store.sync_interval_s,
        retention=Retention(store.keep, store.keep_s, store.limit, store.limit_s),
    )
    is_eager = settings.source.semi_sync
    return files if store.kind == "file" else TieredStorage(store.memory, files, is_eager=is_eager)


def _require_folder(settings: InstanceSettings) -> Path:
    """Return the `data_dir`, which the settings have checked to be given."""
    assert settings.data_dir is not None  # noqa: S101 - the settings have seen to it
    return settings.data_dir


def _require_zookeeper(tree: Tree | None) -> Tree:
    """Return the ZooKeeper client, which is never None here: the settings refuse these kinds without `zookeeper`."""
    assert tree is not None  # noqa: S101 - the settings have seen to it
    return tree
