"""One connection of a client: a packet comes, an answer goes.

Where canal answers nothing (ack and rollback that succeed), nothing is answered. An error is one line.
"""

import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from penstock.canal import packet, protobuf, scramble
from penstock.canal.packet import Fields, Packet, PacketType, Wire
from penstock.errors import PenstockError, ProtocolError, StartingError
from penstock.server.canal.clients import CanalClients
from penstock.server.canal.traffic import Traffic

log = logging.getLogger(__name__)

GENERAL, MISSING, NO_BATCH = 400, 401, 402  # canal's codes
TRY_AGAIN = 503  # ours: the destination is starting
_UNITS_S = {0: 1e-9, 1: 1e-6, 2: 1e-3, 3: 1.0, 4: 60.0, 5: 3600.0, 6: 86400.0}
_OTHER_UNIT_S = 1e-3
_MOST_ATTEMPTS = 3  # to log in
_LONGEST_TEXT = 500
_HANDSHAKE_SEEDS = 2


@dataclass(frozen=True, slots=True)
class Access:
    """Who may connect: everybody, if there is no password."""

    user: str = ""
    stored: str = ""  # the password in canal's form

    def admits(self, user: str, token: bytes, seed: bytes) -> bool:
        return (not self.user or user == self.user) and scramble.is_right(token, seed, self.stored)


