"""Logs with rows of many tables, and ways to look at what is done with them."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import strategies as st

from penstock.binlog.rows import mixed
from penstock.model import Column, TableName, TableSchema, WireType
from tests.twins.json_strategy import encoded
from tests.twins.log import LogWriter
from tests.twins.row import INSERT, UPDATE
from tests.twins.strategy import tables, write_rows

DOCUMENT = TableSchema(
    TableName("shop", "documents"), (Column("id", WireType.LONG), Column("j", WireType.JSON, size=4)), ("id",)
)


@contextmanager
def table_by_table() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mixed, "MANY_BYTES", 0)
        yield


@st.composite
def many_tables(draw: st.DrawFn) -> LogWriter:
    """Transactions over up to six tables, one with documents; some tables differ in their names only."""
    log = LogWriter(is_mariadb=draw(st.booleans()), is_checksummed=draw(st.booleans())).open()
    schemas = [draw(tables(st.integers(1, 6), f"t{number}")) for number in range(draw(st.integers(1, 4)))]
    schemas.append(TableSchema(TableName("shop", "twin"), schemas[0].columns, schemas[0].key))
    for _ in range(draw(st.integers(1, 4))):
        log.begin()
        for number in draw(st.lists(st.integers(0, len(schemas)), min_size=1, max_size=5)):
            if number == len(schemas):
                log.map(99, DOCUMENT)
                cell = st.one_of(st.none(), encoded())
                change = draw(st.sampled_from((INSERT, UPDATE)))
                log.rows(change, 99, DOCUMENT, [[k, draw(cell)] for k in range(2)])
            else:
                log.map(10 + number, schemas[number])
                draw(write_rows(log, 10 + number, schemas[number]))
        log.commit()
    return log


def spread(rows: int, count: int, *, has_new_ids: bool = False) -> LogWriter:
    """A row in each transaction, over so many tables. With new ids, each transaction finds its table opened again."""
    log = LogWriter().open()
    columns = (
        Column("id", WireType.LONG),
        Column("name", WireType.VARCHAR, size=60, charset="utf8mb4"),
        Column("price", WireType.NEWDECIMAL, precision=10, scale=2),
        Column("made", WireType.DATETIME2, size=3),
    )
    shapes = [TableSchema(TableName("shop", f"t{number}"), columns, ("id",)) for number in range(count)]
    for n in range(rows):
        number = n if has_new_ids else n % count
        log.begin()
        log.map(10 + number, shapes[n % count])
        log.rows(INSERT, 10 + number, shapes[n % count], [[n, f"row {n}", None, None]])
        log.commit()
    return log


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called, of Python or of C."""
    count = 0

    def note(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
