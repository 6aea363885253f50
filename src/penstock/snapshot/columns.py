"""The columns of a result set as Arrow arrays, equal to what the stream makes of the same values."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.values.column import DecodeOptions, Family, kernel_family_of, wire_size_of
from penstock.binlog.values.decode import Fields, decode_column
from penstock.errors import SchemaError
from penstock.model import Column, WireType
from penstock.model.table import are_exact_labels
from penstock.snapshot import packed_values
from penstock.snapshot.key_column import quote_name
from penstock.snapshot.row_packets import STRING, TEMPORAL

_FIXED_WIDTH = {
    WireType.TINY: 1, WireType.SHORT: 2, WireType.YEAR: 2, WireType.LONG: 4, WireType.INT24: 4, WireType.LONGLONG: 8,
    WireType.FLOAT: 4, WireType.DOUBLE: 8,
}  # fmt: skip
_TEMPORAL = {WireType.DATE, WireType.TIME, WireType.DATETIME, WireType.TIMESTAMP}
_UNCOMPRESSED = {WireType.VARCHAR_COMPRESSED: WireType.VARCHAR, WireType.BLOB_COMPRESSED: WireType.BLOB}
_SENT_AS_TEXT = {Family.JSON, Family.UUID, Family.INET4, Family.INET6}
_LABELS = {Family.ENUM, Family.SET}
_SENT_AS_STRING = {Family.DECIMAL, Family.BIT, Family.TEXT, Family.BYTES, Family.VECTOR, *_SENT_AS_TEXT}
_SENT_AS_TEMPORAL = {Family.DATE, Family.TIME, Family.DATETIME, Family.TIMESTAMP}
_NO_LENGTHS = np.empty(0, np.int32)
_NOT_PARTIAL = np.empty(0, np.uint8)


def field_kind(wire: int) -> int:
    """Return the field kind of a type code of the protocol: its width, STRING, or TEMPORAL."""
    if wire in _TEMPORAL:
        return TEMPORAL
    return _FIXED_WIDTH.get(wire, STRING)  # type: ignore[reportArgumentType] - codes that WireType does not have


@dataclass(frozen=True, slots=True)
class RowDecoder:
    """Decodes located fields of a table's columns to an Arrow record batch."""

    columns: tuple[Column, ...]
    options: DecodeOptions

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema of the batches."""
        return pa.schema([pa.field(column.name, kernel_family_of(column, self.options)[1]) for column in self.columns])

    @property
    def expressions(self) -> list[str]:
        """Return what to SELECT for each column: itself, or its number where the log has a number, too."""
        return [
            f"CAST({quote_name(column.name)} AS UNSIGNED)" if _is_read_as_number(column) else quote_name(column.name)
            for column in self.columns
        ]

    def check_kinds(self, kinds: NDArray[np.uint8]) -> None:
        """Raise SchemaError when the fields that the server announced are not those of these columns."""
        for column, kind in zip(self.columns, kinds.tolist(), strict=True):
            if _is_read_as_number(column):  # MariaDB sends it in as few bytes as the length of its text lets it expect
                is_expected = column.size <= kind <= 8
            else:
                is_expected = kind == self._expected_kind(column)
            if not is_expected:
                raise SchemaError(f"column {column.name} has another type than before: the table was altered meanwhile")

    def _expected_kind(self, column: Column) -> int:
        """Return the field kind in which the server sends a column."""
        family = kernel_family_of(column, self.options)[0]
        if family in _SENT_AS_STRING or family in _LABELS:
            return STRING
        return TEMPORAL if family in _SENT_AS_TEMPORAL else _FIXED_WIDTH[column.type]

    def decode(self, data: NDArray[np.uint8], offsets: NDArray[np.int32], lengths: NDArray[np.int32]) -> pa.RecordBatch:
        """Return the rows whose fields lie at these offsets."""
        arrays = [
            self._decode_column(column, data, offsets[index], lengths[index])
            for index, column in enumerate(self.columns)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _decode_column(
        self, column: Column, data: NDArray[np.uint8], offsets: NDArray[np.int32], lengths: NDArray[np.int32]
    ) -> pa.Array:
        family, arrow = kernel_family_of(column, self.options)
        missing = int(np.count_nonzero(offsets < 0))
        match family:
            case Family.DATE:
                packed = np.empty(packed_values.DATE_WIDTH * offsets.size, np.uint8)
                packed_values.pack_dates(data, offsets, packed)
                return self._decode_packed(column, packed, offsets, missing)
            case Family.TIME | Family.DATETIME | Family.TIMESTAMP:
                return self._decode_moments(column, family, arrow, data, offsets, missing)
            case Family.YEAR:
                packed = np.empty(packed_values.YEAR_WIDTH * offsets.size, np.uint8)
                packed_values.pack_years(data, offsets, packed)
                return self._decode_packed(column, packed, offsets, missing)
            case Family.DECIMAL:
                return _parse_decimals(column, arrow, data, offsets, lengths, missing)
            case _ if family in _SENT_AS_TEXT or (family in _LABELS and not _is_read_as_number(column)):
                charset = column.charset if column.charset not in {"", "binary"} else "utf8mb4"
                column = Column(column.name, WireType.VARCHAR, charset=charset)
            case _:
                column = replace(column, type=_UNCOMPRESSED.get(column.type, column.type))
        return decode_column(column, self.options, Fields(data, offsets, lengths, missing, _NOT_PARTIAL))

    def _decode_moments(
        self,
        column: Column,
        family: Family,
        arrow: pa.DataType,
        data: NDArray[np.uint8],
        offsets: NDArray[np.int32],
        missing: int,
    ) -> pa.Array:
        """Return times, datetimes and timestamps; the session's time zone is UTC, so a TIMESTAMP is sent as UTC."""
        fraction = (column.size + 1) // 2
        if family is Family.TIME:
            packed = np.empty((3 + fraction) * offsets.size, np.uint8)
            packed_values.pack_times(data, offsets, fraction, packed)
            return self._decode_packed(replace(column, type=WireType.TIME2), packed, offsets, missing)
        packed = np.empty((5 + fraction) * offsets.size, np.uint8)
        packed_values.pack_datetimes(data, offsets, fraction, packed)
        array = self._decode_packed(replace(column, type=WireType.DATETIME2), packed, offsets, missing)
        return pa.Array.from_buffers(arrow, len(array), array.buffers(), null_count=array.null_count)

    def _decode_packed(
        self, column: Column, packed: NDArray[np.uint8], offsets: NDArray[np.int32], missing: int
    ) -> pa.Array:
        """Return the values of fields that lie side by side in the form of the log."""
        width = wire_size_of(column).width
        starts = np.arange(offsets.size, dtype=np.int32) * np.int32(width)
        if missing:
            starts[offsets < 0] = -1
        return decode_column(column, self.options, Fields(packed, starts, _NO_LENGTHS, missing, _NOT_PARTIAL))


def _is_read_as_number(column: Column) -> bool:
    """Return whether an ENUM or SET is read as the number that the log has, which its labels then name. Where a
    catalogue does not show all characters of the labels, the server's own text is read."""
    is_label = column.type in {WireType.ENUM, WireType.SET}
    return is_label and (not column.labels or are_exact_labels(column))


def _parse_decimals(
    column: Column,
    arrow: pa.DataType,
    data: NDArray[np.uint8],
    offsets: NDArray[np.int32],
    lengths: NDArray[np.int32],
    missing: int,
) -> pa.Array:
    """Return DECIMAL values, which are sent as text."""
    words = np.empty((offsets.size, 2 if column.precision <= 38 else 4), np.int64)
    wrong = packed_values.parse_decimals(data, offsets, lengths, column.precision, column.scale, words)
    if wrong >= 0:
        text = data[offsets[wrong] : offsets[wrong] + lengths[wrong]].tobytes()
        raise SchemaError(f"column {column.name} has the value {text!r}, which is no DECIMAL of its type")
    validity: Any = None
    if missing:
        validity = pa.py_buffer(np.packbits(offsets >= 0, bitorder="little"))
    return pa.Array.from_buffers(arrow, offsets.size, [validity, pa.py_buffer(words)])
