"""The block reader's framing: sizes, rotation, checksums per file, buffers that grow and shrink."""

import numpy as np
import pytest

from penstock.binlog.events import block_builder
from penstock.binlog.events.block import Block
from penstock.binlog.events.reader import BlockReader
from penstock.errors import BinlogError
from penstock.model import Column, Position, TableName, TableSchema, WireType
from tests.twins import event as ev
from tests.twins.feed import START, feed, read, rows_in
from tests.twins.log import SOURCE, LogWriter
from tests.twins.row import INSERT

NOTES = TableSchema(TableName("shop", "notes"), (Column("text", WireType.BLOB, size=4, charset="binary"),))


def write(log: LogWriter, *texts: bytes) -> None:
    for text in texts:
        log.begin()
        log.map(7, NOTES)
        log.rows(INSERT, 7, NOTES, [[text]])
        log.commit()


def texts(blocks: list[Block]) -> list[bytes]:
    return [row["text"] for row in rows_in(blocks, NOTES)]


def fill(reader: BlockReader, data: bytes) -> None:
    reader.room(len(data))[: len(data)] = np.frombuffer(data, np.uint8)
    reader.advance(len(data))


def test_without_flush_a_block_waits_until_it_is_large_enough() -> None:
    log = LogWriter().open()
    write(log, b"x" * 500, b"y" * 500)
    reader = BlockReader(START, block_bytes=1000)
    half = len(log.data) * 2 // 3
    fill(reader, bytes(log.data[:half]))
    assert list(reader.blocks(flush=False)) == []
    fill(reader, bytes(log.data[half:]))
    (block,) = reader.blocks(flush=False)
    assert texts([block]) == [b"x" * 500, b"y" * 500]


def test_events_that_belong_to_one_to_come_can_wait_for_it() -> None:
    """A store has no use for a block without an entry, and would drop it."""
    log = LogWriter(is_mariadb=False).open()
    write(log, b"x")
    opened = log.position
    log.begin()
    size = int.from_bytes(log.data[opened - 4 + 9 : opened - 4 + 13], "little")
    reader = BlockReader(START)
    fill(reader, bytes(log.data[: opened - 4]))
    assert len(list(reader.blocks(flush=True, hold_trailing=True))) == 1
    fill(reader, bytes(log.data[opened - 4 : opened - 4 + size]))
    assert list(reader.blocks(flush=True, hold_trailing=True)) == []
    assert reader.position.offset == opened + size
    fill(reader, bytes(log.data[opened - 4 + size :]))
    (block,) = reader.blocks(flush=True, hold_trailing=True)
    assert block.column("kind").tolist() == [ev.GTID, ev.QUERY]
    assert block.start.offset == opened


def test_a_full_index_makes_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_builder, "_EVENTS", 8)
    log = LogWriter().open()
    write(log, *(bytes([i]) for i in range(10)))
    blocks = read(log)
    assert [len(block) for block in blocks] == [8] * 5
    assert texts(blocks) == [bytes([i]) for i in range(10)]


def test_an_event_larger_than_the_buffer_makes_it_grow_and_shrink_again() -> None:
    log = LogWriter().open()
    write(log, b"a", b"b" * 50_000, b"c")
    reader = BlockReader(START, block_bytes=1000)
    blocks = list(feed(reader, bytes(log.data), [700] * 200))
    assert texts(blocks) == [b"a", b"b" * 50_000, b"c"]
    assert reader.room(100).size <= 4000


def test_rotation_continues_in_the_next_file_and_forgets_table_ids() -> None:
    log = LogWriter().open()
    write(log, b"a")
    log.rotate("binlog.000002")
    log.open()
    write(log, b"b")
    blocks = read(log)
    assert {block.file for block in blocks} == {"binlog.000001", "binlog.000002"}
    assert texts(blocks) == [b"a", b"b"]
    assert blocks[-1].end == Position("binlog.000002", log.position)


def test_after_a_rotation_the_position_is_in_the_next_file() -> None:
    log = LogWriter().open()
    log.begin()  # a server that was killed leaves a transaction without an end
    log.rotate("binlog.000002")
    reader = BlockReader(START)
    list(feed(reader, bytes(log.data)))
    assert str(reader.position) == "binlog.000002:4"
    assert reader.is_between_transactions


