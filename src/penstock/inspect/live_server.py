"""What looking into a log asks of who has it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from typing import Protocol

from penstock.binlog.events.block import Block
from penstock.config import SourceSettings
from penstock.model import GtidSet, Position, TableName, TableSchema
from penstock.schema import live_schema
from penstock.source import connect
from penstock.source.connection import translated


class Stream(Protocol):
    """Blocks; None for a sign of life without events, after which `position` may have moved."""

    @property
    def position(self) -> Position: ...

    def __iter__(self) -> Iterator[Block | None]: ...


class Server(Protocol):
    """Who has the log: a server, or a folder of its files. As an origin has it, see there."""

    address: str

    def sizes(self) -> dict[str, int]: ...

    def end(self) -> Position: ...

    def previous_gtids(self, file: str) -> GtidSet: ...

    def now_us(self) -> int: ...

    def stream(
        self, start: Position, *, verify: bool, lenient: bool, annotations: bool = False
    ) -> AbstractContextManager[Stream]: ...


def ask_server(settings: SourceSettings) -> Callable[[TableName], TableSchema]:
    """What a server knows of a table now."""

    def ask(table: TableName) -> TableSchema:
        with closing(connect(settings)) as connection, translated(settings), connection.cursor() as cursor:
            return live_schema(cursor, table)

    return ask
