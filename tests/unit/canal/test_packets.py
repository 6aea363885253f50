"""Packets of canal's protocol: what is read from bytes and from sockets, whole, in pieces, cut and broken."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.canal import messages, packet, protobuf
from penstock.canal.packet import FrameSocket, PacketType, ProtobufFields, iter_fields
from penstock.errors import ProtocolError
from penstock.testing import poll_until

NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)
LIMIT = 1000


@contextmanager
def connected() -> Iterator[tuple[socket.socket, FrameSocket]]:
    """A peer, and the frames that are read from it."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        peer = stack.enter_context(socket.create_connection(listener.getsockname()))
        accepted = stack.enter_context(listener.accept()[0])
        yield peer, FrameSocket(accepted, LIMIT, 30)


# -- fields


@given(NUMBERS, st.lists(st.binary(max_size=300)))
def test_fields_are_those_that_the_library_wrote(batch_id: int, entries: list[bytes]) -> None:
    raw = messages.Messages(batch_id=batch_id, messages=entries).SerializeToString()
    fields = list(iter_fields(raw))
    assert [value for field, value in fields if field == 2] == entries
    assert [value for field, value in fields if field == 1] == ([batch_id % (1 << 64)] if batch_id else [])
    assert list(iter_fields(memoryview(raw))) == fields


@given(st.binary(max_size=60))
def test_bytes_of_any_kind_are_fields_or_refused(raw: bytes) -> None:
    try:
        fields = list(iter_fields(raw))
    except ProtocolError:
        return
    assert sum(len(value) for _, value in fields if isinstance(value, bytes)) <= len(raw)


@given(st.text(min_size=1), st.integers(1, 1 << 40), st.data())
def test_a_message_that_is_cut_inside_of_a_field_is_refused(text: str, number: int, data: st.DataObject) -> None:
    raw = messages.ClientAck(destination=text, batch_id=number).SerializeToString()
    ends = {0, len(raw), len(messages.ClientAck(destination=text).SerializeToString())}
    cut = data.draw(st.sampled_from(sorted(set(range(len(raw))) - ends)))
    with pytest.raises(ProtocolError):
        list(iter_fields(raw[:cut]))


@given(NUMBERS)
def test_a_number_is_read_as_it_was_written(number: int) -> None:
    assert ProtobufFields(protobuf.encode_number_always(3, number)).get_number(3) == number
    assert messages.ClientAck.FromString(protobuf.encode_number(3, number)).batch_id == number


@pytest.mark.parametrize("raw", [b"\x08" + b"\xff" * 10 + b"\x01", b"\x08\xff", b"\x0b", b"\x09\x01", b"\x0d\x01"])
def test_a_field_that_does_not_end_is_refused(raw: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(iter_fields(raw))


def test_fixed_numbers_are_passed_over() -> None:
    raw = b"\x09" + bytes(8) + b"\x15" + bytes(4) + protobuf.encode_text(3, "x")
    assert list(iter_fields(raw)) == [(3, b"x")]


def test_of_a_field_that_was_sent_twice_the_last_counts() -> None:
    fields = ProtobufFields(
        protobuf.encode_text(1, "a") + protobuf.encode_number_always(2, 7) + protobuf.encode_text(1, "b")
    )
    assert (fields.get_text(1), fields.get_number(2), fields.get_text(9), fields.get_number(9, 5)) == ("b", 7, "", 5)
    assert 1 in fields
    assert 9 not in fields


def test_a_field_of_another_kind_is_named() -> None:
    fields = ProtobufFields(protobuf.encode_text(1, b"\xff") + protobuf.encode_number_always(2, 7))
    for call, reason in (
        (lambda: fields.get_number(1), "field 1 of the packet is no number"),
        (lambda: fields.get_bytes(2), "field 2 of the packet is no text"),
        (lambda: fields.get_text(1), "field 1 of the packet is no UTF-8"),
    ):
        with pytest.raises(ProtocolError, match=reason):
            call()


@given(st.integers(1, (1 << 63) - 1), st.lists(st.binary(max_size=100)))
def test_a_head_and_entries_are_a_frame_of_messages(batch_id: int, entries: list[bytes]) -> None:
    body = b"".join(protobuf.encode_message(2, entry) for entry in entries)
    raw = packet.build_messages_head(batch_id, len(body)) + body
    (size,) = struct.unpack(">i", raw[:4])
    assert size == len(raw) - 4
    read = messages.Packet.FromString(raw[4:])
    assert read.type == PacketType.MESSAGES
    told = messages.Messages.FromString(read.body)
    assert (told.batch_id, list(told.messages)) == (batch_id, entries)


# -- frames


def test_frames_come_as_they_were_sent_however_they_are_cut() -> None:
    bodies = [b"", b"a", b"x" * LIMIT]
    raw = b"".join(struct.pack(">i", len(body)) + body for body in bodies)
    with connected() as (peer, frames):
        for byte in raw[:20]:
            peer.sendall(bytes([byte]))
        peer.sendall(raw[20:])
        assert [frames.receive() for _ in bodies] == bodies


@pytest.mark.parametrize("size", [LIMIT + 1, -1, -(1 << 31), (1 << 31) - 1])
def test_a_frame_that_is_too_large_is_refused_before_it_is_read(size: int) -> None:
    with connected() as (peer, frames):
        peer.sendall(struct.pack(">i", size))
        with pytest.raises(ProtocolError, match=f"is larger than {LIMIT}"):
            frames.receive()


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\0\x05abc"])
def test_a_peer_that_closes_has_no_more_frames(sent: bytes) -> None:
    with connected() as (peer, frames):
        peer.sendall(sent)
        assert not frames.is_closed_by_peer or not sent
        peer.shutdown(socket.SHUT_WR)
        assert frames.receive() is None
        assert frames.is_closed_by_peer


@pytest.mark.parametrize("sent", [b"", b"\0", b"\0\0\0\x05abc"])
def test_a_silent_peer_is_not_waited_for_without_end(sent: bytes) -> None:
    with connected() as (peer, frames):
        frames.idle_s, frames._frame_s = 0.05, 0.05
        peer.sendall(sent)
        assert frames.receive() is None
        assert not frames.is_closed_by_peer


def test_many_parts_arrive_as_one() -> None:
    parts = [bytes([number % 256]) * (number % 5000) for number in range(300)]
    received = bytearray()

    def read(peer: Any) -> None:
        while piece := peer.recv(1 << 16):
            received.extend(piece)

    with connected() as (peer, frames):
        reader = threading.Thread(target=read, args=(peer,))
        reader.start()
        frames.send(*parts[:150], *map(memoryview, parts[150:]))
        frames._socket.shutdown(socket.SHUT_WR)
        reader.join(30)
    assert bytes(received) == b"".join(parts)


def test_a_peer_that_has_gone_is_noticed_behind_its_unread_requests() -> None:
    with connected() as (peer, frames):
        peer.sendall(b"requests that nobody reads")
        assert not frames.is_closed_by_peer
        peer.shutdown(socket.SHUT_WR)
        assert poll_until(lambda: frames.is_closed_by_peer, 10)
