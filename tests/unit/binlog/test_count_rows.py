"""The number of rows in a block, against what was written, and of broken events against the twin of the locate pass."""

from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.binlog.events.file import LogFile
from penstock.binlog.rows import count
from penstock.binlog.rows.count import count_rows
from penstock.model import ChangeKind, Column, TableName, TableSchema, WireType
from tests.support.rows_events import rows_events, wires_of
from tests.twins import locate as twin
from tests.twins.event import MAGIC
from tests.twins.feed import read
from tests.twins.log import LogWriter
from tests.twins.row import INSERT
from tests.twins.strategy import broken, examples, logs

_ONCE = {ChangeKind.INSERT, ChangeKind.DELETE, ChangeKind.UPDATE_POSTIMAGE}
_UPDATES = {24, 31, 39}


@settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(logs(files=1))
def test_a_block_has_as_many_rows_as_were_written(tmp_path: Path, log: LogWriter) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(MAGIC + bytes(log.data))
    count = sum(count_rows(block) for block in LogFile(path))
    assert count == sum(image.kind in _ONCE for image in log.images)


def counted(table: TableSchema, events: list[bytes], checksum: int) -> list[int]:
    """The rows of each event."""
    wires = [(*wire, column.type is WireType.JSON) for wire, column in zip(wires_of(table), table.columns, strict=True)]
    sizes = np.array([len(event) for event in events], np.int64)
    starts = np.cumsum(sizes) - sizes
    firsts = np.array([0, len(wires)], np.int64)
    columns = np.array(wires, np.int64).reshape(-1, 3)
    data, which = np.frombuffer(b"".join(events), np.uint8), np.zeros(len(events), np.int64)
    room = np.empty(4 * max(1, len(wires)), np.int64)
    rows = np.empty(len(events), np.int64)
    total = int(count._count(data, starts, starts + sizes - checksum, which, firsts, columns, room, rows))
    assert rows.sum() == total
    return rows.tolist()


def expected(table: TableSchema, events: list[bytes], checksum: int) -> list[int]:
    documents = [i for i, column in enumerate(table.columns) if column.type is WireType.JSON]
    rows = list[int]()
    for event in events:
        images = twin.locate(event, checksum, wires_of(table), documents)
        rows.append(0 if isinstance(images, int) else len(images) // (2 if event[4] in _UPDATES else 1))
    return rows


@examples(60)
@given(rows_events(st.integers(1, 20)))
def test_events_count_as_the_twin_finds_rows_in_them(case: tuple[TableSchema, list[bytes], bool]) -> None:
    table, events, is_checksummed = case
    checksum = 4 * is_checksummed
    assert counted(table, events, checksum) == expected(table, events, checksum)


@examples(150)
@given(rows_events(st.integers(1, 6)), st.data())
def test_a_broken_event_counts_as_none(case: tuple[TableSchema, list[bytes], bool], data: st.DataObject) -> None:
    table, events, is_checksummed = case
    checksum = 4 * is_checksummed
    number = data.draw(st.integers(0, len(events) - 1))
    head, body = events[number][:27], events[number][27 : len(events[number]) - checksum]
    events[number] = head + data.draw(broken(body)) + bytes(checksum)
    assert counted(table, events, checksum) == expected(table, events, checksum)


def test_tables_that_differ_in_their_names_only_are_counted_by_the_same_lines() -> None:
    columns = Column("a", WireType.LONG), Column("b", WireType.VARCHAR, size=90)
    log = LogWriter().open()
    tables = [TableSchema(TableName("shop", f"t{number}"), columns) for number in range(50)]
    for number, table in enumerate(tables, 1):
        log.begin()
        log.map(number, table)
        log.rows(INSERT, number, table, [[1, "x"]] * (number % 3 + 1))
        log.commit()
    (block,) = read(log)
    assert len({id(count._wires(body, block.server_version)) for body in block.tables.values()}) == 1
    assert count_rows(block) == len(log.images)
    part = block.slice(0, len(block) // 2)
    assert count_rows(part) == sum(number % 3 + 1 for number in range(1, 26))
    without = block.with_tables({number: body for number, body in block.tables.items() if number != 3})
    assert count_rows(without) == len(log.images) - 1
