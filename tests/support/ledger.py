"""Transfers between accounts, whose sum never changes."""

import random
import threading
from typing import Self

import pymysql

from penstock.testing import DatabaseServer, poll_until

ACCOUNTS, BALANCE = 20, 1000
_NOTE_BYTES = 200_000


class Ledger:
    """One thread moves money all the time: each transaction takes from one account what it gives to another one.

    With a column `note`, `add_wide` asks for transactions that fill the log quickly: the notes of both accounts become
    long, and short again.
    """

    def __init__(self, source: DatabaseServer, table: str) -> None:
        self._source, self._table = source, table
        self._ended, self._thread = threading.Event(), threading.Thread(target=self._transfer)
        self._wide = 0  # transactions still to do
        self.transfers = 0

    def create(self, *, has_note: bool = False) -> None:
        """Create the table, with the same balance in each account."""
        note = ", note MEDIUMTEXT NOT NULL" if has_note else ""
        rows = ", ".join(f"({number}, {BALANCE}{', ' * has_note}{repr('') * has_note})" for number in range(ACCOUNTS))
        with self._source.connect(autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {self._table} (id INT PRIMARY KEY, balance INT NOT NULL{note})")
            cursor.execute(f"INSERT INTO {self._table} VALUES {rows}")

    def add_wide(self, transactions: int) -> None:
        """Return when so many wide transactions are in the log: each has 0.8 MB."""
        self._wide = transactions
        assert poll_until(lambda: self._wide == 0, 60)

    def balances(self) -> dict[int, int]:
        with self._source.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT id, balance FROM {self._table}")
            return {int(number): int(balance) for number, balance in cursor.fetchall()}

    def _transfer(self) -> None:
        """Transfer until the end, also when the source is killed and comes back meanwhile."""
        draw = random.Random(7)
        while not self._ended.is_set():
            try:
                self._transfer_while_connected(draw)
            except pymysql.OperationalError:
                self._ended.wait(0.2)

    def _transfer_while_connected(self, draw: random.Random) -> None:
        with self._source.connect(autocommit=False) as connection, connection.cursor() as cursor:
            while not self._ended.wait(0 if self._wide else 0.005):
                is_wide = self._wide > 0
                accounts = draw.sample(range(ACCOUNTS), 2)
                amount = draw.randint(1, 50)
                for account, change in zip(accounts, (-amount, amount), strict=True):
                    note = f", note = REPEAT('{draw.choice('abc')}', {_NOTE_BYTES})" if is_wide else ""
                    balance = f"balance = balance + ({change})"
                    cursor.execute(f"UPDATE {self._table} SET {balance}{note} WHERE id = {account}")
                if is_wide:
                    cursor.execute(f"UPDATE {self._table} SET note = id WHERE id IN ({accounts[0]}, {accounts[1]})")
                connection.rollback() if draw.random() < 0.1 else connection.commit()
                self.transfers += 1
                self._wide -= is_wide

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(30)
