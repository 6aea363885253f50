"""The event store: what capture puts, clients get, and acknowledgement frees."""

from penstock.store.batch import Batch, BatchSize
from penstock.store.client import ClientState
from penstock.store.eviction import EvictionPolicy
from penstock.store.file_storage import FileStorage, Retention
from penstock.store.memory_storage import MemoryStorage
from penstock.store.start import Start
from penstock.store.store import EventStore
from penstock.store.tiered_storage import TieredStorage

__all__ = [
    "Batch",
    "BatchSize",
    "ClientState",
    "EventStore",
    "EvictionPolicy",
    "FileStorage",
    "MemoryStorage",
    "Retention",
    "Start",
    "TieredStorage",
]
