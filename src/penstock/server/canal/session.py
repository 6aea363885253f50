"""One connection of a canal client: each packet gets an answer.

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
_MAX_LOGIN_ATTEMPTS = 3  # to log in

_Request = SubRequest | UnsubRequest | GetRequest | ClientAckRequest | ClientRollbackRequest


@dataclass(frozen=True, slots=True)
class CanalAccess:
    """The login that canal's clients need: none, if no password is configured."""

    user: str = ""
    stored: str = ""  # the password in canal's form

    def is_allowed(self, user: str, token: bytes, seed: bytes) -> bool:
        """Return whether user and scrambled password are right."""
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
        """`address` is the client's network address, shown in the status."""
        self._connected = clients.open_connection(address)
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
        """Answer requests until the client leaves, or sends something that is not a request."""
        try:
            if self._log_in():
                while (raw := self._wire.receive()) is not None:
                    self._handle_request(raw)
        except ProtocolError as error:
            self._wire.send(build_ack_frame(GENERAL, describe_error(error)))
        finally:
            self._connected.close()

    # -- logging in

    def _log_in(self) -> bool:
        """Do the handshake and the login; return whether the client may send requests."""
        seed = os.urandom(scramble.SEED_BYTES)
        self._wire.send(packet.build_frame(PacketType.HANDSHAKE, HandshakeReply(seed).encode()))
        for _ in range(_MAX_LOGIN_ATTEMPTS):
            raw = self._wire.receive()
            if raw is None:
                return False
            request_packet = Packet.parse(raw)
            if request_packet.type != PacketType.CLIENTAUTHENTICATION:
                self._wire.send(
                    build_ack_frame(GENERAL, f"{_packet_name(request_packet.type)} before the client has logged in")
                )
                continue
            login = ClientAuthRequest.decode(request_packet.body)
            if not self._access.is_allowed(login.username, login.password, seed):
                log.warning(
                    "login of a canal client refused destination=%s user=%r",
                    login.destination[:64],
                    login.username[:64],
                )
                self._wire.send(build_ack_frame(GENERAL, "auth failed: wrong user or password"))
                continue
            self._wire.idle_s = _timeout_s(login.net_read_timeout, self._idle_s)
            self._wire.write_s = _timeout_s(login.net_write_timeout, self._idle_s)
            try:
                if login.destination and login.client_id:
                    self._subscribe(SubRequest(login.destination, login.client_id, login.filter))
            except PenstockError as error:
                self._wire.send(build_ack_frame(_error_code(error), describe_error(error)))
                continue
            self._wire.send(build_ack_frame())
            return True
        return False

    # -- calls

    def _handle_request(self, raw: bytes) -> None:
        """Run the call that a packet asks for, and send its answer or its error."""
        request_packet = Packet.parse(raw)
        known, kind = self._calls.get(request_packet.type), _packet_name(request_packet.type)
        if known is None:
            self._refuse("", kind, GENERAL, f"packet type {kind} is NOT supported!")
            return
        structure, call = known
        request = structure.decode(request_packet.body)
        destination, begin = request.destination, time.monotonic()
        try:
            answer = call(request)
        except CanalRefusedError as error:
            self._refuse(destination, kind, error.code, error.message)
        except ProtocolError:
            raise
        except PenstockError as error:
            self._refuse(destination, kind, _error_code(error), describe_error(error))
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
        """Send an error packet, and count it."""
        self._traffic.count_refusal(destination, kind, code)
        self._wire.send(build_ack_frame(code, message))

    def _await_start(self, destination: str) -> None:
        """Wait while the destination is starting, so that the client does not give up."""
        self._clients.await_start(destination, lambda: self._wire.is_closed_by_peer)

    def _subscribe(self, request: SubRequest) -> bytes:
        """Subscribe the client, and answer with an ack packet."""
        destination, client_id = _check_client(request)
        self._await_start(destination)
        self._clients.subscribe(destination, client_id, request.filter)
        self._traffic.add_destination(destination)
        self._connected.mark_connected(destination, client_id)
        return build_ack_frame()

    def _unsubscribe(self, request: UnsubRequest) -> bytes:
        """End the client's subscription, and answer with an ack packet."""
        destination, client_id = _check_client(request)
        self._await_start(destination)
        self._clients.unsubscribe(destination, client_id)
        self._connected.mark_disconnected(destination, client_id)
        return build_ack_frame()

    def _get(self, request: GetRequest) -> None:
        """Send the client's next batch, and prefetch the one after it if more is waiting."""
        destination, client_id = _check_client(request)
        self._await_start(destination)
        self._connected.mark_connected(destination, client_id)
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
        self._traffic.count_sent(destination, answer.size_bytes, is_empty=not answer.chunks)
        self._wire.send(
            packet.build_messages_head(answer.batch_id, answer.size_bytes), *(chunk.data for chunk in answer.chunks)
        )
        if answer.is_large:
            with suppress(PenstockError):  # the next get meets it
                self._clients.prefetch(destination, client_id, request.fetch_size)

    def _ack(self, request: ClientAckRequest) -> None:
        """Ack a batch. As in canal, success has no answer."""
        destination, client_id = _check_client(request)
        batch_id = request.batch_id
        if not batch_id:
            raise CanalRefusedError(NO_BATCH, "batchId should assign value")
        if batch_id > 0:
            self._clients.ack(destination, client_id, batch_id)

    def _rollback(self, request: ClientRollbackRequest) -> None:
        """Roll back a batch, or all of them. As in canal, success has no answer."""
        destination, client_id = _check_client(request)
        self._clients.rollback(destination, client_id, request.batch_id or None)


def _check_client(request: _Request) -> tuple[str, int]:
    """Return the destination and the client of a request; both must be given."""
    if not request.destination or not request.client_id:
        raise CanalRefusedError(MISSING, "destination or clientId is null")
    return request.destination, _client_id(request.client_id)


def _client_id(text: str) -> int:
    """Parse a client id, from 1 to 32767. Raises CanalRefusedError."""
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 1 << 15:
        raise CanalRefusedError(GENERAL, f"clientId {text[:20]!r} is no number from 1 to 32767")
    return int(text)


def _timeout_s(milliseconds: int, most: float) -> float:
    """Return a timeout that a client asks for in seconds, but at most `most`, which is also the default."""
    return min(milliseconds / 1000, most) if milliseconds > 0 else most


def _packet_name(kind: int) -> str:
    """Return the name of a packet type, or its number when it is unknown."""
    return PacketType(kind).name if kind in set(PacketType) else str(kind)


def _error_code(error: PenstockError) -> int:
    """Return canal's error code for an error."""
    return TRY_AGAIN if isinstance(error, StartingError) else GENERAL
