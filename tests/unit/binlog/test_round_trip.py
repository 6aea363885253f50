"""Builder → reader → blocks → changes: what was put in comes out, however the bytes were cut."""

from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.checksum import block_checksum
from penstock.binlog.events.layout import Entry
from penstock.binlog.events.reader import BlockReader
from penstock.model import Column, Position, Sequence
from tests.twins.feed import EPOCH, START, feed, read, rows_in, tables_of
from tests.twins.log import Image, LogWriter
from tests.twins.row import ABSENT
from tests.twins.strategy import examples, logs, shown
from tests.twins.value import encode


def _on_wire(column: Column, cell: Any) -> Any:
    return cell if cell is None or cell is ABSENT else encode(column, cell)


def expected(image: Image, before: Image | None) -> dict[str, Any]:
    position = Position(image.file, image.offset, epoch=EPOCH)
    row = {c.name: shown(c, cell) for c, cell in zip(image.table.columns, image.row, strict=True)}
    changed = None
    if before is not None:
        pairs = zip(image.table.columns, image.row, before.row, strict=True)
        changed = [c.name for c, new, old in pairs if new is not ABSENT and _on_wire(c, new) != _on_wire(c, old)]
    return row | {
        "_change_type": image.kind.text,
        "_commit_version": int(Sequence(EPOCH, position.file_number, image.transaction)),
        "_seq": int(Sequence.from_position(position)),
        "_row": image.ordinal << 32 | image.number,
        "_gtid": image.gtid,
        "_file": image.file,
        "_offset": image.offset,
        "_changed": changed,
        "_absent": [c.name for c, cell in zip(image.table.columns, image.row, strict=True) if cell is ABSENT] or None,
        "_partial": None,
    }


def assert_same(rows: list[dict[str, Any]], images: list[Image]) -> None:
    assert len(rows) == len(images)
    for row, image, last in zip(rows, images, [None, *images], strict=False):
        commit = row.pop("_commit_timestamp")
        assert commit.timestamp() * 1_000_000 == image.commit_us
        before = last if image.kind.text == "update_postimage" else None
        assert row == expected(image, before)


@examples(60)
@given(logs(), st.lists(st.integers(1, 400), max_size=40), st.booleans())
def test_values_come_out_as_they_went_in(log: LogWriter, sizes: list[int], hold_trailing: bool) -> None:
    blocks = read(log, sizes, hold_trailing=hold_trailing)
    for name, table in tables_of(log).items():
        assert_same(rows_in(blocks, table), [image for image in log.images if image.table.name.table == name])


@examples(40)
@given(logs(), st.lists(st.integers(1, 200), max_size=60), st.integers(64, 2000), st.booleans(), st.booleans())
def test_blocks_do_not_depend_on_the_pieces_they_came_in(
    log: LogWriter, sizes: list[int], block_bytes: int, flush: bool, hold_trailing: bool
) -> None:
    whole, pieces = read(log), read(log, sizes, block_bytes=block_bytes, flush=flush, hold_trailing=hold_trailing)
    for file in {block.file for block in whole}:
        whole_events, many = (
            pa.Table.from_batches([b.events for b in blocks if b.file == file]) for blocks in (whole, pieces)
        )
        assert whole_events.equals(many)
    for block in pieces:
        assert block.end.offset - block.start.offset == sum(len(event) for event in block.events["event"].to_pylist())
        assert block.checksum == (block_checksum(block.data, block.index.bounds) if log.is_checksummed else None)
        assert {*block.tables} == {*block.column("table_id")[block.column("entry") == Entry.ROWS].tolist()}


@examples(60)
@given(logs(files=1), st.lists(st.integers(1, 200), max_size=60), st.integers(64, 2000), st.booleans())
def test_no_block_ends_with_what_belongs_to_the_next(
    log: LogWriter, sizes: list[int], block_bytes: int, flush: bool
) -> None:
    blocks = read(log, sizes, block_bytes=block_bytes, flush=flush, hold_trailing=True)
    for block in blocks:
        assert block.column("entry")[-1] or block.column("boundary")[-1]


@examples(60)
@given(logs(files=1), st.data())
def test_sequences_rise_and_are_the_same_from_every_boundary(log: LogWriter, data: st.DataObject) -> None:
    boundary = data.draw(st.sampled_from(log.boundaries))
    reader = BlockReader(Position(log.file, boundary))
    # As a server does it: the format event first, with no position of its own.
    size = int.from_bytes(log.data[9:13], "little")
    again = list(feed(reader, log.made_up_format() + bytes(log.data[max(boundary - 4, size) :])))
    for table in tables_of(log).values():
        first = rows_in(read(log), table)
        assert all(a["_seq"] < b["_seq"] for a, b in pairwise(first))
        assert rows_in(again, table) == [row for row in first if row["_offset"] >= boundary]


def test_a_log_starts_where_the_first_event_does() -> None:
    log = LogWriter().open()
    log.statement("CREATE TABLE t (a INT)")
    (block,) = read(log)
    assert START < block.start < block.end
    assert block.end.offset == 4 + len(log.data)
