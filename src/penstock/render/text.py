"""Arrow arrays → arrays of text, whole columns at a time. A null stays null; all texts have the type TEXT."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.arrays import compute as pc
from penstock.binlog.arrays import to_arrow_numbers, to_arrow_strings, to_numpy
from penstock.render import kernels

TEXT = pa.large_string()  # 64-bit bounds: the text of a block can be larger than the block


@dataclass(frozen=True, slots=True, eq=False)
class EscapeTable:
    """The escape sequence of each byte, in the arrays that the kernel `escape` takes."""

    lengths: NDArray[np.uint8]
    texts: NDArray[np.uint8]

    @classmethod
    def from_mapping(cls, table: Mapping[str, str]) -> "EscapeTable":
        """Build the table from a mapping of characters to their escape sequences."""
        lengths = np.ones(256, np.uint8)
        escapes = np.zeros((256, kernels.LONGEST_ESCAPE), np.uint8)
        for character, text in table.items():
            raw = np.frombuffer(text.encode(), np.uint8)
            lengths[ord(character)] = raw.size
            escapes[ord(character), : raw.size] = raw
        return cls(lengths, escapes.reshape(-1))


def make_scalar(text: str) -> pa.Scalar:
    """Return a text as an Arrow scalar. (`pyarrow.scalar` would import pandas, which takes longer than all the rest of
    a start.)
    """
    return texts_from_list([text])[0]


def texts_from_list(values: Sequence[str]) -> pa.Array:
    """Build an array of texts from Python strings."""
    return view_as_text(to_arrow_strings(values))


def join_columns(*pieces: pa.Array | str) -> pa.Array:
    """Join columns and constants value by value; null where a piece is null. For lines use `write_lines`."""
    parts = [make_scalar(piece) if isinstance(piece, str) else piece for piece in pieces]
    call: Any = pc.call_function
    return call("binary_join_element_wise", [*parts, make_scalar("")], pc.JoinOptions(null_handling="emit_null"))


def write_plain(array: pa.Array) -> pa.Array:
    """Write integers in decimal, and floats as Arrow does: the shortest text that reads back as the same value."""
    if array.type == TEXT:
        return array
    if pa.types.is_integer(array.type):
        return _write_integers(array)
    return view_as_text(array) if pa.types.is_string(array.type) else array.cast(TEXT)


def _write_integers(array: pa.Array) -> pa.Array:
    """Write an array of integers in decimal."""
    values = to_numpy(array)
    out, out_bounds = np.empty(kernels.LONGEST_INTEGER * values.size, np.uint8), np.empty(values.size + 1, np.int64)
    is_unsigned = values.dtype == np.uint64
    cells = values.view(np.int64) if is_unsigned else values.astype(np.int64, copy=False)
    used = kernels.write_integers(cells, is_unsigned, out_bounds, out)
    return texts_from_bytes_like(array, out_bounds, out[:used])


def escape_texts(array: pa.Array, escapes: EscapeTable) -> pa.Array:
    """Replace each byte of the texts by its escape sequence."""
    data, bounds = get_bytes(array)
    size = kernels.escaped_size(data, bounds, escapes.lengths)
    if size == bounds[-1] - bounds[0]:
        return write_plain(array)
    out, out_bounds = np.empty(size, np.uint8), np.empty(len(array) + 1, np.int64)
    kernels.write_escaped(data, bounds, escapes.lengths, escapes.texts, out_bounds, out)
    return texts_from_bytes_like(array, out_bounds, out)


def write_hex(array: pa.Array) -> pa.Array:
    """Write binary values as hexadecimal digits."""
    data, bounds = get_bytes(array)
    out, out_bounds = np.empty(2 * int(bounds[-1] - bounds[0]), np.uint8), np.empty(len(array) + 1, np.int64)
    kernels.write_hex(data, bounds, out_bounds, out)
    return texts_from_bytes_like(array, out_bounds, out)


def are_printable(array: pa.Array) -> NDArray[np.bool_]:
    """Return which binary values are UTF-8 that can be shown as it is; a null counts as printable."""
    data, bounds = get_bytes(array)
    marks = np.empty(len(array), np.uint8)
    kernels.mark_printable(data, bounds, marks)
    return marks.view(np.bool_)


def view_as_text(array: pa.Array) -> pa.Array:
    """Return binary values that are known to be UTF-8 as texts over the same bytes."""
    data, bounds = get_bytes(array)
    return texts_from_bytes_like(array, bounds, data)


def write_base64(array: pa.Array) -> pa.Array:
    """Write binary values as base64."""
    data, bounds = get_bytes(array)
    size = 4 * int(((np.diff(bounds) + 2) // 3).sum())
    out, out_bounds = np.empty(size, np.uint8), np.empty(len(array) + 1, np.int64)
    kernels.write_base64(data, bounds, out_bounds, out)
    return texts_from_bytes_like(array, out_bounds, out)


def write_bits(array: pa.Array, width: int) -> pa.Array:
    """Write integers as `width` binary digits."""
    values = _compact(array).cast(pa.uint64())
    raw = np.frombuffer(values.buffers()[1] or b"", np.int64)[: len(values)]
    out, out_bounds = np.empty(width * len(values), np.uint8), np.empty(len(values) + 1, np.int64)
    kernels.write_bits(raw, width, out_bounds, out)
    return texts_from_bytes_like(values, out_bounds, out)


def write_decimals(array: pa.Array) -> pa.Array:
    """Write decimals with all digits of their fraction, never with an exponent."""
    array = _compact(array)
    words = array.type.bit_width // 64
    raw = np.frombuffer(array.buffers()[1] or b"", np.int64)[: words * len(array)].reshape(-1, words)
    out, out_bounds = np.empty(kernels.LONGEST_DECIMAL * len(array), np.uint8), np.empty(len(array) + 1, np.int64)
    used = kernels.write_decimals(
        raw, array.type.scale, np.empty((2, kernels.LONGEST_DECIMAL), np.int64), out_bounds, out
    )
    return texts_from_bytes_like(array, out_bounds, out[:used])


def replace_byte(array: pa.Array, at: int, byte: str) -> pa.Array:
    """Replace the byte at offset `at` in each text that is longer than that."""
    data, bounds = get_bytes(array)
    out = data.copy()
    out[bounds[:-1][np.diff(bounds) > at] + at] = ord(byte)
    return texts_from_bytes_like(array, bounds, out)


def get_bytes(array: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes of texts or binaries without a copy, and the bounds of each value in them."""
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, bounds, data = array.buffers()
    if bounds is None or not bounds.size:
        return np.empty(0, np.uint8), np.zeros(len(array) + 1, np.int64)
    bounds_of_all = np.frombuffer(bounds, np.int64 if is_large else np.int32)
    bounds_of_all = bounds_of_all[array.offset : array.offset + len(array) + 1].astype(np.int64, copy=False)
    return np.frombuffer(data or b"", np.uint8), bounds_of_all


