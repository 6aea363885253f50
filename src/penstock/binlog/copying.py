"""memcpy inside kernels: a slice assignment costs several times as much for texts as short as most columns hold."""

from typing import Any

from penstock.binlog.kernel import IS_CHECKED, inlined, lowered, shared

_CHUNK = 32
_CHUNKS = 96  # three chunks cost less than the call of memcpy
_memcpy, _copy_chunk = lowered("memcpy"), lowered("copy_chunk")


@shared
def _by_byte(out: Any, to: int, data: Any, at: int, size: int) -> None:
    """Copy `size` bytes of data from `at` to out[to], byte by byte: the plain form for checked runs."""
    for k in range(size):
        out[to + k] = data[at + k]


@shared
def _by_chunk(out: Any, to: int, data: Any, at: int, size: int) -> None:
    """Copy `size` bytes of data from `at` to out[to], a call of memcpy for what is long."""
    if size <= _CHUNK and to + _CHUNK <= out.size and at + _CHUNK <= data.size:
        _copy_chunk(out, to, data, at)
    else:
        _memcpy(out, to, data, at, size)


@shared
def _by_byte_before(out: Any, to: int, limit: int, data: Any, at: int, size: int) -> None:  # noqa: ARG001 - as the other
    for k in range(size):
        out[to + k] = data[at + k]


@inlined
def _by_chunks_before(out: Any, to: int, limit: int, data: Any, at: int, size: int) -> None:
    if size <= _CHUNK and to + _CHUNK <= limit and at + _CHUNK <= data.size:
        _copy_chunk(out, to, data, at)
    elif size <= _CHUNKS and to + _CHUNKS <= limit and at + _CHUNKS <= data.size:
        for k in range(0, _CHUNKS, _CHUNK):
            _copy_chunk(out, to + k, data, at + k)
    else:
        _memcpy(out, to, data, at, size)


# Copies `size` bytes at data[at] to out[to]; byte by byte where the bounds check must see every read and write.
copy_bytes: Any = _by_byte if IS_CHECKED else _memcpy
# The same for an `out` that is filled from its start to its end: bytes after the copied ones may change.
copy_next: Any = _by_byte if IS_CHECKED else _by_chunk
# The same for a part of `out` that is filled from its start up to `limit`: only bytes before the limit may change.
copy_before: Any = _by_byte_before if IS_CHECKED else _by_chunks_before
