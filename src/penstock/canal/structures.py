"""The messages that a server reads and writes itself, as plain structures, without a protobuf library.

Field numbers come from schema.py, by the names of the fields.

    request = GetRequest.decode(packet.body)
    wire.send(frame(PacketType.ACK, AckReply(400, "no such batch").encode()))
"""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from penstock.canal import protobuf
from penstock.canal.packet import PacketType, ProtobufFields, build_frame
from penstock.canal.schema import FIELDS


class ProtobufStructure:
    """A message whose fields are those of a dataclass; `message` is its name in schema.py.

    A field that was not sent is 0 or empty, and one with such a value is not sent.
    """

    message: ClassVar[str]
    __slots__ = ()

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        """Return the structure of a message; ProtocolError when the bytes are not one."""
        sent, values = ProtobufFields(raw), dict[str, Any]()
        for name, spec in cls._field_specs():
            match spec.kind:
                case "string":
                    values[name] = sent.get_text(spec.number)
                case "bytes":
                    values[name] = sent.get_bytes(spec.number)
                case "bool":
                    values[name] = bool(sent.get_number(spec.number))
                case _:
                    values[name] = sent.get_number(spec.number)
        return cls(**values)

    def encode(self) -> bytes:
        """Return the message as protobuf."""
        parts: list[bytes] = []
        for name, spec in self._field_specs():
            value = getattr(self, name)
            is_text = spec.kind in {"string", "bytes"}
            parts.append(
                protobuf.encode_text(spec.number, value) if is_text else protobuf.encode_number(spec.number, int(value))
            )
        return b"".join(parts)

    @classmethod
    def _field_specs(cls) -> Any:
        """Return the declared fields of the message, by name."""
        known = FIELDS[cls.message]
        return [(spec.name, known[spec.name]) for spec in fields(cls)]  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class HandshakeReply(ProtobufStructure):
    """The first message of a server: the seed that a client's password is scrambled with."""

    message: ClassVar[str] = "Handshake"
    seeds: bytes = b""


@dataclass(frozen=True, slots=True)
class AckReply(ProtobufStructure):
    """The outcome of a request: code 0 is success.

    reply = AckReply(error_code=400, error_message="no such destination")
    """

    message: ClassVar[str] = "Ack"
    error_code: int = 0
    error_message: str = ""


@dataclass(frozen=True, slots=True)
class ClientAuthRequest(ProtobufStructure):
    """A login. It subscribes too, when it names a destination and a client."""

    message: ClassVar[str] = "ClientAuth"
    username: str = ""
    password: bytes = b""
    net_read_timeout: int = 0  # milliseconds
    net_write_timeout: int = 0
    destination: str = ""
    client_id: str = ""
    filter: str = ""


@dataclass(frozen=True, slots=True)
class SubRequest(ProtobufStructure):
    """A subscription of a client, with its filter."""

    message: ClassVar[str] = "Sub"
    destination: str = ""
    client_id: str = ""
    filter: str = ""


@dataclass(frozen=True, slots=True)
class UnsubRequest(ProtobufStructure):
    """The end of a subscription."""

    message: ClassVar[str] = "Unsub"
    destination: str = ""
    client_id: str = ""


@dataclass(frozen=True, slots=True)
class GetRequest(ProtobufStructure):
    """A request for a batch. `unit` is that of the timeout; `at_once` is our own: prefer a small batch now."""

    message: ClassVar[str] = "Get"
    destination: str = ""
    client_id: str = ""
    fetch_size: int = 0
    timeout: int = 0
    unit: int = 0
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class ClientAckRequest(ProtobufStructure):
    """The ack of a batch."""

    message: ClassVar[str] = "ClientAck"
    destination: str = ""
    client_id: str = ""
    batch_id: int = 0


@dataclass(frozen=True, slots=True)
class ClientRollbackRequest(ProtobufStructure):
    """The rollback of a batch, or of all batches when `batch_id` is 0."""

    message: ClassVar[str] = "ClientRollback"
    destination: str = ""
    client_id: str = ""
    batch_id: int = 0


@dataclass(frozen=True, slots=True)
class ServerAdminRequest(ProtobufStructure):
    """An action of canal-admin on the whole server."""

    message: ClassVar[str] = "ServerAdmin"
    admin: str = ""


@dataclass(frozen=True, slots=True)
class InstanceAdminRequest(ProtobufStructure):
    """An action of canal-admin on one destination."""

    message: ClassVar[str] = "InstanceAdmin"
    destination: str = ""
    admin: str = ""


@dataclass(frozen=True, slots=True)
class LogAdminRequest(ProtobufStructure):
    """A request of canal-admin for the names or the last lines of logs."""

    message: ClassVar[str] = "LogAdmin"
    type: str = ""
    admin: str = ""
    destination: str = ""
    file: str = ""
    count: int = 0


def build_ack_frame(code: int = 0, message: str = "") -> bytes:
    """Return the frame that answers a request: success, or a code and the reason."""
    return build_frame(PacketType.ACK, AckReply(code, message).encode())
