"""The event store: what capture puts, clients get, and acknowledgement frees."""

from penstock.store.batch import Batch, BatchSize
from penstock.store.client import ClientState
from penstock.store.file import FileShelf, Retention
from penstock.store.memory import MemoryShelf
from penstock.store.mixed import MixedShelf
from penstock.store.roster import EvictionPolicy
from penstock.store.start import Start
from penstock.store.store import EventStore

__all__ = [
    "Batch",
    "BatchSize",
    "ClientState",
    "EventStore",
    "EvictionPolicy",
    "FileShelf",
    "MemoryShelf",
    "MixedShelf",
    "Retention",
    "Start",
]
