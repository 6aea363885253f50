"""One connection of canal-admin. Nothing is answered before the login has succeeded.

canal's own port says OK after a failed login, too, and then answers everything.
"""

import logging
import os
from collections.abc import Callable, Mapping
from enum import IntEnum

from penstock.canal import packet, scramble
from penstock.canal.packet import FrameSocket, Packet
from penstock.canal.structures import (
    AckReply,
    ClientAuthRequest,
    HandshakeReply,
    InstanceAdminRequest,
    LogAdminRequest,
    ServerAdminRequest,
)
from penstock.errors import PenstockError, ProtocolError
from penstock.server.canal.refusal import GENERAL, UNSUPPORTED, CanalRefusedError, describe_error
from penstock.server.canal.session import CanalAccess
from penstock.server.canal_admin.calls import CanalAdminCalls

log = logging.getLogger(__name__)

PACKET = "AdminPacket"  # in schema.py
_MAX_LOGIN_ATTEMPTS = 3


class AdminPacketType(IntEnum):
    """The types of packets on the port of canal-admin."""

    HANDSHAKE = 1
    CLIENTAUTHENTICATION = 2
    ACK = 3
    SERVER = 4
    INSTANCE = 5
    LOG = 6


class CanalAdminSession:
    """The conversation with canal-admin over one connection."""

    def __init__(self, wire: FrameSocket, calls: CanalAdminCalls, access: CanalAccess, idle_s: float) -> None:
        self._wire, self._access, self._idle_s = wire, access, idle_s
        self._calls: Mapping[int, Callable[[bytes], str]] = {
            AdminPacketType.SERVER: lambda body: calls.run_server_action(ServerAdminRequest.decode(body)),
            AdminPacketType.INSTANCE: lambda body: calls.run_instance_action(InstanceAdminRequest.decode(body)),
            AdminPacketType.LOG: lambda body: calls.read_log(LogAdminRequest.decode(body)),
        }

    def run(self) -> None:
        """Answer requests until canal-admin disconnects."""
        try:
            if self._log_in():
                while (raw := self._wire.receive()) is not None:
                    self._send(*self._handle_request(Packet.parse(raw, PACKET)))
        except ProtocolError as error:
            self._send(GENERAL, describe_error(error))

    def _log_in(self) -> bool:
        """Do the handshake and the login; return whether canal-admin may send requests."""
        seed = os.urandom(scramble.SEED_BYTES)
        self._wire.send(packet.build_frame(AdminPacketType.HANDSHAKE, HandshakeReply(seed).encode(), PACKET))
        for _ in range(_MAX_LOGIN_ATTEMPTS):
            raw = self._wire.receive()
            if raw is None:
                return False
            request = Packet.parse(raw, PACKET)
            if request.type != AdminPacketType.CLIENTAUTHENTICATION:
                self._send(UNSUPPORTED, "log in first")
                continue
            login = ClientAuthRequest.decode(request.body)
            if self._access.stored and self._access.is_allowed(login.username, login.password, seed):
                self._wire.idle_s = self._wire.write_s = self._idle_s
                self._send(0, "")
                return True
            log.warning("login at canal's admin port refused user=%r", login.username[:64])
            self._send(GENERAL, "auth failed: wrong user or password")
        return False

    def _handle_request(self, request: Packet) -> tuple[int, str]:
        """Run the call that a packet asks for; return canal's code and the text to answer."""
        call = self._calls.get(request.type)
        if call is None:
            return UNSUPPORTED, f"packet type={request.type} is NOT supported!"
        try:
            return 0, call(request.body)
        except CanalRefusedError as error:
            return error.code, error.message
        except ProtocolError:
            raise
        except PenstockError as error:
            return GENERAL, describe_error(error)
        except Exception:
            log.exception("request from canal-admin failed request_type=%s", request.type)
            return GENERAL, "an error inside of the server: its log says more"

    def _send(self, code: int, message: str) -> None:
        """Send canal's ack packet with a code and a text."""
        self._wire.send(packet.build_frame(AdminPacketType.ACK, AckReply(code, message).encode(), PACKET))
