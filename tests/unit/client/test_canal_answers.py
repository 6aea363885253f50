"""What canal's client makes of answers: batches as a server sends them, refusals, and bytes that are no answers."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.canal import messages, packet, protobuf, scramble
from penstock.canal.packet import Packet, PacketType
from penstock.canal.structures import (
    AckReply,
    ClientAuthRequest,
    GetRequest,
    HandshakeReply,
    SubRequest,
    build_ack_frame,
)
from penstock.canal.types import CanalEventType, EntryType
from penstock.client.canal import CanalConnector
from penstock.client.canal.message import NOTHING, CanalPacket, parse_message
from penstock.errors import AuthenticationError, PenstockError, ProtocolError, ServerUnavailableError, StartingError

SEED = b"12345678"
HANDSHAKE = packet.build_frame(PacketType.HANDSHAKE, HandshakeReply(SEED).encode())
OK = build_ack_frame()
CLOSE = b""


class Peer:
    """Listens, sends what it was given in turn, and keeps what it was asked."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.asked: list[Packet] = []
        self._answers: list[list[bytes]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def play(self, *answers: list[bytes]) -> None:
        """A list for each connection: what comes first, and the answer to each packet that expects one."""
        self._answers = list(answers)
        self._thread.start()

    def close(self) -> None:
        self._listener.close()
        self._thread.join(30)

    def _run(self) -> None:
        for answers in self._answers:
            with suppress(OSError), self._listener.accept()[0] as connection:
                self._serve(connection, list(answers))

    def _serve(self, connection: socket.socket, answers: list[bytes]) -> None:
        connection.sendall(answers.pop(0))
        frames = packet.FrameSocket(connection, 1 << 20, 30)
        while (raw := frames.receive()) is not None:
            self.asked.append(Packet.parse(raw))
            if self.asked[-1].type not in {PacketType.CLIENTACK, PacketType.CLIENTROLLBACK}:
                if not answers:
                    return
                connection.sendall(answers.pop(0))
                if answers[:1] == [CLOSE]:
                    return

    def bodies(self, kind: PacketType, cls: Any) -> list[Any]:
        return [cls.decode(packet.body) for packet in self.asked if packet.type == kind]


@contextmanager
def playing(*answers: list[bytes], **settings: Any) -> Iterator[tuple[CanalConnector, Peer]]:
    peer = Peer()
    peer.play(*answers)
    connector = CanalConnector("127.0.0.1", peer.port, "shop", timeout_s=30, **settings)
    try:
        yield connector, peer
    finally:
        connector.disconnect()
        peer.close()


def batch(batch_id: int, *entries: bytes) -> bytes:
    body = b"".join(protobuf.encode_message(2, entry) for entry in entries)
    return packet.build_messages_head(batch_id, len(body)) + body


def entry(kind: EntryType, value: bytes = b"") -> bytes:
    return messages.Entry(header=messages.Header(tableName="t"), entryType=kind, storeValue=value).SerializeToString()


# -- batches


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.lists(st.binary(max_size=200)))
def test_a_batch_is_what_the_library_wrote(batch_id: int, entries: list[bytes]) -> None:
    raw = messages.Messages(batch_id=batch_id, messages=entries).SerializeToString()
    message = parse_message(memoryview(raw))
    assert (message.id, message.raw, len(message)) == (batch_id or NOTHING, tuple(entries), len(entries))
    assert message.is_empty == (batch_id in {0, NOTHING})


@given(st.binary(max_size=60))
def test_bytes_of_any_kind_are_an_answer_or_refused(raw: bytes) -> None:
    with suppress(ProtocolError):
        parse_message(CanalPacket.parse(memoryview(raw)).body)


@pytest.mark.parametrize(
    "raw", [protobuf.encode_text(3, "x"), protobuf.encode_text(2, "x"), protobuf.encode_number_always(5, 7)]
)
def test_a_packet_whose_fields_are_of_another_kind_is_refused(raw: bytes) -> None:
    with pytest.raises(ProtocolError, match="is no packet of canal's"):
        CanalPacket.parse(memoryview(raw))


def test_changes_are_the_rows_of_a_batch_and_not_its_transactions() -> None:
    change = messages.RowChange(eventType=int(CanalEventType.INSERT)).SerializeToString()
    raw = batch(5, entry(EntryType.TRANSACTIONBEGIN), entry(EntryType.ROWDATA, change), entry(EntryType.TRANSACTIONEND))
    message = parse_message(CanalPacket.parse(memoryview(raw)[4:]).body)
    ((header, rows),) = message.row_changes()
    assert (header.tableName, rows.eventType, len(message.entries)) == ("t", CanalEventType.INSERT, 3)


# -- calls


