"""Which range of the log a micro-batch has, by the offsets that Spark writes into its checkpoint before the batch runs.

    offsets/41      v1                         the format
                    {"batchTimestampMs": …}    Spark's own
                    {"file": …, "offset": …}   where batch 41 ends, one line for each source

A batch begins where the one before it ends, also when it runs again after a restart.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from penstock.model import Position
from penstock.spark.change_log import Offset

_FORMAT = "v1"


def read_offset(checkpoint: Path, number: int) -> Offset | None:
    """Return where a micro-batch of a query with one source ends; None when the checkpoint does not say it."""
    try:
        lines = (checkpoint / "offsets" / str(number)).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    if len(lines) != 3 or lines[0] != _FORMAT:
        return None
    with suppress(ValueError):
        offset: Any = json.loads(lines[2])
        return cast("Offset", offset) if isinstance(offset, dict) else None
    return None


def read_batch_range(checkpoint: Path, number: int) -> tuple[Position, Position] | None:
    """Return the positions at which a micro-batch begins and ends; None when the checkpoint does not say both, as of
    the first batch of a query."""
    start, end = (read_offset(checkpoint, batch) for batch in (number - 1, number))
    if start is None or end is None:
        return None
    return Position.from_json(start), Position.from_json(end)
