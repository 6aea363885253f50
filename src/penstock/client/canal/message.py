"""What a get gives."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from penstock.canal import messages
from penstock.canal.types import EntryType

NOTHING = -1


@dataclass(frozen=True)
class Message:
    """A batch: its id, to ack it by, and its entries; nothing is decoded before it is asked for."""

    id: int
    raw: tuple[bytes, ...] = ()

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def is_empty(self) -> bool:
        """Then there is nothing to ack."""
        return self.id == NOTHING

    @cached_property
    def entries(self) -> tuple[Any, ...]:
        """canal's Entry: header, entryType, storeValue."""
        return tuple(map(messages.Entry.FromString, self.raw))

    def row_changes(self) -> Iterator[tuple[Any, Any]]:
        """The header of each change, or statement, and canal's RowChange: eventType, rowDatas, isDdl, sql."""
        for entry in self.entries:
            if entry.entryType == EntryType.ROWDATA:
                yield entry.header, messages.RowChange.FromString(entry.storeValue)
