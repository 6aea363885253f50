"""One connection of a canal client: for each packet an answer.

As in canal, an ack or a rollback that succeeds is not answered. An error is one line.
"""

import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from penstock.canal import packet, scramble
from penstock.canal.packet import FrameSocket, Packet, PacketType
from penstock.canal.structures import (
    ClientAckRequest,
    ClientAuthRequest,
    ClientRollbackRequest,
    GetRequest,
    HandshakeReply,
    SubRequest,
    UnsubRequest,
    build_ack_frame,
)
from penstock.errors import PenstockError, ProtocolError, StartingError
from penstock.server.canal.clients import CanalClients
from penstock.server.canal.refusal import GENERAL, MISSING, NO_BATCH, TRY_AGAIN, CanalRefusedError, describe_error
from penstock.server.canal.traffic import Traffic

log = logging.getLogger(__name__)

_UNITS_S = {0: 1e-9, 1: 1e-6, 2: 1e-3, 3: 1.0, 4: 60.0, 5: 3600.0, 6: 86400.0}
_OTHER_UNIT_S = 1e-3
_MOST_ATTEMPTS = 3  # to log in

_Request = SubRequest | UnsubRequest | GetRequest | ClientAckRequest | ClientRollbackRequest


@dataclass(frozen=True, slots=True)
class CanalAccess:
    """Which clients may connect: all, if there is no password."""

    user: str = ""
    stored: str = ""  # the password in canal's form

    def admits(self, user: str, token: bytes, seed: bytes) -> bool:
        return (not self.user or user == self.user) and scramble.is_valid_token(token, seed, self.stored)


