"""Which columns an update changed, and which an image does not carry: as lists of names."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.binlog.arrays import to_arrow_booleans, to_arrow_numbers, to_arrow_strings, to_numpy
from penstock.binlog.kernel import BYTES, I32S, I32S_IN, I64, I64S_IN, NONE, U8S_2D, U8S_IN, kernel, shared, u32
from penstock.binlog.rows.located import ABSENT, LocatedRows
from penstock.binlog.values.column import wire_size_of
from penstock.model import ChangeKind, Column

_NAMES = pa.list_(pa.string())
_NOWHERE = np.empty(0, np.uint8)
_1 = np.uint64(1)


@shared
def _eight(data: Any, at: Any) -> Any:
    return u32(data, at) | u32(data, at + 4) << 32


@shared
def _are_equal(data: Any, a: Any, b: Any, size: Any) -> Any:
    """Return whether `size` bytes at `a` and `b` are equal. The last step of several bytes reaches back into what was
    compared already: a loop over single bytes is slower than all the rest."""
    if size >= 8:
        last = size - 8
        k = np.int64(0)
        while k < last:
            if _eight(data, a + k) != _eight(data, b + k):
                return False
            k += 8
        return _eight(data, a + last) == _eight(data, b + last)
    if size >= 4:
        last = size - 4
        return u32(data, a) == u32(data, b) and u32(data, a + last) == u32(data, b + last)
    for k in range(size):  # noqa: SIM110 - kernels have no generators
        if data[np.uint64(a + k)] != data[np.uint64(b + k)]:
            return False
    return True


@kernel(NONE(BYTES, I32S_IN, I32S_IN, I64, U8S_IN, I64S_IN, U8S_2D, I64))
def _compare(
    data: Any, offsets: Any, lengths: Any, width: int, partial: Any, posts: Any, differ: Any, line: int
) -> None:
    """Write into differ[line] whether the postimage of a column at each of the rows `posts` differs from the preimage
    just before it.

    What a postimage does not carry has not changed; what is UNKNOWN has. Where it is `partial`, it is a list of
    differences, which may be empty.
    """
    for i in range(posts.size):
        row = np.uint64(posts[i])
        a, b = np.int64(offsets[row - _1]), np.int64(offsets[row])
        if a < 0 or b < 0:
            is_same = b in (a, ABSENT)
        elif partial.size and partial[row]:
            is_same = lengths[row] == 0
        elif width:
            is_same = _are_equal(data, a, b, width)
        else:
            size = np.int64(lengths[row])
            is_same = size == np.int64(lengths[row - _1]) and _are_equal(data, a, b, size)
        differ[np.uint64(i), np.uint64(line)] = not is_same


@kernel(I64(U8S_2D, I32S, I32S))
def _list_lines(differ: Any, ends: Any, lines: Any) -> Any:
    """Write which cells of each row are set into `lines`; those of row i end at ends[i]. Return how many there are."""
    count = np.int64(0)
    for i in range(differ.shape[0]):
        for line in range(differ.shape[1]):
            lines[np.uint64(count)] = line
            count += np.int64(differ[np.uint64(i), np.uint64(line)])
        ends[i] = count
    return count


def list_changed_columns(data: Any, located: LocatedRows, columns: Sequence[Column]) -> pa.Array:
    """Return for each postimage the names of the located columns that differ from the preimage."""
    is_post = located.kind == ChangeKind.UPDATE_POSTIMAGE
    posts = np.flatnonzero(is_post)
    if not posts.size:
        return pa.nulls(located.rows, _NAMES)
    differ = np.empty((posts.size, len(columns)), np.uint8)
    for line, column in enumerate(columns):
        partial = located.partial[line] if located.partial.size else _NOWHERE
        _compare(
            data, located.offsets(line), located.lengths(line), wire_size_of(column).width, partial, posts, differ, line
        )
    ends, lines = np.empty(posts.size, np.int32), np.empty(differ.size + 1, np.int32)
    count = _list_lines(differ, ends, lines)
    bounds = np.zeros(located.rows + 1, np.int32)
    bounds[posts + 1] = ends
    np.maximum.accumulate(bounds, out=bounds)
    values = to_arrow_strings([column.name for column in columns]).take(to_arrow_numbers(lines[:count]))
    mask = to_arrow_booleans(~is_post) if posts.size < located.rows else None
    return pa.ListArray.from_arrays(to_arrow_numbers(bounds), values, mask=mask)


def list_absent_columns(located: LocatedRows, names: Sequence[str], unknown: Sequence[str]) -> pa.Array:
    """Return for each image the names of the columns that it does not carry, and of those that the table does not
    have."""
    if (located.is_whole or not names) and not unknown:
        return pa.nulls(located.rows, _NAMES)
    absent = np.ones((located.rows, len(names) + len(unknown)), np.bool_)
    if names:
        offsets, _, _ = located.tables
        absent[:, : len(names)] = offsets[:, : located.rows].T <= ABSENT
    counts = np.count_nonzero(absent, axis=1)
    which = np.flatnonzero(absent.reshape(-1)) % absent.shape[1]
    bounds = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])
    values = to_arrow_strings([*names, *unknown]).take(to_arrow_numbers(which))
    return pa.ListArray.from_arrays(to_arrow_numbers(bounds), values, mask=to_arrow_booleans(counts == 0))


def append_names(lists: pa.Array, names: Sequence[str]) -> pa.Array:
    """Return each list with these names at its end; a null list counts as an empty one."""
    counts = to_numpy(lists.value_lengths().fill_null(0))
    old, added = lists.flatten(), len(names)
    bounds = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts + added, dtype=np.int32)])
    which = np.full(int(bounds[-1]), -1, np.int64)
    which[bounds[1:, None] - added + np.arange(added)] = len(old) + np.arange(added)
    which[which < 0] = np.arange(len(old))
    values = pa.concat_arrays([old, to_arrow_strings(names)]).take(to_arrow_numbers(which))
    return pa.ListArray.from_arrays(to_arrow_numbers(bounds), values)
