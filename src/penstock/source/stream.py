"""Follow a source's log from a position over one connection.

PyMySQL logs in; then its socket is ours. Bytes go from the socket into one reused buffer and from there, by one
kernel call, into the block reader. When the socket has nothing more to give, what is there becomes a block at once.
"""

import logging
import secrets
import select
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.reader import BlockReader
from penstock.config import SourceSettings
from penstock.errors import (
    AuthenticationError,
    PenstockError,
    PositionLostError,
    ServerIdTakenError,
    SourceConnectionError,
)
from penstock.model import FileIdentity, Position
from penstock.source.annotations import may_lack_end_positions, remove_annotations
from penstock.source.binlog_source import NO_DESTINATION
from penstock.source.connection import connect, translate_errors
from penstock.source.dump import (
    COM_BINLOG_DUMP,
    COM_BINLOG_DUMP_GTID,
    dump_after_gtids,
    dump_from_beginning,
    dump_from_position,
)
from penstock.source.packet import NO_MAGIC, PacketUnwrapper, encode_acknowledgement

log = logging.getLogger(__name__)

_INBOX_BYTES = 1 << 20  # a call of a kernel costs as much as many events
_LAST_OFFSET = 0xFFFFFFFF
_SAME_ID = "same server_uuid/server_id"
_LOWEST_ID = 1_000_000  # people give smaller ones to theirs
_SEMI_SYNC = ("rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled")
_NET_WRITE_TIMEOUT_S = 30 * 86400
_SILENT_HEARTBEATS = 4  # a source that misses this many is taken for dead


def random_server_id() -> int:
    """Return a random replica id, high enough not to meet one that an operator chose."""
    return secrets.randbelow(2**32 - _LOWEST_ID) + _LOWEST_ID


