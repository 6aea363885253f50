"""Tables with keys of several kinds, and writers that change random rows of them while a test reads."""

import random
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from penstock.model import TableName
from penstock.testing import DatabaseServer
from tests.support.capture import execute

IDS = 1200
_WRITERS = 3
# With other writers. 1020: MariaDB 11 says so of a row that was changed after the transaction began; 1614: MySQL 5.7 of
# XA after a deadlock.
_CONFLICTS = {1020, 1062, 1205, 1213, 1614}

# Columns, the SQL of a row's key, and what of a key in the order of its index is the number in it.
TABLES = {
    "integer": ("id INT PRIMARY KEY, name VARCHAR(40)", "{0}", lambda key: int(key[0])),
    "text": (
        "id VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci PRIMARY KEY, name VARCHAR(40)",
        "'{1}{0:05d}'",
        lambda key: int(bytes.fromhex(key[0]).decode()[1:]),
    ),
    "unicode": (
        "id VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci PRIMARY KEY, name VARCHAR(40)",
        "'{2}{0:05d}'",
        lambda key: int(bytes.fromhex(key[0]).decode()[-5:]),
    ),
    "composite": (
        "id INT, part ENUM('x', 'y') DEFAULT 'x', name VARCHAR(40), PRIMARY KEY (id, part)",
        "{0}",
        lambda key: int(key[0]),
    ),
    "decimal": ("id DECIMAL(20, 3) PRIMARY KEY, name VARCHAR(40)", "{0}.5", lambda key: int(float(key[0]))),
    "datetime": (
        "id DATETIME(3) PRIMARY KEY, name VARCHAR(40)",
        "'2024-01-01' + INTERVAL {0} SECOND",
        lambda key: seconds_of(key[0]),
    ),
    "bytes": ("id VARBINARY(8) PRIMARY KEY, name VARCHAR(40)", "x'{0:08x}'", lambda key: int(key[0], 16)),
}


def seconds_of(text: str) -> int:
    hours, minutes, seconds = text.split(" ")[1].split(":")
    return 3600 * int(hours) + 60 * int(minutes) + int(float(seconds))


class RandomWriter(threading.Thread):
    """Changes random rows in small transactions until it is stopped."""

    def __init__(
        self, server: DatabaseServer, name: TableName, kind: str, seed: int, stop: threading.Event, pause_s: float
    ) -> None:
        super().__init__(name=f"writer-{seed}")
        self._server, self._table, self._random, self._stop_event = server, name, random.Random(seed), stop
        self._kind, self._seed, self._pause_s = kind, seed, pause_s
        self.commits = 0
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with closing(self._server.connect(autocommit=False)) as connection, connection.cursor() as cursor:
                while not self._stop_event.is_set():
                    self._change(connection, cursor)
                    self.commits += 1
                    self._stop_event.wait(self._pause_s)
        except Exception as error:  # noqa: BLE001 - the test shows it
            self.error = error

    def stop(self) -> None:
        """Let all writers of the table end, and wait for this one."""
        self._stop_event.set()
        self.join()

    def _change(self, connection: Any, cursor: Any) -> None:
        """Run one transaction, one in ten of them by XA; one in ten is rolled back."""
        xid = f"'{self._table.schema}-{self._seed}-{self.commits}'" if self._random.random() < 0.1 else ""
        is_committed = self._random.random() < 0.9
        if xid:
            cursor.execute(f"XA START {xid}")
        try:
            for _ in range(self._random.randrange(1, 4)):
                cursor.execute(self._statement())
        except Exception as error:
            if error.args[0] not in _CONFLICTS:
                raise
            is_committed = False
        if xid:
            self._end_xa(cursor, xid, is_committed=is_committed)
        else:
            (connection.commit if is_committed else connection.rollback)()

    def _end_xa(self, cursor: Any, xid: str, *, is_committed: bool) -> None:
        """End an XA transaction; one that a deadlock has rolled back still wants XA ROLLBACK."""
        try:
            cursor.execute(f"XA END {xid}")
        except Exception as error:
            if error.args[0] not in _CONFLICTS or is_committed:
                raise
        if is_committed:
            cursor.execute(f"XA PREPARE {xid}")
        cursor.execute(f"XA {'COMMIT' if is_committed else 'ROLLBACK'} {xid}")

    def _key(self) -> str:
        return key_sql(self._kind, self._random.randrange(IDS), self._random)

    def _statement(self) -> str:
        key, other, text = self._key(), self._key(), f"'{self._seed} {self.commits}'"
        match self._random.randrange(4):
            case 0:
                return f"INSERT IGNORE INTO {self._table} (id, name) VALUES ({key}, {text})"
            case 1:
                return f"DELETE FROM {self._table} WHERE id = {key}"
            case 2:
                return f"UPDATE IGNORE {self._table} SET id = {other} WHERE id = {key}"
            case _ if self._kind == "integer":
                return f"UPDATE {self._table} SET name = {text} WHERE id BETWEEN {key} AND {key} + 3"
            case _:
                return f"UPDATE {self._table} SET name = {text} WHERE id = {key}"


def key_sql(kind: str, number: int, choice: random.Random) -> str:
    """Return the key of a number; texts that a collation takes for equal are written in several ways."""
    return TABLES[kind][1].format(number, choice.choice("kK"), choice.choice(["ä", "Ä", "a"]))


@contextmanager
def written(
    server: DatabaseServer, name: TableName, kind: str, pause_s: float = 0.0, *, seed: int = 0
) -> Iterator[list[RandomWriter]]:
    """Run writers of a table of `create_table`; fail at the end if one of them has failed."""
    stop, first = threading.Event(), seed * _WRITERS
    writers = [RandomWriter(server, name, kind, first + number, stop, pause_s) for number in range(_WRITERS)]
    for writer in writers:
        writer.start()
    try:
        yield writers
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    errors = [repr(writer.error) for writer in writers if writer.error is not None]
    assert not errors, errors


def create_table(server: DatabaseServer, name: TableName, kind: str) -> None:
    """Create a table with every other row of those that writers change."""
    choice = random.Random(kind)
    rows = ", ".join(f"({key_sql(kind, number, choice)}, 'first')" for number in range(0, IDS, 2))
    execute(
        server,
        f"CREATE TABLE {name} ({TABLES[kind][0]})",
        f"INSERT INTO {name} (id, name) VALUES {rows}",
        f"ANALYZE TABLE {name}",
    )


def select_rows(server: DatabaseServer, name: TableName, columns: str = "*") -> set[tuple[Any, ...]]:
    """Return the rows of a table."""
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM {name}")
        return set(cursor.fetchall())
