"""Every format of a small log, word by word."""

import csv
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import BinlogError, ConfigurationError, SchemaError
from penstock.model import Column, TableName, TableSchema, WireType
from tests.support.shop_log import NOTE, PRODUCT, binlog, shop_log, shown, written
from tests.twins.log import LogWriter
from tests.twins.row import ABSENT, INSERT, UPDATE

GTID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

DELETE_NOTE = (
    "DELETE FROM `shop`.`note` WHERE CAST(CONVERT(`what` USING utf8mb4) AS BINARY) <=> 'a'"
    " AND `raw` <=> X'0027' LIMIT 1;"
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return written(shop_log(), tmp_path)


def test_json_lines(log: Path) -> None:
    ddl, *changes = map(json.loads, shown(log).splitlines())
    assert ddl == {
        "type": "ddl",
        "ts": "2023-11-14T22:13:20Z",
        "gtid": "5-1-1",
        "file": "binlog.000001",
        "pos": ddl["pos"],
        "database": "shop",
        "sql": "CREATE TABLE product (id INT)",
    }
    assert [(change["table"], change["type"], change["gtid"]) for change in changes] == [
        ("shop.product", "insert", "5-1-2"),
        ("shop.product", "insert", "5-1-2"),
        ("shop.note", "insert", "5-1-2"),
        ("shop.product", "insert", "5-1-2"),
        ("shop.product", "update", "5-1-3"),
        ("shop.note", "delete", "5-1-4"),
    ]
    assert changes[1]["after"] == {"id": 2, "name": 'it\'s "oak"\n', "price": None}
    assert changes[1]["key"] == {"id": 2}
    assert "before" not in changes[1]
    assert changes[4]["before"] == {"id": 1, "name": "kettle", "price": "35.00"}
    assert changes[4]["after"]["price"] == "29.90"
    assert changes[4]["ts"] == "2023-11-14T22:14:20Z"
    assert changes[5]["before"] == {"what": "a", "raw": "ACc="}
    assert "key" not in changes[5]
    sequences = [change["seq"] for change in changes]
    assert sequences == sorted(set(sequences))


def test_sql(log: Path) -> None:
    text = shown(log, "--output", "sql")
    assert text.startswith("SET NAMES utf8mb4;\nSET TIME_ZONE='+00:00';\nSET SQL_MODE='")
    body = [line for line in text.splitlines()[3:] if not line.startswith("--")]
    assert body == [
        "USE `shop`;",
        "SET TIMESTAMP=1700000000;",
        "CREATE TABLE product (id INT);",
        "SET TIMESTAMP=DEFAULT;",
        "BEGIN;",
        "INSERT INTO `shop`.`product` (`id`, `name`, `price`) VALUES (1, 'kettle', 35.00);",
        "INSERT INTO `shop`.`product` (`id`, `name`, `price`) VALUES (2, 'it''s \"oak\"\\n', NULL);",
        "INSERT INTO `shop`.`note` (`what`, `raw`) VALUES ('a', X'0027');",
        "INSERT INTO `shop`.`product` (`id`, `name`, `price`) VALUES (3, '', 0.01);",
        "COMMIT;",
        "BEGIN;",
        "UPDATE `shop`.`product` SET `id`=1, `name`='kettle', `price`=29.90 WHERE `id`=1;",
        "COMMIT;",
        "BEGIN;",
        DELETE_NOTE,
        "COMMIT;",
    ]
    assert "-- binlog.000001:" in text
    assert "  2023-11-14 22:14:20 UTC  5-1-3\nBEGIN;" in text


def test_flashback(log: Path) -> None:
    result = binlog(log, "--flashback")
    assert result.exit_code == 0
    assert "statements that cannot be undone: 1;" in result.stderr
    body = [
        line for line in result.stdout.splitlines()[3:] if not line.startswith("-- binlog.000001:") or "undone" in line
    ]
    assert body[:-1] == [
        "BEGIN;",
        "INSERT INTO `shop`.`note` (`what`, `raw`) VALUES ('a', X'0027');",
        "COMMIT;",
        "BEGIN;",
        "UPDATE `shop`.`product` SET `id`=1, `name`='kettle', `price`=35.00 WHERE `id`=1;",
        "COMMIT;",
        "BEGIN;",
        "DELETE FROM `shop`.`product` WHERE `id`=3;",
        DELETE_NOTE,
        "DELETE FROM `shop`.`product` WHERE `id`=2;",
        "DELETE FROM `shop`.`product` WHERE `id`=1;",
        "COMMIT;",
    ]
    assert body[-1].endswith("cannot be undone: CREATE TABLE product (id INT)")


def test_lines_for_a_terminal(log: Path) -> None:
    lines = shown(log, "--output", "text").splitlines()
    assert [line for line in lines if line.startswith(" ")] == [
        "  shop: CREATE TABLE product (id INT)",
        "  INSERT shop.product  id=1  name='kettle'  price=35.00",
        "  INSERT shop.product  id=2  name='it\\'s \"oak\"\\n'  price=NULL",
        "  INSERT shop.note  what='a'  raw=0x0027",
        "  INSERT shop.product  id=3  name=''  price=0.01",
        "  UPDATE shop.product  id=1  price: 35.00 → 29.90",
        "  DELETE shop.note  what='a'  raw=0x0027",
    ]
    assert len([line for line in lines if line.startswith("binlog.000001:")]) == 4


def test_csv_of_one_table(log: Path) -> None:
    text = shown(log, "--output", "csv", "--table", "shop.product")
    rows = list(csv.DictReader(text.splitlines(keepends=True)))
    assert [(row["id"], row["name"], row["price"], row["_change_type"]) for row in rows] == [
        ("1", "kettle", "35.00", "insert"),
        ("2", 'it\'s "oak"\n', "", "insert"),
        ("3", "", "0.01", "insert"),
        ("1", "kettle", "35.00", "update_preimage"),
        ("1", "kettle", "29.90", "update_postimage"),
    ]
    assert rows[0]["_commit_timestamp"] == "2023-11-14T22:13:20Z"
    assert rows[0]["_gtid"] == "5-1-2"
    assert '\n3,"",0.01,insert,' in text


@pytest.mark.parametrize("kind", ["csv", "arrow", "parquet"])
def test_a_folder_gets_a_file_per_table(log: Path, tmp_path: Path, kind: str) -> None:
    assert shown(log, "--output", kind, "--to", tmp_path / "out") == ""
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [f"shop.note.{kind}", f"shop.product.{kind}"]


def test_no_two_tables_share_a_file(tmp_path: Path) -> None:
    log = LogWriter().open()
    names = [("a.b", "c"), ("a", "b.c"), ("a", "b/c"), ("a", "b_c"), ("a", "b"), ("a", "b.2")]
    for number, (schema, name) in enumerate(names):
        table = TableSchema(TableName(schema, name), (Column("id", WireType.LONG),), ("id",))
        log.begin()
        log.map(number, table)
        log.rows(INSERT, number, table, [[number]])
        log.commit()
    path = tmp_path / "binlog.000001"
    path.write_bytes(b"\xfebin" + bytes(log.data))
    shown(path, "--output", "csv", "--columns", "id", "--to", tmp_path / "out")
    files = sorted((tmp_path / "out").iterdir())
    assert len(files) == len(names)
    assert [file.name for file in files if "%" not in file.name] == ["a.b.csv", "a.b_c.csv"]
    assert {file.read_text().splitlines()[1].split(",")[0] for file in files} == {str(i) for i in range(len(names))}


def test_parquet_and_arrow_keep_types(log: Path, tmp_path: Path) -> None:
    shown(log, "--output", "parquet", "--to", tmp_path / "p.parquet", "--table", "shop.product")
    shown(log, "--output", "arrow", "--to", tmp_path / "p.arrow", "--table", "shop.product")
    table = pq.read_table(tmp_path / "p.parquet")
    with pa.ipc.open_file(tmp_path / "p.arrow") as file:
        assert file.read_all().equals(table)
    assert table.schema.field("price").type == pa.decimal128(10, 2)
    assert table.column("price").to_pylist()[-1] == Decimal("29.90")
    assert table.column("_changed").to_pylist()[-1] == ["price"]


def test_arrow_and_parquet_go_into_a_pipe(log: Path) -> None:
    result = binlog(log, "--output", "arrow", "--table", "shop.note")
    assert pa.ipc.open_stream(result.stdout_bytes).read_all().num_rows == 2
    result = binlog(log, "--output", "parquet", "--table", "shop.note")
    assert pq.read_table(pa.BufferReader(result.stdout_bytes)).num_rows == 2


def test_one_file_holds_one_table(log: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"one table.*shop\.(note|product).*--table.*folder"):
        binlog(log, "--output", "parquet", "--to", tmp_path / "both.parquet")


def test_a_table_that_was_altered_gets_another_file(tmp_path: Path) -> None:
    log = shop_log()
    log.begin()
    log.map(9, NOTE.__class__(PRODUCT.name, PRODUCT.columns[:2], ("id",)))
    log.rows(INSERT, 9, NOTE.__class__(PRODUCT.name, PRODUCT.columns[:2], ("id",)), [[9, "nine"]])
    log.commit()
    path = written(log, tmp_path)
    for kind in ("csv", "parquet"):
        shown(path, "--output", kind, "--table", "shop.product", "--to", tmp_path / kind)
        assert sorted(file.name for file in (tmp_path / kind).iterdir()) == [
            f"shop.product.2.{kind}",
            f"shop.product.{kind}",
        ]
    with pytest.raises(ConfigurationError, match=r"versions of shop\.product with different columns"):
        binlog(path, "--output", "csv", "--table", "shop.product")


def test_columns(log: Path) -> None:
    changes = [
        json.loads(line) for line in shown(log, "--table", "shop.product", "--columns", "name, price").splitlines()
    ]
    assert changes[1]["after"] == {"name": "kettle", "price": "35.00"}
    assert changes[1]["key"] == {"id": 1}
    without = [json.loads(line) for line in shown(log, "--table", "shop.product", "--without", "name").splitlines()]
    assert without[1]["after"] == {"id": 1, "price": "35.00"}
    with pytest.raises(
        SchemaError, match=r"nothing is left of table shop\.product, which has the columns id, name, price"
    ):
        binlog(log, "--columns", "nope")
    with pytest.raises(ConfigurationError, match="--without"):
        binlog(log, "--flashback", "--columns", "id")


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7])
def test_the_limit_counts_changes_in_the_order_of_the_log(log: Path, tmp_path: Path, count: int) -> None:
    whole = [line for line in shown(log).splitlines() if '"ddl"' not in line]
    some = [line for line in shown(log, "--limit", count).splitlines() if '"ddl"' not in line]
    assert some == whole[:count]
    for kind in ("csv", "parquet"):
        shown(log, "--limit", count, "--output", kind, "--to", tmp_path / kind)
    updates = sum('"update"' in line for line in some)
    parquet = sum(pq.read_table(path).num_rows for path in (tmp_path / "parquet").iterdir())
    texts = [path.read_bytes().decode() for path in (tmp_path / "csv").iterdir()]
    lines = sum(len(list(csv.reader(text.splitlines(keepends=True)))) - 1 for text in texts)
    assert parquet == lines == len(some) + updates
    sql = shown(log, "--limit", count, "--output", "sql")
    assert sql.count("BEGIN;") == sql.count("COMMIT;")
    undo = binlog(log, "--limit", count, "--flashback").stdout
    assert undo.count("BEGIN;") == undo.count("COMMIT;")


