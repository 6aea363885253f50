"""What looking into a server's own log asks of the server."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from typing import Protocol

from penstock.binlog.events.block import Block
from penstock.config import SourceSettings
from penstock.model import Position, TableName, TableSchema
from penstock.schema import live_schema
from penstock.source import BinlogStream, connect, current_position
from penstock.source.connection import translated


class Stream(Protocol):
    """Blocks; None for a sign of life without events, after which `position` may have moved."""

    @property
    def position(self) -> Position: ...

    def __iter__(self) -> Iterator[Block | None]: ...


class Server(Protocol):
    address: str

    def rows(self, sql: str) -> Sequence[tuple[object, ...]]: ...

    def end(self) -> Position:
        """Of the log, now."""
        ...

    def stream(self, start: Position) -> AbstractContextManager[Stream]: ...


class LiveServer:
    def __init__(self, settings: SourceSettings, *, verify: bool) -> None:
        self.address = settings.address
        self._settings, self._verify = settings, verify

    def rows(self, sql: str) -> Sequence[tuple[object, ...]]:
        with closing(connect(self._settings)) as connection, translated(self._settings), connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def end(self) -> Position:
        with closing(connect(self._settings)) as connection:
            return current_position(connection, self._settings)

    def stream(self, start: Position) -> BinlogStream:
        return BinlogStream(self._settings, start, verify=self._verify)


def ask_server(settings: SourceSettings) -> Callable[[TableName], TableSchema]:
    """What a server knows of a table now."""

    def ask(table: TableName) -> TableSchema:
        with closing(connect(settings)) as connection, translated(settings), connection.cursor() as cursor:
            return live_schema(cursor, table)

    return ask
