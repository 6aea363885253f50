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
from penstock.client.canal.message import NOTHING, CanalMessage, CanalPacket, parse_message
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
    """A canal client of one server, with canal's calls. See the module for an example."""

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
        """Create the client; `timeout_s` limits each answer, beyond what a get waits."""
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
        """Return whether there is a connection to the server."""
        return self._socket is not None

    @property
    def address(self) -> str:
        """Return host and port of the server."""
        return f"{self.host}:{self.port}"

    def connect(self) -> None:
        """Connect, or reconnect; a subscription from before is repeated."""
        self.disconnect()
        try:
            self._socket = socket.create_connection((self.host, self.port), timeout=self._timeout_s)
        except OSError as error:
            raise ServerUnavailableError(f"{self.address} cannot be reached: {error}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        first = self._receive_packet(self._timeout_s)
        if first.type != PacketType.HANDSHAKE or first.version != 1:
            self.disconnect()
            raise ProtocolError(f"{self.address} does not speak canal's protocol")
        seed = messages.Handshake.FromString(bytes(first.body)).seeds
        auth = messages.ClientAuth(
            username=self._user,
            password=scramble.scramble_password(self._password, seed),
            net_read_timeout=_IDLE_MS,
            net_write_timeout=_IDLE_MS,
        )
        self._send_packet(PacketType.CLIENTAUTHENTICATION, auth)
        self._expect_ok(AuthenticationError)
        if self._filter is not None:
            self.subscribe(self._filter)
        if self._rolls_back:
            self.rollback()

    def disconnect(self) -> None:
        """Close the connection; batches that were not acked are redelivered later. Acks have no answer: once the server
        has closed its side, it has them.
        """
        connection, self._socket = self._socket, None
        if connection is None:
            return
        with suppress(OSError), connection:
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(_GOODBYE_S)
            while connection.recv(_PIECE):
                pass

    def subscribe(self, table_filter: str = "") -> None:
        r"""Subscribe to tables as canal writes them, such as `shop\\..*,crm\\.orders`; to all if no filter is given."""
        self._send_packet(PacketType.SUBSCRIPTION, messages.Sub(filter=table_filter, **self._client_fields))
        self._expect_ok()
        self._filter = table_filter

    def unsubscribe(self) -> None:
        """End the client's subscription to the destination."""
        self._send_packet(PacketType.UNSUBSCRIPTION, messages.Unsub(**self._client_fields))
        self._expect_ok()
        self._filter = None

    def get(self, batch_size: int = 1000, timeout_s: float | None = None) -> CanalMessage:
        """Return the next batch and ack it at once: if the client crashes afterwards, it is lost."""
        message = self.get_without_ack(batch_size, timeout_s)
        self.ack(message.id)
        return message

    def get_without_ack(self, batch_size: int = 1000, timeout_s: float | None = None) -> CanalMessage:
        """Return the next batch; wait at most `timeout_s` for one, or not at all without it."""
        timeout_ms = -1 if timeout_s is None else max(1, round(timeout_s * 1000))
        asked = messages.Get(
            fetch_size=batch_size,
            timeout=timeout_ms,
            unit=_MILLISECONDS,
            auto_ack=False,
            at_once=True,
            **self._client_fields,
        )
        self._send_packet(PacketType.GET, asked)
        answer = self._receive_packet(self._timeout_s + (timeout_s or 0))
        if answer.type != PacketType.MESSAGES:
            self._raise_refusal(answer)
        return parse_message(answer.body)

    def ack(self, batch_id: int) -> None:
        """Ack a batch; the server does not answer."""
        if batch_id != NOTHING:
            self._send_packet(PacketType.CLIENTACK, messages.ClientAck(batch_id=batch_id, **self._client_fields))

    def rollback(self, batch_id: int = 0) -> None:
        """Roll back a batch, or with 0 all outstanding batches: they are redelivered."""
        self._send_packet(PacketType.CLIENTROLLBACK, messages.ClientRollback(batch_id=batch_id, **self._client_fields))

    # -- packets

    @property
    def _client_fields(self) -> dict[str, str]:
        """Return the fields that name the destination and the client in each request."""
        return {"destination": self.destination, "client_id": str(self.client_id)}

    def _send_packet(self, kind: PacketType, body: Any) -> None:
        """Send a packet."""
        raw = messages.Packet(version=1, type=int(kind), body=body.SerializeToString()).SerializeToString()
        try:
            self._require_connection.settimeout(self._timeout_s)
            self._require_connection.sendall(_LENGTH.pack(len(raw)) + raw)
        except OSError as error:
            self.disconnect()
            raise ServerUnavailableError(f"{self.address} has gone: {error}") from None

    def _receive_packet(self, timeout_s: float) -> "CanalPacket":
        """Return the next packet, which is valid until the next call."""
        connection = self._require_connection
        try:
            connection.settimeout(timeout_s)
            (size,) = _LENGTH.unpack(self._read_exactly(connection, _LENGTH.size))
            return CanalPacket.parse(self._read_exactly(connection, size))
        except OSError as error:
            self.disconnect()
            raise ServerUnavailableError(f"{self.address} has gone: {error}") from None
        except BaseException:
            self.disconnect()
            raise

    def _read_exactly(self, connection: socket.socket, size: int) -> memoryview:
        """Read `size` bytes into a reused buffer; fresh memory would take longer to get than to fill."""
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
    def _require_connection(self) -> socket.socket:
        """Return the socket, or raise if there is no connection."""
        if self._socket is None:
            raise ServerUnavailableError(f"not connected to {self.address}: connect() first")
        return self._socket

    def _expect_ok(self, cls: type[Exception] = ProtocolError) -> None:
        """Receive an answer, and raise if it is not a success."""
        answer = self._receive_packet(self._timeout_s)
        if answer.type != PacketType.ACK or messages.Ack.FromString(bytes(answer.body)).error_code:
            self._raise_refusal(answer, cls)

    def _raise_refusal(self, answer: "CanalPacket", cls: type[Exception] = ProtocolError) -> None:
        """Raise the error that an answer describes."""
        self.disconnect()
        if answer.type == PacketType.ACK:
            told = messages.Ack.FromString(bytes(answer.body))
            if told.error_code == _TRY_AGAIN:
                raise StartingError(f"{self.address}: {told.error_message}")
            raise cls(f"{self.address}: {told.error_message} ({told.error_code})")
        raise cls(f"{self.address} answered with a packet of type {answer.type}")
