"""A client of one server.

    connector = CanalConnector("127.0.0.1", 11111, "example")
    connector.connect()
    connector.subscribe("shop\\..*")
    while True:
        message = connector.get_without_ack(1000, timeout_s=1)
        for header, change in message.row_changes():
            ...
        connector.ack(message.id)

An error ends the connection: canal's protocol has no number by which an answer could be told from that to the call
before. After `connect` the server gives again what was not acked.
"""

import socket
import struct
from contextlib import suppress
from typing import Any, Self

from penstock.canal import messages, scramble
from penstock.canal.packet import PacketType
from penstock.client.canal.message import NOTHING, CanalPacket, Message, message_of
from penstock.errors import AuthenticationError, ProtocolError, ServerUnavailableError, StartingError

_LENGTH = struct.Struct(">i")
_LARGEST = 1 << 30
_IDLE_MS = 3_600_000
_MILLISECONDS = 2
_GOODBYE_S, _PIECE = 2.0, 1 << 16
_KEPT = 64 << 20  # of what packets are read into
DEFAULT_CLIENT = 1001
_TRY_AGAIN = 503  # what a Penstock server says of a destination that is still starting


class CanalConnector:
    def __init__(
        self,
        host: str,
        port: int = 11111,
        destination: str = "example",
        *,
        user: str = "",
        password: str = "",
        client_id: int = DEFAULT_CLIENT,
        timeout_s: float = 60,
        rollback_on_connect: bool = True,
    ) -> None:
        """`timeout_s` is for each answer, beyond what a get waits."""
        self.host, self.port, self.destination = host, port, destination
        self.client_id, self._user, self._password = client_id, user, password
        self._timeout_s, self._rolls_back = timeout_s, rollback_on_connect
        self._socket: socket.socket | None = None
        self._filter: str | None = None
        self._room = bytearray(_PIECE)

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect()

    @property
    def is_connected(self) -> bool:
        return self._socket is not None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def connect(self) -> None:
        """Also again; what was subscribed before is subscribed again."""
        self.disconnect()
        try:
            self._socket = socket.create_connection((self.host, self.port), timeout=self._timeout_s)
        except OSError as error:
            raise ServerUnavailableError(f"{self.address} cannot be reached: {error}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        first = self._receive(self._timeout_s)
        if first.type != PacketType.HANDSHAKE or first.version != 1:
            self.disconnect()
            raise ProtocolError(f"{self.address} does not speak canal's protocol")
        seed = messages.Handshake.FromString(bytes(first.body)).seeds
        auth = messages.ClientAuth(
            username=self._user,
            password=scramble.token_of(self._password, seed),
            net_read_timeout=_IDLE_MS,
            net_write_timeout=_IDLE_MS,
        )
        self._send(PacketType.CLIENTAUTHENTICATION, auth)
        self._expect_ok(AuthenticationError)
        if self._filter is not None:
            self.subscribe(self._filter)
        if self._rolls_back:
            self.rollback()

    def disconnect(self) -> None:
        """What was got and not acked comes again. Acks have no answer: when the server closes its side, it has them."""
        connection, self._socket = self._socket, None
        if connection is None:
            return
        with suppress(OSError), connection:
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(_GOODBYE_S)
            while connection.recv(_PIECE):
                pass

    def subscribe(self, table_filter: str = "") -> None:
        """Tables as canal writes them: `shop\\..*,crm\\.orders`; all when nothing is said."""
        self._send(PacketType.SUBSCRIPTION, messages.Sub(filter=table_filter, **self._names))
        self._expect_ok()
        self._filter = table_filter

    def unsubscribe(self) -> None:
        self._send(PacketType.UNSUBSCRIPTION, messages.Unsub(**self._names))
        self._expect_ok()
        self._filter = None

    def get(self, batch_size: int = 1000, timeout_s: float | None = None) -> Message:
        """Acked at once: what is lost after it is lost."""
        message = self.get_without_ack(batch_size, timeout_s)
        self.ack(message.id)
        return message

    def get_without_ack(self, batch_size: int = 1000, timeout_s: float | None = None) -> Message:
        """Waits for so long until there is anything; without a time it does not wait."""
        timeout_ms = -1 if timeout_s is None else max(1, round(timeout_s * 1000))
        asked = messages.Get(
            fetch_size=batch_size, timeout=timeout_ms, unit=_MILLISECONDS, auto_ack=False, at_once=True, **self._names
        )
        self._send(PacketType.GET, asked)
        answer = self._receive(self._timeout_s + (timeout_s or 0))
        if answer.type != PacketType.MESSAGES:
            self._fail(answer)
        return message_of(answer.body)

    def ack(self, batch_id: int) -> None:
        if batch_id != NOTHING:
            self._send(PacketType.CLIENTACK, messages.ClientAck(batch_id=batch_id, **self._names))

    def rollback(self, batch_id: int = 0) -> None:
        """All that was got and not acked comes again."""
        self._send(PacketType.CLIENTROLLBACK, messages.ClientRollback(batch_id=batch_id, **self._names))

    # -- packets

    @property
    def _names(self) -> dict[str, str]:
        return {"destination": self.destination, "client_id": str(self.client_id)}

    def _send(self, kind: PacketType, body: Any) -> None:
        raw = messages.Packet(version=1, type=int(kind), body=body.SerializeToString()).SerializeToString()
        try:
            self._connected.settimeout(self._timeout_s)
            self._connected.sendall(_LENGTH.pack(len(raw)) + raw)
        except OSError as error:
            self.disconnect()
            raise ServerUnavailableError(f"{self.address} has gone: {error}") from None

    def _receive(self, timeout_s: float) -> "CanalPacket":
        """Good until the next one comes."""
        connection = self._connected
        try:
            connection.settimeout(timeout_s)
            (size,) = _LENGTH.unpack(self._read(connection, _LENGTH.size))
            return CanalPacket.of(self._read(connection, size))
        except OSError as error:
            self.disconnect()
            raise ServerUnavailableError(f"{self.address} has gone: {error}") from None
        except BaseException:
            self.disconnect()
            raise

    def _read(self, connection: socket.socket, size: int) -> memoryview:
        """Into memory that is used again: fresh one would take longer to get than to fill."""
        if not 0 <= size <= _LARGEST:
            raise ProtocolError(f"{self.address} announces a packet of {size} bytes")
        if len(self._room) < size:
            self._room = bytearray(size)
        whole = memoryview(self._room)[:size]
        if size <= _KEPT < len(self._room):
            self._room = bytearray(_KEPT)
        left = whole
        while left:
            count = connection.recv_into(left)
            if not count:
                raise ConnectionResetError("it closed the connection")
            left = left[count:]
        return whole

    @property
    def _connected(self) -> socket.socket:
        if self._socket is None:
            raise ServerUnavailableError(f"not connected to {self.address}: connect() first")
        return self._socket

    def _expect_ok(self, cls: type[Exception] = ProtocolError) -> None:
        answer = self._receive(self._timeout_s)
        if answer.type != PacketType.ACK or messages.Ack.FromString(bytes(answer.body)).error_code:
            self._fail(answer, cls)

    def _fail(self, answer: "CanalPacket", cls: type[Exception] = ProtocolError) -> None:
        self.disconnect()
        if answer.type == PacketType.ACK:
            told = messages.Ack.FromString(bytes(answer.body))
            if told.error_code == _TRY_AGAIN:
                raise StartingError(f"{self.address}: {told.error_message}")
            raise cls(f"{self.address}: {told.error_message} ({told.error_code})")
        raise cls(f"{self.address} answered with a packet of type {answer.type}")
