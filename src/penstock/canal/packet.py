"""The packets of canal's protocol, from the server's side.

    frame    length 4, big-endian | packet

The fields of a packet are declared in schema.py; that of the console's port has its body in another one.

A frame that is longer than the limit is refused before a byte of it is read.
"""

import select
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from penstock.canal import protobuf
from penstock.canal.schema import FIELDS
from penstock.errors import ProtocolError

_LENGTH = struct.Struct(">i")
_QUICKACK = getattr(socket, "TCP_QUICKACK", None)
_KEEPALIVE_S = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
_KEEPALIVE = {getattr(socket, name): value for name, value in _KEEPALIVE_S.items() if hasattr(socket, name)}
_PIECE = 1 << 16
VERSION = 1

T = TypeVar("T", bytes, memoryview)


class PacketType(IntEnum):
    """The types of packets on the port of canal's clients."""

    HANDSHAKE = 1
    CLIENTAUTHENTICATION = 2
    ACK = 3
    SUBSCRIPTION = 4
    UNSUBSCRIPTION = 5
    GET = 6
    MESSAGES = 7
    CLIENTACK = 8
    SHUTDOWN = 9
    DUMP = 10
    HEARTBEAT = 11
    CLIENTROLLBACK = 12


def iter_fields(raw: T) -> Iterator[tuple[int, int | T]]:
    """Yield the numbers and values of the fields of a message, in order; those of a memoryview are views."""
    at = 0
    while at < len(raw):
        tag, at = _read_varint(raw, at)
        number, form = tag >> 3, tag & 7
        if form == 0:
            value, at = _read_varint(raw, at)
            yield number, value
        elif form == 2:
            size, at = _read_varint(raw, at)
            if at + size > len(raw):
                raise ProtocolError("the packet ends inside of a field")
            yield number, raw[at : at + size]
            at += size
        elif form in {1, 5}:
            at += 8 if form == 1 else 4
        else:
            raise ProtocolError("the packet is no protobuf")
    if at > len(raw):
        raise ProtocolError("the packet ends inside of a field")


class ProtobufFields:
    """The fields of a message, by number. If a field was sent twice the last one counts; one that was not sent reads as
    0 or empty.
    """

    def __init__(self, raw: bytes) -> None:
        self._found: dict[int, int | bytes] = dict(iter_fields(raw))

    def __contains__(self, number: int) -> bool:
        return number in self._found

    def get_number(self, field: int, default: int = 0) -> int:
        """Return a field as a signed number; `default` when it was not sent. Raises ProtocolError when it is not a
        number."""
        value = self._found.get(field, default)
        if isinstance(value, bytes):
            raise ProtocolError(f"field {field} of the packet is no number")
        return value - (1 << 64) if value >= 1 << 63 else value

    def get_bytes(self, field: int) -> bytes:
        """Return the bytes of a field; empty when it was not sent. Raises ProtocolError when it is a number."""
        value = self._found.get(field, b"")
        if isinstance(value, int):
            raise ProtocolError(f"field {field} of the packet is no text")
        return value

    def get_text(self, field: int) -> str:
        """Return a field as text; empty when it was not sent. Raises ProtocolError when it is not UTF-8."""
        try:
            return self.get_bytes(field).decode()
        except UnicodeDecodeError:
            raise ProtocolError(f"field {field} of the packet is no UTF-8") from None


def _read_varint(raw: bytes | memoryview, at: int) -> tuple[int, int]:
    """Read a varint, and return it and where it ends."""
    value = shift = 0
    while at < len(raw):
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7
        if shift > 63:
            break
    raise ProtocolError("the packet has a number that does not end")


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet: its type, and its body as it was sent."""

    type: int
    body: bytes

    @classmethod
    def parse(cls, raw: bytes, message: str = "Packet") -> "Packet":
        """Return the type and the body of a packet; `message` names it in schema.py."""
        sent, known = ProtobufFields(raw), FIELDS[message]
        return cls(sent.get_number(known["type"].number), sent.get_bytes(known["body"].number))


def build_frame(kind: PacketType | int, body: bytes, message: str = "Packet") -> bytes:
    """Return a packet of this type and body as a frame, which begins with the packet's length."""
    packet = _build_packet_head(kind, message) + protobuf.encode_text(FIELDS[message]["body"].number, body)
    return _LENGTH.pack(len(packet)) + packet


def build_messages_head(batch_id: int, entries_bytes: int) -> bytes:
    """Return the part of a MESSAGES frame before its entries."""
    first = protobuf.encode_number(FIELDS["Messages"]["batch_id"].number, batch_id)
    body = len(first) + entries_bytes
    head = _build_packet_head(PacketType.MESSAGES, "Packet")
    head += protobuf.encode_varint(FIELDS["Packet"]["body"].tag) + protobuf.encode_varint(body) + first
    return _LENGTH.pack(len(head) - len(first) + body) + head


def _build_packet_head(kind: PacketType | int, message: str) -> bytes:
    """Return the fields of a packet before its body."""
    known = FIELDS[message]
    return protobuf.encode_number(known["version"].number, VERSION) + protobuf.encode_number(known["type"].number, kind)


class FrameSocket:
    """Sends and receives frames over a socket, with a time limit for a peer that is too slow or silent."""

    def __init__(self, connection: socket.socket, limit: int, frame_s: float) -> None:
        self._socket, self._limit, self._frame_s = connection, limit, frame_s
        self.idle_s: float = frame_s  # how long it waits for a frame to begin
        self.write_s: float = frame_s
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # A machine that was switched off says nothing: its client is not to count as connected for hours.
        for option, value in _KEEPALIVE.items():
            connection.setsockopt(socket.IPPROTO_TCP, option, value)

    def receive(self) -> bytes | None:
        """Return the next frame; None when the peer has closed, or was silent for too long."""
        head = bytearray()
        deadline = time.monotonic() + self.idle_s
        while len(head) < _LENGTH.size:
            piece = self._read_exactly(_LENGTH.size - len(head), deadline)
            if not piece:
                return None
            if not head:
                deadline = time.monotonic() + self._frame_s
            head += piece
        (size,) = _LENGTH.unpack(head)
        if not 0 <= size <= self._limit:
            raise ProtocolError(f"a packet of {size & 0xFFFFFFFF} bytes is larger than {self._limit}")
        body = bytearray()
        while len(body) < size:
            piece = self._read_exactly(min(size - len(body), _PIECE), deadline)
            if not piece:
                return None
            body += piece
        return bytes(body)

    def _read_exactly(self, size: int, deadline: float) -> bytes:
        """Read `size` bytes before the deadline."""
        self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            piece = self._socket.recv(size)
        except TimeoutError:
            return b""
        # Clients write the length and the packet apart, and without an ack at once the second waits for it.
        if _QUICKACK is not None:
            self._socket.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
        return piece

    def send(self, *parts: bytes | memoryview) -> None:
        """Send the parts as one frame, within the time limit."""
        self._socket.settimeout(self.write_s)
        left = [memoryview(part).cast("B") for part in parts if len(part)]
        while left:
            sent = self._socket.sendmsg(left[:64])
            while left and sent >= len(left[0]):
                sent -= len(left.pop(0))
            if sent:
                left[0] = left[0][sent:]

    @property
    def is_closed_by_peer(self) -> bool:
        """Return whether the peer has closed the connection, or its half of it, also when requests of it are still
        unread."""
        poller = select.poll()
        try:
            poller.register(self._socket, select.POLLRDHUP)
            return bool(poller.poll(0))
        except (OSError, ValueError):  # it is closed on our side
            return True
