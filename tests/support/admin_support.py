"""A server over a folder of log files, and how its admin ports are asked."""

import http.client
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from penstock.canal import packet, protobuf, scramble
from penstock.canal.packet import Packet, ProtobufFields
from penstock.config import ServerSettings
from penstock.server import Server
from tests.support.shop_log import PRODUCT, written
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

CLOSED = {"port": None}
_SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)')
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')


def shop_folder(folder: Path, rows: int = 6) -> Path:
    log = LogWriter().open()
    for number in range(rows):
        log.begin()
        log.map(7, PRODUCT)
        log.rows(INSERT, 7, PRODUCT, [[number, "x", None]])
        log.commit()
    folder.mkdir(exist_ok=True)
    written(log, folder)
    return folder


def settings_with(folder: Path, instance: dict[str, Any] | None = None, **sections: Any) -> ServerSettings:
    defaults = {"destination": "shop", "source": {"path": str(folder), "poll_s": 0.05}, "start": "earliest"}
    given = {"flight": {"port": 0}, "canal": CLOSED, "admin": {"port": 0}, "instances": [defaults | (instance or {})]}
    return ServerSettings.model_validate(given | sections)


@contextmanager
def served(settings: ServerSettings, *arguments: Any) -> Iterator[Server]:
    server = Server(settings, *arguments)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def asked(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    assert server.admin is not None
    connection = http.client.HTTPConnection("127.0.0.1", server.admin.port, timeout=20)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def status_of(server: Server) -> dict[str, Any]:
    code, text = asked(server, "/status")
    assert code == 200
    return json.loads(text)


def readiness_of(server: Server) -> tuple[int, dict[str, Any]]:
    code, text = asked(server, "/readyz")
    return code, json.loads(text)


Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parse_metrics(text: str) -> Samples:
    """Strictly: every family is said once, with help and type, before its samples, and every sample comes once."""
    assert text.endswith("\n")
    metrics: Samples = {}
    kinds: dict[str, str] = {}
    family, has_help = "", ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            has_help = line.split(" ", 3)[2]
            assert has_help not in kinds
        elif line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert family == has_help
            assert kind in {"counter", "gauge", "histogram"}
            kinds[family] = kind
        else:
            match = _SAMPLE.fullmatch(line)
            assert match, line
            name, labels, value = match.groups()
            endings = ("_bucket", "_sum", "_count") if kinds[family] == "histogram" else ("",)
            assert name in {family + ending for ending in endings}, line
            pairs = tuple(sorted(_LABEL.findall(labels or "")))
            assert len({key for key, _ in pairs}) == len(pairs)
            assert (name, pairs) not in metrics, line
            metrics[name, pairs] = float(value)
    return metrics


def sample(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


class Console:
    """canal-admin: packets as it sends them."""

    def __init__(
        self,
        port: int,
        user: str = "admin",
        password: str = "secret",  # noqa: S107 - of tests
        *,
        login: bool = True,
    ) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        handshake = self._receive()
        assert handshake.type == 1
        self.seed = ProtobufFields(handshake.body).get_bytes(2)
        self.login = self.send(2, self.proof(user, password)) if login else None

    def proof(self, user: str, password: str) -> bytes:
        return protobuf.encode_text(1, user) + protobuf.encode_text(2, scramble.scramble_password(password, self.seed))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, kind: int, body: bytes) -> tuple[int, str]:
        self._socket.sendall(packet.build_frame(kind, body, "AdminPacket"))
        answer = self._receive()
        assert answer.type == 3
        fields = ProtobufFields(answer.body)
        return fields.get_number(1), fields.get_text(2)

    def server(self, action: str) -> tuple[int, str]:
        return self.send(4, protobuf.encode_text(1, action))

    def instance(self, action: str, destination: str = "shop") -> tuple[int, str]:
        return self.send(5, protobuf.encode_text(1, destination) + protobuf.encode_text(2, action))

    def log(self, kind: str, action: str, destination: str = "", file: str = "", count: int = 0) -> tuple[int, str]:
        names = protobuf.encode_text(1, kind) + protobuf.encode_text(2, action) + protobuf.encode_text(3, destination)
        return self.send(6, names + protobuf.encode_text(4, file) + protobuf.encode_number(5, count))

    def _receive(self) -> Packet:
        size = int.from_bytes(self._exactly(4), "big")
        return Packet.parse(self._exactly(size), "AdminPacket")

    def _exactly(self, size: int) -> bytes:
        raw = b""
        while len(raw) < size:
            piece = self._socket.recv(size - len(raw))
            if not piece:
                raise ConnectionError("the server has closed")
            raw += piece
        return raw
