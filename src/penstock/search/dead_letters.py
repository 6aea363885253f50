"""Documents that an index refused, kept in one SQLite file until they are written, superseded or dropped.

Invariant: what `add` or `record_report` was given is on the disk when it returns. One process adds; any number of
others, such as `penstock dlq`, read and remove at the same time.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from penstock.errors import ConfigurationError
from penstock.search._sqlite import connect_durably, connect_nowhere, translate_sqlite_errors
from penstock.search.index import Rejection, WriteReport

_FORMAT = 2
_CONTENT = "dead letters"
_FEW = 1000
_COLUMNS = (
    "number, index_name, id, version, routing, document, reason, position, gtid, first_at, last_at, attempts,"
    " before_transform"
)
_TABLE = """
CREATE TABLE letter (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order of arrival, never used again
    index_name TEXT NOT NULL,
    id TEXT NOT NULL,
    routing TEXT NOT NULL, -- '' is none
    version INTEGER NOT NULL,
    document TEXT, -- null for a delete
    reason TEXT NOT NULL,
    position TEXT NOT NULL,
    gtid TEXT NOT NULL,
    first_at REAL NOT NULL, -- epoch seconds
    last_at REAL NOT NULL,
    attempts INTEGER NOT NULL,
    before_transform INTEGER NOT NULL DEFAULT 0,
    UNIQUE (index_name, id, routing)
)"""
_FROM_FORMAT_1 = "ALTER TABLE letter ADD COLUMN before_transform INTEGER NOT NULL DEFAULT 0"
_ADD = """
INSERT INTO letter (
    index_name, id, routing, version, document, reason, position, gtid, first_at, last_at, before_transform, attempts
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)
ON CONFLICT (index_name, id, routing) DO UPDATE SET
    attempts = attempts + 1,
    last_at = excluded.last_at,
    document = CASE WHEN excluded.version >= version THEN excluded.document ELSE document END,
    before_transform = CASE WHEN excluded.version >= version THEN excluded.before_transform ELSE before_transform END,
    reason = CASE WHEN excluded.version >= version THEN excluded.reason ELSE reason END,
    position = CASE WHEN excluded.version >= version THEN excluded.position ELSE position END,
    gtid = CASE WHEN excluded.version >= version THEN excluded.gtid ELSE gtid END,
    version = max(version, excluded.version)"""
# A document that changed its routing: the letter under the old one would bring back an older state.
_DROP_OLDER = "DELETE FROM letter WHERE index_name = ? AND id = ? AND routing <> ? AND version < ?"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One refused operation: the newest version of a document, which the index does not have."""

    number: int
    index: str
    id: str
    version: int
    routing: str | None
    document: str | None
    """The document as JSON text; None for a delete."""
    reason: str
    position: str
    """Where in the log the batch ended that held it."""
    gtid: str
    first_at: float
    last_at: float
    attempts: int
    before_transform: bool = False
    """Whether the document is as it was before the transform of its spec, which a retry applies."""


class DeadLetters:
    """The dead letters of one pipeline. Several threads may use it.

    with DeadLetters.open(dead_letters_path(checkpoint)) as letters:
        letters.record_report("product", operations, index.write(operations), "binlog.000007:4849", "0-1-4711")
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, clock: Callable[[], float]) -> None:
        self._path = path
        self._connection = connection
        self._clock = clock
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: Path, *, is_created: bool = True, clock: Callable[[], float] = time.time) -> Self:
        """Open the file, and create it if it is missing, for its owner only; unless `is_created`, a missing file is
        read as an empty one.
        """
        with translate_sqlite_errors(path, _CONTENT):
            is_file = is_created or path.exists()
            letters = cls(path, connect_durably(path) if is_file else connect_nowhere(), clock)
        try:
            letters._create_table()
        except BaseException:
            letters.close()
            raise
        return letters

    def add(self, index: str, rejections: Iterable[Rejection], position: str = "", gtid: str = "") -> None:
        """Keep refused operations, of each document the newest. One that is there already, with the same id and
        routing, keeps its number and counts its attempts.
        """
        now = self._clock()
        origin = position, gtid, now, now
        rows = [
            (
                index,
                item.id,
                item.routing or "",
                item.version,
                item.document,
                item.reason,
                *origin,
                item.before_transform,
            )
            for item in rejections
        ]
        if rows:
            with self._write() as connection:
                connection.executemany(_ADD, rows)
                connection.executemany(_DROP_OLDER, [row[:4] for row in rows])

    def forget_superseded(self, index: str, versions: Mapping[str, int]) -> int:
        """Remove the dead letters of documents that the index has in a version at least theirs; return how many."""
        if not versions or not (there := self.count(index)):
            return 0
        if there > max(_FEW, len(versions)):
            rows = [(index, key, version) for key, version in versions.items()]
            with self._write() as connection:
                before = connection.total_changes
                connection.executemany("DELETE FROM letter WHERE index_name = ? AND id = ? AND version <= ?", rows)
                return connection.total_changes - before
        kept = self._read("SELECT number, id, version FROM letter WHERE index_name = ?", (index,))
        return self.drop(number for number, key, version in kept if versions.get(key, -1) >= version)

    def explain(self, index: str, id: str) -> str:  # noqa: A002 - the word of both products
        """Return why an index refused a document; an empty text if it did not."""
        letter = self.find(index, id)
        return "" if letter is None else f"dead letter {letter.number}: {letter.reason}"

    def forget_before(self, index: str, version: int) -> int:
        """Remove the dead letters of an index with a version below this one; return how many."""
        if not self.count(index):
            return 0
        with self._write() as connection:
            before = connection.total_changes
            connection.execute("DELETE FROM letter WHERE index_name = ? AND version < ?", (index, version))
            return connection.total_changes - before

    def record_report(
        self, index: str, operations: pa.Table, report: WriteReport, position: str = "", gtid: str = ""
    ) -> int:
        """Keep what a write refused, forget what it superseded, and return how many documents it refused."""
        if report.rejected or self.count(index):
            refused = {(item.id, item.version) for item in report.rejected}
            pairs = zip(operations.column("id").to_pylist(), operations.column("version").to_pylist(), strict=True)
            # A delete with the old routing does not stand for a refused document of the same version with a new one.
            versions = {key: version for key, version in pairs if (key, version) not in refused}
            self.forget_superseded(index, versions)
            self.add(index, report.rejected, position, gtid)
        return len(report.rejected)

    def read_page(self, after: int = 0, limit: int = 100, index: str | None = None) -> list[DeadLetter]:
        """Return dead letters in the order of their numbers, from the first one behind `after`."""
        rows = self._read(
            f"SELECT {_COLUMNS} FROM letter WHERE number > ? AND (? IS NULL OR index_name = ?) ORDER BY number LIMIT ?",
            (after, index, index, limit),
        )
        return [_to_letter(row) for row in rows]

    def get(self, number: int) -> DeadLetter | None:
        """Return the dead letter with this number; None if there is none, or no longer."""
        rows = self._read(f"SELECT {_COLUMNS} FROM letter WHERE number = ?", (number,))
        return _to_letter(rows[0]) if rows else None

    def find(self, index: str, id: str) -> DeadLetter | None:  # noqa: A002 - the word of both products
        """Return the newest letter about a document; None if there is none."""
        rows = self._read(
            f"SELECT {_COLUMNS} FROM letter WHERE index_name = ? AND id = ? ORDER BY version DESC LIMIT 1", (index, id)
        )
        return _to_letter(rows[0]) if rows else None

    def count(self, index: str | None = None) -> int:
        """Return how many dead letters there are, of one index or of all."""
        condition = "" if index is None else " WHERE index_name = ?"
        ((count,),) = self._read(f"SELECT count(*) FROM letter{condition}", () if index is None else (index,))
        return count

    def index_names(self) -> list[str]:
        """Return the names of the indexes that have dead letters."""
        return [name for (name,) in self._read("SELECT DISTINCT index_name FROM letter ORDER BY index_name", ())]

    def newest_number(self) -> int:
        """Return the number of the newest dead letter, which is the highest; 0 if there is none."""
        ((number,),) = self._read("SELECT max(number) FROM letter", ())
        return number or 0

    def drop(self, numbers: Iterable[int]) -> int:
        """Remove the dead letters with these numbers; return how many there were."""
        rows = [(number,) for number in numbers]
        if not rows:
            return 0
        with self._write() as connection:
            before = connection.total_changes
            connection.executemany("DELETE FROM letter WHERE number = ?", rows)
            return connection.total_changes - before

    def settle(self, taken: Iterable[DeadLetter], refused: Iterable[tuple[DeadLetter, str]]) -> None:
        """Record a retry: remove the dead letters that were taken, and give each refused one its new reason. A dead
        letter that has a newer version by now is left as it is.
        """
        now = self._clock()
        with self._write() as connection:
            connection.executemany(
                "DELETE FROM letter WHERE number = ? AND version = ?",
                [(letter.number, letter.version) for letter in taken],
            )
            connection.executemany(
                "UPDATE letter SET attempts = attempts + 1, last_at = ?, reason = ? WHERE number = ? AND version = ?",
                [(now, reason, letter.number, letter.version) for letter, reason in refused],
            )

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _create_table(self) -> None:
        """Create the table in a new file, or check that it is one of ours."""
        with self._write() as connection:
            ((present,),) = connection.execute("PRAGMA user_version").fetchall()
            ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
            if not tables:
                connection.execute(_TABLE)
                connection.execute(f"PRAGMA user_version = {_FORMAT}")
            elif present == 1:
                connection.execute(_FROM_FORMAT_1)
                connection.execute(f"PRAGMA user_version = {_FORMAT}")
            elif present != _FORMAT:
                raise ConfigurationError(
                    f"{self._path} holds dead letters of format {present}, this version has {_FORMAT}: move it away"
                )

    def _read(self, sql: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._lock, translate_sqlite_errors(self._path, _CONTENT):
            return self._connection.execute(sql, parameters).fetchall()

    @contextmanager
    def _write(self) -> Generator[sqlite3.Connection]:
        """Give the connection inside a transaction, which is on the disk at the end or did not happen."""
        with self._lock, translate_sqlite_errors(self._path, _CONTENT):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def dead_letters_path(checkpoint: Path) -> Path:
    """Return the file of the dead letters of a pipeline, beside its checkpoint."""
    return checkpoint.with_name(f"{checkpoint.name}.dead-letters.sqlite")


def _to_letter(row: tuple[Any, ...]) -> DeadLetter:
    """Return a row of the table as a dead letter."""
    number, index, key, version, routing, *rest = row
    return DeadLetter(number, index, key, version, routing or None, *rest[:-1], before_transform=bool(rest[-1]))
