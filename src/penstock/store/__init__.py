"""The event store: what capture puts, consumers get, and acknowledgement frees."""

from penstock.store.memory import Batch, MemoryStore

__all__ = ["Batch", "MemoryStore"]
