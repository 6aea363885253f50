"""INCIDENT events: the server says that something may be missing from its log at this position.

post header: number 2 | length 1 | message
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import CHECKSUM, HEADER, EventType

_MESSAGE_AT = 3
_WHAT = "the server says that it may have lost events here: compare the data"


@dataclass(frozen=True, slots=True)
class Incident:
    """An INCIDENT event, with which the server says that its log may lack changes at this position.

    for incident in find_incidents(block):
        print(incident.position, incident.message)
    """

    event: int  # index in its block, or in its file
    file: str
    position: int
    message: str  # as the server wrote it; often empty

    @property
    def meaning(self) -> str:
        """Return what it means for a reader, in one line, with the server's own words if there are any."""
        words = " ".join(self.message.split())
        return f"{_WHAT} ({words})" if words else _WHAT

    def __str__(self) -> str:
        return f"{self.file}:{self.position} INCIDENT: {self.meaning}"


def are_incidents(block: Block) -> NDArray[np.bool_]:
    """Return which binlog events of a block are INCIDENT events, as a mask."""
    return block.column("kind") == EventType.INCIDENT


def find_incidents(block: Block) -> Iterator[Incident]:
    """Yield the INCIDENT events in a block of binlog events, with which the source says that events may be missing."""
    data, starts, sizes = block.raw
    for i in np.flatnonzero(are_incidents(block)).tolist():
        start = int(starts[i]) + HEADER
        stop = int(starts[i]) + int(sizes[i]) - (CHECKSUM if block.column("checksum")[i] == CHECKSUM else 0)
        yield Incident(i, block.file, int(block.column("position")[i]), parse_message(bytes(data[start:stop])))


def parse_message(body: bytes) -> str:
    """Return the server's words in the body of an incident, without its checksum; often there are none."""
    length = body[_MESSAGE_AT - 1] if len(body) >= _MESSAGE_AT else 0
    return body[_MESSAGE_AT : _MESSAGE_AT + length].decode("utf-8", "replace")
