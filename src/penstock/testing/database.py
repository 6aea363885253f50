"""What a private MySQL and a private MariaDB have in common: settings, account, connection.

Invariant: the root password exists for one object only. Each start sets it, from a file that only this user can read
and that is gone once the server has answered; what sets it is not in the binary log.
"""

import secrets
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from penstock.testing.process import ServerProcess
from penstock.testing.server import PrivateServer

OptionValue = str | int | None
"""A server option's value: True stands for the bare option, None leaves a default of ours out."""

COMMON: Mapping[str, OptionValue] = {
    "server_id": 1,
    "log_bin": "binlog",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "sync_binlog": 0,
    "innodb_flush_log_at_trx_commit": 2,
    "innodb_buffer_pool_size": "32M",
    # Relative to the data folder, where the server runs: the full path may exceed a socket address's 107 bytes.
    "socket": "server.sock",
    "pid_file": "server.pid",
}


class DatabaseServer(PrivateServer):
    """A MySQL or MariaDB server that writes a row-based binary log.

    with MariaDB(installation, tmp_path) as server, server.connect() as connection:
        connection.cursor().execute("SELECT 1")
    """

    user = "root"

    def __init__(
        self, folder: Path, *, port: int | None = None, options: Mapping[str, OptionValue] | None = None
    ) -> None:
        super().__init__(folder, port)
        self.data = self.folder / "data"
        self.options = dict(options or {})
        self.password = secrets.token_hex(12)
        self.version = ""
        """As the server says it; known once it has started."""
        self._account = self.folder / "account.sql"

    @abstractmethod
    def command(self) -> list[str]:
        """Return the server program and where its own files are, without settings."""

    @abstractmethod
    def defaults(self) -> dict[str, OptionValue]:
        """Return the settings of this server on top of `COMMON`; `options` given to the constructor win over both."""

    @abstractmethod
    def initialise(self, data: Path) -> None:
        """Fill an empty data folder with what the server needs to start."""

    def launch(self) -> ServerProcess:
        """Start the server process, initialising its data folder first if needed."""
        (self.folder / "tmp").mkdir(exist_ok=True)
        if not self.data.exists():
            # Complete or absent, so that a start after a crash does not meet half a data folder.
            fresh = Path(f"{self.data}.{secrets.token_hex(4)}")
            fresh.mkdir()
            self.initialise(fresh)
            fresh.rename(self.data)
        self._account.touch(mode=0o600)
        self._account.write_text(self._account_statements(), encoding="utf-8")
        command = [*self.command(), *settings_to_arguments(self._merge_settings())]
        return ServerProcess.start(self.name, command, log=self.log, folder=self.data)

    def start(self) -> Self:
        """Start the server, and return once it accepts connections."""
        try:
            return super().start()
        finally:
            self._account.unlink(missing_ok=True)

    def is_ready(self) -> bool:
        """Tell whether the server accepts connections."""
        try:
            # Somebody else's program may have the port and say nothing.
            connection = self.connect(connect_timeout=3, read_timeout=3)
        except pymysql.err.MySQLError:
            return False
        with connection, connection.cursor() as cursor:
            cursor.execute("SELECT VERSION()")
            (self.version,) = cursor.fetchone() or ("",)
        return True

    def connect(self, **changes: Any) -> "Connection[Cursor]":
        """Return a connection as root in autocommit mode; keyword arguments are PyMySQL's and win."""
        settings: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "autocommit": True,
            "connect_timeout": 10,
        }
        return pymysql.connect(**(settings | changes))

    def _merge_settings(self) -> dict[str, OptionValue]:
        """Return the settings to start the server with."""
        own: dict[str, OptionValue] = {
            "datadir": str(self.data),
            "tmpdir": str(self.folder / "tmp"),
            "init_file": str(self._account),
            "bind_address": self.host,
            "port": self.port,
        }
        return {**own, **COMMON, **self.defaults(), **self.options}

    def _account_statements(self) -> str:
        """Return the SQL that sets the root password."""
        # The server sees 127.0.0.1 as 'localhost' unless names are not resolved; one password fits both.
        lines = ["SET SESSION sql_log_bin = 0;"]
        for host in ("localhost", self.host):
            account = f"'{self.user}'@'{host}'"
            lines.append(f"CREATE USER IF NOT EXISTS {account};")
            lines.append(f"ALTER USER {account} IDENTIFIED BY '{self.password}';")
            lines.append(f"GRANT ALL PRIVILEGES ON *.* TO {account} WITH GRANT OPTION;")
        return "\n".join([*lines, ""])


def settings_to_arguments(settings: Mapping[str, OptionValue]) -> list[str]:
    """Return server settings as arguments of a command line."""
    return [
        f"--{name}" if value is True else f"--{name}={value}" for name, value in settings.items() if value is not None
    ]
