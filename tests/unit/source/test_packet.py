"""The packet unwrapper against its twin, whatever the reads of the socket cut apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.source.packet import PacketUnwrapper, encode_acknowledgement
from tests.twins.packet import LARGEST, unwrap, unwrap_semi_sync, wrap
from tests.twins.strategy import examples

_EVENTS = st.binary(max_size=60).map(lambda raw: b"\x00" + raw)
_ENDS = st.sampled_from((b"", wrap(b"\xfe\x00\x00\x02\x00"), wrap(b"\xff\xd4\x04#HY000no such file")))


def run(stream: bytes, sizes: list[int], *, semi_sync: bool = False) -> tuple[bytes, int, int, PacketUnwrapper]:
    """Event bytes, status and bytes read, with reads of these sizes and one for the rest; stops at a status."""
    unwrapper, events, at = PacketUnwrapper(semi_sync=semi_sync), bytearray(), 0
    for size in [*sizes, len(stream)]:
        piece = np.frombuffer(stream[at : at + size], np.uint8)
        out = np.full(piece.size + 1, 0xEE, np.uint8)
        written, read = unwrapper.unwrap(piece, piece.size, out)
        assert out[written:].tobytes() == b"\xee" * (out.size - written)
        events += out[:written].tobytes()
        at += read
        if unwrapper.status:
            break
        assert read == piece.size
    return bytes(events), unwrapper.status, at, unwrapper


@examples(200)
@given(st.lists(_EVENTS, max_size=8), _ENDS, st.lists(st.integers(1, 30), max_size=40))
def test_streams_cut_anywhere_equal_the_twin(payloads: list[bytes], end: bytes, sizes: list[int]) -> None:
    stream = b"".join(wrap(payload, number) for number, payload in enumerate(payloads)) + end
    assert run(stream, sizes)[:3] == unwrap(stream)


@examples(100)
@given(st.binary(max_size=200), st.lists(st.integers(1, 30), max_size=40))
def test_garbage_cut_anywhere_is_read_the_same_way(stream: bytes, sizes: list[int]) -> None:
    assert run(stream, sizes)[:3] == run(stream, [])[:3]


@examples(50)
@given(st.binary(max_size=40), st.lists(st.integers(1, 9), max_size=20))
def test_the_rest_of_an_error_packet_is_known_when_cut(message: bytes, sizes: list[int]) -> None:
    stream = wrap(b"\x00abc") + wrap(b"\xff" + message)
    events, status, read, unwrapper = run(stream, sizes)
    assert (events, status, unwrapper.rest_of_packet) == (b"abc", 255, len(message))
    assert stream[read:] == message


_FLAGS = st.sampled_from((b"\xef\x00", b"\xef\x01"))
_SEMI_SYNC = st.builds(lambda flags, raw: b"\x00" + flags + raw, _FLAGS, st.binary(max_size=60))
_HALF = st.sampled_from((b"\x00", b"\x00\xef", b"\x00\x11", b""))


@examples(300)
@given(
    st.lists(_SEMI_SYNC | _EVENTS | _HALF, max_size=8)
    | st.lists(_SEMI_SYNC, max_size=8)
    | st.lists(_EVENTS, max_size=8),
    _ENDS,
    st.lists(st.integers(1, 30), max_size=40),
)
def test_streams_with_semi_sync_equal_the_twin(payloads: list[bytes], end: bytes, sizes: list[int]) -> None:
    """Also of a server that has it turned off, or makes mistakes."""
    stream = b"".join(wrap(payload, number) for number, payload in enumerate(payloads)) + end
    events, status, read, unwrapper = run(stream, sizes, semi_sync=True)
    assert (events, status, read, unwrapper.is_ack_requested) == unwrap_semi_sync(stream)


@examples(100)
@given(st.binary(max_size=200), st.lists(st.integers(1, 30), max_size=40))
def test_garbage_with_semi_sync_is_read_the_same_way(stream: bytes, sizes: list[int]) -> None:
    assert run(stream, sizes, semi_sync=True)[:3] == run(stream, [], semi_sync=True)[:3]


def test_what_is_to_be_acknowledged_is_said_once() -> None:
    unwrapper, out = PacketUnwrapper(semi_sync=True), np.empty(100, np.uint8)
    for flag, expected in ((0, False), (1, True), (0, True)):
        piece = np.frombuffer(wrap(bytes([0, 0xEF, flag]) + b"abc"), np.uint8)
        assert unwrapper.unwrap(piece, piece.size, out) == (3, piece.size)
        assert unwrapper.is_semi_sync
        assert unwrapper.is_ack_requested is expected
    unwrapper.clear_ack_request()
    assert not unwrapper.is_ack_requested
    assert encode_acknowledgement("binlog.000007", 0x1122) == wrap(b"\xef\x22\x11" + bytes(6) + b"binlog.000007")


def test_large_payloads_with_semi_sync() -> None:
    """Only the first packet of one has the two bytes."""
    payload = b"\x00\xef\x01" + bytes(range(256)) * (LARGEST // 256 + 10)
    stream = wrap(payload) + wrap(b"\x00\xef\x00next")
    events, status, read, unwrapper = run(stream, [5, LARGEST - 3, 7, 1, 1], semi_sync=True)
    assert (events, status, read) == (payload[3:] + b"next", 0, len(stream))
    assert unwrapper.is_ack_requested


@pytest.mark.parametrize("size", [LARGEST - 1, LARGEST, LARGEST + 1, 2 * LARGEST])
def test_payloads_that_continue_in_the_next_packet(size: int) -> None:
    """The packet after a full one has no status byte, and may be empty."""
    block = np.arange(256, dtype=np.uint8)
    payload = b"\x00" + np.tile(block, size // 256 + 1).tobytes()[: size - 1]
    stream = wrap(payload) + wrap(b"\x00next")
    events, status, read, _ = run(stream, [5, LARGEST - 3, 7, 1, 1])
    assert (status, read) == (0, len(stream))
    assert events == payload[1:] + b"next"
    assert unwrap(stream)[0] == events
