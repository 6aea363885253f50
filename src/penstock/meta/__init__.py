"""What clients have subscribed to, which batches they hold, and how far they have acked."""

from penstock.meta.cursor import Cursor
from penstock.meta.file_backend import FileMetaBackend
from penstock.meta.log_position import (
    CursorPositions,
    FailoverPositions,
    FilePositions,
    LogPositions,
    MemoryPositions,
    ZooKeeperPositions,
)
from penstock.meta.manager import MetaManager
from penstock.meta.persistent_manager import MetaBackend, PersistentMetaManager
from penstock.meta.record import BatchRange, ClientRecord
from penstock.meta.source_record import (
    FileSourceRecords,
    MemorySourceRecords,
    SourceRecord,
    SourceRecords,
    ZooKeeperSourceRecords,
)
from penstock.meta.zookeeper_backend import ZooKeeperMetaBackend

__all__ = [
    "BatchRange",
    "ClientRecord",
    "Cursor",
    "CursorPositions",
    "FailoverPositions",
    "FileMetaBackend",
    "FilePositions",
    "FileSourceRecords",
    "LogPositions",
    "MemoryPositions",
    "MemorySourceRecords",
    "MetaBackend",
    "MetaManager",
    "PersistentMetaManager",
    "SourceRecord",
    "SourceRecords",
    "ZooKeeperMetaBackend",
    "ZooKeeperPositions",
    "ZooKeeperSourceRecords",
]
