"""One column of located fields → an Arrow array."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import to_arrow_strings
from penstock.binlog.values import numbers, strings, temporal
from penstock.binlog.values.column import DecodeOptions, Family, kernel_family_of, wire_size_of
from penstock.binlog.values.compressed import decompress_values
from penstock.binlog.values.problem import TooLongError, ValueProblemError
from penstock.binlog.values.text import to_utf8
from penstock.model import Column, WireType

_CELL = {1: np.int8, 2: np.int16, 3: np.int32, 4: np.int32}
_TEMPORAL_FORM = {
    WireType.DATE: temporal.DATE, WireType.TIME2: temporal.TIME, WireType.TIME: temporal.OLD_TIME,
    WireType.DATETIME2: temporal.DATETIME, WireType.DATETIME: temporal.OLD_DATETIME,
    WireType.TIMESTAMP2: temporal.TIMESTAMP, WireType.TIMESTAMP: temporal.OLD_TIMESTAMP,
}  # fmt: skip
_COMPRESSED = {WireType.BLOB_COMPRESSED, WireType.VARCHAR_COMPRESSED}
_NO_DAY = np.int32(-(1 << 31))


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """The offsets and lengths of the values of one column; a negative offset is a missing value."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int32]
    lengths: NDArray[np.int32]  # of a column of variable length; empty for a fixed one
    missing: int  # how many are not there
    partial: NDArray[np.uint8]  # where the value is a list of differences to the one before it; empty when nowhere

    @property
    def rows(self) -> int:
        """Return the number of values, missing ones included."""
        return self.offsets.size


def decode_column(column: Column, choice: DecodeOptions, fields: Fields) -> pa.Array:
    """Return the values of one column as an Arrow array. Raises ValueProblemError for a value that no server writes."""
    family, arrow = kernel_family_of(column, choice)
    if column.type in _COMPRESSED:
        data, offsets, lengths = decompress_values(fields.data, fields.offsets, fields.lengths)
        fields = Fields(data, offsets, lengths, fields.missing, fields.partial)
    match family:
        case Family.INTEGER | Family.REAL:
            return _array(arrow, _integers(column, fields, signed=not column.unsigned), fields)
        case Family.DECIMAL:
            words = np.empty((fields.rows, 2 if column.precision <= 38 else 4), np.int64)
            wrong = numbers.decode_decimal(fields.data, fields.offsets, column.precision, column.scale, words)
            if wrong >= 0:
                raise ValueProblemError(wrong, "has digits beyond 9 in it")
            return _array(arrow, words, fields)
        case Family.BIT:
            out = np.empty(fields.rows, np.int64)
            numbers.decode_bits(fields.data, fields.offsets, wire_size_of(column).width, out)
            return _array(arrow, out, fields)
        case Family.YEAR:
            years = _integers(column, fields, signed=False).view(np.uint8).astype(np.int16)
            years[years != 0] += 1900
            return _array(arrow, years, fields)
        case Family.DATE | Family.TIME | Family.DATETIME | Family.TIMESTAMP:
            return _temporal(column, choice, arrow, fields)
        case Family.TEXT:
            return _strings(arrow, *to_utf8(column.charset, fields.data, fields.offsets, fields.lengths), fields)
        case Family.BYTES:
            # BINARY(n) is logged without the zeros at its end.
            width = column.size if column.type is WireType.STRING and column.charset == "binary" else 0
            return _strings(arrow, *_bytes(fields, width), fields)
        case Family.ENUM:
            return _enum(column, arrow, fields)
        case Family.SET:
            return _set(column, arrow, fields)
        case Family.JSON:
            return _json(arrow, choice, fields)
        case Family.VECTOR:
            return _vector(arrow, fields)
        case _:
            return _address(family, arrow, fields)


