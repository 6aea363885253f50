"""What both walks over rows events share: the layout of an event, and how a walk stops.

    ROWS event after the header:
      table id 6 | flags 2 | v2: extra length 2 (counts itself), extra | columns n (packed)
      | present bitmap | UPDATE: present bitmap of the after image | row images
    row image: null bitmap over the present columns, then each present, non-null value
    PARTIAL_UPDATE_ROWS: as UPDATE v2; an after image begins with options (packed; 1: some JSON values are partial) and
      then a bitmap over all JSON columns of the table that says which are; the partial ones are lists of differences

A walk resumes at its cursor and leaves it where it stopped: at an event's head (BYTE is 0), or before a row image in it
that begins a change.
"""

from typing import Any

import numpy as np

from penstock.binlog.kernel import shared, u16

ENDS_EARLY, OTHER_COLUMN_COUNT, NO_ROOM, NOT_DENSE = 1, 2, 3, 4
EVENT, BYTE, ROW = 0, 1, 2  # cells of a cursor
PARTIAL_UPDATE = 39


@shared
def skip_head(data: Any, first: Any, end: Any, kind: Any, columns: Any) -> Any:
    """Skip the header of the rows event at `first`, up to behind the number of columns. Return 0 or an error code, and
    the byte."""
    at = first + 27
    if kind >= 30:
        if at + 2 > end or u16(data, at) < 2:
            return ENDS_EARLY, at
        at += u16(data, at)
    if at + 1 > end:
        return ENDS_EARLY, end
    count = np.int64(data[at])
    at += 1
    if count == 252:
        if at + 2 > end:
            return ENDS_EARLY, end
        count = u16(data, at)
        at += 2
    if count != columns or columns == 0:
        return OTHER_COLUMN_COUNT, first
    return 0, at


@shared
def has_null(data: Any, at: Any, count: Any) -> Any:
    """Return whether one of the first `count` bits at `at` is set; those that fill up the last byte may be anything."""
    whole = count >> 3
    for k in range(whole):
        if data[np.uint64(at + k)]:
            return True
    return bool(count & 7 and data[np.uint64(at + whole)] & ((1 << (count & 7)) - 1))
