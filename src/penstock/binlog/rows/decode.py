"""Rows events of one table version → Arrow arrays, column by column."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import texts
from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import event_name
from penstock.binlog.rows.locate import OTHER_COLUMN_COUNT, Located, locate
from penstock.binlog.values import kernels
from penstock.binlog.values.column import Family, family_of, wire_of
from penstock.errors import BinlogError
from penstock.model import Column, TableSchema, WireType


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Row images with the columns that were asked for."""

    columns: dict[str, pa.Array]
    located: Located
    events: NDArray[np.int64]  # index in the block of each event that `located.event` counts


@lru_cache(maxsize=20_000)
def _wires(schema: TableSchema) -> NDArray[np.int64]:
    wires = [wire_of(column) for column in schema.columns]
    return np.array([(wire.length_bytes, wire.width) for wire in wires], np.int64).reshape(-1, 2)


def decode_rows(block: Block, events: NDArray[np.int64], schema: TableSchema, names: Sequence[str]) -> Rows:
    """Decode the columns `names` (all known to `schema`) of the rows events at these indexes of the block."""
    data, starts, sizes = block.raw
    lines = np.full(len(schema.columns), -1, np.int64)
    chosen: list[Column] = []
    for i, column in enumerate(schema.columns):
        if column.name in names:
            lines[i] = len(chosen)
            chosen.append(column)
    found = locate(data, starts[events], sizes[events], block.checksum, _wires(schema), lines)
    if not isinstance(found, Located):
        raise _locate_error(block, events, schema, *found)
    rows = Rows({}, found, events)
    for line, column in enumerate(chosen):
        try:
            rows.columns[column.name] = _decode(column, schema, data, found.offsets[line], found.lengths[line])
        except _UnknownLabelError as error:
            event = events[found.event[error.row]]
            where = int(block.column("position")[event] + found.offsets[line, error.row] - starts[event])
            raise BinlogError(
                f"{block.file}:{where} {schema.name}.{column.name} has the value {error.value:#x},"
                f" but only {len(column.labels)} labels in its table map"
            ) from None
    return rows


class _UnknownLabelError(Exception):
    """Of an ENUM or SET; what we raise outside names the place."""

    def __init__(self, row: int, value: int) -> None:
        super().__init__(row, value)
        self.row, self.value = row, value


def _decode(
    column: Column, schema: TableSchema, data: NDArray[np.uint8], offsets: NDArray[np.int64], lengths: NDArray[np.int64]
) -> pa.Array:
    family, arrow = family_of(column, schema.name)
    rows = lengths.size
    fraction = (column.size + 1) // 2
    if family is Family.BYTES:
        # BINARY(n) is logged without its trailing zeros.
        width = column.size if column.type is WireType.STRING and column.charset == "binary" else 0
        return _bytes(arrow, data, offsets, lengths, width, f"{schema.name}.{column.name}")
    if family is Family.DECIMAL:
        words = np.empty((rows, 2 if column.precision <= 38 else 4), np.int64)
        kernels.decode_decimal(data, offsets, lengths, column.precision, column.scale, words)
        return _array(arrow, words, lengths)
    if family in (Family.INTEGER, Family.REAL, Family.YEAR, Family.ENUM, Family.SET):
        width = wire_of(column).width
        out = np.empty(rows, _INTEGER_CELL[_cell_bytes(width)] if family is not Family.YEAR else np.int16)
        signed = family is Family.INTEGER and not column.unsigned
        kernels.decode_integer(data, offsets, lengths, width, signed, out)
        if family is Family.YEAR:
            out[out != 0] += 1900
        if family is Family.ENUM:
            return _enum(column, out, lengths)
        if family is Family.SET:
            return _set(column, out, lengths)
        return _array(arrow, out, lengths)
    out = np.empty(rows, np.int64)
    if family is Family.DATE:
        kernels.decode_date(data, offsets, lengths, out)
    elif family is Family.TIME:
        kernels.decode_time(data, offsets, lengths, fraction, out)
    elif family is Family.DATETIME:
        kernels.decode_datetime(data, offsets, lengths, fraction, out)
    else:
        kernels.decode_timestamp(data, offsets, lengths, fraction, out)
    invalid = out == kernels.INVALID
    if invalid.any():
        lengths = np.where(invalid, -1, lengths)
    return _array(arrow, out.astype(np.int32) if family is Family.DATE else out, lengths)


