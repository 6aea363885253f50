"""What clients have subscribed to, which batches they hold, and how far they have acked."""

from penstock.meta.cursor import Cursor
from penstock.meta.file import FileKeeper
from penstock.meta.kept import Keeper, KeptMeta
from penstock.meta.log_position import (
    CursorPositions,
    FailoverPositions,
    FilePositions,
    LogPositions,
    MemoryPositions,
    ZooKeeperPositions,
)
from penstock.meta.memory import MemoryMeta
from penstock.meta.record import BatchRange, ClientRecord
from penstock.meta.source_record import FileRecords, MemoryRecords, SourceRecord, SourceRecords, ZooKeeperRecords
from penstock.meta.zookeeper import ZooKeeperKeeper

__all__ = [
    "BatchRange",
    "ClientRecord",
    "Cursor",
    "CursorPositions",
    "FailoverPositions",
    "FileKeeper",
    "FilePositions",
    "FileRecords",
    "Keeper",
    "KeptMeta",
    "LogPositions",
    "MemoryMeta",
    "MemoryPositions",
    "MemoryRecords",
    "SourceRecord",
    "SourceRecords",
    "ZooKeeperKeeper",
    "ZooKeeperPositions",
    "ZooKeeperRecords",
]
