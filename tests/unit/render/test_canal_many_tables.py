"""canal's entries of blocks with many tables: the same bytes as table by table, and no more work for more tables."""

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.binlog.events.file import LogFile
from penstock.config import ColumnSettings
from penstock.errors import BinlogError, PenstockError
from penstock.filter import ColumnRules
from penstock.render.canal import EntryEncoder, EntryOptions
from penstock.render.canal.values import CanalValueWriter
from penstock.render.canal.zone import parse_time_zone
from penstock.schema.declared import logged_column_types
from tests.support.mixed_tables import calls_of, many_tables, spread, table_by_table
from tests.twins.event import MAGIC
from tests.twins.log import LogWriter
from tests.twins.strategy import broken, examples, logs

MANY = settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])


def rendered(path: Path, rendering: EntryOptions) -> list[Any]:
    """The bytes of each block; of one that cannot be decoded what is said of it."""
    encoded, entries = list[Any](), EntryEncoder(rendering)
    try:
        for block in LogFile(path):
            try:
                encoded.append(entries.encode_block(block).data.tobytes())
            except PenstockError as error:
                encoded.append(str(error))
    except BinlogError as error:
        encoded.append(str(error))
    return encoded


def assert_same(path: Path, rendering: EntryOptions) -> None:
    together = rendered(path, rendering)
    with table_by_table():
        assert together == rendered(path, rendering)


@given(many_tables(), st.sampled_from(("canal", "penstock")), st.sampled_from(("UTC", "America/New_York")))
@MANY
def test_tables_together_give_the_bytes_of_each_alone(tmp_path: Path, log: LogWriter, style: Any, zone: str) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(MAGIC + bytes(log.data))
    assert_same(path, EntryOptions(logged_column_types, CanalValueWriter(style, parse_time_zone(zone))))


@given(logs(files=1), st.data())
@MANY
def test_broken_rows_are_refused_with_the_same_words(tmp_path: Path, log: LogWriter, data: st.DataObject) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(MAGIC + data.draw(broken(bytes(log.data), first=200)))
    assert_same(path, EntryOptions(logged_column_types))


def test_a_column_that_is_left_out_is_left_out_of_all_tables_together(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(MAGIC + bytes(spread(12, 4).data))
    rules = ColumnRules.from_settings([ColumnSettings(table=r"shop\..*", drop=["name"])])
    assert_same(path, EntryOptions(logged_column_types, columns=rules))
    (raw,) = rendered(path, EntryOptions(logged_column_types, columns=rules))
    assert b"name" not in raw
    assert b"price" in raw


def test_work_does_not_grow_with_the_number_of_tables(tmp_path: Path) -> None:
    """Of 600 rows in one block: over 300 tables there are a few calls for each table, not a few hundred."""
    work = dict[int, int]()
    for count in (3, 300):
        path = tmp_path / f"{count}.000001"
        path.write_bytes(MAGIC + bytes(spread(600, count).data))
        (block,) = LogFile(path)
        entries = EntryEncoder(EntryOptions(logged_column_types))
        assert len(entries.encode_block(block)) == 3 * 600  # what is remembered of the tables is found out
        work[count] = calls_of(lambda: entries.encode_block(block))  # noqa: B023 - called at once
    assert work[300] - work[3] < 300 * 20
