"""GTIDs of the index as text."""

import struct
import uuid

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.gtid import render_gtids
from tests.twins.strategy import examples

_U32, _U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
_MYSQL = st.builds(
    lambda source, number: (b"\x01" + source.bytes + struct.pack("<Q", number), f"{source}:{number}"), st.uuids(), _U64
)
_MARIADB = st.builds(
    lambda domain, server, number: (
        b"\x02" + struct.pack("<II8xQ", domain, server, number),
        f"{domain}-{server}-{number}",
    ),
    _U32,
    _U32,
    _U64,
)
_NONE = st.just((bytes(25), None))


@examples(100)
@given(st.lists(st.one_of(_MYSQL, _MARIADB, _NONE), max_size=20))
def test_text_is_what_the_servers_print(pairs: list[tuple[bytes, str | None]]) -> None:
    raw = np.frombuffer(b"".join(raw for raw, _ in pairs), np.uint8).reshape(-1, 25).copy()
    texts = render_gtids(raw)
    texts.validate(full=True)
    assert texts.to_pylist() == [text for _, text in pairs]


@pytest.mark.parametrize("number", [0, 9, 10, 2**63 - 1, 2**63, 2**64 - 1])
def test_every_number_of_64_bits_is_written(number: int) -> None:
    source = uuid.UUID(int=2**128 - 1)
    raw = np.frombuffer(b"\x01" + source.bytes + struct.pack("<Q", number), np.uint8).reshape(1, 25).copy()
    assert render_gtids(raw).to_pylist() == [f"{source}:{number}"]
