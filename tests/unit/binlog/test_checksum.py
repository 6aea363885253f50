"""CRC32 of the kernel against zlib's."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.checksum import TABLES, checksum_of, crc32
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
