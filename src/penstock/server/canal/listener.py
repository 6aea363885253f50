"""The port of canal's clients."""

import socket
from collections.abc import Callable

from penstock.canal.packet import FrameSocket
from penstock.canal.structures import build_ack_frame
from penstock.server.canal.clients import CanalClients
from penstock.server.canal.refusal import GENERAL
from penstock.server.canal.session import CanalAccess, CanalSession
from penstock.server.canal.traffic import Traffic
from penstock.server.canal.view import Served
from penstock.server.port import Port, peer_address


class CanalListener(Port):
    """Binds when constructed."""

    def __init__(
        self,
        host: str,
        port: int,
        instance_of: Callable[[str], Served],
        *,
        access: CanalAccess | None = None,
        frame_limit: int = 16 << 20,
        idle_s: float = 3600,
        handshake_s: float = 10,
        connections: int = 1000,
        start_wait_s: float = 0,
    ) -> None:
        super().__init__("canal", host, port, connections=connections)
        self.clients = CanalClients(instance_of, start_wait_s)
        self.traffic = Traffic()
        self._access, self._limit, self._idle_s = access or CanalAccess(), frame_limit, idle_s
        self._handshake_s = handshake_s

    def _talk(self, connection: socket.socket) -> None:
        wire = FrameSocket(connection, self._limit, self._handshake_s)
        address = peer_address(connection)
        CanalSession(wire, self.clients, self._access, self._idle_s, self.traffic, address=address).run()

    def _refusal(self) -> bytes:
        return build_ack_frame(GENERAL, f"the server has {self._most} connections: try again later")
