"""A part of the log that breaks while it is read: its events come once, however the blocks are cut each time."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.binlog.events.block import Block
from penstock.binlog.events.file import LogFile
from penstock.client.repeated_read import ResumedRead, read_whole
from penstock.errors import ProtocolError, ServerUnavailableError
from tests.twins.event import MAGIC
from tests.twins.log import LogWriter
from tests.twins.strategy import examples, logs


class Chunk:
    def __init__(self, block: Block) -> None:
        self.block = block


class BrokenLink:
    """Gives a stream for each list of blocks; each but the last breaks at its end."""

    destination = "shop"
    retry_timeout_s = 30.0

    def __init__(self, *reads: list[Block]) -> None:
        self._reads = list(reads)

    def open_stream(self, ticket: bytes) -> "BrokenStream":
        del ticket
        return BrokenStream(self._reads.pop(0), breaks=bool(self._reads))


class BrokenStream:
    def __init__(self, blocks: list[Block], *, breaks: bool) -> None:
        self._blocks, self._breaks = list(blocks), breaks

    def read_chunk(self) -> Chunk:
        if self._blocks:
            return Chunk(self._blocks.pop(0))
        if self._breaks:
            raise ServerUnavailableError("gone")
        raise StopIteration


def read(link: Any) -> list[tuple[int, int]]:
    """Position and table of each event that came."""
    reading, events = ResumedRead(link, b""), list[tuple[int, int]]()
    while (chunk := reading.next_chunk()) is not None:
        block = reading.drop_repeated(chunk.block)
        events += zip(block.column("position").tolist(), block.column("table_id").tolist(), strict=True)
    return events


def cut(block: Block, sizes: list[int]) -> list[Block]:
    pieces, at = list[Block](), 0
    for size in sizes:
        if at < len(block):
            pieces.append(block.slice(at, min(len(block), at + size)))
            at += size
    return [*pieces, *([block.slice(at, len(block))] if at < len(block) else [])]


@settings(examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(logs(files=1), st.data())
def test_each_event_comes_once_wherever_it_breaks(tmp_path: Path, log: LogWriter, data: st.DataObject) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(MAGIC + bytes(log.data))
    block = Block.concatenate(list(LogFile(path)))
    if data.draw(st.booleans()):  # as rows of an XA transaction may be: several at one position
        position = block.column("position").copy()
        position[1::2] = position[: len(position) - 1 : 2]
        block = block.with_columns(position=np.sort(position))
    reads = list[list[Block]]()
    for _ in range(data.draw(st.integers(0, 3))):
        pieces = cut(block, data.draw(st.lists(st.integers(1, 5), max_size=8)))
        reads.append(pieces[: data.draw(st.integers(0, len(pieces)))])
    reads.append(cut(block, data.draw(st.lists(st.integers(1, 5), max_size=8))))
    assert read(BrokenLink(*reads)) == read(BrokenLink([block]))


def test_events_between_changes_may_differ_after_a_break(tmp_path: Path) -> None:
    """A server that begins with other blocks leaves out other events of what nobody reads."""
    path = tmp_path / "binlog.000001"
    log = LogWriter().open()
    for _ in range(3):
        log.begin()
        log.commit()
    path.write_bytes(MAGIC + bytes(log.data))
    block = Block.concatenate(list(LogFile(path)))
    fewer = block.take(np.arange(0, len(block), 2))
    seen = read(BrokenLink([block.slice(0, 3)], [fewer]))
    positions = [position for position, _ in seen]
    assert positions == sorted(set(positions))
    assert positions[-1] == int(fewer.column("position")[-1])


def test_a_part_of_another_epoch_is_not_joined(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    log = LogWriter().open()
    log.begin()
    log.commit()
    path.write_bytes(MAGIC + bytes(log.data))
    block = Block.concatenate(list(LogFile(path)))
    other = Block(
        **{name: getattr(block, name) for name in ("file", "server_version", "tags", "data", "index", "tables")},
        epoch=1,
    )
    with pytest.raises(ProtocolError, match="the source was switched"):
        read(BrokenLink([block], [other]))


class LostLink:
    """A link to a server that never answers: it retries by itself, and gives up a little before its timeout because the
    next delay would be too long."""

    destination = "shop"
    retry_timeout_s = 30.0

    def __init__(self, *streams: BrokenStream) -> None:
        self._streams = list(streams)
        self.openings = 0

    def open_stream(self, ticket: bytes) -> BrokenStream:
        del ticket
        self.openings += 1
        if self._streams:
            return self._streams.pop(0)
        raise ServerUnavailableError("nobody answers")


@pytest.mark.parametrize("breaks", [0, 1], ids=["at its first opening", "after a break"])
@pytest.mark.parametrize("form", ["part", "whole"])
def test_a_server_that_never_answers_is_waited_for_once(breaks: int, form: str) -> None:
    link: Any = LostLink(*(BrokenStream([], breaks=True) for _ in range(breaks)))
    with pytest.raises(ServerUnavailableError, match="nobody answers"):
        ResumedRead(link, b"").next_chunk() if form == "part" else read_whole(link, b"")
    assert link.openings == breaks + 1


def test_a_part_that_always_breaks_at_the_same_event_is_given_up(tmp_path: Path) -> None:
    """What came before the break comes each time: that is no progress."""
    log = LogWriter().open()
    log.begin()
    log.commit()
    path = tmp_path / "binlog.000001"
    path.write_bytes(MAGIC + bytes(log.data))
    (block,) = LogFile(path)

    class StuckLink(BrokenLink):
        destination = "shop"
        retry_timeout_s = 0.5

        def open_stream(self, ticket: bytes) -> BrokenStream:
            del ticket
            return BrokenStream([block], breaks=True)

    with pytest.raises(ServerUnavailableError, match="gone"):
        read(StuckLink())
