"""Changes of one table, or of many tables with few rows each, before they are put into the order of the log."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.binlog.values.column import DecodeOptions
from penstock.model import ChangeKind, Column, WireType
from penstock.render import text
from penstock.render.dialect import TIME_TYPES
from penstock.render.json_rows import TypedJsonWriter
from penstock.render.weave import FormattedColumn, LineLayout

DECODING = DecodeOptions(dates="text", partial_json="operations")
VALUES = TypedJsonWriter()
DDL = 4  # the kind of a statement, behind those of ChangeKind


@dataclass(frozen=True, slots=True, eq=False)
class JsonObjects:
    """Rows as JSON objects: text i belongs to change `changes[i]`. `first` replaces the first character of each text if
    it is set.
    """

    changes: NDArray[np.int64]
    layout: LineLayout
    first: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class KeyTexts:
    """Values of key columns: text i is the value of column number `key_index[i]` of the key of change `changes[i]`, and
    the name of that column is number `name[i]` of `RowPlanCache.key_names`."""

    changes: NDArray[np.int64]
    key_index: NDArray[np.int64]
    name: NDArray[np.int64]
    layout: LineLayout
    is_null: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ChangePart:
    """Some changes of a block, each described by its last image; parts of a block are put into the order of the log
    later.
    """

    table: NDArray[np.int64]  # number of its plan, or of its statement behind all plans
    event: NDArray[np.int64]  # index in the block
    number: NDArray[np.int64]  # of the image in its event
    start: NDArray[np.int64]  # byte of the block's data where the image begins
    kind: NDArray[np.uint8]  # ChangeKind of the image, or DDL
    before: JsonObjects | None = None
    after: JsonObjects | None = None
    changed: pa.Array | None = None  # null for all where there is no array, as the next two
    absent: pa.Array | None = None
    partial: pa.Array | None = None
    key_sizes: NDArray[np.int64] | None = None  # columns of the key of each change; 0 for none
    keys: list[KeyTexts] = field(default_factory=list[KeyTexts])

    def __len__(self) -> int:
        return self.event.size


@dataclass(frozen=True, slots=True, eq=False)
class ChangeImages:
    """The first and last row image of each change, by number among all images; an update has two, side by side."""

    first: NDArray[np.int64]  # the same as `last` but for updates
    last: NDArray[np.int64]
    with_before: NDArray[np.int64]  # changes that have a row before
    with_after: NDArray[np.int64]

    @classmethod
    def from_kinds(cls, kind: NDArray[np.uint8]) -> "ChangeImages":
        """Find the images of each change; `kind` has the ChangeKind of all images."""
        last = np.flatnonzero(kind != ChangeKind.UPDATE_PREIMAGE)
        kinds = kind[last]
        first = last - (kinds == ChangeKind.UPDATE_POSTIMAGE)
        return cls(first, last, np.flatnonzero(kinds != ChangeKind.INSERT), np.flatnonzero(kinds != ChangeKind.DELETE))


def write_key_texts(column: Column, array: pa.Array, written: FormattedColumn) -> FormattedColumn:
    """Write the values of a key column as texts without quotes."""
    is_text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    if is_text and column.type not in TIME_TYPES and column.type is not WireType.JSON:
        return FormattedColumn(text.write_plain(array))
    if pa.types.is_floating(array.type) and pc.all(pc.is_finite(array)).as_py() is False:
        return FormattedColumn(pc.replace_substring(written.texts, '"', ""))  # what is no number has quotes in JSON
    return FormattedColumn(
        written.texts, before=written.before.removeprefix('"'), after=written.after.removesuffix('"')
    )


def lists_of_last_images(lists: pa.Array, last: NDArray[np.int64], count: int) -> pa.Array:
    """Return lists of which only those of the last images are set, all others are null."""
    if not count or last.size == count:
        return lists
    bounds = np.frombuffer(lists.buffers()[1], np.int32)[: count + 1]
    valid = text.get_validity(lists)
    mask = pa.py_buffer(np.packbits(valid[last], bitorder="little")) if valid.size else None
    own = np.concatenate([bounds[last], bounds[-1:]])
    return pa.Array.from_buffers(lists.type, last.size, [mask, pa.py_buffer(own)], children=[lists.values])
