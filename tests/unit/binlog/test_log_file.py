"""Log files on disk, and `penstock.read_binlog`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.binlog.events.file import LogFile
from penstock.errors import BinlogError, BinlogWarning, ConfigurationError, SchemaError
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


def test_an_altered_table_has_the_columns_of_all_its_versions(tmp_path: Path) -> None:
    log = orders([1, None, "new"])
    wide = (Column("id", WireType.LONGLONG), Column("note", WireType.LONG), ORDERS.columns[2])
    later = replace(ORDERS, columns=wide)
    log.begin()
    log.map(8, later)
    log.rows(INSERT, 8, later, [[1 << 40, 7, ABSENT]])
    log.rows(INSERT, 8, later, [[3, None, "sent"]])
    log.commit()
    path = written(tmp_path, log)
    table = penstock.read_binlog(path)
    assert table.column_names[:5] == ["id", "note", "state", "day", "_change_type"]
    rows = table.select(["id", "note", "state", "day", "_absent"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (1, None, "new", None, ["note"]),
        (1 << 40, 7, None, None, ["state", "day"]),
        (3, None, "sent", None, ["day"]),
    ]
    assert penstock.read_binlog(path, columns=["day"]).column("_absent").to_pylist() == [None, ["day"], ["day"]]
    with pytest.raises(SchemaError, match=r"shop\.orders has no column nothing in these files"):
        penstock.read_binlog(path, columns=["nothing", "id"])


def test_versions_that_no_type_holds_are_refused(tmp_path: Path) -> None:
    log = orders([1, None, "new"])
    later = replace(ORDERS, columns=(ORDERS.columns[0], Column("day", WireType.DOUBLE), ORDERS.columns[2]))
    log.begin()
    log.map(8, later)
    log.rows(INSERT, 8, later, [[1, 0.5, "new"]])
    log.commit()
    path = written(tmp_path, log)
    with pytest.raises(SchemaError, match=r"shop\.orders was altered within the files.*day"):
        penstock.read_binlog(path)
    assert penstock.read_binlog(path, columns=["id"]).num_rows == 2


def test_a_table_may_have_columns_named_like_ours(tmp_path: Path) -> None:
    columns = (Column("_seq", WireType.LONG), Column("_Row", WireType.LONG), Column("__row", WireType.LONG))
    table = TableSchema(TableName("shop", "odd"), columns)
    rows = penstock.read_binlog(written(tmp_path, orders([1, 2, 3], table=table)))
    assert rows.column("_seq").to_pylist() == [1]
    assert rows.column("__seq")[0].as_py() > 1
    assert rows.column("___row").to_pylist() == [0]
    assert len(set(map(str.casefold, rows.column_names))) == len(rows.column_names)


@pytest.mark.parametrize("choice", [{"dates": "x"}, {"labels": "texts"}])
def test_choices_that_do_not_exist(tmp_path: Path, choice: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"(dates|labels) is one of .*, not 'x|, not 'texts"):
        penstock.read_binlog(written(tmp_path, orders([1, None, "new"])), **choice)


@pytest.mark.parametrize("name", ["binlog", "binlog.x", "binlog.٣", "binlog." + "9" * 30, "binlog." + "1" * 5000])
def test_a_rotation_to_what_is_no_log_file(tmp_path: Path, name: str) -> None:
    log = orders([1, None, "new"])
    log.add(4, (4).to_bytes(8, "little") + name.encode())
    with pytest.raises(BinlogError, match=r"^binlog\.000001:\d+ ROTATE: .*bytes there: "):
        list(LogFile(written(tmp_path, log)))


def test_a_name_without_a_number(tmp_path: Path) -> None:
    rows = penstock.read_binlog(written(tmp_path, orders([1, None, "new"]), "copy.bin"))
    assert rows.column("_file").to_pylist() == ["copy.bin.0"]


def test_what_is_not_there_is_warned_of(tmp_path: Path) -> None:
    log = orders([1, None, "new"])
    log.add(26, b"\x01\0\0")
    path = written(tmp_path, log)
    with pytest.warns(BinlogWarning, match=r"^binlog\.000001:\d+ INCIDENT: the server says"):
        penstock.read_binlog(path)
    whole = written(tmp_path, orders([1, None, "new"]))
    raw = whole.read_bytes()
    whole.write_bytes(raw + raw[4:30])
    with pytest.warns(BinlogWarning, match=r"^binlog\.000001:\d+ is followed by 26 bytes that are no whole event"):
        assert penstock.read_binlog(whole).num_rows == 1


@pytest.mark.parametrize("cut", [1, 4, 20, 40])
def test_a_file_that_ends_inside_an_event(tmp_path: Path, cut: int) -> None:
    log = orders([1, None, "new"])
    whole = log.boundaries[-1]
    rest = orders([2, None, "new"])
    first = int.from_bytes(rest.data[9:13], "little")
    path = tmp_path / "binlog.000001"
    path.write_bytes(b"\xfebin" + bytes(log.data) + bytes(rest.data[first : first + cut]))
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


def test_blocks_of_a_file_are_about_equally_large(tmp_path: Path) -> None:
    """The largest of them decides how much memory a reader takes."""
    log = LogWriter().open()
    for number in range(2000):
        log.begin()
        log.map(7, OTHER)
        log.rows(INSERT, 7, OTHER, [[number]])
        log.commit()
    sizes = [int(block.raw[2].sum()) for block in LogFile(written(tmp_path, log), block_bytes=20_000)]
    assert len(sizes) > 5
    assert max(sizes) < 1.3 * 20_000
    assert min(sizes[:-1]) >= 20_000
