"""Somebody who writes: transactions of every kind, one after the other, whatever happens to the server."""

import random
import threading
from collections.abc import Callable, Iterator

import pymysql

from penstock.testing import DatabaseServer
from tests.support.capture import execute, poll

TABLES = ("d.a", "d.b", "d.c")
_COLUMNS = "id INT PRIMARY KEY AUTO_INCREMENT, n INT, v VARCHAR(200), x LONGBLOB"
_PACE_S = 0.001
BIG_ROWS = 4096

Statements = Iterator[str]


class Workload:
    """`write` waits until so many more transactions are committed; between `start` and `stop` they never end."""

    def __init__(self, server: DatabaseServer, seed: int) -> None:
        self._server, self._random = server, random.Random(seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="workload", daemon=True)
        self.done = 0
        self.interruptions = 0
        self.failure: BaseException | None = None
        self._kinds: list[tuple[int, Callable[[], Statements]]] = [
            (30, self._insert),
            (15, self._insert_many),
            (20, self._update),
            (10, self._delete),
            (10, self._several_tables),
            (6, self._partly_rolled_back),
            (4, self._rolled_back),
            (4, self._define),
            (3, self._large_row),
            (1, self._big),
        ]

    def start(self) -> None:
        numbers = f"CREATE TABLE d.numbers SELECT {' + '.join(f'{4**k} * t{k}.n' for k in range(6))} AS n FROM"
        four = "(SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3)"
        execute(
            self._server,
            "SET SESSION sql_log_bin = 0",
            "DROP DATABASE IF EXISTS d",
            "CREATE DATABASE d DEFAULT CHARACTER SET latin1",
            f"{numbers} {', '.join(f'{four} t{k}' for k in range(6))}",
            *(f"CREATE TABLE {table} ({_COLUMNS})" for table in TABLES),
        )
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(30)
        if self.failure is not None:
            raise self.failure

    def write(self, count: int, seconds: float = 60) -> None:
        target = self.done + count
        assert poll(lambda: self.done >= target or self.failure is not None, seconds), f"{self.done} of {target}"
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self._write()
                except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError):
                    self.interruptions += 1
                    self._stopping.wait(0.1)
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.failure = error

    def _write(self) -> None:
        with self._server.connect() as connection, connection.cursor() as cursor:
            while not self._stopping.wait(_PACE_S):
                weights, kinds = zip(*self._kinds, strict=True)
                (kind,) = self._random.choices(kinds, weights)
                for statement in kind():
                    cursor.execute(statement)
                self.done += 1

    def _table(self) -> str:
        return self._random.choice(TABLES)

    def _insert(self) -> Statements:
        number = self._random.randrange(1000)
        yield f"INSERT INTO {self._table()} (n, v) VALUES ({number}, REPEAT('v', {number // 5}))"

    def _insert_many(self) -> Statements:
        rows = ", ".join(f"({self._random.randrange(1000)}, 'many')" for _ in range(self._random.randrange(2, 60)))
        yield f"INSERT INTO {self._table()} (n, v) VALUES {rows}"

    def _update(self) -> Statements:
        number = self._random.randrange(1000)
        yield f"UPDATE {self._table()} SET v = CONCAT('u', {number}) WHERE n BETWEEN {number} AND {number + 20}"

    def _delete(self) -> Statements:
        number = self._random.randrange(1000)
        yield f"DELETE FROM {self._table()} WHERE n BETWEEN {number} AND {number + 30}"

    def _several_tables(self) -> Statements:
        yield "BEGIN"
        for make in (self._insert, self._update, self._insert_many, self._delete):
            yield from make()
        yield "COMMIT"

    def _partly_rolled_back(self) -> Statements:
        yield "BEGIN"
        yield from self._insert()
        yield "SAVEPOINT s"
        yield from self._insert_many()
        yield "ROLLBACK TO SAVEPOINT s"
        yield from self._update()
        yield "COMMIT"

    def _rolled_back(self) -> Statements:
        yield "BEGIN"
        yield from self._insert_many()
        yield "ROLLBACK"

    def _define(self) -> Statements:
        """Of tables that no interruption has met: MySQL 5.7 may leave half of one when it is killed."""
        table = f"d.more{self._random.randrange(3)}_{self.interruptions}"
        yield f"CREATE TABLE IF NOT EXISTS {table} ({_COLUMNS})"
        yield f"ALTER TABLE {table} ADD COLUMN more{self.done} INT"
        yield f"INSERT INTO {table} (n, v) VALUES ({self.done}, 'more')"
        if self._random.random() < 0.5:
            yield f"DROP TABLE {table}"

    def _large_row(self) -> Statements:
        size = self._random.randrange(1, 40) * 10_000
        yield f"INSERT INTO {self._table()} (n, x) VALUES (-1, REPEAT('x', {size}))"

    def _big(self) -> Statements:
        """Of some hundred kilobytes, in many events."""
        yield f"INSERT INTO {self._table()} (n, v) SELECT n, REPEAT('b', 100) FROM d.numbers LIMIT {BIG_ROWS}"
        yield f"DELETE FROM {self._table()} WHERE v LIKE 'bbb%' OR n = -1"