def test_pieces_that_fill_the_buffer_before_a_block_is_due() -> None:
    log = LogWriter().open()
    write(log, *(bytes([65 + i]) * 90 for i in range(20)))
    blocks = read(log, [150] * 100, block_bytes=700, flush=False)
    assert len(blocks) > 3
    assert texts(blocks) == [bytes([65 + i]) * 90 for i in range(20)]


def test_each_file_says_whether_it_has_checksums() -> None:
    first, second = LogWriter().open(), LogWriter("binlog.000002", is_checksummed=False).open()
    write(first, b"a")
    first.rotate("binlog.000002")
    write(second, b"b")
    blocks = list(feed(BlockReader(START), bytes(first.data + second.data)))
    assert [int(block.column("checksum")[0]) for block in blocks if len(block.tables)] == [4, 0]
    assert texts(blocks) == [b"a", b"b"]


def test_heartbeats_do_not_disturb_a_transaction() -> None:
    log = LogWriter().open()
    log.begin()
    log.map(7, NOTES)
    log.add_made_up(ev.HEARTBEAT, b"binlog.000001")
    log.rows(INSERT, 7, NOTES, [[b"a"]])
    log.commit()
    blocks = read(log)
    assert texts(blocks) == [b"a"]
    assert [block.boundaries.size for block in blocks] == [1]


def test_knows_whether_it_is_between_two_transactions() -> None:
    log = LogWriter().open()
    reader = BlockReader(START)
    list(feed(reader, bytes(log.data)))
    assert reader.is_between_transactions
    done = len(log.data)
    log.begin()
    list(feed(reader, bytes(log.data[done:])))
    assert not reader.is_between_transactions
    done = len(log.data)
    log.commit()
    list(feed(reader, bytes(log.data[done:])))
    assert reader.is_between_transactions
    assert reader.position == Position(log.file, log.position)


@pytest.mark.parametrize(("is_mariadb", "version"), [(True, "10.11.6-MariaDB-log"), (False, "8.4.0")])
def test_blocks_know_the_version_of_their_server(is_mariadb: bool, version: str) -> None:
    log = LogWriter(is_mariadb=is_mariadb).open()
    write(log, b"a")
    assert {block.server_version for block in read(log)} == {version}


def test_rows_without_a_table_map_are_named_and_what_lies_before_is_delivered() -> None:
    log = LogWriter().open()
    write(log, b"a")
    log.begin()
    at = log.position
    log.rows(INSERT, 8, NOTES, [[b"b"]])
    blocks = feed(BlockReader(START), bytes(log.data))
    assert len(next(blocks)) == 5
    says = "WRITE_ROWS_V1: rows of table id 8 came before its table map: reading did not start between two transactions"
    with pytest.raises(BinlogError, match=rf"^binlog\.000001:{at} {says}; bytes there: "):
        next(blocks)


def test_a_table_map_that_cannot_be_read_is_named_at_its_rows() -> None:
    log = LogWriter(is_checksummed=False).open()
    write(log, b"a")
    at = log.data.index(b"\x05notes\0") + 8
    log.data[at] = 251  # the type LONG_BLOB; its metadata says so
    log.data[at + 2] = 9
    (block,) = read(log)
    offset = int(block.column("position")[2])
    says = r"WRITE_ROWS_V1 of table id 7: TABLE_MAP of shop\.notes: column text is a BLOB with the metadata 09"
    with pytest.raises(BinlogError, match=rf"^binlog\.000001:{offset} {says}; bytes there: 09 "):
        block.schema_of(7)


def test_any_number_of_tags() -> None:
    """A block knows at most 252; then the next one begins."""
    log = LogWriter(is_mariadb=False).open()
    for i in range(600):
        log.begin_tagged(f"tag_{i}")
        log.map(7, NOTES)
        log.rows(INSERT, 7, NOTES, [[b"x"]])
        log.commit()
    blocks = read(log, block_bytes=1 << 20)
    assert [row["_gtid"] for row in rows_in(blocks, NOTES)] == [f"{SOURCE}:tag_{i}:{1 + i}" for i in range(600)]
    assert [len(block.tags) for block in blocks] == [252, 252, 96]
