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
class Escapes:
    """A table of the escape sequence of each byte, in the arrays that the kernel `escape` takes."""

    lengths: NDArray[np.uint8]
    texts: NDArray[np.uint8]

    @classmethod
    def of(cls, table: Mapping[str, str]) -> "Escapes":
        lengths = np.ones(256, np.uint8)
        escapes = np.zeros((256, kernels.LONGEST_ESCAPE), np.uint8)
        for character, text in table.items():
            raw = np.frombuffer(text.encode(), np.uint8)
            lengths[ord(character)] = raw.size
            escapes[ord(character), : raw.size] = raw
        return cls(lengths, escapes.reshape(-1))


def constant(text: str) -> pa.Scalar:
    """(`pyarrow.scalar` would import pandas, which takes longer than all the rest of a start.)"""
    return of_list([text])[0]


def of_list(values: Sequence[str]) -> pa.Array:
    return as_text(to_arrow_strings(values))


def join(*pieces: pa.Array | str) -> pa.Array:
    """Side by side; null where a piece is null. For columns; `weave` is for lines."""
    parts = [constant(piece) if isinstance(piece, str) else piece for piece in pieces]
    call: Any = pc.call_function
    return call("binary_join_element_wise", [*parts, constant("")], pc.JoinOptions(null_handling="emit_null"))


def plain(array: pa.Array) -> pa.Array:
    """Write integers in decimal, and reals as Arrow does: the shortest text that reads back as the same value."""
    if array.type == TEXT:
        return array
    if pa.types.is_integer(array.type):
        return _integers(array)
    return as_text(array) if pa.types.is_string(array.type) else array.cast(TEXT)


def _integers(array: pa.Array) -> pa.Array:
    values = to_numpy(array)
    out, out_bounds = np.empty(kernels.LONGEST_INTEGER * values.size, np.uint8), np.empty(values.size + 1, np.int64)
    is_unsigned = values.dtype == np.uint64
    cells = values.view(np.int64) if is_unsigned else values.astype(np.int64, copy=False)
    used = kernels.write_integers(cells, is_unsigned, out_bounds, out)
    return like(array, out_bounds, out[:used])


def escaped(array: pa.Array, escapes: Escapes) -> pa.Array:
    data, bounds = bytes_of(array)
    size = kernels.escaped_size(data, bounds, escapes.lengths)
    if size == bounds[-1] - bounds[0]:
        return plain(array)
    out, out_bounds = np.empty(size, np.uint8), np.empty(len(array) + 1, np.int64)
    kernels.escape(data, bounds, escapes.lengths, escapes.texts, out_bounds, out)
    return like(array, out_bounds, out)


def hexed(array: pa.Array) -> pa.Array:
    data, bounds = bytes_of(array)
    out, out_bounds = np.empty(2 * int(bounds[-1] - bounds[0]), np.uint8), np.empty(len(array) + 1, np.int64)
    kernels.write_hex(data, bounds, out_bounds, out)
    return like(array, out_bounds, out)


def are_printable(array: pa.Array) -> NDArray[np.bool_]:
    """Which binaries are UTF-8 that can be shown as it is; a null is."""
    data, bounds = bytes_of(array)
    marks = np.empty(len(array), np.uint8)
    kernels.mark_printable(data, bounds, marks)
    return marks.view(np.bool_)


def as_text(array: pa.Array) -> pa.Array:
    """The same bytes, which are known to be UTF-8, as texts."""
    data, bounds = bytes_of(array)
    return like(array, bounds, data)


def base64ed(array: pa.Array) -> pa.Array:
    data, bounds = bytes_of(array)
    size = 4 * int(((np.diff(bounds) + 2) // 3).sum())
    out, out_bounds = np.empty(size, np.uint8), np.empty(len(array) + 1, np.int64)
    kernels.write_base64(data, bounds, out_bounds, out)
    return like(array, out_bounds, out)


def bits(array: pa.Array, width: int) -> pa.Array:
    """Integers as binary digits."""
    values = _compact(array).cast(pa.uint64())
    raw = np.frombuffer(values.buffers()[1] or b"", np.int64)[: len(values)]
    out, out_bounds = np.empty(width * len(values), np.uint8), np.empty(len(values) + 1, np.int64)
    kernels.write_bits(raw, width, out_bounds, out)
    return like(values, out_bounds, out)


def decimals(array: pa.Array) -> pa.Array:
    array = _compact(array)
    words = array.type.bit_width // 64
    raw = np.frombuffer(array.buffers()[1] or b"", np.int64)[: words * len(array)].reshape(-1, words)
    out, out_bounds = np.empty(kernels.LONGEST_DECIMAL * len(array), np.uint8), np.empty(len(array) + 1, np.int64)
    used = kernels.write_decimal(
        raw, array.type.scale, np.empty((2, kernels.LONGEST_DECIMAL), np.int64), out_bounds, out
    )
    return like(array, out_bounds, out[:used])


def with_byte(array: pa.Array, at: int, byte: str) -> pa.Array:
    """Each text that is longer than `at` with another byte there."""
    data, bounds = bytes_of(array)
    out = data.copy()
    out[bounds[:-1][np.diff(bounds) > at] + at] = ord(byte)
    return like(array, bounds, out)


def bytes_of(array: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of texts or binaries, and the bounds of each in them."""
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, bounds, data = array.buffers()
    if bounds is None or not bounds.size:
        return np.empty(0, np.uint8), np.zeros(len(array) + 1, np.int64)
    places = np.frombuffer(bounds, np.int64 if is_large else np.int32)
    places = places[array.offset : array.offset + len(array) + 1].astype(np.int64, copy=False)
    return np.frombuffer(data or b"", np.uint8), places


def validity(array: pa.Array) -> NDArray[np.uint8]:
    """1 for a value, 0 for a null; empty when there is no null."""
    if not array.null_count:
        return np.empty(0, np.uint8)
    bits_ = np.unpackbits(np.frombuffer(array.buffers()[0], np.uint8), bitorder="little")
    return bits_[array.offset : array.offset + len(array)]


def of_bytes(bounds: NDArray[np.int64], data: NDArray[np.uint8]) -> pa.Array:
    return pa.Array.from_buffers(TEXT, bounds.size - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)])


def raw_bytes(array: pa.Array) -> memoryview:
    """All texts of an array one after the other."""
    data, bounds = bytes_of(array)
    return data[int(bounds[0]) : int(bounds[-1])].data


def _compact(array: pa.Array) -> pa.Array:
    """A slice's buffers begin elsewhere: give it some of its own."""
    return array.take(to_arrow_numbers(np.arange(len(array)))) if array.offset else array


def like(array: pa.Array, bounds: NDArray[np.int64], data: NDArray[np.uint8]) -> pa.Array:
    """With the nulls of the array that the texts were made from."""
    valid = _compact(array).buffers()[0] if array.null_count else None
    return pa.Array.from_buffers(TEXT, len(array), [valid, pa.py_buffer(bounds), pa.py_buffer(data)])
