"""What was compressed or cut in the log reads like what was not."""

import tracemalloc
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events import fragments as fragments_module
from penstock.binlog.events.block import Block
from penstock.binlog.events.reader import BlockReader
from penstock.errors import BinlogError
from penstock.model import Column, Position, TableName, TableSchema, WireType
from tests.twins.feed import START, feed, read, rows_in, tables_of
from tests.twins.hold import PARTIAL_ROW_DATA, TRANSACTION_PAYLOAD, compressed, fragments, payload, split
from tests.twins.log import LogWriter
from tests.twins.row import INSERT
from tests.twins.strategy import examples, logs

NOTES = TableSchema(TableName("shop", "notes"), (Column("text", WireType.BLOB, size=4, charset="binary"),))
_GTIDS = {33, 34, 162}
_COMPRESSIBLE = {2, 23, 24, 25, 30, 31, 32}
_PLACES = ("_seq", "_offset", "_commit_version")


def held(log: LogWriter, *, is_compressed: bool = True, depth: int = 1) -> LogWriter:
    """The same log with each transaction's events in a payload."""
    into = LogWriter(is_mariadb=log.is_mariadb, is_checksummed=log.is_checksummed)
    checksum, inside = 4 * log.is_checksummed, bytearray()

    def close() -> None:
        body = payload(bytes(inside), is_compressed=is_compressed)
        for _ in range(depth - 1):
            body = payload(_plain(TRANSACTION_PAYLOAD, body), is_compressed=is_compressed)
        if inside:
            into.add(TRANSACTION_PAYLOAD, body)
            inside.clear()

    for raw in split(bytes(log.data)):
        if raw[4] == 15:
            into.add_raw(raw)
        elif raw[4] in _GTIDS:
            close()
            into.add(raw[4], raw[19 : len(raw) - checksum])
        else:
            size = len(raw) - checksum
            inside += raw[:9] + size.to_bytes(4, "little") + bytes(4) + raw[17:size]
    close()
    return into


def _plain(kind: int, body: bytes) -> bytes:
    """An event without a checksum or a position."""
    return bytes(4) + bytes([kind]) + bytes(4) + (19 + len(body)).to_bytes(4, "little") + bytes(6) + body


def without_positions(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in _PLACES} for row in rows]


def assert_same(blocks: list[Block], log: LogWriter, into: LogWriter) -> None:
    plain = read(log)
    for table in tables_of(log).values():
        rows = rows_in(blocks, table)
        assert without_positions(rows) == without_positions(rows_in(plain, table))
        assert all((a["_seq"], a["_row"]) < (b["_seq"], b["_row"]) for a, b in pairwise(rows))
        assert all(row["_offset"] < into.position for row in rows)
    assert blocks[-1].end.offset == into.position
    ends = [block.end_of_event(int(i)).offset for block in blocks for i in block.boundaries]
    assert ends == sorted(ends)
    for block in blocks:
        assert block.column("span").sum() <= block.end.offset - block.start.offset


@examples(40)
@given(logs(files=1), st.booleans(), st.lists(st.integers(1, 200), max_size=30), st.integers(64, 2000), st.booleans())
def test_payloads(log: LogWriter, is_compressed: bool, sizes: list[int], block_bytes: int, hold_trailing: bool) -> None:
    into = held(log, is_compressed=is_compressed)
    assert_same(read(into, sizes, block_bytes=block_bytes, hold_trailing=hold_trailing), log, into)


@examples(10)
@given(logs(files=1))
def test_payloads_in_payloads(log: LogWriter) -> None:
    into = held(log, depth=3)
    assert_same(read(into), log, into)


def test_payloads_in_payloads_end_somewhere() -> None:
    log = LogWriter().open()
    log.statement("CREATE TABLE t (a INT)")
    with pytest.raises(BinlogError, match=r"^binlog\.000001:\d+ TRANSACTION_PAYLOAD: it is a payload in a payload in"):
        read(held(log, depth=4))


