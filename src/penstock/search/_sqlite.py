"""SQLite files in which a commit is on the disk, with errors that say what to do.

Invariant: a connection may be used by several threads, one at a time; readers never wait for a writer (WAL).
"""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from penstock.disk import sync_folder
from penstock.errors import ConfigurationError, SinkError, SinkUnavailableError, StoreFullError

_BUSY_TIMEOUT_S = 30.0


def connect_durably(path: Path) -> sqlite3.Connection:
    """Open a file, which is created for its owner only; transactions are begun and ended by statements."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        sync_folder(path.parent)
    connection = sqlite3.connect(path, _BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # each commit is on the disk
    except BaseException:
        connection.close()
        raise
    return connection


def connect_nowhere() -> sqlite3.Connection:
    """Open an empty database in memory."""
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


@contextmanager
def translate_sqlite_errors(path: Path, content: str) -> Generator[None]:
    """Raise SQLite's errors as ours; `content` says what the file holds."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise StoreFullError(f"no room for the {content} in {path}: {error}") from error
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            raise SinkUnavailableError(f"the {content} in {path} are locked by another process: {error}") from error
        if code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
            raise ConfigurationError(f"{path} does not hold the {content}: {error}; move it away") from error
        raise SinkError(f"the {content} in {path} cannot be read or written: {error}") from error
    except OSError as error:
        raise SinkError(f"the {content} in {path} cannot be opened: {error.strerror}") from error
