"""The connections of a writer: one for plain transactions, one for XA transactions that wait while the first works."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pymysql
from pymysql.constants import CR

from penstock.testing import DatabaseServer
from tests.support.shop.values import SESSION_MODE

# A row that changed since it was read (MariaDB 11), a lock that did not come, a deadlock, and an XA transaction that
# one of these has undone.
CONFLICTS = {1020, 1205, 1213, 1613, 1614}
UNKNOWN_XID = 1397
_LOST = {CR.CR_CONN_HOST_ERROR, CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST, 0, 1053, 1152, 1158, 1159, 1160, 1161, 1927}
_SETTINGS = (
    SESSION_MODE,
    # Without locks on gaps, what is prepared and what works beside it seldom wait for each other.
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION innodb_lock_wait_timeout = 1, lock_wait_timeout = 20, time_zone = '+05:30'",
)


def is_lost(error: Exception) -> bool:
    """Return whether an error says that the connection, or the server, is gone."""
    return isinstance(error, pymysql.err.InterfaceError) or error.args[0] in _LOST


class ShopSession:
    """Two connections to the shop's database."""

    def __init__(self, plain: Any, xa: Any, name: str) -> None:
        self._plain, self._xa, self._name = plain, xa, name
        self._xids = 0
        self.cursor = plain.cursor()
        self._xa_cursor = xa.cursor()

    @classmethod
    def open(cls, server: DatabaseServer, database: str, seed: int) -> "ShopSession":
        """Connect; the seed keeps the XA transactions of several writers apart."""
        connections: list[Any] = []
        try:
            for autocommit in (False, True):
                connections.append(server.connect(charset="utf8mb4", database=database, autocommit=autocommit))
                with connections[-1].cursor() as cursor:
                    for statement in _SETTINGS:
                        cursor.execute(statement)
        except BaseException:
            for connection in connections:
                connection.close()
            raise
        return cls(*connections, f"{database}-{seed}")

    def close(self) -> None:
        """Close both connections, whatever state they are in."""
        for connection in (self._plain, self._xa):
            with suppress(pymysql.err.Error):
                connection.close()

    def roll_back(self) -> None:
        """Undo the plain transaction."""
        self.cursor.execute("ROLLBACK")

    @contextmanager
    def prepared(self, work: Callable[[Any], None], *, is_commit: bool) -> Iterator[None]:
        """Prepare an XA transaction that does `work`, and end it after the block, whatever happens there. One that a
        conflict undoes is rolled back before the block."""
        self._xids += 1
        xid, cursor = f"'{self._name}-{self._xids}'", self._xa_cursor
        cursor.execute(f"XA START {xid}")
        try:
            work(cursor)
            cursor.execute(f"XA END {xid}")
            cursor.execute(f"XA PREPARE {xid}")
        except (pymysql.err.OperationalError, pymysql.err.InternalError) as error:
            if is_lost(error):
                raise
            # After a deadlock, XA END only says that there was one.
            with suppress(pymysql.err.OperationalError, pymysql.err.InternalError):
                cursor.execute(f"XA END {xid}")
            cursor.execute(f"XA ROLLBACK {xid}")
            raise
        try:
            yield
        finally:
            cursor.execute(f"XA {'COMMIT' if is_commit else 'ROLLBACK'} {xid}")

    def end_prepared(self, pick: random.Random) -> None:
        """End what this writer had prepared when its connection was lost."""
        self._xa_cursor.execute("XA RECOVER")
        for *_, data in self._xa_cursor.fetchall():
            xid = data.decode() if isinstance(data, bytes) else data
            if xid.startswith(f"{self._name}-"):
                self._xids = max(self._xids, int(xid.rpartition("-")[2]))
                self._xa_cursor.execute(f"XA {pick.choice(('COMMIT', 'ROLLBACK'))} '{xid}'")
