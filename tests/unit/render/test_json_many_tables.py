"""JSON rows of blocks with many tables: the same as table by table, and no more work for more tables."""

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.binlog.events.file import LogFile
from penstock.config import ColumnSettings
from penstock.errors import BinlogError, PenstockError
from penstock.filter import ColumnRules
from penstock.model import Column, TableSchema
from penstock.render.json_rows import ROW_FIELDS, JsonRowReader
from tests.support.mixed_tables import calls_of, many_tables, spread, table_by_table
from tests.twins.event import MAGIC
from tests.twins.log import LogWriter
from tests.twins.strategy import broken, examples, logs

MANY = settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])


def all_columns(table: TableSchema) -> tuple[Column, ...]:
    return table.columns


def rows_of(path: Path, columns_of: Any = all_columns) -> list[Any]:
    """The rows of each block; of one that cannot be decoded what is said of it."""
    rows_read, rows = list[Any](), JsonRowReader(columns_of)
    try:
        for block in LogFile(path):
            try:
                batch = rows.read_block(block)
                assert batch is None or batch.schema == ROW_FIELDS
                if batch is not None:
                    batch.validate(full=True)
                rows_read.append(batch and batch.to_pylist())
            except PenstockError as error:
                rows_read.append(str(error))
    except BinlogError as error:
        rows_read.append(str(error))
    return rows_read


def assert_same(path: Path, columns_of: Any = all_columns) -> None:
    together = rows_of(path, columns_of)
    with table_by_table():
        assert together == rows_of(path, columns_of)


@given(many_tables(), st.booleans())
@MANY
def test_tables_together_give_the_rows_of_each_alone(tmp_path: Path, log: LogWriter, is_every_second: bool) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(MAGIC + bytes(log.data))
    assert_same(path, (lambda table: table.columns[1::2]) if is_every_second else all_columns)


@given(logs(files=1), st.data())
@MANY
def test_broken_rows_are_refused_with_the_same_words(tmp_path: Path, log: LogWriter, data: st.DataObject) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(MAGIC + data.draw(broken(bytes(log.data), first=200)))
    assert_same(path)


def test_rows_are_objects_in_the_order_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(MAGIC + bytes(spread(12, 4).data))
    rules = ColumnRules.from_settings([ColumnSettings(table=r"shop\.t[01]", drop=["price", "made"])])
    (rows,) = rows_of(path, rules.columns_to_show)
    assert [row["_table"] for row in rows] == [f"shop.t{n % 4}" for n in range(12)]
    expected = [{"id": n, "name": f"row {n}"} | ({"price": None, "made": None} if n % 4 > 1 else {}) for n in range(12)]
    assert [json.loads(row["row"]) for row in rows] == expected


def test_work_does_not_grow_with_the_number_of_tables(tmp_path: Path) -> None:
    """Of 600 rows in one block: over 300 tables there are a few calls for each table, not a few hundred."""
    work = dict[int, int]()
    for count in (3, 300):
        path = tmp_path / f"{count}.000001"
        path.write_bytes(MAGIC + bytes(spread(600, count).data))
        (block,) = LogFile(path)
        rows = JsonRowReader(all_columns)
        rows.read_block(block)  # what is remembered of the tables is found out
        work[count] = calls_of(lambda: rows.read_block(block))  # noqa: B023 - called at once
    assert work[300] - work[3] < 300 * 20
