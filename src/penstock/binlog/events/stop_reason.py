"""Why the index stopped at an event."""

from enum import IntEnum

# Plain numbers, because kernels use them.
STARVED, FULL, ATTENTION, NEW_TABLE, TAGS_FULL = range(5)
BAD_SIZE, BAD_CHECKSUM, BAD_EVENT, BAD_POSITION, NO_TABLE_MAP = range(5, 10)
NO_REASON = -1


class StopReason(IntEnum):
    """The reason why the index kernel stopped at an event."""

    STARVED = STARVED  # the rest of the buffer is no whole event
    FULL = FULL  # the arrays are full
    ATTENTION = ATTENTION  # the next event is for Python
    NEW_TABLE = NEW_TABLE  # the next event is a table map that the kernel cannot add by itself
    TAGS_FULL = TAGS_FULL  # the next event has one tag more than a block can have
    BAD_SIZE = BAD_SIZE
    BAD_CHECKSUM = BAD_CHECKSUM
    BAD_EVENT = BAD_EVENT
    BAD_POSITION = BAD_POSITION
    NO_TABLE_MAP = NO_TABLE_MAP  # rows of a table that no table map has described


PROBLEMS = {
    StopReason.BAD_SIZE: "the event's size is not one that an event can have",
    StopReason.BAD_CHECKSUM: "the event does not match its checksum",
    StopReason.BAD_EVENT: "the event does not hold what its type asks for",
    StopReason.BAD_POSITION: "the event says that it lies before the one before it",
    StopReason.NO_TABLE_MAP: "rows of table id {table} came before its table map: reading did not start between two"
    " transactions",
}