def _validity(fields: Fields) -> pa.Buffer | None:
    if not fields.missing:
        return None
    bits = np.empty((fields.rows + 7) // 8, np.uint8)
    numbers.pack_validity(fields.offsets, bits)
    return pa.py_buffer(bits)


def _array(arrow: pa.DataType, values: NDArray[Any], fields: Fields) -> pa.Array:
    return pa.Array.from_buffers(arrow, fields.rows, [_validity(fields), pa.py_buffer(values)])


def _strings(arrow: pa.DataType, bounds: NDArray[np.int32], values: NDArray[np.uint8], fields: Fields) -> pa.Array:
    buffers = [_validity(fields), pa.py_buffer(bounds), pa.py_buffer(values)]
    return pa.Array.from_buffers(arrow, fields.rows, buffers)


def _integers(column: Column, fields: Fields, *, signed: bool) -> NDArray[Any]:
    width = wire_size_of(column).width
    out = np.empty(fields.rows, _CELL.get(width, np.int64))
    numbers.decode_integer(fields.data, fields.offsets, width, signed, out)
    return out


def _bytes(fields: Fields, width: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    bounds = np.empty(fields.rows + 1, np.int32)
    total = strings.string_bounds(fields.offsets, fields.lengths, width, bounds)
    if total < 0:
        raise TooLongError
    values = np.zeros(total, np.uint8) if width else np.empty(total, np.uint8)
    strings.copy_values(fields.data, fields.offsets, fields.lengths, width, bounds, values)
    return bounds, values


def _temporal(column: Column, choice: DecodeOptions, arrow: pa.DataType, fields: Fields) -> pa.Array:
    form = _TEMPORAL_FORM[column.type]
    if choice.dates == "text":
        if form >= temporal.OLD_TIME:
            out = np.empty(fields.rows, np.int64)
            temporal.decode_moment(fields.data, fields.offsets, form, 0, out)
            _check_broken(out)
        return _temporal_text(form, column.size, arrow, fields)
    if form == temporal.DATE:
        out: NDArray[Any] = np.empty(fields.rows, np.int32)
        temporal.decode_date(fields.data, fields.offsets, out)
        invalid = out == _NO_DAY
    else:
        out = np.empty(fields.rows, np.int64)
        temporal.decode_moment(fields.data, fields.offsets, form, (column.size + 1) // 2, out)
        _check_broken(out)
        invalid = out == temporal.INVALID
    count = int(np.count_nonzero(invalid))
    if not count:
        return _array(arrow, out, fields)
    if choice.dates == "error":
        row = int(np.argmax(invalid))
        single = Fields(fields.data, fields.offsets[row : row + 1], fields.lengths[:0], 0, fields.partial[:0])
        (text,) = _temporal_text(form, column.size, pa.string(), single).to_pylist()
        raise ValueProblemError(row, f"is {text}, which no calendar has: choose what such dates become")
    offsets = np.where(invalid, np.int32(-1), fields.offsets)
    return _array(arrow, out, Fields(fields.data, offsets, fields.lengths, fields.missing + count, fields.partial))


def _check_broken(values: NDArray[np.int64]) -> None:
    broken = values == temporal.BROKEN
    if broken.any():
        raise ValueProblemError(
            int(np.argmax(broken)),
            "has the format of before 5.6 and holds no time: with mysql56_temporal_format=OFF MariaDB does not log how"
            " many fraction digits such a column has; ALTER the table with it ON",
        )


def _temporal_text(form: int, digits: int, arrow: pa.DataType, fields: Fields) -> pa.Array:
    bounds = np.empty(fields.rows + 1, np.int32)
    values = np.empty(fields.rows * temporal.LONGEST_TEXT, np.uint8)
    size = temporal.temporal_text(fields.data, fields.offsets, form, digits, bounds, values)
    return _strings(arrow, bounds, values[:size], fields)


def _enum(column: Column, arrow: pa.DataType, fields: Fields) -> pa.Array:
    """Number 0 is the server's mark of an invalid value, shown as the empty text."""
    values = _integers(column, fields, signed=False)
    unsigned = values.view(f"u{values.itemsize}")
    if arrow == pa.uint16():
        return _array(arrow, unsigned.astype(np.uint16), fields)
    _check_labels(column, unsigned, unsigned > len(column.labels))
    return to_arrow_strings(["", *column.labels]).take(_array(pa.from_numpy_dtype(unsigned.dtype), unsigned, fields))


def _set(column: Column, arrow: pa.DataType, fields: Fields) -> pa.Array:
    values = _integers(column, fields, signed=False)
    masks = values.view(f"u{values.itemsize}")
    if wire_size_of(column).width == 3:
        masks = masks & np.uint32(0xFFFFFF)
    if arrow == pa.uint64():
        return _array(arrow, masks.astype(np.uint64), fields)
    bits = len(column.labels)
    _check_labels(column, masks, masks >> bits != 0 if bits < 8 * masks.itemsize else masks < 0)
    different, which = np.unique(masks, return_inverse=True)
    labels = [",".join(label for bit, label in enumerate(column.labels) if int(mask) >> bit & 1) for mask in different]
    return to_arrow_strings(labels).take(_array(pa.int64(), which.astype(np.int64), fields))


def _check_labels(column: Column, values: NDArray[Any], are_unknown: NDArray[np.bool_]) -> None:
    if are_unknown.any():
        row = int(np.argmax(are_unknown))
        raise ValueProblemError(row, f"has the value {int(values[row]):#x}, but only {len(column.labels)} labels")


def _vector(arrow: pa.DataType, fields: Fields) -> pa.Array:
    odd = (fields.offsets >= 0) & (fields.lengths % 4 != 0)
    if odd.any():
        raise ValueProblemError(int(np.argmax(odd)), "is no list of floats")
    bounds, values = _bytes(fields, 0)
    items = pa.Array.from_buffers(pa.float32(), values.size // 4, [None, pa.py_buffer(values)])
    buffers = [_validity(fields), pa.py_buffer(bounds // 4)]
    return pa.Array.from_buffers(arrow, fields.rows, buffers, children=[items])


def _address(family: Family, arrow: pa.DataType, fields: Fields) -> pa.Array:
    width = 4 if family is Family.INET4 else 16
    long = (fields.offsets >= 0) & (fields.lengths > width)
    if long.any():
        raise ValueProblemError(int(np.argmax(long)), f"has more than {width} bytes")
    plain, values = _bytes(fields, width)
    count = values.size // width
    if family is Family.UUID:
        out = np.empty(36 * count, np.uint8)
        strings.uuid_text(values, count, out)
        bounds = plain // width * 36
    else:
        out = np.empty((15 if family is Family.INET4 else 45) * count, np.uint8)
        each = np.empty(count + 1, np.int32)
        size = (strings.inet4_text if family is Family.INET4 else strings.inet6_text)(values, count, each, out)
        out, bounds = out[:size], each[plain // width]
    return _strings(arrow, bounds, out, fields)


def _json(arrow: pa.DataType, choice: DecodeOptions, fields: Fields) -> pa.Array:
    # Few tables have such columns, and the kernels take their time to load.
    from penstock.binlog.values.json_format import JsonError, JsonFault  # noqa: PLC0415
    from penstock.binlog.values.json_patch import patch_json  # noqa: PLC0415
    from penstock.binlog.values.json_text import render_json  # noqa: PLC0415

    point_zero = choice.json_doubles == "1.0"
    offsets = fields.offsets.astype(np.int64)
    lengths = np.where(fields.offsets >= 0, fields.lengths, -1).astype(np.int64)
    try:
        if not fields.partial.any():
            return _strings(arrow, *render_json(fields.data, offsets, lengths, point_zero=point_zero), fields)
        # An after image that is a list of differences is made from the before image, which is one row before it.
        is_partial = fields.partial != 0
        documents, document_lengths = (np.where(is_partial, np.roll(cell, 1), cell) for cell in (offsets, lengths))
        differences, difference_lengths = offsets, np.where(is_partial, lengths, -1)
        text = patch_json(
            fields.data, documents, document_lengths, differences, difference_lengths, point_zero=point_zero
        )
        return _strings(arrow, *text, fields)
    except JsonError as error:
        if error.fault is JsonFault.TOO_LARGE:
            raise TooLongError(error.row) from None
        raise ValueProblemError(error.row, f"is JSON that cannot be read: {error.reason}", error.where) from None