_INTEGER_CELL: dict[int, Any] = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def _cell_bytes(width: int) -> int:
    return next(size for size in _INTEGER_CELL if size >= width)


def _validity(lengths: NDArray[np.int64]) -> pa.Buffer | None:
    bits = np.zeros((lengths.size + 7) // 8, np.uint8)
    return pa.py_buffer(bits) if kernels.pack_validity(lengths, bits) else None


def _array(arrow: pa.DataType, values: NDArray[Any], lengths: NDArray[np.int64]) -> pa.Array:
    return pa.Array.from_buffers(arrow, lengths.size, [_validity(lengths), pa.py_buffer(values)])


def _bytes(
    arrow: pa.DataType,
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    lengths: NDArray[np.int64],
    width: int,
    where: str,
) -> pa.Array:
    """With a `width`, shorter values are filled up with zeros."""
    bounds = np.empty(lengths.size + 1, np.int32)
    filled = np.where(lengths >= 0, np.maximum(lengths, width), lengths) if width else lengths
    total = kernels.string_bounds(filled, bounds)
    if total < 0:
        raise BinlogError(f"column {where} has more than 2 GiB in one batch: lower maxBytesPerTrigger")
    values = np.zeros(total, np.uint8) if width else np.empty(total, np.uint8)
    kernels.decode_bytes(data, offsets, lengths, bounds, values)
    return pa.Array.from_buffers(arrow, lengths.size, [_validity(lengths), pa.py_buffer(bounds), pa.py_buffer(values)])


def _enum(column: Column, numbers: NDArray[Any], lengths: NDArray[np.int64]) -> pa.Array:
    """Number 0 is the server's mark of an invalid value, shown as the empty text."""
    unsigned = numbers.view(f"u{numbers.itemsize}")
    _check_labels(unsigned, unsigned > len(column.labels))
    return texts(["", *column.labels]).take(_array(pa.from_numpy_dtype(unsigned.dtype), unsigned, lengths))


def _check_labels(values: NDArray[Any], are_unknown: NDArray[np.bool_]) -> None:
    if are_unknown.any():
        row = int(np.argmax(are_unknown))
        raise _UnknownLabelError(row, int(values[row]))


def _set(column: Column, masks: NDArray[Any], lengths: NDArray[np.int64]) -> pa.Array:
    masks = masks.view(f"u{masks.itemsize}")
    bits = len(column.labels)
    _check_labels(masks, masks >> bits != 0 if bits < 8 * masks.itemsize else masks < 0)
    different, which = np.unique(masks, return_inverse=True)
    labels = [",".join(label for bit, label in enumerate(column.labels) if int(mask) >> bit & 1) for mask in different]
    return texts(labels).take(_array(pa.int64(), which.astype(np.int64), lengths))


def _locate_error(
    block: Block, events: NDArray[np.int64], schema: TableSchema, error: int, where: int, event: int
) -> BinlogError:
    data, starts, sizes = block.raw
    inside = int(events[event])
    start = int(starts[inside])
    offset = int(block.column("position")[inside]) + where - start
    what = (
        f"the event has another number of columns than the {len(schema.columns)} of its table map"
        if error == OTHER_COLUMN_COUNT
        else "a row reaches over the end of its event"
    )
    extract = bytes(data[where : min(where + 24, start + int(sizes[inside]))]).hex(" ")
    kind = event_name(int(block.column("kind")[inside]))
    return BinlogError(f"{block.file}:{offset} {kind} of {schema.name}: {what}; bytes there: {extract}")