class RefusedError(PenstockError):
    """With one of canal's codes."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


class Session:
    def __init__(
        self,
        wire: Wire,
        clients: CanalClients,
        access: Access,
        idle_s: float,
        traffic: Traffic | None = None,
        *,
        address: str = "",
    ) -> None:
        """`address` is where the client is."""
        self._connected = clients.connected(address)
        self._wire, self._clients, self._access, self._idle_s = wire, clients, access, idle_s
        self._traffic = traffic or Traffic()
        self._calls: Mapping[int, Callable[[Fields], bytes | None]] = {
            PacketType.SUBSCRIPTION: self._subscribe,
            PacketType.UNSUBSCRIPTION: self._unsubscribe,
            PacketType.GET: self._get,
            PacketType.CLIENTACK: self._ack,
            PacketType.CLIENTROLLBACK: self._rollback,
        }

    def run(self) -> None:
        """Until the client goes, or does what nobody can answer."""
        try:
            if self._log_in():
                while (raw := self._wire.receive()) is not None:
                    self._answer(raw)
        except ProtocolError as error:
            self._wire.send(packet.ack(GENERAL, _short(error)))
        finally:
            self._connected.close()

    # -- logging in

    def _log_in(self) -> bool:
        seed = os.urandom(scramble.SEED_BYTES)
        self._wire.send(packet.frame(PacketType.HANDSHAKE, protobuf.text(_HANDSHAKE_SEEDS, seed)))
        for _ in range(_MOST_ATTEMPTS):
            raw = self._wire.receive()
            if raw is None:
                return False
            asked = Packet.parse(raw)
            if asked.type != PacketType.CLIENTAUTHENTICATION:
                self._wire.send(packet.ack(GENERAL, f"{_name(asked.type)} before the client has logged in"))
                continue
            fields = Fields(asked.body)
            user = fields.text(1)
            if not self._access.admits(user, fields.raw(2), seed):
                log.warning("client refused user=%r", user[:64])
                self._wire.send(packet.ack(GENERAL, "auth failed: wrong user or password"))
                continue
            self._wire.idle_s = _seconds(fields.number(3), self._idle_s)
            self._wire.write_s = _seconds(fields.number(4), self._idle_s)
            try:
                if fields.raw(5) and fields.raw(6):
                    client_id = _client_id(fields.text(6))
                    self._await_start(fields.text(5))
                    self._clients.subscribe(fields.text(5), client_id, fields.text(7))
                    self._traffic.knows(fields.text(5))
                    self._connected.note(fields.text(5), client_id)
            except PenstockError as error:
                self._wire.send(packet.ack(_code(error), _short(error)))
                continue
            self._wire.send(packet.ack())
            return True
        return False

    # -- calls

    def _answer(self, raw: bytes) -> None:
        asked = Packet.parse(raw)
        call, kind = self._calls.get(asked.type), _name(asked.type)
        if call is None:
            self._refuse("", kind, GENERAL, f"packet type {kind} is NOT supported!")
            return
        fields = Fields(asked.body)
        destination, begin = fields.text(1), time.monotonic()
        try:
            answer = call(fields)
        except RefusedError as error:
            self._refuse(destination, kind, error.code, error.message[:_LONGEST_TEXT])
        except ProtocolError:
            raise
        except PenstockError as error:
            self._refuse(destination, kind, _code(error), _short(error))
        except OSError:
            raise
        except Exception:
            log.exception("call failed type=%s", kind)
            self._refuse(destination, kind, GENERAL, "an error inside of the server: its log says more")
        else:
            self._traffic.answered(destination, kind, time.monotonic() - begin)
            if answer:
                self._wire.send(answer)

    def _refuse(self, destination: str, kind: str, code: int, message: str) -> None:
        self._traffic.refused(destination, kind, code)
        self._wire.send(packet.ack(code, message))

    def _await_start(self, destination: str) -> None:
        self._clients.await_start(destination, lambda: self._wire.is_gone)

    def _subscribe(self, fields: Fields) -> bytes:
        destination, client_id = _of_client(fields)
        self._await_start(destination)
        self._clients.subscribe(destination, client_id, fields.text(7))
        self._traffic.knows(destination)
        self._connected.note(destination, client_id)
        return packet.ack()

    def _unsubscribe(self, fields: Fields) -> bytes:
        destination, client_id = _of_client(fields)
        self._await_start(destination)
        self._clients.unsubscribe(destination, client_id)
        self._connected.forget(destination, client_id)
        return packet.ack()

    def _get(self, fields: Fields) -> None:
        destination, client_id = _of_client(fields)
        self._await_start(destination)
        self._connected.note(destination, client_id)
        timeout = fields.number(4)
        seconds = timeout * _UNITS_S.get(fields.number(5), _OTHER_UNIT_S)
        answer = self._clients.get(
            destination,
            client_id,
            fields.number(3),
            0 if timeout < 0 else seconds or None,
            at_once=bool(fields.number(100)),
            is_gone=lambda: self._wire.is_gone,
        )
        self._traffic.sent(destination, answer.size_bytes, is_empty=not answer.pieces)
        self._wire.send(
            packet.messages_head(answer.batch_id, answer.size_bytes), *(piece.data for piece in answer.pieces)
        )
        if answer.is_large:
            with suppress(PenstockError):  # the next get meets it
                self._clients.prepare(destination, client_id, fields.number(3))

    def _ack(self, fields: Fields) -> None:
        destination, client_id = _of_client(fields)
        batch_id = fields.number(3)
        if not batch_id:
            raise RefusedError(NO_BATCH, "batchId should assign value")
        if batch_id > 0:
            self._clients.ack(destination, client_id, batch_id)

    def _rollback(self, fields: Fields) -> None:
        destination, client_id = _of_client(fields)
        self._clients.rollback(destination, client_id, fields.number(3) or None)


def _of_client(fields: Fields) -> tuple[str, int]:
    destination, client = fields.text(1), fields.text(2)
    if not destination or not client:
        raise RefusedError(MISSING, "destination or clientId is null")
    return destination, _client_id(client)


def _client_id(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 1 << 15:
        raise RefusedError(GENERAL, f"clientId {text[:20]!r} is no number from 1 to 32767")
    return int(text)


def _seconds(milliseconds: int, most: float) -> float:
    return min(milliseconds / 1000, most) if milliseconds > 0 else most


def _name(kind: int) -> str:
    return PacketType(kind).name if kind in set(PacketType) else str(kind)


def _code(error: PenstockError) -> int:
    return TRY_AGAIN if isinstance(error, StartingError) else GENERAL


def _short(error: PenstockError) -> str:
    return " ".join(str(error).split())[:_LONGEST_TEXT]
