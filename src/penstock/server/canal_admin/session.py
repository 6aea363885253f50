"""One connection of canal's console. Nothing is answered before the password is proved.

    Packet   version (2) | type (3) | body (4)          the client port has its body in field 5
    types    1 HANDSHAKE, 2 CLIENTAUTHENTICATION, 3 ACK, 4 SERVER, 5 INSTANCE, 6 LOG

canal's own port says OK after a failed login, too, and then answers everything.
"""

import logging
import os
from collections.abc import Callable, Mapping
from enum import IntEnum

from penstock.canal import packet, protobuf, scramble
from penstock.canal.packet import Fields, Packet, Wire
from penstock.errors import PenstockError, ProtocolError
from penstock.server.canal.session import Access
from penstock.server.canal_admin.calls import GENERAL, UNSUPPORTED, Calls, RefusedError

log = logging.getLogger(__name__)

BODY = 4
_MOST_ATTEMPTS = 3
_LONGEST_TEXT = 500


class AdminType(IntEnum):
    HANDSHAKE = 1
    CLIENTAUTHENTICATION = 2
    ACK = 3
    SERVER = 4
    INSTANCE = 5
    LOG = 6


class AdminSession:
    def __init__(self, wire: Wire, calls: Calls, access: Access, idle_s: float) -> None:
        self._wire, self._access, self._idle_s = wire, access, idle_s
        self._calls: Mapping[int, Callable[[Fields], str]] = {
            AdminType.SERVER: calls.server,
            AdminType.INSTANCE: calls.instance,
            AdminType.LOG: calls.log,
        }

    def run(self) -> None:
        try:
            if self._log_in():
                while (raw := self._wire.receive()) is not None:
                    self._send(*self._answer(Packet.parse(raw, BODY)))
        except ProtocolError as error:
            self._send(GENERAL, _short(error))

    def _log_in(self) -> bool:
        seed = os.urandom(scramble.SEED_BYTES)
        self._wire.send(packet.frame(AdminType.HANDSHAKE, protobuf.text(2, seed), BODY))
        for _ in range(_MOST_ATTEMPTS):
            raw = self._wire.receive()
            if raw is None:
                return False
            asked = Packet.parse(raw, BODY)
            if asked.type != AdminType.CLIENTAUTHENTICATION:
                self._send(UNSUPPORTED, "log in first")
                continue
            fields = Fields(asked.body)
            user = fields.text(1)
            if self._access.stored and self._access.admits(user, fields.raw(2), seed):
                self._wire.idle_s = self._wire.write_s = self._idle_s
                self._send(0, "")
                return True
            log.warning("console refused user=%r", user[:64])
            self._send(GENERAL, "auth failed: wrong user or password")
        return False

    def _answer(self, asked: Packet) -> tuple[int, str]:
        call = self._calls.get(asked.type)
        if call is None:
            return UNSUPPORTED, f"packet type={asked.type} is NOT supported!"
        try:
            return 0, call(Fields(asked.body))
        except RefusedError as error:
            return error.code, error.message[:_LONGEST_TEXT]
        except ProtocolError:
            raise
        except PenstockError as error:
            return GENERAL, _short(error)
        except Exception:
            log.exception("call failed type=%s", asked.type)
            return GENERAL, "an error inside of the server: its log says more"

    def _send(self, code: int, message: str) -> None:
        body = protobuf.number(1, code) + protobuf.text(2, message)
        self._wire.send(packet.frame(AdminType.ACK, body, BODY))


def _short(error: PenstockError) -> str:
    return " ".join(str(error).split())[:_LONGEST_TEXT]
