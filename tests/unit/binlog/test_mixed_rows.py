"""The walk over rows of many tables, beside the twin of the walk over one; and what the columns of a kind share."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.rows.mixed import MixedRows, walk_rows
from penstock.binlog.rows.programs import GrowingTexts, TablePrograms, representative_column
from penstock.binlog.values.column import wire_size_of
from penstock.model import Column, TableName, TableSchema, WireType
from tests.twins import locate as twin
from tests.twins.log import LogWriter
from tests.twins.strategy import broken, columns, examples, tables, write_rows


@st.composite
def mixed_events(draw: st.DrawFn) -> tuple[list[TableSchema], list[tuple[int, bytes]], bool]:
    """Tables, rows events with the number of the table of each, and whether they have checksums."""
    log = LogWriter(is_checksummed=draw(st.booleans()))
    schemas = [draw(tables(st.integers(1, 9), f"t{number}")) for number in range(draw(st.integers(1, 5)))]
    events = list[tuple[int, bytes]]()
    for number in draw(st.lists(st.integers(0, len(schemas) - 1), min_size=1, max_size=8)):
        before = len(log.data)
        draw(write_rows(log, number, schemas[number]))
        events.append((number, bytes(log.data[before:])))
    return schemas, events, log.is_checksummed


def walked(schemas: list[TableSchema], events: list[tuple[int, bytes]], checksum: int) -> MixedRows | None:
    programs = TablePrograms(has_labels=True)
    numbers = [programs.add(table, table.columns[::2], []) for table in schemas]
    sizes = [len(raw) for _, raw in events]
    starts = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
    data = np.frombuffer(b"".join(raw for _, raw in events), np.uint8)
    program = np.array([numbers[number] for number, _ in events], np.int64)
    return walk_rows(data, starts, starts + np.array(sizes, np.int64) - checksum, programs, program)


def assert_agrees(schemas: list[TableSchema], events: list[tuple[int, bytes]], checksum: int) -> None:
    located = walked(schemas, events, checksum)
    wires = [[(wire_size_of(c).length_bytes, wire_size_of(c).width) for c in table.columns] for table in schemas]
    expected = [twin.locate(raw, checksum, wires[number]) for number, raw in events]
    if any(isinstance(images, int) for images in expected):
        assert located is None
        return
    assert located is not None
    images = [(e, image) for e, several_images in enumerate(expected) for image in several_images]  # type: ignore[union-attr]
    start, seen, kinds = 0, 0, np.repeat(np.arange(len(located.programs.kinds)), np.diff(located.kind_bounds))
    starts = np.cumsum([0, *(len(raw) for _, raw in events)])
    assert located.event.tolist() == [e for e, _ in images]
    assert located.kind.tolist() == [image.kind for _, image in images]
    for i, (e, image) in enumerate(images):
        number, _ = events[e]
        start = int(starts[e])
        assert int(located.start[i]) == start + image.start
        for c, (offset, length) in enumerate(image.fields):
            cell = int(located.cells[located.cell[i] + c])
            if offset < 0:
                assert cell == offset
            elif c % 2:
                assert cell < 0  # a column that is not shown
            else:
                assert (int(located.offsets[cell]), int(located.lengths[cell])) == (start + offset, length)
                column = schemas[number].columns[c]
                assert located.programs.kinds[kinds[cell]] == representative_column(
                    column, has_labels=bool(column.labels)
                )
                seen += 1
    assert seen == located.offsets.size


@examples(60)
@given(mixed_events())
def test_agrees_with_the_twin_of_one_table(case: tuple[list[TableSchema], list[tuple[int, bytes]], bool]) -> None:
    schemas, events, is_checksummed = case
    assert_agrees(schemas, events, 4 * is_checksummed)


@examples(80)
@given(mixed_events(), st.data())
def test_agrees_with_the_twin_on_broken_rows(
    case: tuple[list[TableSchema], list[tuple[int, bytes]], bool], data: st.DataObject
) -> None:
    schemas, events, is_checksummed = case
    which = data.draw(st.integers(0, len(events) - 1))
    number, raw = events[which]
    events[which] = number, data.draw(broken(raw, first=27).filter(lambda cut: len(cut) >= 31))
    assert_agrees(schemas, events, 4 * is_checksummed)


@examples(60)
@given(columns("a"))
def test_columns_of_one_type_are_of_one_kind_whatever_they_are_called(column: Column) -> None:
    other = replace(column, name="b", nullable=not column.nullable)
    assert representative_column(column, has_labels=True) == representative_column(other, has_labels=True)


def test_columns_that_are_written_differently_are_of_different_kinds() -> None:
    text = Column("a", WireType.VARCHAR, size=20, charset="utf8mb4")
    assert representative_column(text, has_labels=False) == representative_column(
        replace(text, size=300), has_labels=False
    )
    assert representative_column(text, has_labels=False) != representative_column(
        replace(text, charset="latin1"), has_labels=False
    )
    price = Column("a", WireType.NEWDECIMAL, precision=10, scale=2)
    assert representative_column(price, has_labels=False) != representative_column(
        replace(price, scale=3), has_labels=False
    )
    binary = Column("a", WireType.STRING, size=8, charset="binary")
    assert representative_column(binary, has_labels=False) != representative_column(
        replace(binary, size=9), has_labels=False
    )
    enum = Column("a", WireType.ENUM, size=1, labels=("x",))
    assert representative_column(enum, has_labels=False) == representative_column(
        replace(enum, labels=("y",)), has_labels=False
    )
    assert representative_column(enum, has_labels=True) != representative_column(
        replace(enum, labels=("y",)), has_labels=True
    )


def test_programs_stay_what_they_were_when_others_are_added() -> None:
    programs = TablePrograms(has_labels=False)
    first = programs.add(TableSchema(TableName("d", "t"), (Column("a", WireType.LONG),)), (), [b"one"])
    bounds, data = programs.texts.bounds, programs.texts.data
    for number in range(500):
        wide = tuple(Column(f"c{k}", WireType.LONGLONG) for k in range(number % 7 + 1))
        programs.add(TableSchema(TableName("d", f"t{number}"), wide), wide, [b"x" * number] * len(wide))
    assert (bounds.tolist(), data.tobytes()) == ([0, 3], b"one")
    assert programs.columns[programs.bounds[first] : programs.bounds[first + 1]].tolist() == [[0, 4, -1]]
    assert len(programs) == 501


def test_texts_lie_between_their_bounds() -> None:
    texts = GrowingTexts()
    texts.append([b"a", b"", b"bc"])
    texts.append([])
    texts.append([b"d" * 100])
    texts_read = [texts.data[first:stop].tobytes() for first, stop in zip(texts.bounds, texts.bounds[1:], strict=False)]
    assert texts_read == [b"a", b"", b"bc", b"d" * 100]
