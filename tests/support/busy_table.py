"""A table that is written all the time, while a test looks at another one."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

from penstock.testing import DatabaseServer
from tests.support.capture import execute

_ROWS, _ROW_BYTES = 16, 8000


class BusyTable(threading.Thread):
    """Writes into a table of its own, a transaction of 128 KB after the other, with a pause between them. The rows are
    made by the server, so that this costs the test's process nearly nothing."""

    def __init__(self, server: DatabaseServer, name: str, pause_s: float) -> None:
        super().__init__(name="busy-table")
        self._server, self._table, self._pause_s = server, name, pause_s
        self.stopped = threading.Event()
        self.written_bytes = 0
        self.error: Exception | None = None

    def run(self) -> None:
        statement = f"INSERT INTO {self._table} (v) SELECT REPEAT('x', {_ROW_BYTES}) FROM mysql.seq_1_to_{_ROWS}"
        try:
            with closing(self._server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
                while not self.stopped.is_set():
                    cursor.execute(statement)
                    self.written_bytes += _ROWS * _ROW_BYTES
                    self.stopped.wait(self._pause_s)
        except Exception as error:  # noqa: BLE001 - the test shows it
            self.error = error


@contextmanager
def busy_table(server: DatabaseServer, name: str, pause_s: float) -> Iterator[BusyTable]:
    """Write into a new table of a MariaDB server until the end of the block."""
    execute(server, f"CREATE TABLE {name} (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)")
    writer = BusyTable(server, name, pause_s)
    writer.start()
    try:
        yield writer
    finally:
        writer.stopped.set()
        writer.join()
    assert writer.error is None, writer.error