@examples(40)
@given(logs(files=1), st.data())
def test_compressed_events(log: LogWriter, data: st.DataObject) -> None:
    """MariaDB compresses what is long enough, event by event."""
    into = LogWriter(is_mariadb=log.is_mariadb, is_checksummed=log.is_checksummed)
    checksum = 4 * log.is_checksummed
    for raw in split(bytes(log.data)):
        if raw[4] in _COMPRESSIBLE and data.draw(st.booleans()):
            into.add_raw(compressed(raw, into.position, checksum=checksum))
        elif raw[4] == 15:
            into.add_raw(raw)
        else:
            into.add(raw[4], raw[19 : len(raw) - checksum])
    assert_same(read(into), log, into)


@examples(40)
@given(logs(files=1), st.integers(5, 60), st.booleans())
def test_fragments(log: LogWriter, size: int, with_checksum: bool) -> None:
    into = LogWriter(is_mariadb=log.is_mariadb, is_checksummed=log.is_checksummed)
    checksum = 4 * log.is_checksummed
    for raw in split(bytes(log.data)):
        if raw[4] in _COMPRESSIBLE - {2}:
            whole = raw if with_checksum and not checksum else raw[: len(raw) - checksum]
            for body in fragments(whole, size):
                into.add(PARTIAL_ROW_DATA, body)
        elif raw[4] == 15:
            into.add_raw(raw)
        else:
            into.add(raw[4], raw[19 : len(raw) - checksum])
    assert_same(read(into), log, into)


def test_a_large_payload_is_cut_into_blocks() -> None:
    """Its events are expanded piece by piece: no block is much larger than it should be."""
    log = LogWriter(is_mariadb=False).open()
    log.begin()
    log.map(7, NOTES)
    for i in range(200):
        log.rows(INSERT, 7, NOTES, [[bytes([i]) * 1000]])
    log.commit()
    blocks = list(feed(BlockReader(START, block_bytes=10_000), bytes(held(log).data)))
    assert len(blocks) > 10
    assert max(block.size_bytes for block in blocks) < 60_000
    rows = rows_in(blocks, NOTES)
    assert [row["text"] for row in rows] == [bytes([i]) * 1000 for i in range(200)]
    assert [row["_row"] >> 32 for row in rows] == list(range(200))


def test_a_payload_that_lies_about_its_size_is_refused() -> None:
    inner = _plain(2, b"\0" * 14 + b"BEGIN")
    body = payload(inner, is_compressed=False)
    said = b"\x03\x01" + bytes([len(inner)])
    lies = [b"\x03\x01" + bytes([size]) for size in (0, 19, len(inner) - 1, len(inner) + 1)]
    for lie in (*lies, b"\x03\x09\xfe" + b"\xff" * 8):
        into = LogWriter().open()
        into.add(TRANSACTION_PAYLOAD, body.replace(said, lie))
        with pytest.raises(BinlogError, match=r"^binlog\.000001:\d+ "):
            read(into)


def in_fragments(*, size: int = 40) -> tuple[LogWriter, list[bytes]]:
    """A log up to the rows event of a transaction, and the bodies of that event's fragments."""
    log, plain = LogWriter().open(), LogWriter().open()
    for writer in (log, plain):
        writer.begin()
        writer.map(7, NOTES)
    plain.rows(INSERT, 7, NOTES, [[b"x" * 100]])
    return log, fragments(bytes(plain.data[len(log.data) : -4]), size)


@pytest.mark.parametrize("kind", [16, 2, 23, 40])
def test_an_event_instead_of_a_fragment_is_refused(kind: int) -> None:
    log, bodies = in_fragments()
    log.add(PARTIAL_ROW_DATA, bodies[0])
    at = log.add(kind, bytes(20))
    blocks = feed(BlockReader(START), bytes(log.data))
    assert next(blocks).column("kind").tolist() == [162, 19]
    says = r"\w+: fragment 2 of 4 of the event at \d+ belongs here, and is missing; bytes there: "
    with pytest.raises(BinlogError, match=rf"^binlog\.000001:{at} {says}"):
        next(blocks)


