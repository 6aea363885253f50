"""One SELECT over the binary protocol: rows from the socket, decoded batch by batch, without an object per row."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.config import SourceSettings
from penstock.errors import PenstockError, ProtocolError, SourceConnectionError
from penstock.snapshot.columns import RowDecoder, field_kind
from penstock.snapshot.row_packets import END, ERROR, LONG, MORE, cut_rows, locate_fields
from penstock.source.connection import translate_errors, translate_server_error

_COM_STMT_PREPARE, _COM_STMT_EXECUTE, _COM_STMT_CLOSE = 0x16, 0x17, 0x19
_BUFFER_BYTES = 4 << 20
_MOST_ROWS = 1 << 16  # of one batch
_LONGEST_PACKET = 0xFFFFFF
_HEADER = 4


class ResultSet:
    """The rows of one SELECT as record batches; the connection is free again when all were read.

    for batch in ResultSet(connection, settings, decoder, "SELECT id, name FROM shop.product"):
        print(batch.num_rows)
    """

    def __init__(self, connection: Any, settings: SourceSettings, decoder: RowDecoder, sql: str) -> None:
        self._connection, self._settings, self._decoder, self._sql = connection, settings, decoder, sql
        self._buffer: NDArray[np.uint8] = np.empty(_BUFFER_BYTES, np.uint8)
        self._filled = 0
        self._is_buffered = True
        self._kinds: NDArray[np.uint8] = np.empty(0, np.uint8)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with translate_errors(self._settings):
            statement = self._prepare()
            self._execute(statement)
        yield from self._rows()
        with translate_errors(self._settings):
            self._connection._execute_command(_COM_STMT_CLOSE, statement)  # noqa: SLF001 - it has no answer

    def _prepare(self) -> bytes:
        """Prepare the statement, check its columns, and return the id that the server gave it."""
        self._connection._execute_command(_COM_STMT_PREPARE, self._sql)  # noqa: SLF001 - PyMySQL has no such statements
        answer = self._read_payload()
        columns, parameters = int.from_bytes(answer[5:7], "little"), int.from_bytes(answer[7:9], "little")
        if parameters:
            raise ProtocolError(f"the statement has {parameters} parameters: {self._sql}")
        kinds = [field_kind(_type_code(self._read_payload())) for _ in range(columns)]
        self._read_payload()  # the end of the columns
        self._kinds = np.array(kinds, np.uint8)
        self._decoder.check_kinds(self._kinds)
        return answer[1:5]

    def _execute(self, statement: bytes) -> None:
        """Start the statement, and read what comes before the rows."""
        no_cursor, iterations = b"\0", (1).to_bytes(4, "little")
        self._connection._execute_command(_COM_STMT_EXECUTE, statement + no_cursor + iterations)  # noqa: SLF001
        columns = self._read_payload()[0]
        count = columns if columns < 251 else len(self._kinds)
        kinds = [field_kind(_type_code(self._read_payload())) for _ in range(count)]
        if kinds != self._kinds.tolist():
            raise ProtocolError("the server announced other columns for the rows than for the statement")
        self._read_payload()  # the end of the columns

    def _read_payload(self) -> bytes:
        """Return one packet that is not a row; an error packet is raised."""
        return self._connection._read_packet().get_all_data()  # noqa: SLF001

    def _rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they come, and stop at the packet that ends them."""
        starts, ends = (np.empty(_MOST_ROWS, np.int32) for _ in range(2))
        while True:
            rows, at, reason = cut_rows(self._buffer, 0, self._filled, 0, starts, ends)
            while reason == MORE and rows < _MOST_ROWS and self._filled < self._buffer.size:
                self._filled += self._receive(self._buffer.data[self._filled :])
                rows, at, reason = cut_rows(self._buffer, at, self._filled, rows, starts, ends)
            if rows:
                yield self._decode(self._buffer, starts[:rows], ends[:rows])
            self._drop(at)
            if reason == END:
                return
            if reason == ERROR:
                raise self._server_error()
            if reason == LONG or not rows:
                yield self._read_long_row()

    def _decode(self, data: NDArray[np.uint8], starts: NDArray[np.int32], ends: NDArray[np.int32]) -> pa.RecordBatch:
        """Return these rows as a record batch."""
        offsets, lengths = (np.empty((self._kinds.size, starts.size), np.int32) for _ in range(2))
        wrong = locate_fields(data, starts, ends, self._kinds, offsets, lengths)
        if wrong >= 0:
            raise ProtocolError(f"{self._settings.address} sent a row that its columns do not fill: {self._sql}")
        return self._decoder.decode(data, offsets, lengths)

    def _read_long_row(self) -> pa.RecordBatch:
        """Return one row that does not fit in the buffer, or comes in several packets."""
        payload = bytearray()
        while True:
            length = int.from_bytes(self._read_exactly(_HEADER)[:3], "little")
            payload += self._read_exactly(length)
            if length < _LONGEST_PACKET:
                break
        data = np.frombuffer(payload, np.uint8)
        return self._decode(data, np.zeros(1, np.int32), np.array([data.size], np.int32))

    def _read_exactly(self, size: int) -> bytearray:
        """Return the next bytes: first those of the buffer, then from the connection."""
        taken = min(size, self._filled)
        result = bytearray(size)
        result[:taken] = self._buffer[:taken].tobytes()
        self._drop(taken)
        view = memoryview(result)
        while taken < size:
            taken += self._receive(view[taken:])
        return result

    def _drop(self, size: int) -> None:
        """Forget the first bytes of the buffer."""
        rest = self._filled - size
        if size and rest:
            self._buffer[:rest] = self._buffer[size : self._filled].copy()
        self._filled = rest

    def _server_error(self) -> PenstockError:
        """Return the error that the server sent instead of a row."""
        length = int.from_bytes(self._read_exactly(_HEADER)[:3], "little")
        payload = bytes(self._read_exactly(length))
        code, text = int.from_bytes(payload[1:3], "little"), payload[3:].decode("utf-8", "replace")
        return translate_server_error(code, text[6:] if text.startswith("#") else text, self._settings)

    def _receive(self, view: memoryview) -> int:
        """Read what is there, at least one byte, and return how many."""
        try:
            if self._is_buffered:  # PyMySQL may have read the first rows together with what comes before them
                self._is_buffered = False
                first = self._connection._rfile.read1(len(view))  # noqa: SLF001
                view[: len(first)] = first
                size = len(first)
            else:
                size = self._connection._sock.recv_into(view)  # noqa: SLF001
        except OSError as error:
            raise SourceConnectionError(f"the connection to {self._settings.address} broke: {error}") from error
        if not size:
            raise SourceConnectionError(f"{self._settings.address} closed the connection in the middle of a SELECT")
        return size


def _type_code(definition: bytes) -> int:
    """Return the type code in the packet that describes a column: six texts, then lengths, charset and type."""
    at = 0
    for _ in range(6):
        length = definition[at]
        if length == 252:
            length, at = int.from_bytes(definition[at + 1 : at + 3], "little"), at + 2
        at += 1 + length
    return definition[at + 7]