def test_minimal_images_are_not_undone(tmp_path: Path) -> None:
    log = LogWriter().open()
    log.begin()
    log.map(7, PRODUCT)
    log.rows(UPDATE, 7, PRODUCT, [[1, ABSENT, ABSENT], [ABSENT, ABSENT, Decimal("1.00")]])
    log.rows(UPDATE, 7, PRODUCT, [[2, ABSENT, ABSENT], [ABSENT, "n", None]])
    log.commit()
    path = written(log, tmp_path)
    changes = [json.loads(line) for line in shown(path).splitlines()]
    assert [(change["before"], change["after"]) for change in changes] == [
        ({"id": 1}, {"price": "1.00"}),
        ({"id": 2}, {"name": "n", "price": None}),
    ]
    assert [change["key"] for change in changes] == [{"id": 1}, {"id": 2}]
    sql = shown(path, "--output", "sql")
    assert "SET `price`=1.00 WHERE `id`=1;\nUPDATE `shop`.`product` SET `name`='n', `price`=NULL WHERE `id`=2;" in sql
    with pytest.raises(BinlogError, match=r"binlog\.000001:\d+ the update in shop\.product does not carry.*MINIMAL"):
        binlog(path, "--flashback")


def test_transactions_that_go_over_many_blocks(tmp_path: Path) -> None:
    """The reader cuts blocks of 4 MB: one transaction fills several, and is still one."""
    log = LogWriter().open()
    log.begin()
    log.map(7, PRODUCT)
    for event in range(120):
        log.rows(INSERT, 7, PRODUCT, [[event * 500 + i, "n" * 190, None] for i in range(500)])
    log.commit()
    log.begin()
    log.map(7, PRODUCT)
    log.rows(INSERT, 7, PRODUCT, [[-1, "last", None]])
    log.commit()
    path = written(log, tmp_path)
    sql = shown(path, "--output", "sql").splitlines()
    undo = shown(path, "--flashback").splitlines()
    assert [line for line in sql if line in {"BEGIN;", "COMMIT;"}] == ["BEGIN;", "COMMIT;"] * 2
    assert [line for line in undo if line in {"BEGIN;", "COMMIT;"}] == ["BEGIN;", "COMMIT;"] * 2
    keys = [int(line.rpartition("=")[2].rstrip(";")) for line in undo if line.startswith("DELETE")]
    assert keys == [-1, *range(59_999, -1, -1)]
    stats = json.loads(shown(path, "--stats", "--output", "json"))
    assert stats["transactions"] == 2
    assert stats["tables"][0]["transactions"] == 2
    assert stats["largest_transactions"][0]["rows"] == 60_000


def test_gtids_of_mysql(tmp_path: Path) -> None:
    path = written(shop_log(is_mariadb=False), tmp_path)
    change = json.loads(shown(path, "--table", "shop.note").splitlines()[0])
    assert change["gtid"] == f"{GTID}:2"
    assert change["ts"] == "2023-11-14T22:13:20.123456Z"


def test_the_key_of_a_minimal_update_is_that_of_the_newest_row(tmp_path: Path) -> None:
    """Of a key of two columns one has changed: the image after has only that one."""
    table = TableSchema(PRODUCT.name, PRODUCT.columns, ("id", "name"))
    log = LogWriter().open()
    log.begin()
    log.map(7, table)
    log.rows(UPDATE, 7, table, [[1, "old", ABSENT], [ABSENT, "new", ABSENT]])
    log.commit()
    (line,) = shown(written(log, tmp_path)).splitlines()
    assert json.loads(line)["key"] == {"id": 1, "name": "new"}
