"""A random writer: transactions over all tables of the shop, the same ones for the same seed.

| shape           | what it does                                                                              |
|-----------------|-------------------------------------------------------------------------------------------|
| commit          | a few steps                                                                               |
| rollback        | a few steps that nobody ever sees                                                         |
| savepoint       | steps, some of which are undone by ROLLBACK TO, then a commit                             |
| xa_commit       | an XA transaction that is prepared, then other transactions, then its XA COMMIT           |
| xa_rollback     | the same with XA ROLLBACK                                                                 |
| add_column      | ALTER TABLE that adds a column in the middle of a table, between transactions             |
"""

import random
import threading
import time
from collections import Counter
from typing import Any

import pymysql

from penstock.testing import DatabaseServer
from tests.support.shop import catalog_steps, order_steps, people_steps
from tests.support.shop.schema import TABLES, column_names
from tests.support.shop.session import CONFLICTS, UNKNOWN_XID, ShopSession, is_lost
from tests.support.shop.steps import STEPS, Hand, choose_step

__all__ = ["STEPS", "ShopWriter", "catalog_steps", "order_steps", "people_steps"]

SHAPES = {"commit": 68, "rollback": 10, "savepoint": 12, "xa_commit": 7, "xa_rollback": 3}
_STEPS_PER_TRANSACTION = (1, 1, 1, 2, 3, 6)
_TRANSACTIONS_PER_COLUMN = 60
_DEADLINE_S = 60.0


class ShopWriter:
    """Runs random transactions, in this thread (`run`) or beside it (`start`, then `finish`).

    `done` counts the steps and shapes that were run, `conflicts` the transactions that a deadlock or a lock undid.
    With `reconnect_timeout_s`, a lost connection is opened again for that long, and what was prepared is ended.
    """

    def __init__(
        self,
        server: DatabaseServer,
        database: str,
        seed: int,
        *,
        large_rows: int = 100,
        columns: int = 3,
        pause_s: float = 0.0,
        reconnect_timeout_s: float = 0.0,
    ) -> None:
        self._server, self._database = server, database
        self._pick = random.Random(seed)
        self._seed, self._large_rows, self._columns = seed, large_rows, columns
        self._pause_s, self._reconnect_timeout_s = pause_s, reconnect_timeout_s
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._began_s = 0.0
        self.done: Counter[str] = Counter()
        self.transactions = self.conflicts = self.refused = self.reconnects = 0

    def start(self) -> None:
        """Work in the background until `finish`."""
        self._stopping.clear()
        self._began_s = time.monotonic()
        self._thread = threading.Thread(target=self._work, name=f"shop-writer-{self._seed}")
        self._thread.start()

    def finish(self, at_least_s: float = 0.0) -> None:
        """Stop when this long has been worked; an error of the work comes out."""
        assert self._thread is not None
        self._thread.join(max(0.0, self._began_s + at_least_s - time.monotonic()))
        self._stopping.set()
        self._thread.join(_DEADLINE_S + self._reconnect_timeout_s)
        if self._failure:
            raise self._failure
        assert not self._thread.is_alive(), "the writer did not stop in time"

    def run(self, transactions: int | None = None, seconds: float | None = None) -> None:
        """Work until as many transactions are done, or this time is over."""
        deadline = None if seconds is None else time.monotonic() + seconds
        last = None if transactions is None else self.transactions + transactions
        session = ShopSession.open(self._server, self._database, self._seed)
        try:
            while not self._stopping.is_set() and (deadline is None or time.monotonic() < deadline):
                if last is not None and self.transactions >= last:
                    return
                try:
                    self._transaction(session)
                except (pymysql.err.OperationalError, pymysql.err.InternalError, pymysql.err.InterfaceError) as error:
                    session = self._recover(session, error)
                if self._pause_s:
                    self._stopping.wait(self._pause_s)
        finally:
            session.close()

    def _work(self) -> None:
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001 - raised again by finish()
            self._failure = error

    def _recover(self, session: ShopSession, error: Exception) -> ShopSession:
        """Return a session to resume with after an error, or raise it."""
        if error.args[0] in CONFLICTS:
            self.conflicts += 1
            session.roll_back()
            return session
        if not self._reconnect_timeout_s or not is_lost(error):
            raise error
        session.close()
        deadline = time.monotonic() + self._reconnect_timeout_s
        while True:
            try:
                session = ShopSession.open(self._server, self._database, self._seed)
                session.end_prepared(self._pick)
            except pymysql.err.OperationalError as again:
                # An XA transaction of a connection that the server has not given up yet is unknown to others.
                is_waiting = is_lost(again) or again.args[0] == UNKNOWN_XID
                if not is_waiting or time.monotonic() > deadline or self._stopping.wait(0.2):
                    raise
            else:
                self.reconnects += 1
                return session

    def _transaction(self, session: ShopSession) -> None:
        """Run one transaction of a random shape."""
        if self.done["add_column"] < min(self._columns, self.transactions // _TRANSACTIONS_PER_COLUMN):
            self._add_column(session)
        shape = self._pick.choices(list(SHAPES), list(SHAPES.values()))[0]
        if shape.startswith("xa"):
            self._run_prepared(session, is_commit=shape == "xa_commit")
        else:
            self._run_plain(session, shape)
        self.done[shape] += 1
        self.transactions += 1

    def _run_plain(self, session: ShopSession, shape: str) -> None:
        self._do_steps(session.cursor)
        if shape == "savepoint":
            session.cursor.execute("SAVEPOINT here")
            self._do_steps(session.cursor)
            session.cursor.execute("ROLLBACK TO here")
            self._do_steps(session.cursor)
        session.cursor.execute("ROLLBACK" if shape == "rollback" else "COMMIT")

    def _run_prepared(self, session: ShopSession, *, is_commit: bool) -> None:
        """Run an XA transaction with others between its PREPARE and its end."""
        with session.prepared(lambda cursor: self._do_steps(cursor, with_large=False), is_commit=is_commit):
            for _ in range(self._pick.randrange(1, 4)):
                try:
                    self._do_steps(session.cursor, with_large=False)
                    session.cursor.execute("COMMIT")
                except (pymysql.err.OperationalError, pymysql.err.InternalError) as error:
                    if error.args[0] not in CONFLICTS:
                        raise
                    self.conflicts += 1
                    session.cursor.execute("ROLLBACK")

    def _do_steps(self, cursor: Any, *, with_large: bool = True) -> None:
        hand = Hand(cursor, self._pick, self._large_rows)
        for _ in range(self._pick.choice(_STEPS_PER_TRANSACTION)):
            name = choose_step(self._pick, with_large=with_large)
            STEPS[name](hand)
            self.done[name] += 1
        self.refused += hand.refused

    def _add_column(self, session: ShopSession) -> None:
        table, name = self._pick.choice(list(TABLES)), f"extra_{self._seed}_{self.done['add_column']}"
        after = self._pick.choice(column_names(table)[:-1])
        session.cursor.execute(
            f"ALTER TABLE {table} ADD COLUMN {name} VARCHAR(20) NOT NULL DEFAULT 'new' AFTER {after}"
        )
        self.done["add_column"] += 1
