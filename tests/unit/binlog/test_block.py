"""Blocks: cutting by position, filtering by table, the way over the wire."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.model import Column, Position, TableName, TableSchema, WireType
from tests.twins.feed import read, rows_in, tables_of
from tests.twins.log import LogWriter
from tests.twins.row import INSERT
from tests.twins.strategy import examples, logs

ORDERS = TableSchema(TableName("shop", "orders"), (Column("id", WireType.LONG),), ("id",))
OTHER = TableSchema(TableName("shop", "other"), (Column("id", WireType.LONG),), ("id",))


def over_the_wire(block: Block) -> Block:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, block.events.schema) as writer:
        writer.write_batch(block.events)
    return Block.from_arrow(pa.ipc.open_stream(sink.getvalue()).read_next_batch(), block.encode_description())


def events_of(block: Block) -> list[tuple[int, bytes]]:
    return list(zip(block.column("position").tolist(), block.events["event"].to_pylist(), strict=True))


@examples(40)
@given(logs(files=2), st.data())
def test_between_gives_the_events_that_lie_there(log: LogWriter, data: st.DataObject) -> None:
    blocks = read(log)
    block = data.draw(st.sampled_from(blocks))
    offsets = st.one_of(st.sampled_from([at for at, _ in events_of(block)]), st.integers(0, block.end.offset + 40))
    files = st.sampled_from(["binlog.000001", "binlog.000002", "binlog.000003"])
    start, end = (Position(data.draw(files), data.draw(offsets)) for _ in range(2))
    expected = [
        (at, raw)
        for at, raw in events_of(block)
        if Position(block.file, at) >= start and Position(block.file, at + len(raw)) <= end
    ]
    assert events_of(block.between(start, end)) == expected


@examples(40)
@given(logs(files=1), st.data())
def test_slices_of_a_block_are_blocks(log: LogWriter, data: st.DataObject) -> None:
    (whole,) = read(log)
    first = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(first, len(whole)))
    part = whole.slice(first, stop)
    assert events_of(part) == events_of(whole)[first:stop]
    buffer, starts, sizes = part.raw
    raw = [buffer[at : at + size].tobytes() for at, size in zip(starts, sizes, strict=True)]
    assert raw == part.events["event"].to_pylist()
    assert [bytes(line) for line in part.gtids] == part.events["gtid"].to_pylist()
    assert part.boundaries.tolist() == [i for i, mark in enumerate(part.column("boundary")) if mark]
    if len(part):
        assert part.start == Position(whole.file, events_of(part)[0][0])
        assert part.end == whole.end_of_event(stop - 1)


@examples(40)
@given(logs(files=1), st.data())
def test_a_part_decodes_like_the_whole_also_over_the_wire(log: LogWriter, data: st.DataObject) -> None:
    (whole,) = read(log)
    first = data.draw(st.integers(0, len(whole) - 1))
    part = whole.slice(first, data.draw(st.integers(first + 1, len(whole))))
    for table in tables_of(log).values():
        expected = [row for row in rows_in([whole], table) if part.start.offset <= row["_offset"] < part.end.offset]
        assert rows_in([part], table) == expected
        assert rows_in([over_the_wire(part)], table) == expected
        only = part.select_tables({table.name})
        assert rows_in([only], table) == expected
        assert rows_in([over_the_wire(only)] if len(only) else [], table) == expected


@examples(40)
@given(logs(files=1))
def test_rows_of_keeps_rows_of_these_tables_only(log: LogWriter) -> None:
    (whole,) = read(log)
    for table in tables_of(log).values():
        part = whole.select_tables({table.name})
        assert set(part.column("entry").tolist()) <= {Entry.ROWS}
        assert {part.schema_of(number).name for number in set(part.column("table_id").tolist())} == {table.name}
        assert {part.schema_of(number).name for number in part.tables} == {table.name}
    assert len(whole.select_tables({TableName("shop", "nobody")})) == 0


@examples(40)
@given(logs(files=1), st.data())
def test_events_can_be_chosen_and_put_together_again(log: LogWriter, data: st.DataObject) -> None:
    (whole,) = read(log)
    part = whole.slice(data.draw(st.integers(0, len(whole) - 1)), len(whole))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(part), max_size=len(part))))
    kept, other = part.filter(mask), part.filter(~mask)
    assert events_of(kept) == [event for event, is_chosen in zip(events_of(part), mask, strict=True) if is_chosen]
    both = kept.prepend(other)
    assert both.checksum is None
    assert both.events.equals(pa.Table.from_batches([other.events, kept.events]).combine_chunks().to_batches()[0])
    order = np.argsort(np.concatenate([np.flatnonzero(~mask), np.flatnonzero(mask)]))
    assert both.take(order).events.equals(part.events)
    assert part.filter(np.ones(len(part), np.bool_)) is part


@examples(20)
@given(logs(files=1))
def test_other_numbers_leave_the_events_as_they_are(log: LogWriter) -> None:
    (whole,) = read(log)
    moved = whole.with_columns(position=whole.column("position") + 5)
    assert [at for at, _ in events_of(moved)] == [at + 5 for at, _ in events_of(whole)]
    assert moved.data is whole.data
    assert moved.with_columns(position=whole.column("position")).events.equals(whole.events)
    with pytest.raises(ValueError, match="read-only"):
        moved.column("position")[0] = 0


def test_an_empty_part_has_no_events_anywhere() -> None:
    log = LogWriter().open()
    log.statement("CREATE TABLE t (a INT)")
    (whole,) = read(log)
    for empty in (whole.slice(0, 0), whole.select_tables(set()), over_the_wire(whole.slice(1, 1))):
        assert [array.size for array in empty.raw[1:]] == [0, 0]
        assert empty.gtids.shape == (0, 25)
        assert rows_in([empty], ORDERS) == []


@pytest.mark.parametrize("count", [1, 3, 7, 8, 13])
def test_gtids_survive_buffers_that_are_longer_than_their_lines(count: int) -> None:
    log = LogWriter().open()
    for number in range(count):
        log.begin()
        log.map(7, ORDERS)
        log.rows(INSERT, 7, ORDERS, [[number]])
        log.commit()
    (whole,) = read(log)
    padded = pa.py_buffer(whole.gtids.tobytes() + bytes(64 - len(whole) * 25 % 64))
    column = pa.Array.from_buffers(pa.binary(25), len(whole), [None, padded])
    events = whole.events.set_column(
        whole.events.schema.get_field_index("gtid"), whole.events.schema.field("gtid"), column
    )
    assert rows_in([Block.from_arrow(events, whole.encode_description())], ORDERS) == rows_in([whole], ORDERS)


def test_another_table_that_cannot_be_decoded_is_no_obstacle() -> None:
    log = LogWriter().open()
    log.begin()
    log.map(7, ORDERS)
    log.map(8, OTHER)
    log.rows(INSERT, 7, ORDERS, [[5]])
    log.rows(INSERT, 8, OTHER, [[6]])
    log.commit()
    (whole,) = read(log)
    broken = {7: whole.tables[7], 8: whole.tables[8][: whole.tables[8].index(b"\x04\x03\x02id")]}
    block = replace(whole, tables=broken)
    assert [row["id"] for row in rows_in([block], ORDERS)] == [5]


def test_a_tag_that_a_block_does_not_know_is_no_gtid() -> None:
    log = LogWriter(is_mariadb=False).open()
    for tag in ("red", "blue"):
        log.begin_tagged(tag)
        log.map(7, ORDERS)
        log.rows(INSERT, 7, ORDERS, [[5]])
        log.commit()
    (whole,) = read(log)
    assert [row["_gtid"] for row in rows_in([whole], ORDERS)] == [image.gtid for image in log.images]
    assert [row["_gtid"] for row in rows_in([replace(whole, tags=("red",))], ORDERS)] == [log.images[0].gtid, None]


@examples(40)
@given(logs(files=1), st.integers(1, 4000))
def test_parts_are_whole_transactions_and_all_of_the_block(log: LogWriter, size: int) -> None:
    for block in read(log):
        parts = list(block.split(size))
        assert [event for part in parts for event in events_of(part)] == events_of(block)
        assert all(part.column("boundary")[-1] for part in parts[:-1])
        assert all(len(part) for part in parts) or not len(block)
        for part in parts[:-1]:
            ends = part.boundaries + 1
            without_last = part.index.bounds[ends[-2]] if ends.size > 1 else part.index.bounds[0]
            assert int(without_last) - int(part.index.bounds[0]) < size
