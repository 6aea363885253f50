"""Changes of any table in one shape: the same as JSON lines say, as JSON rows say, and for any number of tables."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.binlog.events.block import Block
from penstock.binlog.events.file import LogFile
from penstock.errors import BinlogError, PenstockError
from penstock.model import TableName, TableSchema, WireType
from penstock.render import ordered_changes
from penstock.render.json_change_fields import json_change_fields
from penstock.render.json_changes import JsonChangeReader
from penstock.render.json_rows import JsonRowReader
from tests.support.mixed_tables import DOCUMENT, calls_of, spread, table_by_table
from tests.support.shop_log import shown
from tests.twins.event import MAGIC
from tests.twins.json_strategy import encoded
from tests.twins.log import LogWriter
from tests.twins.row import INSERT, UPDATE
from tests.twins.strategy import broken, examples, logs, tables, write_rows

MANY = settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
SAME = ("_table", "_commit_version", "_commit_timestamp", "_seq", "_row", "_gtid", "_file", "_offset", "_partial")


def all_columns(table: TableSchema) -> Any:
    return table.columns


def file_of(log: LogWriter, folder: Path) -> Path:
    path = folder / "binlog.000001"
    path.write_bytes(MAGIC + bytes(log.data))
    return path


def changes_of(path: Path, **options: Any) -> list[dict[str, Any]]:
    changes = JsonChangeReader(all_columns, **options)
    return [row for block in LogFile(path) for row in rows_of(changes, block)]


def rows_of(changes: JsonChangeReader, block: Block) -> Iterator[dict[str, Any]]:
    for batch in changes.read_batches(block):
        assert batch.schema == changes.schema
        batch.validate(full=True)
        yield from batch.to_pylist()


def exact(text: str | None) -> Any:
    """A JSON text with its numbers as they are written."""
    return text if text is None else json.loads(text, parse_float=str, parse_int=str, parse_constant=str)


@st.composite
def keyed_logs(draw: st.DrawFn) -> LogWriter:
    """Transactions over tables with keys of no, one or several columns, whole and sparse images, and documents."""
    log = LogWriter(is_mariadb=draw(st.booleans()), is_checksummed=draw(st.booleans())).open()
    schemas = list[TableSchema]()
    for number in range(draw(st.integers(1, 4))):
        table = draw(tables(st.integers(1, 5), f"t{number}"))
        key = [column.name for column in table.columns if column.type is not WireType.VECTOR and draw(st.booleans())]
        schemas.append(replace(table, key=tuple(key)))
    schemas.append(replace(schemas[0], name=TableName("shop", "twin")))
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


@given(keyed_logs(), st.booleans(), st.sampled_from((1, 200, 1 << 30)))
@MANY
def test_changes_are_those_of_json_lines(tmp_path: Path, log: LogWriter, are_alone: bool, most: int) -> None:
    path = file_of(log, tmp_path)
    lines = [exact(line) for line in shown(path, "--format", "json").split("\n")[:-1]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered_changes, "MAX_BYTES", most)
        if are_alone:
            with table_by_table():
                changes = changes_of(path)
        else:
            changes = changes_of(path)
    assert len(changes) == len(lines)
    for change, line in zip(changes, lines, strict=True):
        assert (change["_change_type"], change["_table"]) == (line["type"], line["table"])
        assert (change["_gtid"], change["_file"], str(change["_seq"])) == (line["gtid"], line["file"], line["seq"])
        assert exact(change["before"]) == line.get("before")
        assert exact(change["after"]) == line.get("after")
        key = line.get("key")
        assert (change["_key"] and dict(change["_key"])) == key


@given(keyed_logs(), st.booleans())
@MANY
def test_what_is_said_of_a_change_is_said_of_its_last_image(tmp_path: Path, log: LogWriter, are_alone: bool) -> None:
    path = file_of(log, tmp_path)
    rows = JsonRowReader(all_columns)
    batches = [rows.read_block(block) for block in LogFile(path)]
    images = [row for batch in batches if batch is not None for row in batch.to_pylist()]
    last = [image for image in images if image["_change_type"] != "update_preimage"]
    if are_alone:
        with table_by_table():
            changes = changes_of(path)
    else:
        changes = changes_of(path)
    for name in (*SAME, "_changed", "_absent"):
        assert [change[name] for change in changes] == [image[name] for image in last]


@given(logs(files=1), st.data())
@MANY
def test_broken_rows_are_refused_with_the_same_words(tmp_path: Path, log: LogWriter, data: st.DataObject) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(MAGIC + data.draw(broken(bytes(log.data), first=200)))
    together = _shown_or_refused(path)
    with table_by_table():
        assert together == _shown_or_refused(path)


def _shown_or_refused(path: Path) -> list[Any]:
    shown_changes, changes = list[Any](), JsonChangeReader(all_columns, include_ddl=True)
    try:
        for block in LogFile(path):
            try:
                shown_changes.append(list(rows_of(changes, block)))
            except PenstockError as error:
                shown_changes.append(str(error))
    except BinlogError as error:
        shown_changes.append(str(error))
    return shown_changes


def test_tables_that_do_not_pass_are_left_out(tmp_path: Path) -> None:
    path = file_of(spread(12, 4), tmp_path)
    changes = changes_of(path, passes=lambda table: table.table in {"t1", "t3"})
    assert [change["_table"] for change in changes] == ["shop.t1", "shop.t3"] * 3
    assert [dict(change["_key"]) for change in changes] == [{"id": str(n)} for n in range(1, 12, 2)]
    assert changes_of(path, passes=lambda _: False) == []


def test_fields_of_changes_have_the_statement_only_on_request() -> None:
    names = json_change_fields(include_ddl=False).names
    assert json_change_fields(include_ddl=True).names == [*names[:5], "ddl", *names[5:]]
    assert names[:5] == ["_change_type", "_table", "_key", "before", "after"]


def test_work_does_not_grow_with_the_number_of_tables(tmp_path: Path) -> None:
    """Of 600 rows in one block: over 300 tables there are a few calls for each table, not a few hundred."""
    work = dict[int, int]()
    for count in (3, 300):
        path = tmp_path / f"{count}.000001"
        path.write_bytes(MAGIC + bytes(spread(600, count).data))
        (block,) = LogFile(path)
        changes = JsonChangeReader(all_columns)
        list(changes.read_batches(block))  # what is remembered of the tables is found out
        work[count] = calls_of(lambda: list(changes.read_batches(block)))  # noqa: B023 - called at once
    assert work[300] - work[3] < 300 * 20
