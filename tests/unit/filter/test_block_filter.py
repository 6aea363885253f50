"""A filter over blocks cut anywhere, against its twin that goes event by event."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.config import FilterSettings
from penstock.config.filter_settings import KINDS
from penstock.errors import ConfigurationError
from penstock.filter import BlockFilter
from penstock.model import GtidSet
from tests.support.filter_log import TABLES, FilterLog, blocks_of, filter_logs
from tests.twins import filter as twin
from tests.twins.feed import rows_in
from tests.twins.log import LogWriter
from tests.twins.strategy import examples

A, B = 7, 8
_RULES = (r"shop\..*", r".*\.a", r"shop\.a,shop\.b", r"CRM\.A", r".*\._.*_gho", "nobody.x")


def matches(rules: str, table: str) -> bool:
    return any(re.fullmatch(rule, table, re.IGNORECASE) for rule in rules.split(","))


def events_of(block: Block) -> dict[int, bytes]:
    return dict(zip(block.column("position").tolist(), block.event_array.to_pylist(), strict=True))


@examples(300)
@given(
    filter_logs(),
    st.sampled_from(("", *_RULES)),
    st.sampled_from(("", "", *_RULES)),
    st.sets(st.sampled_from(KINDS), min_size=1).map(sorted) | st.just(sorted(KINDS)),
    st.lists(st.integers(20, 400), max_size=20),
)
def test_what_stays_is_what_the_twin_keeps(
    log: FilterLog, allow: str, deny: str, kinds: list[str], sizes: list[int]
) -> None:
    def passes(table: str) -> bool:
        return (not allow or matches(allow, table)) and not (deny and matches(deny, table))

    plain = twin.Filter(passes, set(kinds))
    ours = BlockFilter(FilterSettings.model_validate({"allow": allow, "deny": deny, "kinds": kinds}))
    before = dict[int, bytes]()
    entries = dict[int, int]()
    executed = dict[int, GtidSet | None]()
    for block in blocks_of(log, sizes):
        before |= events_of(block)
        entries |= dict(zip(block.column("position").tolist(), block.column("entry").tolist(), strict=True))
        executed |= {int(block.column("position")[i]): block.executed_before(int(i) + 1) for i in block.boundaries}
        expected = plain.apply([log.events[position] for position in block.column("position").tolist()])
        filtered = ours.apply(block)
        assert filtered.column("position").tolist() == expected.positions
        assert (filtered is block) == expected.is_whole
        assert filtered is block or not len(filtered) or filtered.column("entry")[-1] or filtered.column("boundary")[-1]
        assert events_of(filtered) == {position: before[position] for position in expected.positions}
        for position, entry in zip(expected.positions, filtered.column("entry").tolist(), strict=True):
            assert entry == (Entry.OTHER if position in expected.position_only else entries[position])
        for i in filtered.boundaries.tolist():
            assert filtered.executed_before(i + 1) == executed[int(filtered.column("position")[i])]
        assert filtered.executed_before(len(filtered)) == (
            block.executed_before(len(block)) if filtered.boundaries.size else block.executed_before(0)
        )
        used = filtered.column("table_id")[filtered.column("entry") == Entry.ROWS]
        assert {*filtered.tables} == {*used.tolist()}


@examples(60)
@given(filter_logs(), st.sampled_from(_RULES), st.lists(st.integers(20, 400), max_size=20))
def test_rows_come_out_as_without_a_filter(log: FilterLog, deny: str, sizes: list[int]) -> None:
    whole = blocks_of(log, sizes)
    ours = BlockFilter(FilterSettings.model_validate({"deny": deny}))
    filtered = [block for block in map(ours.apply, whole) if len(block)]
    for table in TABLES.values():
        expected = [] if matches(deny, str(table.name)) else rows_in(whole, table)
        assert rows_in(filtered, table) == expected


@examples(60)
@given(filter_logs(), st.lists(st.integers(20, 400), max_size=20))
def test_cut_or_not_the_same_entries_stay(log: FilterLog, sizes: list[int]) -> None:
    """What means something does not depend on where blocks end."""

    def entries(blocks: list[Block]) -> list[int]:
        ours = BlockFilter(FilterSettings.model_validate({"allow": r"shop\.a"}))
        positions = list[int]()
        for block in map(ours.apply, blocks):
            means = np.isin(block.column("entry"), [Entry.ROWS, Entry.DDL])
            positions += block.column("position")[means].tolist()
        return positions

    assert entries(blocks_of(log, sizes)) == entries(blocks_of(log, []))


def rows_log(*tables: int) -> FilterLog:
    """A transaction for each."""
    log = FilterLog(LogWriter().open())
    for number in tables:
        log.begin()
        log.map(number)
        log.rows(number, "insert")
        log.commit(with_query=False)
    return log


def test_a_block_of_nothing_is_its_last_boundary() -> None:
    log = rows_log(B, B, B)
    (block,) = blocks_of(log, [])
    filtered = BlockFilter(FilterSettings(allow=("shop.a",))).apply(block)
    assert filtered.column("position").tolist() == [int(block.column("position")[-1])]
    assert filtered.column("entry").tolist() == [Entry.OTHER]
    assert filtered.executed_before(0) == GtidSet.parse("5-1-2")
    assert filtered.end == block.end
    assert filtered.boundary_after(0).gtids == GtidSet.parse("5-1-3")
    assert filtered.tables == {}


def test_inside_of_a_transaction_nothing_is_left() -> None:
    log = rows_log(B)
    blocks = blocks_of(log, [len(log.log.data) - 60])
    assert len(blocks) == 2
    ours = BlockFilter(FilterSettings(allow=("shop.a",)))
    assert [len(ours.apply(block)) for block in blocks] == [0, 1]


def test_a_stream_that_restarts_forgets_what_was_held() -> None:
    log = FilterLog(LogWriter().open())
    log.begin()
    log.map(B, A)
    log.rows(B, "insert")
    middle = len(log.log.data)
    log.rows(A, "insert")
    log.commit(with_query=False)
    ours = BlockFilter(FilterSettings(allow=("shop.a",)))
    first, second = blocks_of(log, [middle])
    whole = twin_positions(log, "map", "insert", table="shop.a")
    expected = sorted([min(log.events), *whole, max(log.events)])
    for blocks in ([first, first, second], [first, second], blocks_of(log, [])):
        positions = [position for block in blocks for position in ours.apply(block).column("position").tolist()]
        assert positions == expected


def twin_positions(log: FilterLog, *roles: str, table: str) -> list[int]:
    return [at for at, event in log.events.items() if event.role in roles and table in event.tables]


def test_a_reload_counts_from_the_next_block_on() -> None:
    log = rows_log(A, B)
    (block,) = blocks_of(log, [])
    ours = BlockFilter(FilterSettings(allow=("shop.a",)))
    assert {TABLES[number].name for number in ours.apply(block).tables} == {TABLES[A].name}
    ours.reload(FilterSettings(allow=("shop.b",)))
    assert {TABLES[number].name for number in ours.apply(block).tables} == {TABLES[B].name}
    ours.reload(FilterSettings(deny=()))
    assert ours.apply(block) is block


def test_settings_that_are_wrong_change_nothing() -> None:
    ours = BlockFilter(FilterSettings(allow=("shop.a",)))
    (block,) = blocks_of(rows_log(A, B), [])
    with pytest.raises(ConfigurationError):
        ours.reload(FilterSettings.model_construct(allow=("(",), deny=(), columns=(), kinds=KINDS))
    assert {*ours.apply(block).tables} == {A}


def test_a_slice_of_a_block_is_filtered_as_any_other() -> None:
    (block,) = blocks_of(rows_log(B, A, B), [])
    ends = block.boundaries.tolist()
    part = block.slice(ends[1] + 1, len(block))
    filtered = BlockFilter(FilterSettings(allow=("shop.b",))).apply(part)
    assert filtered is part
    filtered = BlockFilter(FilterSettings(allow=("shop.a",))).apply(part)
    assert filtered.executed_before(0) == GtidSet.parse("5-1-2")
    assert filtered.executed_before(1) == GtidSet.parse("5-1-3")


def test_a_statement_between_wanted_rows_is_looked_at() -> None:
    """A block whose tables are all wanted may have the statement that creates another."""
    log = FilterLog(LogWriter(is_mariadb=False).open())
    log.begin()
    log.map(A)
    log.rows(A, "insert")
    log.inside(("CREATE TABLE b (id INT) START TRANSACTION", "ddl", ("shop.b",)))
    log.commit(with_query=False)
    (block,) = blocks_of(log, [])
    filtered = BlockFilter(FilterSettings(allow=("shop.a",))).apply(block)
    assert {*log.events} - {*filtered.column("position").tolist()} == set(twin_positions(log, "ddl", table="shop.b"))
