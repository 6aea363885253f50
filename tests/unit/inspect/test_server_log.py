"""Where reading a server's log begins, on a server that is a written log."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from penstock.binlog.arrays import numbers
from penstock.binlog.events.block import Block
from penstock.binlog.events.reader import BlockReader
from penstock.errors import PositionLostError
from penstock.inspect.place import Moment
from penstock.inspect.selection import Selection
from penstock.inspect.server_log import ServerLog
from penstock.model import Position
from tests.twins.feed import feed
from tests.twins.log import LogWriter
from tests.twins.row import INSERT
from tests.unit.render.shop_log import PRODUCT

FILE = "binlog.000001"
GIB = 1 << 30


@dataclass
class FakeStream:
    blocks: list[Block]
    position: Position

    def __iter__(self) -> Iterator[Block | None]:
        yield from self.blocks
        yield None


@dataclass
class FakeServer:
    """One file; all of it lies `gap` bytes later than what is written of it."""

    log: LogWriter
    gap: int = 0
    address: str = "db1:3306"
    asked: list[Position] = field(default_factory=list[Position])

    def rows(self, sql: str) -> Sequence[tuple[object, ...]]:
        return [(FILE, self.log.position)] if sql == "SHOW BINARY LOGS" else [(1_700_000_900_000_000,)]

    def end(self) -> Position:
        return Position(FILE, self.log.position + self.gap)

    @contextmanager
    def stream(self, start: Position) -> Iterator[FakeStream]:
        assert start.offset <= 0xFFFFFFFF
        self.asked.append(start)
        first = start.offset - 4
        reader = BlockReader(start, block_bytes=1 << 12)
        reader.expect_checksum(is_on=True)
        data = bytes(self.log.data)
        head = self.log.made_up_format() if first else b""
        yield FakeStream([_moved(block, self.gap) for block in feed(reader, head + data[first:])], self.end())


def _moved(block: Block, gap: int) -> Block:
    events = block.events
    for name in ("position", "transaction"):
        at = events.schema.get_field_index(name)
        events = events.set_column(at, events.schema.field(at), numbers(block.column(name) + gap))
    return replace(block, events=events)


def two_transactions() -> LogWriter:
    log = LogWriter(is_mariadb=False).open()
    for number in (1, 2):
        log.begin()
        log.map(7, PRODUCT)
        log.rows(INSERT, 7, PRODUCT, [[number, "a", None]])
        log.rows(INSERT, 7, PRODUCT, [[number, "b", None]])
        log.commit()
        log.timestamp += 60
    return log


def places(log: LogWriter) -> dict[str, int]:
    """Of the second transaction's events, by what they are."""
    names = ["gtid", "begin", "map", "rows", "more rows", "end"]
    at = log.boundaries[1] - 4
    found: dict[str, int] = {}
    for name in names:
        found[name] = at + 4
        at += int.from_bytes(log.data[at + 9 : at + 13], "little")
    return found


def read(server: FakeServer, since: Position | Moment | None, *, follow: bool = False) -> tuple[list[Block], list[str]]:
    warnings: list[str] = []
    return list(ServerLog(server, since, warnings.append, follow=follow)), warnings


@pytest.mark.parametrize("name", ["gtid", "begin", "map", "rows", "more rows", "end"])
def test_it_begins_between_two_transactions(name: str) -> None:
    server = FakeServer(two_transactions())
    since = Position(FILE, places(server.log)[name])
    blocks, warnings = read(server, since)
    asked = server.asked[-1]
    assert asked == (since if name == "gtid" else Position(FILE, 4))
    # What is picked afterwards has its GTID, as nothing of its transaction was missed.
    selection = Selection(since=since)
    rows = [part for part in map(selection.pick, blocks) if len(part)]
    assert all(part.gtids[:, 0].all() for part in rows)
    assert warnings == []


def test_a_time_takes_whole_transactions() -> None:
    log = LogWriter(is_mariadb=False).open()
    log.begin()
    log.map(7, PRODUCT)
    log.rows(INSERT, 7, PRODUCT, [[1, "before", None]])
    log.timestamp += 30  # the time is between the events of this transaction, which was committed before it
    log.rows(INSERT, 7, PRODUCT, [[1, "after", None]])
    log.commit()
    log.begin()
    log.map(7, PRODUCT)
    log.rows(INSERT, 7, PRODUCT, [[2, "c", None]])
    log.commit()
    server = FakeServer(log)
    since = Moment((1_700_000_000 + 15) * 1_000_000)
    blocks, _ = read(server, since)
    assert server.asked[-1] == Position(FILE, 4)
    selection = Selection(since=since)
    found = [int(begin) for block in blocks for begin in selection.pick(block).column("transaction")]
    assert set(found) == {log.boundaries[1]}


def test_a_place_beyond_4_gib_is_read_from_the_start_of_its_file() -> None:
    server = FakeServer(two_transactions(), gap=5 * GIB)
    since = Position(FILE, places(server.log)["gtid"] + server.gap)
    blocks, warnings = read(server, since)
    assert server.asked == [Position(FILE, 4)]
    (warning,) = warnings
    assert warning.startswith(f"the server cannot be asked for {since}, which is beyond 4 GiB: its file is read from")
    selection = Selection(since=since)
    found = {int(begin) for block in blocks for begin in selection.pick(block).column("transaction")}
    assert found == {since.offset}


def test_following_from_an_end_beyond_4_gib_shows_nothing_old() -> None:
    server = FakeServer(two_transactions(), gap=5 * GIB)
    blocks, warnings = read(server, None, follow=True)
    assert server.asked == [Position(FILE, 4)]
    assert blocks == []
    assert len(warnings) == 1


def test_a_place_after_the_end_is_an_error() -> None:
    server = FakeServer(two_transactions())
    with pytest.raises(PositionLostError, match=r"ahead of the log of db1:3306"):
        read(server, Position(FILE, server.log.position + 1))
