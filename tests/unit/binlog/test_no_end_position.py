"""Logs whose events inside a transaction have no end position, as MariaDB writes them from 11.4 on."""

from penstock.binlog.events.block import Block
from penstock.binlog.events.reader import BlockReader
from penstock.model import Column, Position, TableName, TableSchema, WireType
from tests.twins import event as ev
from tests.twins.feed import START, feed, read, rows_in
from tests.twins.hold import compressed
from tests.twins.log import LogWriter
from tests.twins.row import INSERT, rows

NOTES = TableSchema(TableName("shop", "notes"), (Column("text", WireType.BLOB, size=4, charset="binary"),))


def write(log: LogWriter, *texts: bytes) -> None:
    for text in texts:
        log.begin()
        log.map(7, NOTES)
        log.rows(INSERT, 7, NOTES, [[text]])
        log.commit()


def texts(blocks: list[Block]) -> list[bytes]:
    return [row["text"] for row in rows_in(blocks, NOTES)]


def test_events_without_an_end_position_lie_where_their_bytes_are() -> None:
    """From MariaDB 11.4 on, only the first and the last event of a transaction say where they end."""
    log, plain = LogWriter(has_ends=False).open(), LogWriter().open()
    for writer in (log, plain):
        writer.add(ev.MARIADB_CHECKPOINT, b"\x0d\0\0\0binlog.000001")
        write(writer, b"a", b"b" * 300)
        writer.begin()
        writer.add(ev.MARIADB_ANNOTATE, b"INSERT INTO notes VALUES ('c')")
        writer.map(7, NOTES)
        writer.rows(INSERT, 7, NOTES, [[b"c"]])
        writer.add(ev.QUERY, ev.query(b"SAVEPOINT s"))
        writer.commit(with_query=True)
        writer.rotate("binlog.000002")
        writer.open()
        write(writer, b"d")
    assert len(log.data) == len(plain.data)
    blocks, expected = read(log), read(plain)
    for name in ("position", "span", "transaction", "ordinal", "entry", "boundary"):
        assert [block.column(name).tolist() for block in blocks] == [block.column(name).tolist() for block in expected]
    assert texts(blocks) == [b"a", b"b" * 300, b"c", b"d"]
    assert blocks[-1].end == Position("binlog.000002", log.position)


def test_events_that_were_left_out_are_noticed_at_the_next_end_position() -> None:
    """A server need not send what a reader has not asked for; events of a transaction then lie too early, never two at
    one position, and the next transaction is where it is."""
    whole = LogWriter(has_ends=False).open()
    whole.begin()
    first, at = whole.position, len(whole.data)
    whole.add(ev.MARIADB_ANNOTATE, b"INSERT INTO notes VALUES ('a')")
    size = len(whole.data) - at
    whole.map(7, NOTES)
    whole.rows(INSERT, 7, NOTES, [[b"a"]])
    whole.commit()
    opened = whole.position
    write(whole, b"b")
    sent = bytes(whole.data[:at] + whole.data[at + size :])
    blocks = list(feed(BlockReader(START), sent))
    position = [p for block in blocks for p in block.column("position").tolist()]
    assert position == sorted(set(position))
    assert position[1] == first
    assert position[4] == opened
    assert texts(blocks) == [b"a", b"b"]


def test_a_reader_that_begins_inside_a_file_counts_from_there() -> None:
    log = LogWriter(has_ends=False).open()
    write(log, b"a")
    start, at = log.position, len(log.data)
    write(log, b"b")
    opening = ev.event(ev.ROTATE, ev.rotate(log.file, start), ev.Header(is_made_up=True)) + log.made_up_format()
    reader = BlockReader(Position(log.file, start))
    reader.expect_checksum(is_on=True)
    blocks = list(feed(reader, opening + bytes(log.data[at:])))
    assert blocks[0].start.offset == start
    assert blocks[-1].end.offset == log.position
    assert texts(blocks) == [b"b"]


def test_a_compressed_event_without_an_end_position_has_its_own_bytes() -> None:
    log, plain = LogWriter(has_ends=False).open(), LogWriter().open()
    for writer in (log, plain):
        writer.begin()
        writer.map(7, NOTES)
        kind, body, _ = rows(INSERT, 7, NOTES.columns, [[b"x" * 500]], version=1, flags=1)
        raw = compressed(ev.event(kind, body, ev.Header(writer.position)), writer.position, checksum=4)
        writer.add_raw(raw if writer.has_ends else ev.with_checksum(raw[:13] + bytes(4) + raw[17:-4]))
        writer.commit()
        write(writer, b"y")
    blocks, expected = read(log), read(plain)
    assert [block.column("position").tolist() for block in blocks] == [
        block.column("position").tolist() for block in expected
    ]
    assert texts(blocks) == [b"x" * 500, b"y"]
