"""Where reading a server's log begins, on a server that is a written log."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from penstock.binlog.events.block import Block
from penstock.binlog.events.reader import BlockReader
from penstock.errors import BinlogError, PositionLostError
from penstock.inspect.selection import EventSelection
from penstock.model import GtidSet, Position
from penstock.model.start_point import Moment
from penstock.source.server_log import ServerLog
from tests.support.shop_log import PRODUCT
from tests.twins.feed import feed
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

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

    def sizes(self) -> dict[str, int]:
        return {FILE: self.log.position}

    def now_us(self) -> int:
        return 1_700_000_900_000_000

    def previous_gtids(self, file: str) -> GtidSet:
        raise AssertionError(f"nobody looks for GTIDs in {file}")

    def end(self) -> Position:
        return Position(FILE, self.log.position + self.gap)

    @contextmanager
    def stream(
        self,
        start: Position,
        *,
        verify: bool,
        lenient: bool,
        annotations: bool = False,  # noqa: ARG002
    ) -> Iterator[FakeStream]:
        assert verify
        assert lenient
        assert start.offset <= 0xFFFFFFFF
        self.asked.append(start)
        first = start.offset - 4
        reader = BlockReader(start, block_bytes=1 << 12)
        reader.expect_checksum(is_on=True)
        data = bytes(self.log.data)
        head = self.log.made_up_format() if first else b""
        yield FakeStream([_moved(block, self.gap) for block in feed(reader, head + data[first:])], self.end())


def _moved(block: Block, gap: int) -> Block:
    return block.with_columns(**{name: block.column(name) + gap for name in ("position", "transaction")})


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


def offsets(log: LogWriter) -> dict[str, int]:
    """Of the second transaction's events, by what they are."""
    names = ["gtid", "begin", "map", "rows", "more rows", "end"]
    at = log.boundaries[1] - 4
    offsets_by_name: dict[str, int] = {}
    for name in names:
        offsets_by_name[name] = at + 4
        at += int.from_bytes(log.data[at + 9 : at + 13], "little")
    return offsets_by_name


def read(server: FakeServer, since: Position | Moment | None, *, follow: bool = False) -> tuple[list[Block], list[str]]:
    warnings: list[str] = []
    return list(ServerLog(server, since, warnings.append, follow=follow)), warnings


@pytest.mark.parametrize("name", ["gtid", "begin", "map", "rows", "more rows", "end"])
def test_it_begins_between_two_transactions(name: str) -> None:
    server = FakeServer(two_transactions())
    since = Position(FILE, offsets(server.log)[name])
    blocks, warnings = read(server, since)
    asked = server.asked[-1]
    assert asked == (since if name == "gtid" else Position(FILE, 4))
    # What is picked afterwards has its GTID, as nothing of its transaction was missed.
    selection = EventSelection(since=since)
    rows = [part for part in map(selection.pick_events, blocks) if len(part)]
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
    selection = EventSelection(since=since)
    begins = [int(begin) for block in blocks for begin in selection.pick_events(block).column("transaction")]
    assert set(begins) == {log.boundaries[1]}


def test_a_position_beyond_4_gib_is_read_from_the_start_of_its_file() -> None:
    server = FakeServer(two_transactions(), gap=5 * GIB)
    since = Position(FILE, offsets(server.log)["gtid"] + server.gap)
    blocks, warnings = read(server, since)
    assert server.asked == [Position(FILE, 4)]
    (warning,) = warnings
    assert warning.startswith(f"the server cannot be asked for {since}, which is beyond 4 GiB: its file is read from")
    selection = EventSelection(since=since)
    begins = {int(begin) for block in blocks for begin in selection.pick_events(block).column("transaction")}
    assert begins == {since.offset}


def test_following_from_an_end_beyond_4_gib_shows_nothing_old() -> None:
    server = FakeServer(two_transactions(), gap=5 * GIB)
    blocks, warnings = read(server, None, follow=True)
    assert server.asked == [Position(FILE, 4)]
    assert blocks == []
    assert len(warnings) == 1


def test_a_position_after_the_end_is_an_error() -> None:
    server = FakeServer(two_transactions())
    with pytest.raises(PositionLostError, match=r"ahead of the log of db1:3306"):
        read(server, Position(FILE, server.log.position + 1))