def test_a_client_logs_in_subscribes_gets_and_acks() -> None:
    large = b"x" * (3 << 16)
    answers = [HANDSHAKE, OK, OK, batch(1, large), batch(2, b"small"), batch(-1), OK]
    with playing(answers, user="canal", password="secret", client_id=7) as (connector, peer):
        connector.connect()
        connector.subscribe("shop\\..*")
        first = connector.get_without_ack(100, timeout_s=0.25)
        second = connector.get(100)
        assert connector.get(100).is_empty
        assert (first.id, first.raw, second.id, second.raw) == (1, (large,), 2, (b"small",))
        connector.rollback(1)
        connector.unsubscribe()
    (auth,) = peer.bodies(PacketType.CLIENTAUTHENTICATION, ClientAuthRequest)
    assert auth.username == "canal"
    assert scramble.is_valid_token(auth.password, SEED, scramble.hash_for_storage("secret"))
    assert peer.bodies(PacketType.SUBSCRIPTION, SubRequest) == [SubRequest("shop", "7", "shop\\..*")]
    asked = peer.bodies(PacketType.GET, GetRequest)
    assert [(packet.fetch_size, packet.timeout, packet.unit) for packet in asked] == [
        (100, 250, 2),
        (100, -1, 2),
        (100, -1, 2),
    ]
    kinds = [PacketType(packet.type).name for packet in peer.asked]
    assert kinds == [
        "CLIENTAUTHENTICATION", "CLIENTROLLBACK", "SUBSCRIPTION", "GET", "GET", "CLIENTACK", "GET", "CLIENTROLLBACK",
        "UNSUBSCRIPTION",
    ]  # fmt: skip


def test_what_was_subscribed_is_subscribed_again_after_a_reconnect() -> None:
    with playing([HANDSHAKE, OK, OK], [HANDSHAKE, OK, OK]) as (connector, peer):
        connector.connect()
        connector.subscribe("a")
        connector.connect()
        assert connector.is_connected
    assert peer.bodies(PacketType.SUBSCRIPTION, SubRequest) == [SubRequest("shop", "1001", "a")] * 2


def test_who_does_not_roll_back_at_a_connect_does_not() -> None:
    with playing([HANDSHAKE, OK], rollback_on_connect=False) as (connector, peer):
        connector.connect()
    assert [packet.type for packet in peer.asked] == [PacketType.CLIENTAUTHENTICATION]


REFUSALS: list[tuple[list[bytes], type[PenstockError], str]] = [
    ([HANDSHAKE, build_ack_frame(400, "auth failed")], AuthenticationError, r"auth failed \(400\)"),
    ([HANDSHAKE, OK, build_ack_frame(402, "no filter")], ProtocolError, r"no filter \(402\)"),
    ([HANDSHAKE, OK, build_ack_frame(503, "'shop' is starting")], StartingError, "'shop' is starting"),
    ([HANDSHAKE, OK, batch(1)], ProtocolError, "answered with a packet of type 7"),
    ([HANDSHAKE, OK, OK, OK], ProtocolError, r"\(0\)"),
    ([OK], ProtocolError, "does not speak canal's protocol"),
    ([struct.pack(">i", -5)], ProtocolError, "announces a packet of -5 bytes"),
    ([struct.pack(">i", (1 << 30) + 1)], ProtocolError, "announces a packet of 1073741825 bytes"),
    ([struct.pack(">i", 3) + b"\x0b\x0b\x0b"], ProtocolError, "is no protobuf"),
    ([HANDSHAKE], ServerUnavailableError, "has gone"),
    ([HANDSHAKE, OK, OK[:3], CLOSE], ServerUnavailableError, "has gone"),
    ([HANDSHAKE, OK, OK, batch(1, b"x" * 100)[:-1], CLOSE], ServerUnavailableError, "has gone"),
]


@pytest.mark.parametrize(("answers", "error", "text"), REFUSALS)
def test_an_answer_that_is_a_refusal_or_none_ends_the_connection(
    answers: list[bytes], error: type[PenstockError], text: str
) -> None:
    with playing(answers) as (connector, peer):
        with pytest.raises(error, match=text) as told:
            _connect_and_get(connector)
        assert not connector.is_connected
        assert str(told.value).startswith(f"127.0.0.1:{peer.port}") or "protobuf" in str(told.value)
        with pytest.raises(ServerUnavailableError, match=r"connect\(\) first"):
            connector.get_without_ack(1)


def _connect_and_get(connector: CanalConnector) -> None:
    connector.connect()
    connector.subscribe("a")
    connector.get_without_ack(1, timeout_s=0.1)


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ServerUnavailableError, match=f"127.0.0.1:{port} cannot be reached"):
        CanalConnector("127.0.0.1", port).connect()


def test_an_error_has_its_code_in_the_answer_of_a_server() -> None:
    assert AckReply.decode(Packet.parse(build_ack_frame(400, "no")[4:]).body) == AckReply(400, "no")
