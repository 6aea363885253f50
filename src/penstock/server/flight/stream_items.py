"""What a stream sends: Arrow batches with JSON metadata, which says how far the reader has got."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.binlog.events.block import Block
from penstock.model import Position
from penstock.server.flight.stream_format import StreamFormat

StreamItem = tuple[pa.RecordBatch, pa.Buffer]

# A stream that has nothing to send sends an empty batch this often, so that its reader can be interrupted or is noticed
# as gone, and so that the reader notices a server that is frozen.
HEARTBEAT_S = 1.0


@dataclass(frozen=True, slots=True)
class SentItem:
    """A batch of a stream, and the position up to which its reader then has everything."""

    item: StreamItem
    position: Position


class ProgressWriter:
    """Adds to each batch of a stream the position up to which its reader then has everything."""

    def __init__(self, stream_format: StreamFormat) -> None:
        self._format = stream_format
        self._last_sent_s = 0.0

    def items(self, blocks: tuple[Block, ...], before: Position, after: Position | None) -> Iterator[SentItem]:
        """Yield the Arrow batches of some blocks; with the last one the reader has everything up to `after`."""
        pending: tuple[pa.RecordBatch, Block | None] | None = None
        for block in blocks:
            for batch in self._format.to_batches(block):
                if pending is not None:
                    yield add_position(*pending, before)
                pending = batch
        if pending is not None:
            self._last_sent_s = time.monotonic()
            yield add_position(*pending, after or before)

    def is_heartbeat_due(self) -> bool:
        """Return whether a heartbeat is due, because nothing else was sent lately."""
        return time.monotonic() - self._last_sent_s >= HEARTBEAT_S

    def heartbeat(self, position: Position) -> SentItem:
        """Return an empty batch that says up to which position the reader has everything."""
        self._last_sent_s = time.monotonic()
        return add_position(self._format.empty_batch, None, position)


def add_position(batch: pa.RecordBatch, block: Block | None, position: Position) -> SentItem:
    """Return an Arrow batch with the position up to which the reader has everything with it."""
    return SentItem(make_item(batch, block, {"position": position.to_json()}), position)


def make_item(batch: pa.RecordBatch, block: Block | None, metadata: dict[str, Any]) -> StreamItem:
    """Return an Arrow batch with its metadata: JSON, and for raw events what decodes them."""
    raw = block.encode_description(**metadata) if block is not None else json.dumps(metadata).encode()
    return batch, pa.py_buffer(raw)
