"""Peers that do all wrong at canal's port: it answers in one line or closes, stays small, and serves the others."""

import contextlib
import os
import random
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.canal import messages, packet, scramble
from penstock.canal.packet import PacketType
from penstock.client.canal import CanalConnector
from penstock.errors import AuthenticationError
from penstock.server.canal import CanalListener
from penstock.server.canal.session import CanalAccess
from penstock.testing import DatabaseServer
from tests.support.canal_port import changes, connected, listening
from tests.support.capture import execute, poll
from tests.support.stalls import unsent_bytes, wait_until_stalled

FRAMES = int(os.environ.get("HOSTILE_FRAMES", "10000"))
PER_CONNECTION = 25
_WORDS = ("Traceback", 'File "', ".py", "Error(")


@pytest.fixture
def schema(mariadb: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    name = database(mariadb)
    execute(mariadb, f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    return name


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


class Neighbour:
    """A client that behaves, while others do not."""

    def __init__(self, port: CanalListener, server: DatabaseServer, schema: str) -> None:
        self._server, self._schema = server, schema
        self._connector = CanalConnector("127.0.0.1", port.port, "default", client_id=7)
        self._connector.connect()
        self._connector.subscribe(f"{schema}\\.t")
        self._written = 0
        self.longest_s = 0.0

    def check(self) -> None:
        """A row comes through, soon."""
        begin = time.monotonic()
        execute(self._server, f"INSERT INTO {self._schema}.t VALUES ({self._written})")
        rows = list[Any]()
        while not rows and time.monotonic() < begin + 30:
            message = self._connector.get_without_ack(100, timeout_s=10)
            rows = [values for _, _, values in changes(message)]
            self._connector.ack(message.id)
        assert rows == [[{"id": str(self._written)}]]
        self._written += 1
        self.longest_s = max(self.longest_s, time.monotonic() - begin)

    def close(self) -> None:
        self._connector.disconnect()


def good_frames() -> list[bytes]:
    names = {"destination": "default", "client_id": "1001"}
    frames: list[tuple[PacketType, Any]] = [
        (PacketType.CLIENTAUTHENTICATION, messages.ClientAuth(username="u", password=b"0" * 40)),
        (PacketType.SUBSCRIPTION, messages.Sub(filter=".*\\..*", **names)),
        (PacketType.GET, messages.Get(fetch_size=10, timeout=1, unit=2, **names)),
        (PacketType.CLIENTACK, messages.ClientAck(batch_id=3, **names)),
        (PacketType.CLIENTROLLBACK, messages.ClientRollback(**names)),
        (PacketType.UNSUBSCRIPTION, messages.Unsub(**names)),
        (PacketType.HEARTBEAT, messages.Ack()),
    ]
    return [packet.build_frame(kind, body.SerializeToString()) for kind, body in frames]


def mutated(source: random.Random, frames: list[bytes]) -> bytes:
    match source.randrange(6):
        case 0:
            return source.randbytes(source.randrange(1, 200))
        case 1:
            return struct.pack(">I", source.choice((0, 1, 5, 1 << 24, 1 << 31, (1 << 32) - 1))) + source.randbytes(20)
        case 2:
            body = source.randbytes(source.randrange(300))
            return struct.pack(">I", len(body)) + body
        case 3:
            frame = bytearray(source.choice(frames))
            for _ in range(source.randrange(1, 5)):
                frame[source.randrange(len(frame))] = source.randrange(256)
            return bytes(frame)
        case 4:
            frame = source.choice(frames)
            return frame[: source.randrange(len(frame))]
        case _:
            return source.choice(frames)


@pytest.mark.timeout(400)
def test_random_and_mutated_frames(mariadb: DatabaseServer, schema: str) -> None:
    seed = random.randrange(1 << 32)
    source, frames, sent = random.Random(seed), good_frames(), 0
    with listening(mariadb) as port:
        neighbour = Neighbour(port, mariadb, schema)
        neighbour.check()
        before, answers = resident_mib(), b""
        while sent < FRAMES:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port.port), timeout=5) as peer:
                if source.random() < 0.7:  # logged in
                    peer.sendall(packet.build_frame(PacketType.CLIENTAUTHENTICATION, b""))
                for _ in range(PER_CONNECTION):
                    sent += 1
                    peer.sendall(mutated(source, frames))
                peer.shutdown(socket.SHUT_WR)
                peer.settimeout(0.5)
                while piece := peer.recv(1 << 16):
                    answers = (answers + piece)[-100_000:]
            if sent % 1000 < PER_CONNECTION:
                neighbour.check()
        assert poll(lambda: port.open_connections == 1, 30), f"seed {seed}"
        neighbour.check()
        neighbour.close()
        assert not any(word.encode() in answers for word in _WORDS), f"seed {seed}"
        assert resident_mib() - before < 60, f"seed {seed}"
        assert neighbour.longest_s < 5


