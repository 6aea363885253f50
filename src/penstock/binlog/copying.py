"""memcpy inside kernels: a slice assignment costs several times as much for texts as short as most columns hold."""

from typing import Any

from penstock.binlog.kernel import IS_CHECKED, lowered, shared

_CHUNK = 32
_memcpy, _copy_chunk = lowered("memcpy"), lowered("copy_chunk")


@shared
def _by_byte(out: Any, to: int, data: Any, at: int, size: int) -> None:
    for k in range(size):
        out[to + k] = data[at + k]


@shared
def _by_chunk(out: Any, to: int, data: Any, at: int, size: int) -> None:
    if size <= _CHUNK and to + _CHUNK <= out.size and at + _CHUNK <= data.size:
        _copy_chunk(out, to, data, at)
    else:
        _memcpy(out, to, data, at, size)


# Copies `size` bytes at data[at] to out[to]; byte by byte where the bounds check must see every read and write.
copy_bytes: Any = _by_byte if IS_CHECKED else _memcpy
# The same for an `out` that is filled from its start to its end: bytes after the copied ones may change.
copy_next: Any = _by_byte if IS_CHECKED else _by_chunk
