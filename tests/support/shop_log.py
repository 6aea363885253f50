"""A small log of a shop, and what the command makes of it."""

from decimal import Decimal
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from penstock.cli import app
from penstock.model import Column, TableName, TableSchema, WireType
from tests.twins.event import MAGIC
from tests.twins.log import LogWriter
from tests.twins.row import DELETE, INSERT, UPDATE

_TEXT: dict[str, Any] = {"size": 200, "charset": "utf8mb4"}
PRODUCT = TableSchema(
    TableName("shop", "product"),
    (
        Column("id", WireType.LONG),
        Column("name", WireType.VARCHAR, **_TEXT),
        Column("price", WireType.NEWDECIMAL, precision=10, scale=2),
    ),
    ("id",),
)
NOTE = TableSchema(
    TableName("shop", "note"),
    (Column("what", WireType.VARCHAR, **_TEXT), Column("raw", WireType.BLOB, size=2, charset="binary")),
)


def shop_log(*, is_mariadb: bool = True) -> LogWriter:
    """A DDL, an insert into two tables, an update, and a delete in the last transaction."""
    log = LogWriter(is_mariadb=is_mariadb).open()
    log.statement("CREATE TABLE product (id INT)")
    log.begin()
    log.map(7, PRODUCT)
    log.map(8, NOTE)
    log.rows(INSERT, 7, PRODUCT, [[1, "kettle", Decimal("35.00")], [2, 'it\'s "oak"\n', None]])
    log.rows(INSERT, 8, NOTE, [["a", b"\x00'"]])
    log.rows(INSERT, 7, PRODUCT, [[3, "", Decimal("0.01")]])
    log.commit()
    log.timestamp += 60
    log.begin()
    log.map(7, PRODUCT)
    log.rows(UPDATE, 7, PRODUCT, [[1, "kettle", Decimal("35.00")], [1, "kettle", Decimal("29.90")]])
    log.commit()
    log.timestamp += 60
    log.begin()
    log.map(8, NOTE)
    log.rows(DELETE, 8, NOTE, [["a", b"\x00'"]])
    log.commit()
    return log


def written(log: LogWriter, folder: Path, name: str = "binlog.000001") -> Path:
    path = folder / name
    path.write_bytes(MAGIC + bytes(log.data))
    return path


def binlog(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["binlog", *map(str, arguments)], catch_exceptions=False)


def shown(*arguments: object) -> str:
    result = binlog(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout
