"""Fill, change and empty the test tables, and note what a SELECT shows before and after each statement.

Invariant: the order of the noted images is the order of the log: statements run one after the other, and those that
touch many rows touch them in the order of `id`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.testing import DatabaseServer
from tests.integration.types.column import Column, Kind, Table, value_of
from tests.integration.types.setting import Setting, applied

Shown = tuple[str | None, ...]
"""A column of a row: what each expression of `SHOWN` gave."""
Row = tuple[Shown, ...]

SHOWN: Mapping[Kind, tuple[str, ...]] = {
    Kind.BIT: ("CAST({c} AS UNSIGNED)",),
    # Times one: a FLOAT alone is shown with six digits, and plus zero would lose the sign of a zero.
    Kind.FLOAT: ("{c} * 1e0",),
    Kind.DOUBLE: ("{c} * 1e0",),
    Kind.TEXT: ("HEX({c})", "HEX(CONVERT({c} USING utf8mb4))"),
    Kind.BYTES: ("HEX({c})",),
    Kind.BINARY: ("HEX({c})",),
    Kind.ADDRESS: ("HEX({c})", "CAST({c} AS CHAR)"),
    Kind.GEOMETRY: ("HEX({c})",),
    Kind.VECTOR: ("HEX({c})",),
    Kind.ENUM: ("CAST({c} AS UNSIGNED)", "HEX(CONVERT({c} USING utf8mb4))"),
    Kind.SET: ("CAST({c} AS UNSIGNED)", "HEX(CONVERT({c} USING utf8mb4))"),
    Kind.JSON: ("HEX(CAST({c} AS CHAR CHARACTER SET utf8mb4))",),
}


@dataclass(frozen=True, slots=True)
class Image:
    """A row image as it should be in the log; `changed` are the columns an update has changed, by their index."""

    change: str
    row: Row
    changed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Log:
    """A log file with changes of the tables, and what is expected in it."""

    server: str
    setting: Setting
    path: Path
    database: str
    tables: Sequence[Table]
    images: Mapping[str, Sequence[Image]]
    with_catalogue: bool = False
    """It is read with what the server's catalogue says of the tables, which makes up for what the log leaves out."""

    @property
    def has_signs(self) -> bool:
        return self.with_catalogue or self.setting.metadata in {"FULL", "MINIMAL"}

    @property
    def has_charsets(self) -> bool:
        return self.has_signs

    @property
    def has_names(self) -> bool:
        return self.with_catalogue or self.setting.metadata == "FULL"

    def has_labels(self, column: Column) -> bool:
        """MySQL 8.0.12 does not say in which charset it writes labels: those that are no UTF-8 are of no use.

        And a catalogue shows a question mark for a character of more than three bytes in UTF-8. MySQL 5.7 spoils such
        labels of UTF-16 and UTF-32 itself, also for a SELECT.
        """
        if self.setting.metadata == "FULL" and (self.server != "mysql80" or column.charset == "utf8mb4"):
            return True
        is_spoilt = self.server == "mysql57" and column.charset in {"utf16", "utf32"}
        return self.with_catalogue and (is_spoilt or max(column.ddl) <= "\uffff")


