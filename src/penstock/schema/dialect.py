"""What decides how a server reads DDL: its kind and version, and the variables of the session that ran it.

A statement in the log comes with most of the session's (sql_mode always). `collation_server` counts for CREATE DATABASE
only, `explicit_timestamps` (explicit_defaults_for_timestamp) for TIMESTAMP columns without NULL or NOT NULL.
"""

import re
from dataclasses import dataclass
from enum import IntFlag

_VERSION = re.compile(r"(?:5\.5\.5-)?(\d+)\.(\d+)(?:\.(\d+))?")


class SqlMode(IntFlag):
    """The bits of sql_mode that change what DDL means."""

    REAL_AS_FLOAT = 1 << 0
    ANSI_QUOTES = 1 << 2
    ORACLE = 1 << 9
    MAXDB = 1 << 12
    NO_BACKSLASH_ESCAPES = 1 << 20
    STRICT_TRANS_TABLES = 1 << 21
    STRICT_ALL_TABLES = 1 << 22


STRICT = SqlMode.STRICT_TRANS_TABLES | SqlMode.STRICT_ALL_TABLES


@dataclass(frozen=True, slots=True)
class ServerProfile:
    """What decides how a server understands DDL: its product and version, and its settings for names and collations.
    `version` is one number, as in versioned comments: 50722, 101106.

        server = ServerProfile.from_version_text("11.4.2-MariaDB")
        server.is_mariadb  # True
    """

    is_mariadb: bool = False
    version: int = 80000
    lower_case_table_names: int = 0
    utf8_is_utf8mb3: bool = True  # MariaDB's old_mode; MySQL knows no other
    default_collations: tuple[tuple[str, str], ...] = ()  # charset, collation: where a server has other than its usual

    @classmethod
    def from_version_text(cls, version: str, lower_case_table_names: int = 0) -> "ServerProfile":
        """Return the profile of a server from the text that VERSION() returns."""
        match = _VERSION.match(version)
        major, minor, patch = (int(part or 0) for part in match.groups()) if match else (8, 0, 0)
        return cls("MariaDB" in version, major * 10000 + minor * 100 + patch, lower_case_table_names)

    @property
    def has_explicit_timestamps(self) -> bool:
        """Return the default of explicit_defaults_for_timestamp, for sessions that do not say."""
        return self.version >= (101000 if self.is_mariadb else 80002)

    @property
    def has_widths(self) -> bool:
        """Return whether the server shows display widths of numbers, as in int(11)."""
        return self.is_mariadb or self.version < 80019


@dataclass(frozen=True, slots=True)
class SqlSession:
    """The session values that decide what a statement means, such as sql_mode and charsets.

    session = SqlSession(SqlMode.ANSI_QUOTES)
    """

    sql_mode: SqlMode = SqlMode.STRICT_TRANS_TABLES
    explicit_timestamps: bool | None = None  # None: as the server's release has it
    collation_server: str = ""
    utf8mb4_collation: str = ""  # default_collation_for_utf8mb4 of MySQL
    thread: int = 0  # temporary tables are of one thread
    error: int = 0  # with which the statement failed; servers log such a one when it has changed something all the same

    @property
    def is_strict(self) -> bool:
        """Return whether sql_mode has STRICT_TRANS_TABLES or STRICT_ALL_TABLES."""
        return bool(self.sql_mode & STRICT)


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """The server and the session that a statement is read or applied with.

    dialect = SqlDialect(ServerProfile.from_version_text("8.0.36"))
    kind = classify_statement_text("DROP TABLE t", dialect)
    """

    server: ServerProfile = ServerProfile()
    session: SqlSession = SqlSession()

    @property
    def explicit_timestamps(self) -> bool:
        """Return whether explicit_defaults_for_timestamp is on: as the session has it, else by the default of the
        server's release."""
        given = self.session.explicit_timestamps
        return self.server.has_explicit_timestamps if given is None else given

    def has_mode(self, mode: SqlMode) -> bool:
        """Return whether the session had this bit of sql_mode set."""
        return bool(self.session.sql_mode & mode)
