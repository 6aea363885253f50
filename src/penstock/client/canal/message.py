"""The packets and batches of entries that a canal client gets."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from penstock.canal import messages
from penstock.canal.packet import iter_fields
from penstock.canal.schema import number_of
from penstock.canal.types import EntryType
from penstock.errors import ProtocolError

NOTHING = -1
_TYPE, _VERSION, _BODY = (number_of("Packet", name) for name in ("type", "version", "body"))
_BATCH_ID, _ENTRIES = number_of("Messages", "batch_id"), number_of("Messages", "messages")


@dataclass(frozen=True, slots=True)
class CanalPacket:
    """A packet of canal's protocol; its body is a view of the bytes that were received."""

    type: int
    version: int
    body: memoryview

    @classmethod
    def parse(cls, raw: memoryview) -> "CanalPacket":
        """Parse a packet without a copy of its body."""
        fields = dict(iter_fields(raw))
        kind, version, body = fields.get(_TYPE, 0), fields.get(_VERSION, 1), fields.get(_BODY, memoryview(b""))
        if not isinstance(kind, int) or not isinstance(version, int) or not isinstance(body, memoryview):
            raise ProtocolError("the answer is no packet of canal's")
        return cls(kind, version, body)


@dataclass(frozen=True)
class CanalMessage:
    """A batch of canal: its id, to ack it by, and its entries, which are decoded only when asked for."""

    id: int
    raw: tuple[bytes, ...] = ()

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def is_empty(self) -> bool:
        """Tell whether the batch has no entries; then there is nothing to ack."""
        return self.id == NOTHING

    @cached_property
    def entries(self) -> tuple[Any, ...]:
        """Return the entries, each with header, entryType and storeValue."""
        return tuple(map(messages.Entry.FromString, self.raw))

    def row_changes(self) -> Iterator[tuple[Any, Any]]:
        """Yield the header and canal's RowChange (eventType, rowDatas, isDdl, sql) of each change or statement."""
        for entry in self.entries:
            if entry.entryType == EntryType.ROWDATA:
                yield entry.header, messages.RowChange.FromString(entry.storeValue)


def parse_message(body: memoryview) -> CanalMessage:
    """Parse the body of a MESSAGES packet of canal: a batch id and entries, which are copies of the received bytes."""
    batch_id, entries = NOTHING, list[bytes]()
    for field, value in iter_fields(body):
        if field == _ENTRIES and isinstance(value, memoryview):
            entries.append(bytes(value))
        elif field == _BATCH_ID and isinstance(value, int):
            batch_id = value - (1 << 64) if value >= 1 << 63 else value
    return CanalMessage(batch_id or NOTHING, tuple(entries))
