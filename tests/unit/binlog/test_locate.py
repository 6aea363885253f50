"""The locate pass against its twin: all column types, partial images, up to 300 columns, broken bytes."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.rows.heads import ENDS_EARLY, OTHER_COLUMN_COUNT
from penstock.binlog.rows.locate import MAX_CELLS, RowsProblemError, locate
from penstock.binlog.rows.located import ABSENT, NULL, LocatedRows, RowLayout
from penstock.binlog.values.column import wire_size_of
from penstock.model import ChangeKind, Column, TableSchema, WireType
from tests.support.rows_events import rows_events, wires_of
from tests.twins import locate as twin
from tests.twins.event import Header, event
from tests.twins.row import ABSENT as LEFT_OUT
from tests.twins.row import INSERT, UPDATE
from tests.twins.row import rows as rows_body
from tests.twins.strategy import broken, examples, rows, tables
from tests.twins.value import length_bytes

_INT = Column("a", WireType.LONG)


def pieces_of(
    events: list[bytes],
    checksum: int,
    wires: list[tuple[int, int]],
    lines: list[int],
    documents: Sequence[int] = (),
    most_cells: int = MAX_CELLS,
) -> Iterator[LocatedRows]:
    sizes = np.array([len(event) for event in events], np.int64)
    starts = np.cumsum(sizes) - sizes
    data = np.frombuffer(b"".join(events), np.uint8)
    layout = RowLayout.from_wires(
        np.array(wires, np.int64).reshape(-1, 2),
        np.array(lines, np.int64) >= 0,
        np.array([i in documents for i in range(len(wires))], np.bool_),
    )
    return locate(data, starts, starts + sizes - checksum, layout, most_cells)


def run(
    events: list[bytes], checksum: int, wires: list[tuple[int, int]], lines: list[int], documents: Sequence[int] = ()
) -> LocatedRows | tuple[int, int, int]:
    try:
        (located,) = pieces_of(events, checksum, wires, lines, documents)
    except RowsProblemError as problem:
        return problem.code, problem.byte, problem.event
    return located


def assert_agrees(
    events: list[bytes], checksum: int, wires: list[tuple[int, int]], lines: list[int], documents: Sequence[int] = ()
) -> None:
    located = run(events, checksum, wires, lines, documents)
    at = 0
    wanted = [column for column, line in enumerate(lines) if line >= 0]
    partial = list[list[bool]]()
    expected = list[tuple[int, int, int, int, list[tuple[int, int]]]]()
    for number, raw_event in enumerate(events):
        images = twin.locate(raw_event, checksum, wires, documents)
        if isinstance(images, int):
            assert not isinstance(located, LocatedRows)
            code, where, event_number = located
            assert (code, event_number) == (images, number)
            assert at <= where <= at + len(raw_event)
            return
        for i, image in enumerate(images):
            fields = [image.fields[column] for column in wanted]
            partial.append([bool(image.partial) and image.partial[column] for column in wanted])
            expected.append((number, image.kind, at + image.start, i, [(o + at * (o >= 0), n) for o, n in fields]))
        at += len(raw_event)
    assert isinstance(located, LocatedRows)
    cells = zip(located.event, located.kind, located.start, located.number, strict=True)
    offsets, sizes = np.zeros((2, len(wanted), located.rows), np.int32)
    for line, column in enumerate(wanted):
        offsets[line] = located.offsets(line)
        sizes[line] = located.lengths(line) if wires[column][0] else np.where(offsets[line] >= 0, wires[column][1], 0)
    fields = [list(zip(offsets[:, row], sizes[:, row], strict=True)) for row in range(located.rows)]
    assert [(*cell, field) for cell, field in zip(cells, fields, strict=True)] == expected
    assert located.missing.tolist() == np.count_nonzero(offsets < 0, axis=1).tolist()
    assert located.is_whole or not located.rows or bool((offsets == ABSENT).any()) or len(wanted) < len(lines)
    if located.partial.size:
        assert located.partial.T.tolist() == partial
    else:
        assert not any(map(any, partial))


@examples(50)
@given(rows_events(st.integers(1, 20)), st.data())
def test_agrees_with_its_twin(case: tuple[TableSchema, list[bytes], bool], data: st.DataObject) -> None:
    table, events, is_checksummed = case
    wanted = data.draw(st.lists(st.booleans(), min_size=len(table.columns), max_size=len(table.columns)))
    numbers = iter(range(len(wanted)))
    lines = [next(numbers) if is_wanted else -1 for is_wanted in wanted]
    assert_agrees(events, 4 * is_checksummed, wires_of(table), lines)


def cells_of(located: LocatedRows, columns: int) -> list[tuple[int, ...]]:
    """All that is known of each row."""
    partial = located.partial if located.partial.size else np.zeros((columns, located.rows), np.uint8)
    parts = [located.event, located.kind, located.start, located.number, *partial]
    for line in range(columns):
        offsets, lengths = located.offsets(line), located.lengths(line)
        parts += [offsets, np.where(offsets >= 0, lengths, 0) if lengths.size else np.zeros_like(offsets)]
    return list(zip(*(part.tolist() for part in parts), strict=True))


@examples(60)
@given(rows_events(st.integers(1, 6)), st.integers(1, 40))
def test_pieces_are_together_the_whole(case: tuple[TableSchema, list[bytes], bool], most_cells: int) -> None:
    table, events, is_checksummed = case
    columns = len(table.columns)
    arguments = (events, 4 * is_checksummed, wires_of(table), list(range(columns)))
    (whole,) = pieces_of(*arguments)
    pieces = list(pieces_of(*arguments, most_cells=most_cells))
    assert [cell for piece in pieces for cell in cells_of(piece, columns)] == cells_of(whole, columns)
    assert np.sum([piece.missing for piece in pieces], axis=0).tolist() == whole.missing.tolist()
    assert all(piece.rows <= max(2, most_cells // columns) for piece in pieces)
    assert not any(piece.kind.size and piece.kind[0] == ChangeKind.UPDATE_POSTIMAGE for piece in pieces)
    halves = [whole.slice_rows(first, stop) for first, stop in ((0, whole.rows // 2), (whole.rows // 2, whole.rows))]
    assert [cell for half in halves for cell in cells_of(half, columns)] == cells_of(whole, columns)


@examples(30)
@given(tables(st.just(7)), st.sampled_from((250, 251, 256, 300)), st.data())
def test_agrees_with_its_twin_on_wide_tables(narrow: TableSchema, count: int, data: st.DataObject) -> None:
    """A few columns and cells over and over: drawing hundreds takes too long."""
    cells = data.draw(rows(narrow, [True] * len(narrow.columns)))
    left_out = data.draw(st.sets(st.integers(1, count - 1), max_size=20))
    table = TableSchema(narrow.name, tuple(narrow.columns[i % len(cells)] for i in range(count)))
    image = [LEFT_OUT if i in left_out else cells[i % len(cells)] for i in range(count)]
    kind, body, _ = rows_body(UPDATE, 7, table.columns, [image] * 4)
    assert_agrees([event(kind, body, Header())], 4, wires_of(table), list(range(count)))


@examples(80)
@given(rows_events(st.integers(1, 10)), st.data())
def test_agrees_with_its_twin_on_broken_rows(case: tuple[TableSchema, list[bytes], bool], data: st.DataObject) -> None:
    table, events, is_checksummed = case
    number = data.draw(st.integers(0, len(events) - 1))
    events[number] = data.draw(broken(events[number], first=27).filter(lambda raw: len(raw) >= 31))
    assert_agrees(events, 4 * is_checksummed, wires_of(table), list(range(len(table.columns))))


@examples(100)
@given(st.binary(max_size=80), st.sampled_from((23, 24, 25, 30, 31, 32, 39)), st.integers(1, 40))
def test_agrees_with_its_twin_on_garbage(garbage: bytes, kind: int, columns: int) -> None:
    raw = event(kind, bytes(8) + garbage, Header(is_checksummed=False))
    wires = [(i % 4, i % 5 + 1 if i % 4 == 0 else 0) for i in range(columns)]
    assert_agrees([raw], 0, wires, list(range(columns)), [i for i in range(columns) if i % 3 == 1])


@examples(60)
@given(tables(st.integers(1, 12)))
def test_widths_are_those_that_were_written(table: TableSchema) -> None:
    for column in table.columns:
        if column.type in {WireType.VARCHAR, WireType.STRING, WireType.BLOB}:
            assert wire_size_of(column).length_bytes == length_bytes(column)


def _event(change: int, images: list[list[object]]) -> bytes:
    columns = [_INT] * len(images[0])
    kind, body, _ = rows_body(change, 7, columns, images)
    return event(kind, body, Header(is_checksummed=False))


def test_null_and_left_out_are_told_apart() -> None:
    located = run([_event(INSERT, [[1, None, LEFT_OUT]])], 0, [(0, 4)] * 3, [0, 1, 2])
    assert isinstance(located, LocatedRows)
    assert [located.offsets(line)[0] for line in (1, 2)] == [NULL, ABSENT]
    assert located.missing.tolist() == [0, 1, 1]
    assert not located.is_whole


def test_an_update_without_its_second_image_is_refused() -> None:
    whole = _event(UPDATE, [[1], [2]])
    assert run([whole[:-5]], 0, [(0, 4)], [0]) == (ENDS_EARLY, len(whole) - 5, 0)


@pytest.mark.parametrize("columns", [0, 1, 3])
def test_another_number_of_columns_is_refused(columns: int) -> None:
    good = _event(INSERT, [[1, 2]])
    assert run([good, good], 0, [(0, 4)] * columns, [-1] * columns) == (OTHER_COLUMN_COUNT, 0, 0)


def test_an_error_names_the_event_it_is_in() -> None:
    good, bad = _event(INSERT, [[1]]), bytearray(_event(INSERT, [[1]]))
    bad[4] = 30  # the same bytes read as v2: the extra data reaches over the end
    code, where, number = run([good, bytes(bad), good], 0, [(0, 4)], [0])  # type: ignore[misc]
    assert (code, number) == (ENDS_EARLY, 1)
    assert len(good) <= where <= 2 * len(good)


def test_many_nulls_before_many_rows() -> None:
    """The first event has more NULLs than rows, and makes too small a guess of what follows."""
    text = Column("a", WireType.BLOB, size=2, charset="binary")
    first = rows_body(INSERT, 7, [text] * 3, [[None] * 3] * 2)
    others = [rows_body(INSERT, 7, [text] * 3, [[b"x", None, b"yy"]] * 100) for _ in range(40)]
    events = [event(kind, body, Header(is_checksummed=False)) for kind, body, _ in (first, *others)]
    assert_agrees(events, 0, [(2, 0)] * 3, [0, 1, 2])
