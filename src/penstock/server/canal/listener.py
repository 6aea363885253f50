"""The TCP port of canal's clients."""

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
    """Accepts connections of canal clients. It binds when constructed."""

    def __init__(
        self,
        host: str,
        port: int,
        get_instance: Callable[[str], Served],
        *,
        access: CanalAccess | None = None,
        frame_limit: int = 16 << 20,
        idle_s: float = 3600,
        handshake_s: float = 10,
        connections: int = 1000,
        start_wait_s: float = 0,
    ) -> None:
        super().__init__("canal", host, port, connections=connections)
        self.clients = CanalClients(get_instance, start_wait_s)
        self.traffic = Traffic()
        self._access, self._limit, self._idle_s = access or CanalAccess(), frame_limit, idle_s
        self._handshake_s = handshake_s

    def _handle_connection(self, connection: socket.socket) -> None:
        """Serve one canal client until it leaves."""
        wire = FrameSocket(connection, self._limit, self._handshake_s)
        address = peer_address(connection)
        CanalSession(wire, self.clients, self._access, self._idle_s, self.traffic, address=address).run()

    def _limit_reply(self) -> bytes:
        """Return canal's error packet for a connection beyond the limit."""
        return build_ack_frame(GENERAL, f"the server has {self._max_connections} connections: try again later")
