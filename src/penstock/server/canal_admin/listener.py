"""The port of canal's console."""

import socket

from penstock.canal import packet, protobuf
from penstock.canal.packet import Wire
from penstock.config import CanalAdminSettings
from penstock.server.canal.session import Access
from penstock.server.canal_admin.calls import GENERAL, Calls
from penstock.server.canal_admin.session import BODY, AdminSession, AdminType
from penstock.server.port import Port

_CONNECTIONS = 32
_FRAME_BYTES = 64 << 10
_LOGIN_S = 10.0
_IDLE_S = 300.0


class CanalAdminListener(Port):
    """Binds when constructed."""

    def __init__(
        self,
        settings: CanalAdminSettings,
        port: int,
        calls: Calls,
        *,
        connections: int = _CONNECTIONS,
        login_s: float = _LOGIN_S,
    ) -> None:
        super().__init__("canal-admin", settings.host, port, connections=connections)
        stored = settings.stored_hash
        self._access, self._calls, self._login_s = Access(settings.user, stored.hex() if stored else ""), calls, login_s

    def _talk(self, connection: socket.socket) -> None:
        AdminSession(Wire(connection, _FRAME_BYTES, self._login_s), self._calls, self._access, _IDLE_S).run()

    def _refusal(self) -> bytes:
        body = protobuf.number(1, GENERAL) + protobuf.text(2, "there are too many connections: try again later")
        return packet.frame(AdminType.ACK, body, BODY)
