"""Counting: over time, by table and kind, and only what was asked for."""

import json
from pathlib import Path

import numpy as np

from penstock.binlog.rows.table_changes import RowChangeKind
from penstock.inspect.selection import EventSelection, compile_table_patterns
from penstock.inspect.statistics import LogStatistics, Timeline
from tests.support.shop_log import NOTE, PRODUCT, shown, written
from tests.twins.feed import read
from tests.twins.log import LogWriter
from tests.twins.row import DELETE, INSERT, UPDATE


def test_the_timeline_coarsens_and_loses_nothing() -> None:
    line = Timeline()
    seconds = np.arange(1_700_000_000, 1_700_020_000)
    for part in np.split(seconds, 20):
        line.add(part, np.full(part.size, 2), np.ones(part.size, np.int64), np.ones(part.size, np.int64))
    assert line.step_s > 1
    width, bars = line.bars(24)
    assert len(bars) <= 26
    assert sum(rows for rows, _, _ in bars.values()) == 40_000
    assert all(start % width == 0 for start in bars)
    assert np.diff(list(bars)).tolist() == [width] * (len(bars) - 1)


def test_an_empty_timeline_has_no_bars() -> None:
    assert Timeline().bars(10) == (1, {})


def test_one_second_is_one_bar() -> None:
    line = Timeline()
    single = np.ones(1, np.int64)
    line.add(np.array([1_700_000_001]), single, single, single)
    assert line.bars(10) == (1, {1_700_000_001: [1, 1, 1]})


def mixed_log() -> LogWriter:
    """Two transactions with both tables, one with each alone, and a DDL."""
    log = LogWriter().open()
    log.statement("CREATE TABLE product (id INT)")
    for number in range(2):
        log.begin()
        log.map(7, PRODUCT)
        log.map(8, NOTE)
        log.rows(INSERT, 7, PRODUCT, [[number, "a", None], [number + 10, "b", None]])
        log.rows(UPDATE, 7, PRODUCT, [[number, "a", None], [number, "c", None]])
        log.rows(INSERT, 7, PRODUCT, [[number + 20, "a", None]])
        log.rows(INSERT, 8, NOTE, [["n", None]])
        log.commit()
    for number, table in ((7, PRODUCT), (8, NOTE)):
        log.begin()
        log.map(number, table)
        log.rows(DELETE, number, table, [[1, "c", None] if table is PRODUCT else ["n", None]])
        log.commit()
    return log


def counted(log: LogWriter, tables: tuple[str, ...] = (), cut: int = 0) -> LogStatistics:
    selection, statistics = EventSelection(compile_table_patterns(tables)), LogStatistics()
    for block in read(log, [cut] if cut else []):
        statistics.add_block(selection.pick_events(block, for_counting=True))
    return statistics


def test_transactions_rows_and_bytes_by_table_and_kind() -> None:
    statistics = counted(mixed_log())
    product, note = statistics.tables[PRODUCT.name], statistics.tables[NOTE.name]
    assert (product.all_transactions, note.all_transactions) == (3, 3)
    assert product.transactions == {RowChangeKind.INSERT: 2, RowChangeKind.UPDATE: 2, RowChangeKind.DELETE: 1}
    assert note.transactions == {RowChangeKind.INSERT: 2, RowChangeKind.UPDATE: 0, RowChangeKind.DELETE: 1}
    assert product.rows == {RowChangeKind.INSERT: 6, RowChangeKind.UPDATE: 2, RowChangeKind.DELETE: 1}
    assert (
        product.bytes[RowChangeKind.INSERT]
        > product.bytes[RowChangeKind.UPDATE]
        > product.bytes[RowChangeKind.DELETE]
        > 0
    )
    assert statistics.transactions == 5


def test_where_blocks_end_makes_no_difference() -> None:
    log = mixed_log()
    for tables in ((), ("shop.note",)):
        whole = counted(log, tables)
        for cut in range(100, len(log.data), 13):
            statistics = counted(log, tables, cut)
            assert statistics.tables == whole.tables, cut
            assert statistics.transactions == whole.transactions
            assert statistics.events == whole.events
            assert statistics.largest == whole.largest


def test_with_a_table_other_transactions_do_not_count() -> None:
    statistics = counted(mixed_log(), ("shop.note",))
    assert list(statistics.tables) == [NOTE.name]
    assert statistics.transactions == 3
    assert statistics.statements == 0
    assert len(statistics.largest) == 3
    assert sum(transactions for _, transactions, _ in statistics.timeline.counts.values()) == 3
    # Rows events of the table, and the ends of their transactions.
    assert statistics.events == 6


def test_the_same_for_scripts(tmp_path: Path) -> None:
    stats = json.loads(shown(written(mixed_log(), tmp_path), "--stats", "--output", "json", "--table", "shop.product"))
    (product,) = stats["tables"]
    assert product["transactions"] == stats["transactions"] - 1 == 3
    assert product["transactions_with"] == {"insert": 2, "update": 2, "delete": 1}
    assert stats["statements"] == 1


def test_events_of_unknown_types_are_no_transactions_of_their_own() -> None:
    log = LogWriter().open()
    for number in range(2):
        log.begin()
        log.add(99, b"inside")
        log.map(7, PRODUCT)
        log.rows(INSERT, 7, PRODUCT, [[number, "a", None]])
        log.add(99, b"inside")
        log.commit()
        log.add(99, b"between")
        log.add(150, b"between")
    whole = counted(log)
    assert (whole.transactions, whole.rows, len(whole.largest)) == (2, 2, 2)
    for cut in range(100, len(log.data), 7):
        statistics = counted(log, cut=cut)
        assert (statistics.transactions, statistics.largest, statistics.events) == (2, whole.largest, whole.events)
