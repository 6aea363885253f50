"""The structures of canal's protocol are the bytes that the protobuf library reads and writes."""

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.canal import messages, packet
from penstock.canal.packet import Packet, PacketType
from penstock.canal.schema import FIELDS, MESSAGES, tag_of
from penstock.canal.structures import (
    AckReply,
    ClientAckRequest,
    ClientAuthRequest,
    ClientRollbackRequest,
    GetRequest,
    HandshakeReply,
    InstanceAdminRequest,
    LogAdminRequest,
    ProtobufStructure,
    SubRequest,
    UnsubRequest,
)
from penstock.errors import ProtocolError

KNOWN = [
    AckReply, ClientAckRequest, ClientAuthRequest, ClientRollbackRequest, GetRequest, HandshakeReply, SubRequest,
    UnsubRequest,
]  # fmt: skip
VALUES = {
    "string": st.text(),
    "bytes": st.binary(),
    "bool": st.booleans(),
    "int32": st.integers(-(1 << 31), (1 << 31) - 1),
    "int64": st.integers(-(1 << 63), (1 << 63) - 1),
}


@st.composite
def structures(draw: st.DrawFn) -> ProtobufStructure:
    kind: Any = draw(st.sampled_from(KNOWN))
    return kind(**{field.name: draw(VALUES[FIELDS[kind.message][field.name].kind]) for field in fields(kind)})


@given(structures())
def test_they_are_what_the_library_makes_of_the_same_values(structure: ProtobufStructure) -> None:
    values = {field.name: getattr(structure, field.name) for field in fields(structure)}  # type: ignore[arg-type]
    theirs = getattr(messages, structure.message)
    read = theirs.FromString(structure.encode())
    assert {name: getattr(read, name) for name in values} == values
    assert type(structure).decode(theirs(**values).SerializeToString()) == structure
    assert type(structure).decode(structure.encode()) == structure


def test_a_packet_is_what_the_library_reads() -> None:
    raw = packet.build_frame(PacketType.ACK, AckReply(400, "no").encode())
    read = messages.Packet.FromString(raw[4:])
    assert (read.type, read.version, messages.Ack.FromString(read.body).error_message) == (PacketType.ACK, 1, "no")
    assert Packet.parse(raw[4:]) == Packet(PacketType.ACK, AckReply(400, "no").encode())


def test_the_console_has_a_packet_of_its_own() -> None:
    raw = packet.build_frame(5, InstanceAdminRequest("shop", "stop").encode(), "AdminPacket")
    parsed = Packet.parse(raw[4:], "AdminPacket")
    assert InstanceAdminRequest.decode(parsed.body) == InstanceAdminRequest("shop", "stop")
    request = LogAdminRequest("server", "tail", file="penstock.log", count=20)
    assert LogAdminRequest.decode(request.encode()) == request


def test_numbers_are_declared_once_per_message() -> None:
    for message in MESSAGES:
        numbers = [spec.number for spec in FIELDS[message].values()]
        assert len(set(numbers)) == len(numbers), message


@pytest.mark.parametrize("raw", [b"\x0a\x01\xff", b"\x08\x01", b"\x0a\x05x"])
def test_what_is_no_such_message_is_refused(raw: bytes) -> None:
    with pytest.raises(ProtocolError):
        SubRequest.decode(raw)


@pytest.mark.parametrize("name", ["Entry", "Header", "Pair", "RowChange", "RowData", "Column", "Messages"])
def test_a_tag_is_the_first_byte_of_a_field_as_protobuf_writes_it(name: str) -> None:
    for spec in FIELDS[name].values():
        message = getattr(messages, name)()
        if spec.is_repeated and spec.kind in MESSAGES:
            getattr(message, spec.name).add()
        elif spec.is_repeated:
            getattr(message, spec.name).append(b"x")
        elif spec.kind in MESSAGES:
            getattr(message, spec.name).SetInParent()
        else:
            setattr(message, spec.name, {"string": "x", "bytes": b"x"}.get(spec.kind, 1))
        assert message.SerializeToString()[0] == tag_of(name, spec.name)
