"""What an event of the log is to a filter: rows of a kind, a statement, a mark, or the frame of these.

content   rows; statements; the files of LOAD DATA in a log in statement format: each passes or does not
note      the statement behind rows: it goes with them
map       the shape of a table: it goes with the table's rows
frame     everything else in a transaction: it goes with the transaction
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import EventType
from penstock.binlog.events.query import begin_with
from penstock.config.filter_settings import FilterKind
from penstock.schema.ddl import StatementKind

ROWS_KINDS: dict[FilterKind, tuple[int, ...]] = {
    "insert": (EventType.WRITE_ROWS_V1, EventType.WRITE_ROWS_V2),
    "update": (EventType.UPDATE_ROWS_V1, EventType.UPDATE_ROWS_V2, EventType.PARTIAL_UPDATE_ROWS),
    "delete": (EventType.DELETE_ROWS_V1, EventType.DELETE_ROWS_V2),
}
_FILES = (
    EventType.LOAD, EventType.CREATE_FILE, EventType.APPEND_BLOCK, EventType.EXEC_LOAD, EventType.DELETE_FILE,
    EventType.BEGIN_LOAD_QUERY,
)  # fmt: skip
_NOTES = (EventType.ROWS_QUERY, EventType.MARIADB_ANNOTATE_ROWS)
_XA = "XA "
_QUERIES = {StatementKind.DATA, StatementKind.MAINTENANCE, StatementKind.OTHER}


def _flag_by_type(kinds: tuple[int, ...]) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Return an array that is true at these event types."""
    flags = np.zeros(256, np.bool_)
    flags[list(kinds)] = True
    return flags


_IS_FILE, _IS_NOTE = _flag_by_type(_FILES), _flag_by_type(_NOTES)


def row_types_of(kinds: tuple[FilterKind, ...]) -> NDArray[np.bool_]:
    """Return an array by event type: whether its rows are of these kinds of change."""
    return _flag_by_type(tuple(code for kind in kinds for code in ROWS_KINDS.get(kind, ())))


def filter_kind(kind: StatementKind) -> FilterKind:
    """Return the kind by which a filter knows a statement that does not frame a transaction."""
    if kind is StatementKind.ACCOUNT:
        return "dcl"
    return "query" if kind in _QUERIES else "ddl"


def are_annotations(block: Block) -> NDArray[np.bool_]:
    """Return a mask of the events that hold the statement behind rows (ROWS_QUERY, ANNOTATE_ROWS)."""
    return _IS_NOTE[block.column("kind")]


def are_loaded_files(block: Block) -> NDArray[np.bool_]:
    """Return a mask of the events that carry file content of LOAD DATA; the statement itself is another event."""
    return _IS_FILE[block.column("kind")]


def are_xa_statements(block: Block) -> NDArray[np.bool_]:
    """Return a mask of the events that are statements of XA transactions."""
    kind = block.column("kind")
    return begin_with(block, kind == EventType.QUERY, _XA) | (kind == EventType.XA_PREPARE)