@pytest.mark.parametrize(
    ("order", "says"),
    [
        ((0, 2), "it is fragment 3 of 4, but fragment 2 of 4 is next"),
        ((1,), "it is fragment 2 of 4, but fragment 1 is next"),
        ((0, 0), "it is fragment 1 of 4, but fragment 2 of 4 is next"),
    ],
)
def test_fragments_out_of_order_are_refused(order: tuple[int, ...], says: str) -> None:
    log, bodies = in_fragments()
    at = [log.add(PARTIAL_ROW_DATA, bodies[number]) for number in order][-1]
    with pytest.raises(BinlogError, match=rf"^binlog\.000001:{at + 19} MARIADB_PARTIAL_ROW_DATA: {says}; bytes there"):
        read(log)


def test_fragments_of_another_number_are_refused() -> None:
    log, bodies = in_fragments()
    log.add(PARTIAL_ROW_DATA, bodies[0])
    log.add(PARTIAL_ROW_DATA, b"\x05" + bodies[1][1:])
    with pytest.raises(BinlogError, match=r"it is fragment 2 of 5, but fragment 2 of 4 is next"):
        read(log)


@pytest.mark.parametrize("is_rotated", [True, False])
def test_fragments_end_with_their_file(is_rotated: bool) -> None:
    """A server that was killed between two of them does not resume with them."""
    log, bodies = in_fragments()
    log.add(PARTIAL_ROW_DATA, bodies[0])
    log.rotate("binlog.000002") if is_rotated else None
    log.open()
    log.begin()
    log.map(7, NOTES)
    log.rows(INSERT, 7, NOTES, [[b"y"]])
    log.commit()
    assert [row["text"] for row in rows_in(read(log), NOTES)] == [b"y"]


def test_heartbeats_may_come_between_fragments() -> None:
    log, bodies = in_fragments()
    for body in bodies:
        log.add(PARTIAL_ROW_DATA, body)
        log.add_made_up(27, b"binlog.000001")
    log.commit()
    assert [row["text"] for row in rows_in(read(log), NOTES)] == [b"x" * 100]


def test_fragments_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragments_module, "LARGEST_EVENT", 80)
    log, bodies = in_fragments()
    for body in bodies:
        log.add(PARTIAL_ROW_DATA, body[:8] + b"\0" + body[17 if body[8] else 9 :])
    with pytest.raises(BinlogError, match=r"MARIADB_PARTIAL_ROW_DATA: its event has 120 bytes, more than the 80"):
        read(log)


def test_a_payload_is_not_copied() -> None:
    """Beside the bytes that came and the blocks that go, a payload takes no memory of its own."""
    row = _plain(2, b"\0" * 14 + b"x" * (1 << 20))
    log = LogWriter(is_mariadb=False).open()
    log.add(TRANSACTION_PAYLOAD, b"\x03\x09\xfe" + (40 * len(row)).to_bytes(8, "little") + b"\0" + 40 * row)
    data = bytes(log.data)
    reader = BlockReader(START, block_bytes=1 << 20)
    reader.room(len(data))[: len(data)] = memoryview(data)
    reader.advance(len(data))
    tracemalloc.start()
    try:
        assert sum(map(len, reader.blocks(flush=True))) == 40
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_a_payload_beyond_4_gib_has_its_position() -> None:
    """Also where a part of the file before it was left out of the stream."""
    start = (1 << 32) - 500
    log = LogWriter(is_mariadb=False, position=start)
    log.begin()
    log.position += 1000
    at = log.add(TRANSACTION_PAYLOAD, payload(_plain(2, b"\0" * 14 + b"XA END")))
    reader = BlockReader(Position("binlog.000001", start))
    reader.expect_checksum(is_on=True)
    *_, last = feed(reader, bytes(log.data))
    assert at > 1 << 32
    assert last.column("position").tolist()[-1] == at
    assert last.end.offset == log.position
