"""canal's entries of random logs, beside what plain Python makes of the same rows; read by Google's protobuf."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.binlog.events.file import LogFile
from penstock.canal import messages
from penstock.canal.types import CanalEventType, EntryType
from penstock.errors import ConfigurationError
from penstock.model import ChangeKind
from penstock.render.canal import EntryEncoder, EntryOptions
from penstock.render.canal.reals import write_java_floats
from penstock.render.canal.values import CanalValueWriter
from penstock.render.canal.zone import TimeZone, parse_time_zone
from penstock.schema.declared import logged_column_types
from tests.support.shop_log import shop_log, written
from tests.twins.canal import canal_sql_type, canal_text, java_real
from tests.twins.event import MAGIC
from tests.twins.log import Image, LogWriter
from tests.twins.row import ABSENT
from tests.twins.strategy import examples, logs

MANY = settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
ZONES = ("UTC", "Asia/Shanghai", "America/New_York", "Australia/Lord_Howe")


def entries_of(path: Path, **rendering: Any) -> list[Any]:
    """Each as it is on the wire: what protobuf writes of it again is the same bytes."""
    entries, encoded = EntryEncoder(EntryOptions(logged_column_types, **rendering)), list[Any]()
    for block in LogFile(path):
        made = entries.encode_block(block)
        raw = made.data.tobytes()
        assert not len(made) or made.ends[-1] == len(raw)
        message = messages.Messages.FromString(raw)
        assert message.SerializeToString() == raw
        assert len(message.messages) == len(made)
        for each in message.messages:
            entry = messages.Entry.FromString(each)
            assert entry.SerializeToString() == each
            encoded.append(entry)
    return encoded


def changes_of(entries: list[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Header, change, row."""
    for entry in entries:
        if entry.entryType == EntryType.ROWDATA:
            change = messages.RowChange.FromString(entry.storeValue)
            assert change.SerializeToString() == entry.storeValue
            assert change.eventType == entry.header.eventType
            props = {pair.key: pair.value for pair in entry.header.props}
            assert change.isDdl or props["rowsCount"] == str(len(change.rowDatas))
            for row in change.rowDatas:
                yield entry.header, change, row


def check_image(columns: Any, image: Image | None, before: Image | None, zone: str) -> None:
    if image is None:
        assert not columns
        return
    cells = [
        (i, column, cell)
        for i, (column, cell) in enumerate(zip(image.table.columns, image.row, strict=True))
        if cell is not ABSENT
    ]
    assert [column.index for column in columns] == [i for i, _, _ in cells]
    earlier = dict(zip(image.table.columns, before.row, strict=True)) if before is not None else {}
    for value, (_, column, cell) in zip(columns, cells, strict=True):
        assert (value.name, value.isKey) == (column.name, column.name in image.table.key)
        assert value.isNull == (cell is None)
        assert value.sqlType == canal_sql_type(column, cell)
        text = None if cell is None else canal_text(column, cell, zone)
        assert value.value == (text or "") or column.type.name == "VECTOR"
        if image.kind in {ChangeKind.DELETE, ChangeKind.UPDATE_PREIMAGE}:
            assert not value.updated
        else:
            old = earlier.get(column, ABSENT)
            old_text = old if old is None or old is ABSENT else canal_text(column, old, zone)
            assert value.updated == (old is ABSENT or old_text != text)


@given(logs(files=1), st.sampled_from(ZONES))
@MANY
def test_entries_say_what_was_written(tmp_path: Path, log: LogWriter, zone: str) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(MAGIC + bytes(log.data))
    rows = changes_of(entries_of(path, values=CanalValueWriter(zone=parse_time_zone(zone))))
    images = iter(log.images)
    for image in images:
        header, change, row = next(rows)
        assert (header.schemaName, header.tableName) == (image.table.name.schema, image.table.name.table)
        assert header.logfileOffset <= image.offset < header.logfileOffset + header.eventLength
        match image.kind:
            case ChangeKind.INSERT:
                assert change.eventType == CanalEventType.INSERT
                before, after = None, image
            case ChangeKind.DELETE:
                assert change.eventType == CanalEventType.DELETE
                before, after = image, None
            case _:
                assert change.eventType == CanalEventType.UPDATE
                before, after = image, next(images)
        check_image(row.beforeColumns, before, None, zone)
        check_image(row.afterColumns, after, before, zone)
    assert next(rows, None) is None


@pytest.mark.parametrize("is_mariadb", [True, False])
def test_a_transaction_begins_and_ends(tmp_path: Path, is_mariadb: bool) -> None:
    path = written(shop_log(is_mariadb=is_mariadb), tmp_path)
    kinds = [entry.entryType for entry in entries_of(path)]
    begin, row, end = EntryType.TRANSACTIONBEGIN, EntryType.ROWDATA, EntryType.TRANSACTIONEND
    assert kinds == [row, begin, row, row, row, end, begin, row, end, begin, row, end]
    assert [entry.entryType for entry in entries_of(path, transactions=False)] == [row] * 6


def test_a_transaction_of_which_nothing_is_shown_is_not_shown(tmp_path: Path) -> None:
    log = LogWriter().open()
    for _ in range(3):
        log.begin()
        log.commit()
    assert entries_of(written(log, tmp_path)) == []


@pytest.mark.parametrize("is_mariadb", [True, False])
def test_entries_have_gtids_on_request(tmp_path: Path, is_mariadb: bool) -> None:
    path = written(shop_log(is_mariadb=is_mariadb), tmp_path)
    for entry in entries_of(path, gtids=True):
        props = {pair.key: pair.value for pair in entry.header.props}
        assert props["curtGtid"]
    assert all(not entry.header.gtid for entry in entries_of(path))


@given(st.lists(st.floats(), min_size=1), st.lists(st.floats(width=32), min_size=1))
@settings(examples(200))
def test_reals_are_javas(doubles: list[float], floats: list[float]) -> None:
    assert write_java_floats(pa.array(doubles, pa.float64())).to_pylist() == [
        java_real(value, is_float=False) for value in doubles
    ]
    assert write_java_floats(pa.array(floats, pa.float32())).to_pylist() == [
        java_real(value, is_float=True) for value in floats
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.0"), (-0.0, "-0.0"), (1e7, "1.0E7"), (9999999.0, "9999999.0"), (0.001, "0.001"), (0.0001, "1.0E-4"),
     (123.456, "123.456"), (1e-300, "1.0E-300"), (1.7976931348623157e308, "1.7976931348623157E308")],
)  # fmt: skip
def test_reals_by_example(value: float, text: str) -> None:
    assert java_real(value, is_float=False) == text


def test_utc_is_left_alone_and_an_unknown_zone_is_refused() -> None:
    assert TimeZone().name == "UTC"
    with pytest.raises(ConfigurationError, match="Asia/Shanghai"):
        parse_time_zone("Nowhere/Land")