@dataclass
class ManyFiles:
    """A server with several files, that takes only positions where an event begins."""

    logs: dict[str, LogWriter]
    address: str = "db1:3306"
    asked: list[Position] = field(default_factory=list[Position])
    refusal: type[Exception] = PositionLostError

    def sizes(self) -> dict[str, int]:
        return {name: log.position for name, log in self.logs.items()}

    def now_us(self) -> int:
        return 1 << 60

    def previous_gtids(self, file: str) -> GtidSet:
        raise AssertionError(f"nobody looks for GTIDs in {file}")

    def end(self) -> Position:
        name, log = list(self.logs.items())[-1]
        return Position(name, log.position)

    @contextmanager
    def stream(
        self,
        start: Position,
        *,
        verify: bool,
        lenient: bool,
        annotations: bool = False,  # noqa: ARG002
    ) -> Iterator[FakeStream]:
        assert verify
        assert lenient
        self.asked.append(start)
        names = [name for name in self.logs if name >= start.file]
        blocks: list[Block] = []
        for name in names:
            log, first = self.logs[name], start.offset - 4 if name == start.file else 0
            if first not in event_starts(log):
                raise self.refusal(f"{self.address} cannot send its log from {start}: impossible position")
            reader = BlockReader(Position(name, first + 4), block_bytes=1 << 12)
            reader.expect_checksum(is_on=True)
            head = log.made_up_format() if first else b""
            blocks += feed(reader, head + bytes(log.data)[first:])
        yield FakeStream(blocks, self.end())


def event_starts(log: LogWriter) -> set[int]:
    starts, at = {len(log.data)}, 0
    while at < len(log.data):
        starts.add(at)
        at += int.from_bytes(log.data[at + 9 : at + 13], "little")
    return starts


def file_of(name: str, opened_s: int, *commits_s: int) -> LogWriter:
    log = LogWriter(file=name, is_mariadb=False, timestamp=opened_s).open()
    for second in commits_s:
        log.timestamp = second
        log.begin()
        log.map(7, PRODUCT)
        log.rows(INSERT, 7, PRODUCT, [[second, "x", None]])
        log.commit()
    return log


def test_a_time_is_also_looked_for_before_the_file_that_was_opened_then() -> None:
    """It has the time at which the statement began that made the server open it; others committed before."""
    commits = {1: (1000, [1000]), 2: (1900, [1950, 2100]), 3: (1990, [1990, 2110]), 4: (1990, [1990, 2200])}
    logs = {f"binlog.00000{i}": file_of(f"binlog.00000{i}", *times[:1], *times[1]) for i, times in commits.items()}
    since = Moment(2000 * 1_000_000)
    server = ManyFiles(logs)
    log = ServerLog(server, since, print, follow=False)
    assert log.start == Position("binlog.000002", 4)
    selection = EventSelection(since=since)
    seconds = [second for block in log for second in selection.pick_events(block).column("timestamp").tolist()]
    assert sorted(set(seconds)) == [2100, 2110, 2200]
    late = ServerLog(server, Moment(2150 * 1_000_000), print, follow=False)
    assert late.start == Position("binlog.000004", 4)


@pytest.mark.parametrize("refusal", [PositionLostError, BinlogError])
def test_where_no_event_begins_the_file_is_read_from_its_start(refusal: type[Exception]) -> None:
    server = ManyFiles({FILE: two_transactions()}, refusal=refusal)
    since = Position(FILE, offsets(server.logs[FILE])["gtid"] + 3)
    log = ServerLog(server, since, print, follow=False)
    assert log.start == Position(FILE, 4)
    selection = EventSelection(since=since)
    positions = [int(position) for block in log for position in selection.pick_events(block).column("position")]
    assert min(positions) > since.offset


def test_a_file_or_a_position_that_the_server_does_not_have() -> None:
    logs = {name: file_of(name, 1000, 1000) for name in ("binlog.000002", "binlog.000003")}
    size = logs["binlog.000002"].position
    with pytest.raises(PositionLostError, match=r"no log file binlog\.000001: it has binlog\.000002 to binlog\.000003"):
        ServerLog(ManyFiles(logs), Position("binlog.000001", 4), print, follow=False)
    with pytest.raises(PositionLostError, match=rf"binlog\.000002:{size + 1} is after the end of its file .* {size}:"):
        ServerLog(ManyFiles(logs), Position("binlog.000002", size + 1), print, follow=False)