class BinlogStream:
    """Reads a server's log over a replication connection. Iterating gives blocks, and None when the server sent only a
    heartbeat; `position` may have moved.

    `stop()` from another thread ends the iteration.

        with BinlogStream(SourceSettings(host="db1"), Position("binlog.000007", 4)) as stream:
            for block in stream: ...
    """

    def __init__(
        self,
        settings: SourceSettings,
        start: Position,
        *,
        verify: bool = True,
        by_gtids: bool = False,
        server_id: int | None = None,
        semi_sync: bool = False,
        lenient: bool = False,
        annotations: bool = False,
        destination: str = NO_DESTINATION,
    ) -> None:
        """With `by_gtids` the server finds the position: after the GTIDs of `start`, whatever its own files are. Each
        stream needs its own server id; by default it is random. `semi_sync` is for the one stream that persists what
        comes and confirms it with `acknowledge`; `lenient` for one that only reads, which an incident does not end.
        `annotations` asks MariaDB for the statements behind rows."""
        self._server_id = server_id or random_server_id()
        self._settings, self._destination = settings, destination
        self._start = start
        self._by_gtids = start.gtids if by_gtids else None
        self._annotations = annotations
        self._reader = BlockReader(start, verify=verify, lenient=lenient, decrypted=True)
        self._unwrapper = PacketUnwrapper(semi_sync=semi_sync)
        self._asks_for_semi_sync = semi_sync
        self._acknowledged: Position | None = None
        self._inbox: NDArray[np.uint8] = np.empty(_INBOX_BYTES, np.uint8)
        self._connection: Any = None
        self.waited_s = 0.0  # for bytes to come
        self._stopping = threading.Event()

    @property
    def is_flowing(self) -> bool:
        """Return whether the server has found the position and begun to send; before that it may still refuse."""
        return self._reader.server_version != ""

    @property
    def position(self) -> Position:
        """Return the position up to which the log was read."""
        return self._reader.position

    @property
    def file_identity(self) -> FileIdentity | None:
        """Return the identity of the file that is being read."""
        return self._reader.file_identity

    @property
    def is_continued(self) -> bool:
        """Return whether the file that is read was named by the end of the previous one; after a crash of the server it
        was not."""
        return self._reader.is_continued

    @property
    def semi_sync(self) -> bool:
        """Return whether commits at the source wait for `acknowledge`."""
        return self._unwrapper.is_semi_sync

    @property
    def wants_ack(self) -> bool:
        """Return whether a commit waits for something that has arrived, or is arriving."""
        return self._unwrapper.is_ack_requested

    def acknowledge(self, kept: Position) -> None:
        """Confirm that everything up to a position is persisted: commits that wait for that may return. Called by the
        thread that iterates; sends nothing when no commit waits, or nothing is new."""
        if not self.wants_ack or (self._acknowledged is not None and kept <= self._acknowledged):
            return
        try:
            self._socket.sendall(encode_acknowledgement(kept.file, kept.offset))
        except OSError as error:
            raise SourceConnectionError(f"the log connection to {self._settings.address} broke: {error}") from error
        self._acknowledged = kept
        if kept >= self.position and not self._reader.rest:
            self._unwrapper.clear_ack_request()

    def __enter__(self) -> Self:
        if self._by_gtids is None and self._start.offset > _LAST_OFFSET:
            raise PositionLostError(
                f"{self._settings.address} cannot be asked for {self._start}: its protocol counts to 4 GiB; start at"
                " the beginning of the next file, or read this file itself with `penstock binlog`"
            )
        self._connection = connect(self._settings)
        with translate_errors(self._settings):
            self._prepare_session()
            command, payload = self._build_request()
            self._connection._execute_command(command, payload)  # noqa: SLF001 - from here the socket is ours
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket.settimeout(self._settings.heartbeat_s * _SILENT_HEARTBEATS)
        where = self._start if self._by_gtids is None else f"after {self._by_gtids.text}"
        log.info(
            "following the binlog destination=%s source=%s position=%s server_id=%d",
            *(self._destination, self._settings.address, where, self._server_id),
        )
        return self

    def _build_request(self) -> tuple[int, bytes]:
        """Return the command that starts the stream, and its arguments."""
        server_info = self._connection.get_server_info()
        annotations = "MariaDB" in server_info and (self._annotations or may_lack_end_positions(server_info))
        if self._by_gtids is None:
            return COM_BINLOG_DUMP, dump_from_position(self._start, self._server_id, annotations=annotations)
        if not self._by_gtids.is_mariadb:
            return COM_BINLOG_DUMP_GTID, dump_after_gtids(self._by_gtids, self._server_id)
        with self._connection.cursor() as cursor:
            cursor.execute("SET @slave_connect_state = %s", (self._by_gtids.text,))
            cursor.execute("SET @slave_gtid_strict_mode = 0, @slave_gtid_ignore_duplicates = 0")
        return COM_BINLOG_DUMP, dump_from_beginning(self._server_id, annotations=annotations)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._connection._force_close()  # noqa: SLF001 - a QUIT would have to wait behind the stream

    def stop(self) -> None:
        """End the stream soon; any thread may call it."""
        self._stopping.set()
        if self._connection is not None and self._connection._sock is not None:  # noqa: SLF001
            try:
                self._connection._sock.shutdown(socket.SHUT_RDWR)  # noqa: SLF001
            except OSError:
                log.debug("socket already closed destination=%s source=%s", self._destination, self._settings.address)

    def __iter__(self) -> Iterator[Block | None]:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        while not self._stopping.is_set():
            size = self._receive()
            if not size:
                return
            written, read = self._unwrapper.unwrap(self._inbox, size, self._reader.room(size))
            self._reader.advance(written)
            ended = self._unwrapper.status != 0
            pending = getattr(self._socket, "pending", None)
            is_last = ended or not ((pending and pending()) or poll.poll(0))
            yield from self._filter_annotations(self._reader.blocks(flush=is_last, hold_trailing=True))
            if is_last:
                yield None
            if ended:
                raise self._stream_error(self._inbox[read:size].tobytes())

    def _filter_annotations(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Yield the blocks, without the statements behind rows unless they were requested."""
        if self._annotations:
            yield from blocks
            return
        for block in blocks:
            if (rest := remove_annotations(block)) is not None:
                yield rest

    @property
    def _socket(self) -> socket.socket:
        """Return the socket of the connection."""
        return self._connection._sock  # noqa: SLF001

    def _prepare_session(self) -> None:
        """Set the session variables by which the server knows a replica: heartbeat period, checksum, id."""
        heartbeat_ns = int(self._settings.heartbeat_s * 1e9)
        own_uuid = str(uuid.uuid4())
        with self._connection.cursor() as cursor:
            # Both spellings: MySQL 8.0.26 and later look at @source_…, all others at @master_….
            for prefix in ("master", "source"):
                cursor.execute(f"SET @{prefix}_heartbeat_period = %s", (heartbeat_ns,))
                cursor.execute(f"SET @{prefix}_binlog_checksum = @@global.binlog_checksum")
            cursor.execute("SET @slave_uuid = %s, @replica_uuid = %s", (own_uuid, own_uuid))
            cursor.execute("SET @mariadb_slave_capability = 4")
            # While clients are slow we do not read, and the server is to wait; whether we live, TCP tells it.
            cursor.execute("SET SESSION net_write_timeout = %s", (_NET_WRITE_TIMEOUT_S,))
            if self._asks_for_semi_sync:
                self._request_semi_sync(cursor)
            # The made-up rotation that opens the stream follows this setting; then each file's format event says.
            cursor.execute("SELECT @master_binlog_checksum")
            (algorithm,) = cursor.fetchone() or ("NONE",)
            self._reader.expect_checksum(is_on=str(algorithm).upper() == "CRC32")

    def _request_semi_sync(self, cursor: Any) -> None:
        """Ask for semi-sync; the first packet will show whether the server supports it."""
        cursor.execute("SET @rpl_semi_sync_slave = 1, @rpl_semi_sync_replica = 1")
        cursor.execute(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN {_SEMI_SYNC} AND Value = 'ON'")
        if not cursor.fetchall():
            log.warning(
                "semi-sync replication not active destination=%s source=%s: set one of %s to ON on the source",
                *(self._destination, self._settings.address, _SEMI_SYNC),
            )

    def _receive(self) -> int:
        """Read from the socket what is there, and return how many bytes."""
        began = time.perf_counter()
        try:
            size = self._socket.recv_into(self._inbox.data)
        except TimeoutError:
            silent_s = self._settings.heartbeat_s * _SILENT_HEARTBEATS
            raise SourceConnectionError(
                f"{self._settings.address} sent nothing for {silent_s:g} s, not even a heartbeat"
            ) from None
        except OSError as error:
            if self._stopping.is_set():
                return 0
            raise SourceConnectionError(f"the log connection to {self._settings.address} broke: {error}") from error
        finally:
            self.waited_s += time.perf_counter() - began
        if not size and not self._stopping.is_set():
            raise SourceConnectionError(f"{self._settings.address} closed the log connection at {self.position}")
        return size

    def _stream_error(self, rest: bytes) -> PenstockError:
        """Return the error for the packet that ended the stream."""
        if self._unwrapper.status == 254:
            return SourceConnectionError(f"{self._settings.address} ended the log stream at {self.position}")
        if self._unwrapper.status == NO_MAGIC:
            return SourceConnectionError(f"{self._settings.address} has turned semi-sync off at {self.position}")
        missing = self._unwrapper.rest_of_packet - len(rest)
        while missing > 0 and (part := self._socket.recv(missing)):
            rest += part
            missing -= len(part)
        code = int.from_bytes(rest[:2], "little")
        text = rest[2:].decode("utf-8", "replace").removeprefix("#HY000").removeprefix("#42000")
        if _SAME_ID in text:
            return ServerIdTakenError(
                f"another replica of {self._settings.address} has the server id {self._server_id}, and it ended this"
                f" stream at {self.position}: give one of them another (`server_id` of the source, if it is set there)"
            )
        if code == 1227:
            return AuthenticationError(
                f"user '{self._settings.user}' may not read the log of {self._settings.address}:"
                f" GRANT REPLICATION SLAVE ON *.* TO '{self._settings.user}'@'…' (server says: {text})"
            )
        if code == 1236:
            return PositionLostError(
                f"{self._settings.address} cannot send its log from {self._start}: {text};"
                " SHOW BINARY LOGS lists what it still has"
            )
        return SourceConnectionError(f"{self._settings.address} ended the log stream at {self.position}: {code} {text}")