@pytest.mark.timeout(300)
def test_idle_and_slow_connections(mariadb: DatabaseServer, schema: str) -> None:
    with listening(mariadb) as port:
        neighbour = Neighbour(port, mariadb, schema)
        neighbour.check()
        before = resident_mib()
        peers = [socket.create_connection(("127.0.0.1", port.port)) for _ in range(500)]
        try:
            for number, peer in enumerate(peers):
                if number % 2:
                    peer.sendall(packet.build_frame(PacketType.CLIENTAUTHENTICATION, b""))
                if number % 5 == 0:
                    peer.sendall(b"\x00\x00\x10\x00half of")
            assert poll(lambda: port.open_connections == 501)
            for _ in range(10):
                neighbour.check()
            assert resident_mib() - before < 100
            # Those that did not say who they are, and those that stopped inside of a packet, are closed after a while.
            assert poll(lambda: port.open_connections < 300, 40)
            neighbour.check()
        finally:
            for peer in peers:
                peer.close()
        assert poll(lambda: port.open_connections == 1, 30)
        neighbour.close()


def test_there_are_no_more_connections_than_allowed(mariadb: DatabaseServer) -> None:
    with listening(mariadb, connections=5) as port:
        peers = [socket.create_connection(("127.0.0.1", port.port)) for _ in range(5)]
        assert poll(lambda: port.open_connections == 5)
        with socket.create_connection(("127.0.0.1", port.port), timeout=5) as peer:
            assert b"has 5 connections" in peer.recv(1000)
        for peer in peers:
            peer.close()
        assert poll(lambda: port.open_connections == 0)


def test_a_client_that_does_not_read_holds_up_nobody(mariadb: DatabaseServer, schema: str) -> None:
    execute(mariadb, f"CREATE TABLE {schema}.big (id INT PRIMARY KEY, v TEXT)")
    with listening(mariadb, handshake_s=2) as port, connected(port, f"{schema}\\.big", client_id=8) as lazy:
        execute(mariadb, f"USE {schema}", "INSERT INTO big SELECT seq, REPEAT('x', 10000) FROM seq_1_to_2000")
        neighbour = Neighbour(port, mariadb, schema)
        names = {"destination": "default", "client_id": "8"}
        for _ in range(3):
            lazy._send_packet(PacketType.GET, messages.Get(fetch_size=20_000, timeout=5000, unit=2, **names))
        assert lazy._socket is not None
        own_port = lazy._socket.getsockname()[1]
        assert wait_until_stalled(lambda: unsent_bytes(port.port, own_port) or None)
        for _ in range(5):
            neighbour.check()
        assert neighbour.longest_s < 2
        assert unsent_bytes(port.port, own_port) > 0, "it was stalled all the time"
        neighbour.close()


def test_wrong_passwords(mariadb: DatabaseServer) -> None:
    """Nobody is let in, a connection has three attempts, and who knows the password is not kept waiting."""
    with listening(mariadb, CanalAccess("canal", scramble.hash_for_storage("secret"))) as port:

        def guess() -> None:
            for number in range(50):
                with pytest.raises(AuthenticationError):
                    CanalConnector("127.0.0.1", port.port, "default", user="canal", password=str(number)).connect()

        threads = [threading.Thread(target=guess) for _ in range(4)]
        for thread in threads:
            thread.start()
        with connected(port, user="canal", password="secret") as connector:
            for _ in range(50):
                connector.get_without_ack(1)
        for thread in threads:
            thread.join(60)
        with socket.create_connection(("127.0.0.1", port.port), timeout=5) as peer:
            for _ in range(4):
                with contextlib.suppress(OSError):
                    peer.sendall(packet.build_frame(PacketType.CLIENTAUTHENTICATION, b"\x0a\x05canal"))
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := peer.recv(1000):
                    answer += piece
            assert answer.count(b"auth failed") <= 3
