"""A random shopkeeper: transactions over products, stores and categories, and the truth to compare an index with."""

import json
import random
import threading
import time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.testing import DatabaseServer
from tests.support.product_shop import STATES

WORDS = ("kettle", "lamp", "Ünïcödé", "漢字", 'quo"te', "back\\slash", "new\nline", "😀", "", "null")


class Shopkeeper:
    """Runs random transactions until told to stop; each either commits or rolls back."""

    def __init__(self, server: DatabaseServer, seed: int) -> None:
        self._server = server
        self._pick = random.Random(seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shopkeeper")
        self._failure: BaseException | None = None
        self._moved = 0
        self.transactions = 0

    def start(self) -> None:
        """Work in the background until `finish`."""
        self._began = time.monotonic()
        self._thread.start()

    def finish(self, at_least_s: float) -> None:
        """Stop when this long has been worked; an error of the work comes out."""
        while self._thread.is_alive() and time.monotonic() < self._began + at_least_s:
            time.sleep(0.1)
        self._stopping.set()
        self._thread.join()
        if self._failure:
            raise self._failure

    def _run(self) -> None:
        try:
            with self._server.connect(autocommit=False, charset="utf8mb4") as connection, connection.cursor() as cursor:
                while not self._stopping.is_set():
                    for _ in range(self._pick.choice((1, 1, 1, 2, 5))):
                        self._step(cursor)
                    if self._pick.random() < 0.1:
                        connection.rollback()
                    else:
                        connection.commit()
                    self.transactions += 1
        except BaseException as error:  # noqa: BLE001 - raised again by finish()
            self._failure = error

    def _text(self) -> str:
        return " ".join(self._pick.choices(WORDS, k=self._pick.randrange(1, 4))).strip() or "x"

    def _step(self, cursor: Any) -> None:  # noqa: C901 - one case per kind of change
        pick = self._pick
        step = pick.choices(
            ("insert", "update", "move", "state", "delete", "store", "category", "many", "key", "no_store", "same"),
            (20, 20, 8, 8, 12, 6, 2, 3, 2, 1, 3),
        )[0]
        some = pick.randrange(1, 400)
        match step:
            case "insert":
                cursor.executemany(
                    "INSERT INTO shop.product (name, description, price, state, store_id, category_id)"
                    " VALUES (%s, %s, %s, %s, %s, %s)",
                    [
                        (
                            self._text(),
                            pick.choice((None, self._text())),
                            Decimal(pick.randrange(10**10)) / 100,
                            pick.choice(STATES),
                            pick.randrange(1, 45),
                            pick.randrange(1, 8),
                        )
                        for _ in range(pick.choice((1, 1, 7)))
                    ],
                )
            case "update":
                price = Decimal(pick.randrange(10**6)) / 100
                cursor.execute(
                    "UPDATE shop.product SET name = %s, price = %s WHERE id = %s", (self._text(), price, some)
                )
            case "move":
                cursor.execute("UPDATE shop.product SET store_id = %s WHERE id = %s", (pick.randrange(1, 45), some))
            case "state":
                cursor.execute("UPDATE shop.product SET state = %s WHERE id = %s", (pick.choice(STATES), some))
            case "delete":
                cursor.execute("DELETE FROM shop.product WHERE id = %s", (some,))
            case "store":
                cursor.execute("UPDATE shop.store SET city = %s WHERE id = %s", (self._text(), pick.randrange(1, 45)))
            case "category":
                cursor.execute("UPDATE shop.category SET name = %s WHERE id = %s", (self._text(), pick.randrange(1, 8)))
            case "many":
                cursor.execute(
                    "UPDATE shop.product SET price = price / 2 WHERE id BETWEEN %s AND %s", (some, some + 60)
                )
            case "key":
                self._moved += 1
                cursor.execute("UPDATE shop.product SET id = %s WHERE id = %s", (10**9 - self._moved, some))
            case "no_store":
                store = pick.randrange(20, 45)
                cursor.execute("DELETE FROM shop.store WHERE id = %s", (store,))
                if pick.random() < 0.7:
                    cursor.execute(
                        "INSERT INTO shop.store (id, name, city) VALUES (%s, %s, 'back')", (store, self._text())
                    )
            case _:
                cursor.execute("UPDATE shop.product SET name = name WHERE id = %s", (some,))


def truth(server: DatabaseServer) -> dict[str, dict[str, Any]]:
    """What the index must hold, by a query of its own."""
    in_utc = {"charset": "utf8mb4", "init_command": "SET time_zone = '+00:00'"}
    with server.connect(**in_utc) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT p.id, p.name, p.description, p.price, p.state,"
            " DATE_FORMAT(p.updated_at, '%Y-%m-%dT%H:%i:%s.%f'), s.name, s.city, c.name, s.id, c.id"
            " FROM shop.product p LEFT JOIN shop.store s ON s.id = p.store_id"
            " LEFT JOIN shop.category c ON c.id = p.category_id WHERE p.state <> 'hidden'"
        )
        rows = cursor.fetchall()
    return {
        str(row[0]): {
            "name": row[1],
            "description": row[2],
            "price": row[3],
            "state": row[4],
            "updated_at": row[5],
            "store": None if row[9] is None else {"name": row[6], "city": row[7]},
            "category": None if row[10] is None else {"name": row[8]},
        }
        for row in rows
    }


def contents(documents: pa.Table) -> dict[str, dict[str, Any]]:
    """Documents of an index in the same form: prices exact, times in UTC with six digits."""
    contents_by_id: dict[str, dict[str, Any]] = {}
    for key, text in zip(documents.column("id").to_pylist(), documents.column("document").to_pylist(), strict=True):
        document = json.loads(text, parse_float=Decimal)
        document["price"] = Decimal(document["price"])
        whole, _, fraction = document["updated_at"].removesuffix("Z").partition(".")
        document["updated_at"] = f"{whole}.{fraction or '0':0<6}"
        contents_by_id[key] = document
    return contents_by_id


def drop_shop(server: DatabaseServer) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS shop")
