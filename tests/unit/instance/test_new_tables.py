"""What a table costs when it is met for the first time, from the log to clients: calls are counted, not seconds.

Logs of sharded schemas have thousands of tables that differ in their names only, with few rows each. What such tables
have in common is to be found out once; for each of them alone there is little to do.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.binlog.events.block import Block
from penstock.binlog.events.table_map import parse_table_map, table_name
from penstock.capture.schema_tracker import SchemaTracker
from penstock.config import FilterSettings
from penstock.filter import BlockFilter
from penstock.instance.filter import parse_client_filter
from penstock.model import Column, Position, TableName, TableSchema, WireType
from penstock.render.canal import EntryEncoder, EntryOptions
from penstock.render.json_rows import JsonRowReader
from penstock.schema.catalogue import Catalogue
from penstock.schema.history import SchemaHistory
from penstock.store.block_info import EntryPosition
from penstock.store.client import StoreClient
from tests.support.mixed_tables import calls_of
from tests.twins import event as ev
from tests.twins.feed import START, read
from tests.twins.log import LogWriter
from tests.twins.row import INSERT, table_map
from tests.twins.table_map_fields import without_fields

FEW, MANY = 3, 303
COLUMNS = (
    Column("id", WireType.LONG, nullable=False),
    Column("name", WireType.VARCHAR, size=60, charset="utf8mb4"),
    Column("price", WireType.NEWDECIMAL, precision=10, scale=2),
    Column("made", WireType.DATETIME2, size=3),
    *(Column(f"c{number}", WireType.LONGLONG) for number in range(6)),
)
DEFINITION = "id INT PRIMARY KEY, name VARCHAR(15) CHARACTER SET utf8mb4, price DECIMAL(10,2), made DATETIME(3)"
DEFINITION += "".join(f", c{number} BIGINT" for number in range(6))
Step = Callable[[Block], object]


def block_of(count: int, letter: str = "t", *, has_names: bool = True) -> Block:
    """A row for each of so many tables; with MINIMAL metadata the log lacks the names of columns."""
    log = LogWriter(is_mariadb=False).open()
    for number in range(count):
        table = TableSchema(TableName("shop", f"{letter}{number}"), COLUMNS, ("id",))
        log.begin()
        body = table_map(10 + number, table, is_mariadb=False)
        log.add(ev.TABLE_MAP, body if has_names else without_fields(body, set(range(14))))
        log.rows(INSERT, 10 + number, table, [[number, f"row {number}", *[None] * 8]])
        log.commit()
    (block,) = read(log)
    return block


def history_of(folder: Path, count: int, *, is_known: bool) -> SchemaHistory:
    """A history that knows the tables, or one that begins after their rows."""
    catalogue = Catalogue().apply("CREATE DATABASE shop").catalogue
    for number in range(count):
        catalogue = catalogue.apply(f"CREATE TABLE t{number} ({DEFINITION})", "shop").catalogue
    return SchemaHistory(folder, lambda: (START if is_known else Position("binlog.000009", 4), catalogue))


def calls_for_each_table(
    folder: Path,
    step_of: Callable[[SchemaTracker], Step],
    *,
    is_known: bool,
    is_new: bool = True,
    has_names: bool = True,
) -> float:
    """How many calls a step makes for each table more than a few, which it never met before, or in the last block."""
    calls = dict[int, int]()
    for count in (FEW, MANY):
        tracker = SchemaTracker(history_of(folder / f"{count} {is_known}", count, is_known=is_known))
        block, step = block_of(count, has_names=has_names), step_of(tracker)
        step(block_of(count, "other"))  # what is done once, whatever the tables
        table_name.cache_clear()
        parse_table_map.cache_clear()
        if not is_new:
            step(block)
        calls[count] = calls_of(lambda: step(block))  # noqa: B023 - called at once
        assert not tracker.differences
        tracker.close()
    return (calls[MANY] - calls[FEW]) / (MANY - FEW)


def track(tracker: SchemaTracker) -> Step:
    return tracker.follow


def capture_filter(_: SchemaTracker) -> Step:
    return BlockFilter(FilterSettings()).apply


def excluding_filter(_: SchemaTracker) -> Step:
    return BlockFilter(FilterSettings(deny=(r"shop\..*",))).apply


def client_filter(_: SchemaTracker) -> Step:
    parse_client_filter.cache_clear()  # with what it remembers of these tables
    begin, passes = EntryPosition(0, START, 0), parse_client_filter(r"shop\.[a-z]+[0-9]+")
    return StoreClient("x", begin, begin, begin, filter=passes).filter_block


def canal_entries(tracker: SchemaTracker) -> Step:
    return EntryEncoder(EntryOptions(tracker.declared_types_of)).encode_block


def json_rows(_: SchemaTracker) -> Step:
    return JsonRowReader(lambda table: table.columns).read_block


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("step_of", [track, capture_filter, excluding_filter, client_filter, canal_entries, json_rows])
def test_a_table_that_was_met_before_is_looked_up(
    tmp_path: Path, step_of: Callable[[SchemaTracker], Step], is_known: bool
) -> None:
    assert calls_for_each_table(tmp_path, step_of, is_known=is_known, is_new=False) < 4


@pytest.mark.parametrize(
    ("step_of", "is_known", "limit"),
    [
        (track, False, 20),  # by names that the log has
        (track, True, 70),  # compared with the schema history
        (capture_filter, False, 25),
        (client_filter, False, 25),
        (canal_entries, False, 45),
        (canal_entries, True, 90),  # with types as the DDL has them
        (json_rows, False, 40),
    ],
)
def test_tables_that_differ_in_their_names_share_what_is_found_out(
    tmp_path: Path, step_of: Callable[[SchemaTracker], Step], is_known: bool, limit: int
) -> None:
    assert calls_for_each_table(tmp_path, step_of, is_known=is_known) < limit


@pytest.mark.parametrize(("is_new", "limit"), [(True, 90), (False, 4)])
def test_table_maps_without_names_are_completed_once(tmp_path: Path, is_new: bool, limit: int) -> None:
    assert calls_for_each_table(tmp_path, track, is_known=True, is_new=is_new, has_names=False) < limit
