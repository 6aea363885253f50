"""CRC32 of the kernel against zlib's."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.checksum import TABLES, block_checksum, checksum_of, crc32, have_valid_checksums
from tests.twins.strategy import examples


@examples(200)
@given(st.binary(max_size=200), st.integers(0, 20))
def test_equals_zlib(data: bytes, start: int) -> None:
    start = min(start, len(data))
    assert crc32(np.frombuffer(data, np.uint8), start, len(data), TABLES) == zlib.crc32(data[start:])


@pytest.mark.parametrize("size", [0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 65_537])
def test_equals_zlib_at_every_step_width(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    assert crc32(data, 0, size, TABLES) == zlib.crc32(data)


@examples(60)
@given(st.binary(max_size=400), st.integers(1, 40))
def test_of_many_bytes(part: bytes, times: int) -> None:
    raw = part * times
    assert checksum_of(np.frombuffer(raw, np.uint8)) == zlib.crc32(raw)


@examples(60)
@given(st.lists(st.binary(max_size=300), max_size=8), st.integers(0, 1 << 20))
def test_events_that_carry_their_own(bodies: list[bytes], where: int) -> None:
    sums = [zlib.crc32(body).to_bytes(4, "little") for body in bodies]
    raw = bytearray(b"".join(body + own for body, own in zip(bodies, sums, strict=True)))
    bounds = np.cumsum([0, *(len(body) + 4 for body in bodies)], dtype=np.int32)
    data = np.frombuffer(raw, np.uint8)
    assert have_valid_checksums(data, bounds)
    assert block_checksum(data, bounds) == zlib.crc32(b"".join(sums))
    if raw:
        raw[where % len(raw)] ^= 1 << where % 8
        assert not have_valid_checksums(data, bounds)


@pytest.mark.parametrize("bounds", [[0, 3], [0, 9], [-1, 8], [8, 4], [0, 1 << 30]])
def test_events_that_are_not_inside_are_not_sound(bounds: list[int]) -> None:
    assert not have_valid_checksums(np.zeros(8, np.uint8), np.array(bounds, np.int32))
