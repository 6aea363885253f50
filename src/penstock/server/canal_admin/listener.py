"""The TCP port of canal's admin protocol, which canal-admin connects to."""

import socket

from penstock.canal import packet
from penstock.canal.packet import FrameSocket
from penstock.canal.structures import AckReply
from penstock.config import CanalAdminSettings
from penstock.server.canal.refusal import GENERAL
from penstock.server.canal.session import CanalAccess
from penstock.server.canal_admin.calls import CanalAdminCalls
from penstock.server.canal_admin.session import PACKET, AdminPacketType, CanalAdminSession
from penstock.server.port import Port

_CONNECTIONS = 32
_FRAME_BYTES = 64 << 10
_LOGIN_S = 10.0
_IDLE_S = 300.0


class CanalAdminListener(Port):
    """Accepts connections of canal-admin. It binds when constructed."""

    def __init__(
        self,
        settings: CanalAdminSettings,
        port: int,
        calls: CanalAdminCalls,
        *,
        connections: int = _CONNECTIONS,
        login_s: float = _LOGIN_S,
    ) -> None:
        super().__init__("canal-admin", settings.host, port, connections=connections)
        stored = settings.stored_hash
        self._access, self._calls, self._login_s = (
            CanalAccess(settings.user, stored.hex() if stored else ""),
            calls,
            login_s,
        )

    def _handle_connection(self, connection: socket.socket) -> None:
        """Serve one connection of canal-admin until it closes."""
        CanalAdminSession(
            FrameSocket(connection, _FRAME_BYTES, self._login_s), self._calls, self._access, _IDLE_S
        ).run()

    def _limit_reply(self) -> bytes:
        """Return canal's error packet for a connection beyond the limit."""
        reply = AckReply(GENERAL, "there are too many connections: try again later")
        return packet.build_frame(AdminPacketType.ACK, reply.encode(), PACKET)
