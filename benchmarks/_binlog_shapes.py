"""The tables whose changes the logs of `benchmarks/binlog.py` hold, and the statements that make them.

Invariant: all values follow from the row's number, so a log that is made again holds the same rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks._scale import scaled

_TINY_ROWS = 2000
MARIADB, MYSQL = "mariadb", "mysql9"
# MySQL 9.6 and later have no MD5 without a component.
_HASH = "SHA2(n, 256)"
_NEXT = "SHA2(n + 1, 256)"
_HEX = f"CONCAT({_HASH}, {_NEXT})"
_NAME = f"CONCAT(ELT(1 + n % 6, 'Zoë', 'Jürgen', 'Anna', '佐藤 健', 'Łukasz', 'Maria'), ' ', LEFT({_HASH}, 8 + n % 22))"
_PLACE = f"CONCAT(ELT(1 + n % 5, 'Zürich', 'Łódź', 'Paris', '東京', 'São Paulo'), LEFT({_HASH}, n % 31))"
_CITY = f"IF(n % 10 = 3, NULL, {_PLACE})"
_STREET = f"CONCAT('Straße ', LEFT({_HEX}, 9 + n % 37))"
_ORDERED = "TIMESTAMP'2024-01-01 00:00:00' + INTERVAL n * 37 SECOND + INTERVAL n % 1000 * 1000 MICROSECOND"


@dataclass(frozen=True, slots=True)
class Shape:
    """One table; `values` are SQL over `n`, the first of them the key."""

    name: str
    label: str
    columns: str
    values: str
    change: str  # what an update sets
    rows: int
    updated: int  # rows from the first on that are updated once
    step: int  # rows of one statement; 1 is a transaction for each row
    servers: tuple[str, ...] = (MARIADB, MYSQL)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", scaled(self.rows, _TINY_ROWS))
        object.__setattr__(self, "updated", scaled(self.updated, _TINY_ROWS))

    def images(self, rows: int | None = None) -> int:
        """Row images in the log when this many rows are written: an update has two."""
        rows = rows or self.rows
        return rows + 2 * min(self.updated, rows)

    def setup(self) -> list[str]:
        table = f"CREATE TABLE {self.name} ({self.columns}) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
        if self.step > 1:
            return [table]
        # Rows come from another table, so that the statements are short, as they are where single rows are written.
        staged = f"CREATE TABLE {self.name}_staged LIKE {self.name}"
        fill = f"INSERT INTO {self.name}_staged SELECT {self.values} FROM numbers"
        return [table, staged, fill, *map(self._procedure, ("insert", "update"))]

    def statements(self, rows: int) -> Iterator[tuple[int, str]]:
        """Statements, each with how many rows it writes."""
        for operation, count in (("insert", rows), ("update", min(self.updated, rows))):
            size = self.step if self.step > 1 else 5000
            for first in range(1, count + 1, size):
                last = min(first + size - 1, count)
                where = f"BETWEEN {first} AND {last}"
                if self.step == 1:
                    text = f"CALL {self.name}_{operation}({first}, {last})"
                elif operation == "insert":
                    text = f"INSERT INTO {self.name} SELECT {self.values} FROM numbers WHERE n {where}"
                else:
                    text = f"UPDATE {self.name} SET {self.change} WHERE id {where}"
                yield last - first + 1, text

    def _procedure(self, operation: str) -> str:
        statement = {
            "insert": f"INSERT INTO {self.name} SELECT * FROM {self.name}_staged WHERE id = n",
            "update": f"UPDATE {self.name} SET {self.change} WHERE id = n",
        }[operation]
        return (
            f"CREATE PROCEDURE {self.name}_{operation}(n INT, last INT)"
            f" BEGIN WHILE n <= last DO {statement}; SET n = n + 1; END WHILE; END"
        )


def _orders(name: str, label: str, *, rows: int, updated: int, step: int) -> Shape:
    return Shape(
        name,
        label,
        "id BIGINT PRIMARY KEY, customer INT, name VARCHAR(64), city VARCHAR(64), street VARCHAR(64),"
        " amount DECIMAL(10,2), ordered DATETIME(3), changed TIMESTAMP NULL, state TINYINT, note TEXT",
        f"n, n * 79 % 1000003, {_NAME}, {_CITY}, {_STREET}, n * 31 % 99999999 / 100 - 1000, {_ORDERED},"
        f" FROM_UNIXTIME(1700000000 + n), n % 5, LEFT({_HEX}, 45 + n % 83)",
        "state = state + 1, amount = amount + 1.5, changed = FROM_UNIXTIME(1710000000 + id),"
        " note = CONCAT(LEFT(note, 70), ', paid')",
        rows=rows,
        updated=updated,
        step=step,
    )


def _wide() -> Shape:
    kinds = [
        ("INT", "n * {i} % 2000003"),
        ("VARCHAR(40)", "LEFT(SHA2(n + {i}, 256), ({i} + n) % 20)"),
        ("DECIMAL(12,2)", "(n * {i} % 9999999) / 100"),
        ("BIGINT UNSIGNED", "n * {i}"),
        ("DATETIME", "TIMESTAMP'2024-01-01 00:00:00' + INTERVAL n * {i} SECOND"),
        ("TINYINT", "IF((n + {i}) % 7, n % 100, NULL)"),
        ("DOUBLE", "n / {i}"),
        ("DATE", "DATE'2024-01-01' + INTERVAL (n + {i}) % 999 DAY"),
    ]
    chosen = [(f"c{i}", *kinds[i % len(kinds)]) for i in range(1, 200)]
    columns = ", ".join(f"{name} {kind}" for name, kind, _ in chosen)
    values = ", ".join(value.format(i=i) for i, (_, _, value) in enumerate(chosen, 1))
    change = "c8 = c8 + 1, c9 = CONCAT('x', c9), c16 = c16 - 1"
    return Shape("wide", "200 columns", f"id INT PRIMARY KEY, {columns}", f"n, {values}", change, 26_000, 13_000, 100)


ORDERS = _orders("orders", "10 mixed columns", rows=500_000, updated=500_000, step=200)
TINY = _orders("tiny", "one row a transaction", rows=80_000, updated=40_000, step=1)
HUGE = Shape(
    "huge",
    "5 M rows in one transaction",
    "id INT PRIMARY KEY, customer INT, state TINYINT, name VARCHAR(20)",
    "n, n * 79 % 1000003, n % 5, CONCAT('name ', n % 9973)",
    "state = state + 1",
    rows=5_000_000,
    updated=0,
    step=5_000_000,
)
SHAPES = (
    ORDERS,
    _wide(),
    Shape(
        "texts",
        "texts of several KB",
        "id INT PRIMARY KEY, title VARCHAR(200), body MEDIUMTEXT, summary TEXT",
        f"n, {_NAME}, REPEAT(CONCAT('Über alles — ', {_HEX}, '. '), 10 + n % 50), REPEAT(LEFT({_HASH}, 32), n % 20)",
        "title = CONCAT(title, '!'), summary = LEFT(body, 500)",
        rows=9_000,
        updated=3_000,
        step=50,
    ),
    Shape(
        "documents",
        "JSON documents",
        "id INT PRIMARY KEY, document JSON, tags JSON",
        f"n, JSON_OBJECT('id', n, 'name', {_NAME}, 'active', n % 2 = 0, 'score', n / 7, 'none', NULL, 'address',"
        f" JSON_OBJECT('city', {_CITY}, 'street', {_STREET}, 'zip', n % 99999), 'items', JSON_ARRAY(JSON_OBJECT("
        f"'sku', LEFT({_HASH}, 32), 'count', n % 9, 'price', n % 1000 / 4), JSON_OBJECT('sku', LEFT({_NEXT}, 32),"
        " 'count', 1, 'price', 12.5)), 'history', JSON_ARRAY(n, n + 1, n * 1000000, -n, 0.5)),"
        f" JSON_ARRAY('a', 'b', LEFT({_HASH}, n % 32), n)",
        "document = JSON_SET(document, '$.score', 1, '$.address.zip', 'x'), tags = JSON_ARRAY()",
        rows=60_000,
        updated=30_000,
        step=100,
        servers=(MYSQL,),
    ),
    TINY,
)
