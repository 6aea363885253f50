"""Broken bytes end in a clear error with coordinates, or in a decode; never in a crash, a hang or another exception.

`tests/unit/binlog/test_bounds_check.py` runs this file once more with every read of the kernels checked.
"""

import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.reader import BlockReader
from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.errors import BinlogError, SchemaError
from penstock.model import Position
from tests.twins import event as ev
from tests.twins.event import Header, event
from tests.twins.feed import START, feed, read, rows_in, tables_of
from tests.twins.log import LogWriter
from tests.twins.strategy import broken, examples, logs

_COORDINATES = re.compile(r"^\S+\.\d+:\d+ ")


def batches_until_error(log: LogWriter, data: bytes, sizes: list[int], *, verify: bool) -> list[pa.RecordBatch]:
    """Changes of `orders` as far as they can be read. Any exception but ours comes out."""
    reader = BlockReader(START, verify=verify, block_bytes=512)
    reader.expect_checksum(is_on=log.is_checksummed)
    table = tables_of(log).get("orders")
    batches, message = list[pa.RecordBatch](), "binlog.000001:0 "
    try:
        for block in feed(reader, data, sizes):
            if table is not None:
                batches += decode_changes(block, table.name, arrow_fields_of_table(table))
    except BinlogError as error:
        message = str(error)
    except SchemaError as error:
        # A column that is not decoded is named by itself: another reader may leave it out.
        message = re.sub("^column shop.orders.c", "binlog.000001:0 ", str(error))
    assert _COORDINATES.match(message), message
    for batch in batches:
        batch.validate()
    return batches


@examples(150)
@given(logs(files=1), st.lists(st.integers(1, 300), max_size=10), st.data())
def test_broken_logs_without_checksums(log: LogWriter, sizes: list[int], data: st.DataObject) -> None:
    raw = data.draw(broken(bytes(log.data)))
    batches_until_error(log, raw, sizes, verify=False)


