"""Log files on disk, and `penstock.read_binlog`."""

from pathlib import Path

import pytest

import penstock
from penstock.binlog.events.file import LogFile
from penstock.errors import BinlogError, SchemaError
from penstock.model import Column, Position, TableName, TableSchema, WireType
from tests.twins.log import LogWriter
from tests.twins.row import ABSENT, INSERT, UPDATE
from tests.twins.value import ZERO

ORDERS = TableSchema(
    TableName("shop", "orders"),
    (
        Column("id", WireType.LONG),
        Column("day", WireType.DATE),
        Column("state", WireType.ENUM, size=1, labels=("new", "sent"), charset="utf8mb4"),
    ),
    ("id",),
)
OTHER = TableSchema(TableName("shop", "lines"), (Column("id", WireType.LONG),))


def written(folder: Path, log: LogWriter, name: str = "binlog.000001") -> Path:
    path = folder / name
    path.write_bytes(b"\xfebin" + bytes(log.data))
    return path


def orders(*rows: list[object], table: TableSchema = ORDERS) -> LogWriter:
    log = LogWriter().open()
    log.begin()
    log.map(7, table)
    log.rows(INSERT, 7, table, list(rows))
    log.commit()
    return log


def test_changes_of_the_only_table(tmp_path: Path) -> None:
    table = penstock.read_binlog(written(tmp_path, orders([1, ZERO, "sent"], [2, None, ""])))
    assert table.column("id").to_pylist() == [1, 2]
    assert table.column("day").to_pylist() == [None, None]
    assert table.column("state").to_pylist() == ["sent", ""]
    assert set(table.column("_change_type").to_pylist()) == {"insert"}


def test_choices(tmp_path: Path) -> None:
    path = written(tmp_path, orders([1, ZERO, "sent"]))
    table = penstock.read_binlog(str(path), "shop.orders", columns=["day", "state"], dates="text", labels="number")
    assert table.select(["day", "state"]).to_pylist() == [{"day": "0000-00-00", "state": 2}]
    with pytest.raises(BinlogError, match=r"^binlog\.000001:\d+ WRITE_ROWS_V1 of shop\.orders: column day is 0000-"):
        penstock.read_binlog(path, dates="error")


def test_several_files_and_tables(tmp_path: Path) -> None:
    first, second = orders([1, None, "new"]), orders([2, None, "new"])
    second.begin()
    second.map(8, OTHER)
    second.rows(INSERT, 8, OTHER, [[5]])
    second.commit()
    paths = [written(tmp_path, first), written(tmp_path, second, "binlog.000002")]
    table = penstock.read_binlog(paths, "shop.orders")
    assert table.column("id").to_pylist() == [1, 2]
    assert table.column("_file").to_pylist() == ["binlog.000001", "binlog.000002"]
    with pytest.raises(SchemaError, match=r"binlog\.000002 holds rows of shop\.orders and shop\.lines: say which"):
        penstock.read_binlog(paths)
    with pytest.raises(SchemaError, match=r"there are no rows of shop\.nobody in"):
        penstock.read_binlog(paths, "shop.nobody")


def test_absent_is_not_null(tmp_path: Path) -> None:
    log = LogWriter().open()
    log.begin()
    log.map(7, ORDERS)
    log.rows(UPDATE, 7, ORDERS, [[1, ABSENT, ABSENT], [ABSENT, None, ABSENT]])
    log.commit()
    before, after = penstock.read_binlog(written(tmp_path, log)).to_pylist()
    assert (before["_absent"], after["_absent"]) == (["day", "state"], ["id", "state"])
    assert after["_changed"] == ["day"]


def test_what_the_log_does_not_say_can_be_known(tmp_path: Path) -> None:
    nameless = orders([1, None, "new"])
    at = nameless.data.index(b"\x04\x0d\x02id\x03day\x05state")
    nameless.data[at] = 99  # a field that no server writes: the names are gone
    path = tmp_path / "binlog.000001"
    path.write_bytes(b"\xfebin" + bytes(nameless.data))
    assert penstock.read_binlog(path, verify=False).column_names[:3] == ["@1", "@2", "@3"]
    assert penstock.read_binlog(path, verify=False, known=ORDERS).column_names[:3] == ["id", "day", "state"]


@pytest.mark.parametrize("cut", [1, 4, 20, 40])
def test_a_file_that_ends_inside_an_event(tmp_path: Path, cut: int) -> None:
    log = orders([1, None, "new"])
    whole = log.boundaries[-1]
    more = orders([2, None, "new"])
    first = int.from_bytes(more.data[9:13], "little")
    path = tmp_path / "binlog.000001"
    path.write_bytes(b"\xfebin" + bytes(log.data) + bytes(more.data[first : first + cut]))
    file = LogFile(path)
    assert sum(len(block) for block in file) == 4
    assert (file.rest, file.end) == (cut, Position("binlog.000001", whole))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is no binlog: it is empty"),
        (b"PK\x03\x04....", "is no binlog: it begins with 50 4b 03 04"),
        (b"\xfdbin....", "is encrypted"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(content)
    with pytest.raises(BinlogError, match=rf"binlog\.000001 {says}"):
        list(LogFile(path))


def test_an_incident_is_an_event_to_look_at(tmp_path: Path) -> None:
    log = LogWriter().open()
    log.add(26, b"\x01\0\0")
    path = written(tmp_path, log)
    assert [block.column("kind").tolist() for block in LogFile(path)] == [[26]]
    with pytest.raises(BinlogError, match="INCIDENT"):
        list(LogFile(path, lenient=False))


def test_a_log_of_mysql_5_5(tmp_path: Path) -> None:
    """Its format event ends without a checksum algorithm; its events have no checksums."""
    log = orders([1, None, "new"])
    size = int.from_bytes(log.data[9:13], "little")
    old = bytearray(log.data[: size - 5])
    old[9:13], old[13:17] = (size - 5).to_bytes(4, "little"), (size - 1).to_bytes(4, "little")
    old[21:71] = b"5.5.62-log".ljust(50, b"\0")
    plain = LogWriter(is_mariadb=False, is_checksummed=False, position=size - 1)
    plain.add(2, b"\0" * 14 + b"BEGIN")
    plain.map(7, ORDERS)
    plain.rows(INSERT, 7, ORDERS, [[1, None, "new"]])
    plain.commit()
    path = tmp_path / "binlog.000001"
    path.write_bytes(b"\xfebin" + bytes(old) + bytes(plain.data))
    assert penstock.read_binlog(path).column("id").to_pylist() == [1]
