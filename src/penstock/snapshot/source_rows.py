"""Reads the rows of SELECTs by column, in read views that are not older than the log."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.binlog.values.column import DecodeOptions
from penstock.config import SourceSettings
from penstock.model import Column, LogRequirement
from penstock.snapshot.columns import RowDecoder
from penstock.snapshot.connection import connect_for_snapshot
from penstock.snapshot.result_set import ResultSet
from penstock.source.connection import connect, translate_errors
from penstock.source.consistent_read import ConsistentRead
from penstock.source.log_reach import LogReach
from penstock.source.replica_read import ReplicaRead


@dataclass(frozen=True, slots=True)
class SelectQuery:
    """A SELECT, and the columns that its rows have."""

    sql: str
    columns: tuple[Column, ...]


class SourceRows:
    """Reads rows of a source on one connection, for one thread at a time.

    rows = SourceRows(settings, DecodeOptions(dates="text"))
    with rows.open_view():
        table = rows.read(SelectQuery("SELECT id FROM shop.product", (id_column,)))
    """

    def __init__(
        self, settings: SourceSettings, options: DecodeOptions, *, replica: SourceSettings | None = None
    ) -> None:
        """Read from a source, or from a replica of it that has executed what is in the source's log."""
        self._source, self._replica = settings, replica
        self._settings = replica or settings  # of the server that is read
        self._options = options
        self._connection: Any = None
        self._source_connection: Any = None  # for a replica: tells what the source's log has
        self._reading: ConsistentRead | ReplicaRead | None = None
        self._reach: LogReach | None = None
        # What the source must have executed before a view is opened; set it for the changes that rows are read for.
        self.requirement: LogRequirement | None = None

    @contextmanager
    def open_view(self) -> Generator[None, None, None]:
        """Open a read view that sees all that is in the source's log now; an error closes the connections. Raises
        SourceBehindError when the source does not have what is required of it."""
        reading = self._connect()
        try:
            if self.requirement is not None and self._reach is not None:
                self._reach.require(self.requirement)
            if isinstance(reading, ConsistentRead):
                reading.open_current()
            else:
                reading.open()
            yield
            reading.close()
        except BaseException:
            self.close()  # it may be in the middle of rows
            raise

    def read(self, query: SelectQuery) -> pa.Table:
        """Return all rows of a SELECT."""
        return pa.Table.from_batches(list(self.stream(query)), RowDecoder(query.columns, self._options).schema)

    def stream(self, query: SelectQuery) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a SELECT as they come; nothing else is read until the last."""
        decoder = RowDecoder(query.columns, self._options)
        yield from ResultSet(self._connection, self._settings, decoder, query.sql)

    def _connect(self) -> ConsistentRead | ReplicaRead:
        """Return what opens read views, on the connection that is there or on a new one."""
        if self._connection is None or self._reading is None:
            self._connection = connect_for_snapshot(self._settings)
            with translate_errors(self._settings), self._connection.cursor() as cursor:
                # Else MySQL 8.0 takes such dates for zero where it sorts rows in a temporary table.
                cursor.execute("SET SESSION sql_mode = 'ALLOW_INVALID_DATES'")
            if self._replica is None:
                self._reading = ConsistentRead(self._connection, self._settings)
                self._reach = LogReach(self._reading.query, address=self._source.address)
            else:
                self._source_connection = connect(self._source)
                self._reading = ReplicaRead(self._connection, self._replica, self._source_connection, self._source)
                self._reach = LogReach(self._reading.ask_primary, address=self._source.address)
        return self._reading

    def close(self) -> None:
        """Close the connections; the next read opens others."""
        for connection in (self._connection, self._source_connection):
            if connection is not None:
                connection._force_close()  # noqa: SLF001 - a polite QUIT can hang on a broken connection
        self._connection = self._source_connection = self._reading = self._reach = None