@examples(60)
@given(logs(files=2, is_checksummed=True), st.data())
def test_with_checksums_nothing_broken_gets_through(log: LogWriter, data: st.DataObject) -> None:
    """What comes out is what was written, up to the broken event."""
    whole, flipped = bytes(log.data), bytearray(log.data)
    first = int.from_bytes(whole[9:13], "little")
    flipped[data.draw(st.integers(first, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    written, read_back = (
        [row for batch in batches_until_error(log, bytes(raw), [], verify=True) for row in batch.to_pylist()]
        for raw in (whole, flipped)
    )
    assert read_back == written[: len(read_back)]


@examples(150)
@given(st.binary(max_size=400), st.booleans(), st.booleans())
def test_garbage(data: bytes, verify: bool, has_checksums: bool) -> None:
    log = LogWriter(is_checksummed=has_checksums)
    batches_until_error(log, data, [], verify=verify)
    batches_until_error(log, bytes(log.open().data) + data, [], verify=verify)


def reading(raw: bytes) -> None:
    list(feed(BlockReader(START), LogWriter().open().data + raw))


@pytest.mark.parametrize(
    ("kind", "body", "says"),
    [
        (ev.ROTATE, b"\x04\0\0\0\0\0\0\0nonumber", "ROTATE: the event does not hold"),
        (ev.ROTATE, b"\x04\0\0", "ROTATE: the event does not hold"),
        (ev.ROTATE, b"\xff" * 8 + b"binlog.000002", "ROTATE: the event does not hold"),
        (ev.FORMAT_DESCRIPTION, b"\x04\0", "FORMAT_DESCRIPTION: the event does not hold"),
        (ev.QUERY, b"\0" * 12, "QUERY: the event does not hold"),
        (ev.TABLE_MAP, bytes(8) + b"\x04sh", "TABLE_MAP: it ends early: 5 bytes wanted"),
        (ev.TABLE_MAP, bytes(8) + b"\x02\xff\xff\0\x01t\0", "TABLE_MAP: it has no readable names"),
        (23, b"\x09" + bytes(7), "WRITE_ROWS_V1: rows of table id 9 came before its table map"),
        (42, b"\0\0\0\x02", "GTID_TAGGED: the event does not hold"),
        (
            26,
            b"\x01\0",
            "INCIDENT: the source says that it may have lost events here; compare the data, then start after",
        ),
        (39, b"", "PARTIAL_UPDATE_ROWS: the event does not hold"),
        (40, b"", "TRANSACTION_PAYLOAD: it ends early"),
        (40, b"\x02\x01\x07\x00", "TRANSACTION_PAYLOAD: its events are compressed by method 7, which is not known"),
        (40, b"\x02\x01\x00\x03\x01\x14\x00garbage", "TRANSACTION_PAYLOAD: it cannot be expanded"),
        (40, b"\x02\x03\xfc\xff\x00\x00garbage", "TRANSACTION_PAYLOAD: it ends with 7 bytes that are no event"),
        (164, bytes(17), "MARIADB_START_ENCRYPTION: the log is encrypted from here on"),
        (165, bytes(13), "MARIADB_QUERY_COMPRESSED: its compressed part has no header"),
        (166, bytes(13), "MARIADB_WRITE_ROWS_COMPRESSED_V1: its compressed part has no header"),
        (169, b"", "MARIADB_WRITE_ROWS_COMPRESSED_V2: it ends early"),
        (172, b"\x02\0\0\0\x02\0\0\0\0", "MARIADB_PARTIAL_ROW_DATA: it is fragment 2 of 2, but fragment 1 is next"),
        (172, b"\x02\0\0\0\x01", "MARIADB_PARTIAL_ROW_DATA: it ends early"),
        (
            172,
            b"\x02\0\0\0\x01\0\0\0\x01" + b"\xff" * 8,
            "MARIADB_PARTIAL_ROW_DATA: its event has 1844674",
        ),
    ],
)
def test_what_cannot_be_read_is_named_with_its_position(kind: int, body: bytes, says: str) -> None:
    start = 4 + len(LogWriter().open().data)
    raw = event(kind, body, Header(start))
    expected = rf"^binlog\.000001:\d+ {re.escape(says)}.*; bytes there: [0-9a-f ]+$"
    with pytest.raises(BinlogError, match=expected) as error:
        reading(raw)
    at = int(str(error.value).partition(":")[2].partition(" ")[0]) - start
    assert 0 <= at < len(raw)
    assert raw[at:].startswith(bytes.fromhex(str(error.value).rpartition(": ")[2]))


@pytest.mark.parametrize("kind", [ev.XID, ev.ROTATE, ev.HEARTBEAT, ev.FORMAT_DESCRIPTION])
def test_every_kind_of_event_is_verified(kind: int) -> None:
    start = 4 + len(LogWriter().open().data)
    is_format = kind == ev.FORMAT_DESCRIPTION
    body = ev.format_description(is_checksummed=True) if is_format else ev.rotate("binlog.000002")
    raw = bytearray(event(kind, body, Header(start)))
    raw[-2] ^= 4
    with pytest.raises(
        BinlogError, match=rf"^binlog\.000001:{start} \w+: the event does not match its checksum; bytes"
    ):
        reading(bytes(raw))


def test_made_up_events_pass_and_others_with_their_mark_do_not() -> None:
    start = 4 + len(LogWriter().open().data)
    reading(event(40, b"", Header(is_made_up=True)))
    with pytest.raises(BinlogError, match="TRANSACTION_PAYLOAD"):
        reading(event(40, b"", Header(start, flags=ev.ARTIFICIAL)))


def test_what_lies_before_a_broken_event_is_still_delivered() -> None:
    log = LogWriter().open()
    log.statement("CREATE TABLE t (a INT)")
    good = len(read(log)[0])
    reader, blocks = BlockReader(START), list[Any]()
    broken_feed = feed(reader, bytes(log.data) + bytes(30))
    blocks.append(next(broken_feed))
    with pytest.raises(BinlogError, match=r"event type 0: the event.s size"):
        next(broken_feed)
    assert [len(block) for block in blocks] == [good]
    assert reader.position == Position(log.file, log.position)


@examples(40)
@given(logs(files=1))
def test_a_whole_log_is_not_mistaken_for_a_broken_one(log: LogWriter) -> None:
    for name, table in tables_of(log).items():
        assert len(rows_in(read(log), table)) == sum(image.table.name.table == name for image in log.images)
