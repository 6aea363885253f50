"""Which statements frame a transaction, in kernels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.layout import Entry
from penstock.binlog.kernel import shared

_OTHER, _BEGINS, _ALONE, _ENDS = int(Entry.OTHER), int(Entry.BEGIN), int(Entry.DDL), int(Entry.END)
_NO_CASE = 0xDF


def _word(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8) & np.uint8(_NO_CASE)


_BEGIN, _COMMIT, _ROLLBACK, _XA_START, _XA_END = map(_word, ("BEGIN", "COMMIT", "ROLLBACK", "XA START", "XA END"))


@shared
def entry_of_statement(data: Any, at: Any, end: int, is_inside: Any) -> Any:
    """Return the Entry of the statement data[at:end]: whether it begins, commits or rolls back a transaction, or is one
    by itself; `is_inside` a transaction that has begun."""
    size = end - at
    if (size == _BEGIN.size and _begins_with(data, at, end, _BEGIN)) or _begins_with(data, at, end, _XA_START):
        return _BEGINS
    if not is_inside:
        return _ALONE
    if size == _COMMIT.size and _begins_with(data, at, end, _COMMIT):
        return _ENDS
    if size == _ROLLBACK.size and _begins_with(data, at, end, _ROLLBACK):
        return _ENDS
    return _BEGINS if _begins_with(data, at, end, _XA_END) else _OTHER


@shared
def _begins_with(data: Any, at: Any, end: int, word: Any) -> bool:
    if end - at < word.size:
        return False
    for k in range(word.size):  # noqa: SIM110 - kernels have no generators
        if (data[at + k] & _NO_CASE) != word[k]:
            return False
    return True
