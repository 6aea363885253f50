"""The statements behind rows, which a log may hold beside them: ROWS_QUERY of MySQL, ANNOTATE_ROWS of MariaDB.

An annotation stands before the rows of its statement, and holds until the next one or the end of the transaction.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import compute as pc
from penstock.binlog.arrays import distinct, distinct_values, to_arrow_booleans, to_arrow_numbers, to_arrow_strings
from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import CHECKSUM, HEADER, EventType

_LENGTH = 1  # of the text, in a ROWS_QUERY; not to be trusted
_TEXT = pa.large_string()


def find_annotations(block: Block) -> NDArray[np.bool_]:
    """Return a mask of the events that hold the statement behind the rows after them."""
    kind = block.column("kind")
    return (kind == EventType.ROWS_QUERY) | (kind == EventType.MARIADB_ANNOTATE_ROWS)


def annotation_texts(block: Block, events: NDArray[np.int64]) -> pa.Array:
    """Return the statements that these events hold. What is not UTF-8 is replaced: they are for people to read."""
    texts = raw = block.event_array.take(to_arrow_numbers(events))
    has_length = block.column("kind")[events] == EventType.ROWS_QUERY
    has_sum = block.column("checksum")[events] == CHECKSUM
    for length in distinct(has_length):
        for checksum in distinct(has_sum):
            cut = pc.binary_slice(raw, HEADER + _LENGTH * length, -CHECKSUM if checksum else None)
            texts = pc.if_else(to_arrow_booleans((has_length == length) & (has_sum == checksum)), cut, texts)
    try:
        return texts.cast(_TEXT)
    except pa.ArrowInvalid:
        return to_arrow_strings([raw.decode("utf-8", "replace") for raw in texts.to_pylist()]).cast(_TEXT)


class AnnotationPicker:
    """Picks the annotations of wanted rows, block by block, in order: the rows of an annotation may come in a later
    block."""

    def __init__(self) -> None:
        self._file = ""
        self._waiting: Block | None = None  # the annotation that holds, if none of its rows was wanted yet

    def pick(self, block: Block, rows: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> Block:
        """Return the wanted events, and before their rows the annotations that apply to them."""
        annotations = find_annotations(block)
        indexes = np.flatnonzero(annotations)
        # Rows before the first annotation of the block, in the transaction of the one that waits, are that one's.
        waiting = self._take_waiting(block)
        stop = int(indexes[0]) if indexes.size else len(block)
        is_own = block.column("transaction")[:stop] == waiting.column("transaction")[0] if waiting else False
        is_due = bool(waiting) and bool((rows[:stop] & is_own).any())
        which = np.cumsum(annotations) - 1  # the annotation that holds at each event
        same = (
            block.column("transaction") == block.column("transaction")[indexes[which]] if indexes.size else annotations
        )
        used = distinct_values(which[rows & (which >= 0) & same])
        self._remember_last(block, indexes, used, None if is_due else waiting)
        keep = wanted.copy()
        keep[indexes] = False
        keep[indexes[used]] = True
        kept = block.filter(keep)
        return kept.prepend(waiting) if waiting is not None and is_due else kept

    def _take_waiting(self, block: Block) -> Block | None:
        waiting = self._waiting if self._file == block.file else None
        self._file, self._waiting = block.file, None
        return waiting

    def _remember_last(
        self, block: Block, indexes: NDArray[np.int64], used: NDArray[np.int64], before: Block | None
    ) -> None:
        """Remember the last annotation while its transaction continues and none of its rows was wanted yet."""
        last = block.column("transaction")[-1]
        if not indexes.size:
            continues = before is not None and before.column("transaction")[0] == last
            self._waiting = before if continues and not block.column("boundary")[-1] else None
        elif used.size == 0 or used[-1] != indexes.size - 1:
            continues = block.column("transaction")[indexes[-1]] == last and not block.column("boundary")[-1]
            self._waiting = block.slice(int(indexes[-1]), int(indexes[-1]) + 1) if continues else None
