"""Large logs: many tables, a large row, files beyond 4 GiB."""

import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from penstock.binlog.events.block import Block
from penstock.binlog.events.file import LogFile
from penstock.binlog.events.reader import BlockReader
from penstock.model import Column, Position, TableName, TableSchema, WireType
from tests.twins.event import MAGIC, Header, event
from tests.twins.feed import START, feed, read, rows_in
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

NOTES = TableSchema(TableName("shop", "notes"), (Column("text", WireType.BLOB, size=4, charset="binary"),))
NUMBERS = (Column("id", WireType.LONG), Column("text", WireType.VARCHAR, size=20, charset="utf8mb4"))
IGNORABLE, STEP = 28, 16 << 20
GIB = 1 << 30


def many_tables(count: int) -> LogWriter:
    """Each is used twice, with all others in between."""
    log = LogWriter().open()
    tables = [TableSchema(TableName("shop", f"t{i}"), NUMBERS, ("id",)) for i in range(count)]
    for turn in range(2):
        for i, table in enumerate(tables):
            log.begin()
            log.map(100 + i, table)
            log.rows(INSERT, 100 + i, table, [[turn, "x"]])
            log.commit()
    return log


def test_ten_thousand_tables() -> None:
    """Time grows with their number, and what blocks know of tables is there once."""
    took = {1_000: 0.0, 10_000: 0.0}
    blocks: list[Block] = []
    for count in took:
        log = many_tables(count)
        began = time.process_time()
        blocks = read(log, [1 << 16] * 100, flush=False)
        took[count] = time.process_time() - began
        assert sum(map(len, blocks)) == 8 * count
    assert took[10_000] < 3 * 10 * took[1_000] + 1
    assert max(len(block.tables) for block in blocks) < 1_000
    bodies = [body for block in blocks for body in block.tables.values()]
    assert (len(bodies), len({id(body) for body in bodies})) == (20_000, 10_000)
    for i in (0, 9_999):
        table = TableSchema(TableName("shop", f"t{i}"), NUMBERS, ("id",))
        assert [row["id"] for row in rows_in(blocks, table)] == [0, 1]


@pytest.mark.parametrize("is_checksummed", [True, False])
def test_a_row_of_100_mb(is_checksummed: bool) -> None:
    text = np.arange(100_000_000 // 8, dtype=np.int64).tobytes()
    log = LogWriter(is_checksummed=is_checksummed).open()
    log.begin()
    log.map(7, NOTES)
    log.rows(INSERT, 7, NOTES, [[text]])
    log.commit()
    data = bytes(log.data)
    tracemalloc.start()
    try:
        reader = BlockReader(START)
        blocks = list(feed(reader, data, [1 << 20] * 100, flush=False))
        assert tracemalloc.get_traced_memory()[1] < 1.2 * len(data)
    finally:
        tracemalloc.stop()
    assert [row["text"] == text for row in rows_in(blocks, NOTES)] == [True]
    assert reader.room(1).size <= 4 << 20


def large_events(start: int, count: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Where events of this size begin, and their headers; nobody looks into their bodies."""
    for position in range(start, start + count * size, size):
        head = bytearray(event(IGNORABLE, b"", Header(position, is_checksummed=False)))
        head[9:13], head[13:17] = size.to_bytes(4, "little"), (position + size & 0xFFFFFFFF).to_bytes(4, "little")
        yield position, bytes(head)


def notes_at(position: int, *texts: bytes) -> LogWriter:
    log = LogWriter(is_checksummed=False, position=position)
    for text in texts:
        log.begin()
        log.map(7, NOTES)
        log.rows(INSERT, 7, NOTES, [[text]])
        log.commit()
    return log


def offsets(blocks: list[Block]) -> list[int]:
    return [position for block in blocks for position in block.column("position").tolist()]


def test_a_stream_beyond_4_gib_and_beyond_8() -> None:
    """Of events of 1 GiB, whose bodies are memory that nobody touches."""
    reader = BlockReader(START)
    opening = LogWriter(is_checksummed=False).open()
    list(feed(reader, bytes(opening.data)))
    expected: list[int] = []
    offsets_read: list[int] = []
    for position, head in large_events(opening.position, 9, GIB):
        room = reader.room(GIB)
        room[: len(head)] = memoryview(head)
        reader.advance(GIB)
        expected.append(position)
        offsets_read += offsets(list(reader.blocks(flush=True)))
    assert offsets_read == expected
    log = notes_at(opening.position + 9 * GIB, b"a")
    blocks = list(feed(reader, bytes(log.data)))
    assert reader.position == Position("binlog.000001", log.position)
    assert rows_in(blocks, NOTES)[0]["_offset"] == log.images[0].offset > 9 * GIB


@pytest.mark.slow
def test_a_file_beyond_4_gib_that_ends_inside_an_event(tmp_path: Path) -> None:
    """Sparse on the disk, read like any other."""
    opening = LogWriter(is_checksummed=False).open()
    path = tmp_path / "binlog.000001"
    log = notes_at(opening.position + 4 * GIB, b"a", b"b")
    with path.open("wb") as file:
        file.write(MAGIC + opening.data)
        for position, head in large_events(opening.position, 4 * GIB // STEP, STEP):
            file.seek(position)
            file.write(head)
        file.seek(opening.position + 4 * GIB)
        file.write(log.data + log.made_up_format()[:30])
    whole = LogFile(path)
    rows, count = list[dict[str, object]](), 0
    for block in whole:
        rows += rows_in([block], NOTES)
        count += len(block)
    assert count == 4 * GIB // STEP + 8
    assert [row["text"] for row in rows] == [b"a", b"b"]
    assert [row["_offset"] for row in rows] == [image.offset for image in log.images]
    assert (whole.end, whole.rest) == (Position("binlog.000001", log.position), 30)
