"""Kinds of changes to the shop, each a function that runs one or several statements, with how often it is done.

A step never fails for what it finds: rows that are gone change nothing, and a key that is taken refuses the statement.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pymysql

from tests.support.shop.schema import insert_rows

DUPLICATE_KEY = 1062
_FEW = 60


@dataclass
class Hand:
    """What a step works with: a cursor in the shop's database, and a source of randomness."""

    cursor: Any
    pick: random.Random
    large_rows: int = 100
    refused: int = 0

    def run(self, sql: str, *parameters: Any) -> int:
        """Run a statement and return how many rows it changed; none when a key is taken."""
        try:
            return self.cursor.execute(sql, parameters)
        except pymysql.err.IntegrityError as error:
            if error.args[0] != DUPLICATE_KEY:
                raise
            self.refused += 1
            return 0

    def insert(self, table: str, *rows: dict[str, Any], verb: str = "INSERT") -> None:
        """Insert rows by one statement, or none of them when a key is taken."""
        try:
            insert_rows(self.cursor, table, rows, verb)
        except pymysql.err.IntegrityError as error:
            if error.args[0] != DUPLICATE_KEY:
                raise
            self.refused += 1

    def change(self, table: str, key: Any, **values: Any) -> None:
        """Set columns of the row with this key."""
        name = "code" if table == "category" else "id"
        sets = ", ".join(f"{column} = %s" for column in values)
        self.run(f"UPDATE {table} SET {sets} WHERE {name} = %s", *values.values(), key)

    def key(self, table: str) -> int:
        """Return the id of some row of a table, whichever follows a random number; 0 when there is none."""
        self.cursor.execute(f"SELECT COALESCE(MAX(id), 0) FROM {table} WHERE id < 4000000")
        ((highest,),) = self.cursor.fetchall()
        self.cursor.execute(
            f"SELECT id FROM {table} WHERE id >= %s ORDER BY id LIMIT 1", (self.pick.randrange(int(highest) + 1),)
        )
        return next((int(key) for (key,) in self.cursor.fetchall()), 0)

    def line(self) -> tuple[int, int]:
        """Return the key of some order line."""
        self.cursor.execute(
            "SELECT order_id, position FROM order_line WHERE order_id >= %s ORDER BY order_id, position LIMIT 5",
            (self.key("orders"),),
        )
        return self.pick.choice(self.cursor.fetchall() or [(0, 0)])

    def free_id(self) -> int:
        """Return an id for an order or a product that is probably free."""
        return self.pick.randrange(1, 3000)


Step = Callable[[Hand], None]
STEPS: dict[str, Step] = {}
WEIGHTS: dict[str, int] = {}
LARGE: set[str] = set()
"""Steps that touch many rows; a transaction that waits with its locks does none of these."""


def step(weight: int, *, is_large: bool = False) -> Callable[[Step], Step]:
    """Register a kind of step under the name of its function."""

    def register(function: Step) -> Step:
        STEPS[function.__name__] = function
        WEIGHTS[function.__name__] = weight
        if is_large:
            LARGE.add(function.__name__)
        return function

    return register


def choose_step(pick: random.Random, *, with_large: bool) -> str:
    """Return the name of a random step."""
    names = [name for name in STEPS if with_large or name not in LARGE]
    return pick.choices(names, [WEIGHTS[name] for name in names])[0]


def id_range(hand: Hand, table: str) -> tuple[int, int]:
    """Return the bounds of a range of ids with some dozens of rows."""
    first = hand.key(table)
    return first, first + _FEW