class Recorder:
    """A database with the test tables on one server; each `record` is a log file of its own."""

    def __init__(self, server: DatabaseServer, name: str, database: str, tables: Sequence[Table]) -> None:
        self.name, self.database, self.tables = name, database, tables
        self._data = server.data
        # No conversions: everything comes as the server's text.
        self._connection = server.connect(charset="utf8mb4", conv={}, database=database)
        self._cursor: Any = self._connection.cursor()
        for table in tables:
            self._cursor.execute(f"SET sql_mode = '{table.sql_mode}'")
            self._cursor.execute(table.create())

    def record(self, setting: Setting, tables: Sequence[str] = ()) -> Log:
        """Run the whole workload, or that of some tables; afterwards the tables are empty again."""
        cursor = self._cursor
        chosen = [table for table in self.tables if not tables or table.name in tables]
        with applied(cursor, self.name, setting):
            cursor.execute("FLUSH BINARY LOGS")
            file = _current_file(cursor)
            images = {table.name: list(_run(cursor, table)) for table in chosen}
            cursor.execute("FLUSH BINARY LOGS")
        return Log(self.name, setting, self._data / file, self.database, chosen, images)

    @contextmanager
    def filled(self, setting: Setting) -> Iterator[Log]:
        """Fill all tables, and give the log of that; afterwards the tables are empty again."""
        cursor = self._cursor
        with applied(cursor, self.name, setting):
            cursor.execute("FLUSH BINARY LOGS")
            file = _current_file(cursor)
            images: dict[str, list[Image]] = {}
            for table in self.tables:
                cursor.execute(f"SET sql_mode = '{table.sql_mode}'")
                cursor.execute(table.insert())
                images[table.name] = [Image("insert", row) for row in _select(cursor, table)]
            cursor.execute("FLUSH BINARY LOGS")
        try:
            yield Log(self.name, setting, self._data / file, self.database, self.tables, images)
        finally:
            for table in self.tables:
                cursor.execute(f"DELETE FROM `{table.name}`")

    def close(self) -> None:
        self._connection.close()


def _run(cursor: Any, table: Table) -> Iterator[Image]:
    cursor.execute(f"SET sql_mode = '{table.sql_mode}'")
    cursor.execute(table.insert())
    rows = dict(enumerate(_select(cursor, table), 1))
    assert len(rows) == table.size
    for row in rows.values():
        yield Image("insert", row)
    cursor.execute("BEGIN")
    for key, assignment in _updates(table):
        if cursor.execute(f"UPDATE `{table.name}` SET {assignment} WHERE id = {key}"):
            (row,) = _select(cursor, table, f"WHERE id = {key}")
            yield from _update(rows[key], row)
            rows[key] = row
    cursor.execute("COMMIT")
    for assignment in ("", *table.assignments):
        cursor.execute(f"UPDATE `{table.name}` SET {assignment} counter = counter + 1 ORDER BY id")
        for key, row in enumerate(_select(cursor, table), 1):
            yield from _update(rows[key], row)
            rows[key] = row
    cursor.execute(f"DELETE FROM `{table.name}` ORDER BY id")
    for row in rows.values():
        yield Image("delete", row)


def _updates(table: Table) -> Iterator[tuple[int, str]]:
    """Row and assignment: single columns, each to a value that another row has; then one to NULL."""
    changing = [column for column in table.columns if not column.generated]
    step = max(1, len(changing) // table.updates)
    for i, column in enumerate(changing[::step]):
        key = i % table.size + 1
        yield key, f"`{column.name}` = {value_of(column, key + 1)}"
    for column in changing[1 :: 4 * step]:
        if column.nullable:
            yield 1, f"`{column.name}` = NULL"


def _update(before: Row, after: Row) -> Iterator[Image]:
    changed = frozenset(i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new)
    yield Image("update_preimage", before, changed)
    yield Image("update_postimage", after, changed)


def _select(cursor: Any, table: Table, where: str = "") -> list[Row]:
    columns = table.all_columns
    expressions = [expressions_of(column) for column in columns]
    flat = ", ".join(expression for some in expressions for expression in some)
    cursor.execute(f"SELECT {flat} FROM `{table.name}` {where} ORDER BY id")
    return [_folded(values, [len(some) for some in expressions]) for values in cursor.fetchall()]


def expressions_of(column: Column) -> list[str]:
    return [expression.format(c=f"`{column.name}`") for expression in SHOWN.get(column.kind, ("{c}",))]


def _folded(values: Sequence[str | None], sizes: Sequence[int]) -> Row:
    at, row = 0, list[Shown]()
    for size in sizes:
        row.append(tuple(values[at : at + size]))
        at += size
    return tuple(row)


def _current_file(cursor: Any) -> str:
    cursor.execute("SHOW BINARY LOGS")
    return cursor.fetchall()[-1][0]
