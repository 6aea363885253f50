"""A real log of MariaDB for Spark to read: half inserts, half updates of ten columns, in transactions of 1,000 rows."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from benchmarks._server_run import INSERT, TABLE, end_of
from penstock.testing import DatabaseServer

_TRANSACTION = 1000
_COLUMNS = TABLE.partition(" (")[2].removesuffix(")")


@dataclass(frozen=True, slots=True)
class WrittenLog:
    """A range of the log, and how many rows a DataFrame of it has: an insert one, an update two."""

    start: str
    end: str
    rows: int


def write_changes(source: DatabaseServer, changes: int) -> WrittenLog:
    """Write changes of the table `shop.t`: every transaction that inserts is followed by one that updates."""
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS shop")
        cursor.execute("USE shop")
        cursor.execute(TABLE)
        cursor.execute("FLUSH LOGS")
        start = end_of(source)
        for first in range(1, changes // 2, _TRANSACTION):
            last = first + _TRANSACTION - 1
            cursor.execute(INSERT.format(first, last))
            connection.commit()
            cursor.execute(f"UPDATE shop.t SET price = price + 1, qty = qty + 1 WHERE id BETWEEN {first} AND {last}")
            connection.commit()
        end = end_of(source)
        cursor.execute("FLUSH LOGS")
    return WrittenLog(start, end, changes // 2 * 3)


def write_tables(source: DatabaseServer, tables: int, rows: int) -> WrittenLog:
    """Insert rows in transactions of ten, each into another of so many tables of the database `shopN`."""
    database = f"shop{tables}"
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database}")
        cursor.execute(f"USE {database}")
        for number in range(tables):
            cursor.execute(f"CREATE TABLE {database}.t{number} ({_COLUMNS})")
        cursor.execute("FLUSH LOGS")
        start = end_of(source)
        for first in range(1, rows, 10):
            target = f"{database}.t{first // 10 % tables}"
            cursor.execute(INSERT.format(first, first + 9).replace("shop.t ", f"{target} "))
            connection.commit()
        end = end_of(source)
        cursor.execute("FLUSH LOGS")
    return WrittenLog(start, end, rows)


def copy_log(source: DatabaseServer, target: Path) -> Path:
    """Copy the files of the source's log into a folder, as a backup does."""
    target.mkdir()
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@log_bin_basename")
        (base,) = cursor.fetchone() or ("",)
        cursor.execute("SHOW BINARY LOGS")
        names = [row[0] for row in cursor.fetchall()]
    for name in names:
        shutil.copy(Path(base).with_name(name), target / name)
    return target