def get_validity(array: pa.Array) -> NDArray[np.uint8]:
    """Return 1 for each value and 0 for each null; empty if there is no null."""
    if not array.null_count:
        return np.empty(0, np.uint8)
    bits_ = np.unpackbits(np.frombuffer(array.buffers()[0], np.uint8), bitorder="little")
    return bits_[array.offset : array.offset + len(array)]


def texts_from_bytes(bounds: NDArray[np.int64], data: NDArray[np.uint8]) -> pa.Array:
    """Build an array of texts over these bytes; text i lies between bounds[i] and bounds[i + 1]."""
    return pa.Array.from_buffers(TEXT, bounds.size - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)])


def get_raw_bytes(array: pa.Array) -> memoryview:
    """Return all texts of an array one after the other."""
    data, bounds = get_bytes(array)
    return data[int(bounds[0]) : int(bounds[-1])].data


def _compact(array: pa.Array) -> pa.Array:
    """Return the array with buffers that begin at its first value; those of a slice begin elsewhere."""
    return array.take(to_arrow_numbers(np.arange(len(array)))) if array.offset else array


def texts_from_bytes_like(array: pa.Array, bounds: NDArray[np.int64], data: NDArray[np.uint8]) -> pa.Array:
    """Build an array of texts over these bytes, with the nulls of the array that they were made from."""
    valid = _compact(array).buffers()[0] if array.null_count else None
    return pa.Array.from_buffers(TEXT, len(array), [valid, pa.py_buffer(bounds), pa.py_buffer(data)])
