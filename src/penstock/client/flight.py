"""The Flight client: the calls of `penstock.server.flight` as methods, with the server's errors raised as ours."""

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.flight as fl

from penstock import errors
from penstock.errors import ConfigurationError, PenstockError, ProtocolError, SourceConnectionError
from penstock.model import Position, TableName

if TYPE_CHECKING:
    from penstock.binlog.events.block import Block

T = TypeVar("T")

log = logging.getLogger(__name__)


class FlightClient:
    """One server and destination. Safe to keep for long; what is transient is tried again for `patience_s`."""

    def __init__(self, server: str, destination: str = "default", *, patience_s: float = 0) -> None:
        host, _, port = server.rpartition(":")
        if not host or not port.isdigit():
            raise ConfigurationError(
                f"not a server address: {server!r}; write it as HOST:PORT, for example 127.0.0.1:11115"
            )
        self._server = server
        self._destination = destination
        self._patience_s = patience_s
        self._parent = os.getppid()
        self._client = fl.FlightClient(f"grpc://{server}")

    def close(self) -> None:
        self._client.close()

    def describe(self, tables: Sequence[TableName]) -> list[pa.Schema]:
        """Columns of each table, its key in the metadata under `key`."""
        answers = self._action("describe", tables=[str(table) for table in tables])
        return [pa.ipc.read_schema(pa.py_buffer(answer)) for answer in answers]

    def bounds(self) -> dict[str, Position]:
        """`first` and `latest` positions of the store."""
        answer = json.loads(self._action("bounds")[0])
        return {key: Position.from_json(value) for key, value in answer.items()}

    def oldest(self) -> Position:
        """Where the source's log begins."""
        return Position.from_json(json.loads(self._action("oldest")[0])["oldest"])

    def latest(self, start: Position, max_bytes: int, wait_ms: int) -> Position:
        """Where a batch from `start` should end; `start` itself when nothing came within `wait_ms`.

        Says also that everything before `start` is done.
        """
        answer = self._action("latest", start=start.to_json(), max_bytes=max_bytes, wait_ms=wait_ms)
        return Position.from_json(json.loads(answer[0])["end"])

    def ack(self, end: Position) -> None:
        self._action("ack", end=end.to_json())

    def parts(self, tables: Sequence[TableName], start: Position, end: Position) -> list[bytes]:
        """Tickets for the parts of a range; each can be read alone, in any order, any number of times."""
        request = {
            "destination": self._destination,
            "tables": [str(table) for table in tables],
            "start": start.to_json(),
            "end": end.to_json(),
        }
        descriptor = fl.FlightDescriptor.for_command(json.dumps(request).encode())
        info = self._call(lambda: self._client.get_flight_info(descriptor))
        return [endpoint.ticket.ticket for endpoint in info.endpoints]

    def read(self, ticket: bytes) -> "Iterator[Block]":
        from penstock.binlog.events.block import Block  # noqa: PLC0415 - brings numba, which planning does without

        stream = self._call(lambda: self._client.do_get(fl.Ticket(ticket)))
        while True:
            try:
                chunk = self._call_once(stream.read_chunk)
            except StopIteration:
                return
            yield Block.of_wire(chunk.data, chunk.app_metadata.to_pybytes())

    def _action(self, name: str, **request: Any) -> list[bytes]:
        body = json.dumps({"destination": self._destination, **request}).encode()
        answers = self._call(lambda: list(self._client.do_action(fl.Action(name, body))))
        return [answer.body.to_pybytes() for answer in answers]

    def _call_once(self, call: Callable[[], T]) -> T:
        """The rest of a stream cannot be asked for again."""
        try:
            return call()
        except fl.FlightError as error:
            raise self._ours(error) from error

    def _call(self, call: Callable[[], T]) -> T:
        deadline = time.monotonic() + self._patience_s
        pause_s = 0.1
        while True:
            try:
                return call()
            except fl.FlightError as error:
                ours = self._ours(error)
                # Whoever started this process may be gone: nobody waits for the answer any more.
                is_orphan = os.getppid() != self._parent
                if not ours.transient or is_orphan or time.monotonic() + pause_s > deadline:
                    raise ours from error
                log.warning("asking again server=%s in_s=%.1f reason=%s", self._server, pause_s, ours)
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, 2.0)
            except pa.ArrowException as error:
                raise ProtocolError(f"the answer of {self._server} is not understood: {error}") from error

    def _ours(self, error: Any) -> PenstockError:
        try:
            about = json.loads(error.extra_info)
            return getattr(errors, about["error"])(about["message"])
        except (ValueError, KeyError, TypeError, AttributeError):
            if isinstance(error, fl.FlightUnavailableError):
                return SourceConnectionError(
                    f"no Penstock server answers at {self._server}: is `penstock serve` running there?"
                )
            return ProtocolError(f"{self._server}: {str(error).splitlines()[0]}")