class CanalSession:
    """The conversation with one client, in the thread of its connection."""

    def __init__(
        self,
        wire: FrameSocket,
        clients: CanalClients,
        access: CanalAccess,
        idle_s: float,
        traffic: Traffic | None = None,
        *,
        address: str = "",
    ) -> None:
        """`address` is where the client is."""
        self._connected = clients.connected(address)
        self._wire, self._clients, self._access, self._idle_s = wire, clients, access, idle_s
        self._traffic = traffic or Traffic()
        self._calls: Mapping[int, tuple[type[_Request], Callable[[Any], bytes | None]]] = {
            PacketType.SUBSCRIPTION: (SubRequest, self._subscribe),
            PacketType.UNSUBSCRIPTION: (UnsubRequest, self._unsubscribe),
            PacketType.GET: (GetRequest, self._get),
            PacketType.CLIENTACK: (ClientAckRequest, self._ack),
            PacketType.CLIENTROLLBACK: (ClientRollbackRequest, self._rollback),
        }

    def run(self) -> None:
        """RenderedBatch requests until the client leaves, or sends what is not a request."""
        try:
            if self._log_in():
                while (raw := self._wire.receive()) is not None:
                    self._answer(raw)
        except ProtocolError as error:
            self._wire.send(build_ack_frame(GENERAL, describe_error(error)))
        finally:
            self._connected.close()

    # -- logging in

    def _log_in(self) -> bool:
        seed = os.urandom(scramble.SEED_BYTES)
        self._wire.send(packet.build_frame(PacketType.HANDSHAKE, HandshakeReply(seed).encode()))
        for _ in range(_MOST_ATTEMPTS):
            raw = self._wire.receive()
            if raw is None:
                return False
            asked = Packet.parse(raw)
            if asked.type != PacketType.CLIENTAUTHENTICATION:
                self._wire.send(build_ack_frame(GENERAL, f"{_name(asked.type)} before the client has logged in"))
                continue
            login = ClientAuthRequest.decode(asked.body)
            if not self._access.admits(login.username, login.password, seed):
                log.warning("canal login refused user=%r", login.username[:64])
                self._wire.send(build_ack_frame(GENERAL, "auth failed: wrong user or password"))
                continue
            self._wire.idle_s = _seconds(login.net_read_timeout, self._idle_s)
            self._wire.write_s = _seconds(login.net_write_timeout, self._idle_s)
            try:
                if login.destination and login.client_id:
                    self._subscribe(SubRequest(login.destination, login.client_id, login.filter))
            except PenstockError as error:
                self._wire.send(build_ack_frame(_code(error), describe_error(error)))
                continue
            self._wire.send(build_ack_frame())
            return True
        return False

    # -- calls

    def _answer(self, raw: bytes) -> None:
        asked = Packet.parse(raw)
        known, kind = self._calls.get(asked.type), _name(asked.type)
        if known is None:
            self._refuse("", kind, GENERAL, f"packet type {kind} is NOT supported!")
            return
        structure, call = known
        request = structure.decode(asked.body)
        destination, begin = request.destination, time.monotonic()
        try:
            answer = call(request)
        except CanalRefusedError as error:
            self._refuse(destination, kind, error.code, error.message)
        except ProtocolError:
            raise
        except PenstockError as error:
            self._refuse(destination, kind, _code(error), describe_error(error))
        except OSError:
            raise
        except Exception:
            log.exception("canal request failed destination=%s packet_type=%s", destination, kind)
            self._refuse(destination, kind, GENERAL, "an error inside of the server: its log says more")
        else:
            self._traffic.count_answer(destination, kind, time.monotonic() - begin)
            if answer:
                self._wire.send(answer)

    def _refuse(self, destination: str, kind: str, code: int, message: str) -> None:
        self._traffic.count_refusal(destination, kind, code)
        self._wire.send(build_ack_frame(code, message))

    def _await_start(self, destination: str) -> None:
        self._clients.await_start(destination, lambda: self._wire.is_closed_by_peer)

    def _subscribe(self, request: SubRequest) -> bytes:
        destination, client_id = _check_client(request)
        self._await_start(destination)
        self._clients.subscribe(destination, client_id, request.filter)
        self._traffic.knows(destination)
        self._connected.note(destination, client_id)
        return build_ack_frame()

    def _unsubscribe(self, request: UnsubRequest) -> bytes:
        destination, client_id = _check_client(request)
        self._await_start(destination)
        self._clients.unsubscribe(destination, client_id)
        self._connected.forget(destination, client_id)
        return build_ack_frame()

    def _get(self, request: GetRequest) -> None:
        destination, client_id = _check_client(request)
        self._await_start(destination)
        self._connected.note(destination, client_id)
        timeout = request.timeout
        seconds = timeout * _UNITS_S.get(request.unit, _OTHER_UNIT_S)
        answer = self._clients.get(
            destination,
            client_id,
            request.fetch_size,
            0 if timeout < 0 else seconds or None,
            at_once=request.at_once,
            is_gone=lambda: self._wire.is_closed_by_peer,
        )
        self._traffic.count_sent(destination, answer.size_bytes, is_empty=not answer.pieces)
        self._wire.send(
            packet.build_messages_head(answer.batch_id, answer.size_bytes), *(piece.data for piece in answer.pieces)
        )
        if answer.is_large:
            with suppress(PenstockError):  # the next get meets it
                self._clients.prepare(destination, client_id, request.fetch_size)

    def _ack(self, request: ClientAckRequest) -> None:
        destination, client_id = _check_client(request)
        batch_id = request.batch_id
        if not batch_id:
            raise CanalRefusedError(NO_BATCH, "batchId should assign value")
        if batch_id > 0:
            self._clients.ack(destination, client_id, batch_id)

    def _rollback(self, request: ClientRollbackRequest) -> None:
        destination, client_id = _check_client(request)
        self._clients.rollback(destination, client_id, request.batch_id or None)


def _check_client(request: _Request) -> tuple[str, int]:
    """Return the destination and the client of a request; both must be given."""
    if not request.destination or not request.client_id:
        raise CanalRefusedError(MISSING, "destination or clientId is null")
    return request.destination, _client_id(request.client_id)


def _client_id(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 1 << 15:
        raise CanalRefusedError(GENERAL, f"clientId {text[:20]!r} is no number from 1 to 32767")
    return int(text)


def _seconds(milliseconds: int, most: float) -> float:
    return min(milliseconds / 1000, most) if milliseconds > 0 else most


def _name(kind: int) -> str:
    return PacketType(kind).name if kind in set(PacketType) else str(kind)


def _code(error: PenstockError) -> int:
    return TRY_AGAIN if isinstance(error, StartingError) else GENERAL
