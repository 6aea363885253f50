"""Mirrors of a table as users keep them: the rows of a snapshot first, then every change of the log, batch by batch."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.instance import Instance
from penstock.mirror.comparison import RowComparison
from penstock.mirror.row_check import RowCheck
from penstock.mirror.selection import RowSelection
from penstock.mirror.table_verify import MirrorResult, TableVerifier
from penstock.mirror.target import open_mirror, open_source
from penstock.model import LogRequirement, Position, TableName
from penstock.model.integer_range import IntegerRange
from penstock.snapshot.table_snapshot import SnapshotOptions, TableSnapshot
from penstock.spark.types import cast_for_spark, for_spark
from penstock.testing import DatabaseServer, poll_until
from tests.support.capture import end_of, execute, instance_of, source_of

DEADLINE_S = 60.0
Row = dict[str, Any]
Rows = dict[tuple[Any, ...], Row]


class MirrorWriter(Protocol):
    """Writes what a mirror has after a batch."""

    target: str

    def write(self, rows: Rows, changed: set[tuple[Any, ...]], schema: pa.Schema) -> None: ...


@dataclass
class ParquetWriter:
    """Replaces the file of a folder, as an overwrite does: for a moment there are both, or none."""

    target: str
    _batches: int = 0

    def write(self, rows: Rows, changed: set[tuple[Any, ...]], schema: pa.Schema) -> None:  # noqa: ARG002
        folder = Path(self.target)
        folder.mkdir(exist_ok=True)
        old = list(folder.glob("*.parquet"))
        self._batches += 1
        new = folder / f"_part-{self._batches}.parquet"
        table = pa.Table.from_pylist(list(rows.values()), schema)
        pq.write_table(table.append_column("_seq", pa.array(range(len(rows)), pa.int64())), new, row_group_size=100)
        new.rename(folder / new.name[1:])
        for file in old:
            file.unlink()


@dataclass
class DeltaWriter:
    """Overwrites a Delta table, in the types that Spark has."""

    target: str

    def write(self, rows: Rows, changed: set[tuple[Any, ...]], schema: pa.Schema) -> None:  # noqa: ARG002
        table = pa.Table.from_pylist(list(rows.values()), schema)
        write_deltalake(self.target, to_spark_types(table), mode="overwrite")


def to_spark_types(table: pa.Table) -> pa.Table:
    """Return rows in the types that Spark writes; an interval is microseconds there."""
    fields = [
        field.with_type(pa.int64()) if pa.types.is_duration(field.type) else field for field in for_spark(table.schema)
    ]
    arrays = [
        cast_for_spark(column.combine_chunks(), field.type) for column, field in zip(table.columns, fields, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


@dataclass
class TableWriter:
    """Replaces and deletes rows of a table of another server."""

    server: DatabaseServer
    table: str
    key: tuple[str, ...]

    @property
    def target(self) -> str:
        return f"mysql://{self.server.user}@{self.server.host}:{self.server.port}/{self.table}"

    def write(self, rows: Rows, changed: set[tuple[Any, ...]], schema: pa.Schema) -> None:
        condition = " AND ".join(f"`{name}` = %s" for name in self.key)
        marks = ", ".join(["%s"] * len(schema))
        with self.server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00', sql_mode = ''")
            cursor.execute("BEGIN")
            for key in changed:
                cursor.execute(f"DELETE FROM {self.table} WHERE {condition}", key)
                if key in rows:
                    cursor.execute(f"INSERT INTO {self.table} VALUES ({marks})", list(rows[key].values()))
            cursor.execute("COMMIT")


@dataclass
class KeptMirror:
    """A mirror that a thread keeps equal to a table."""

    server: DatabaseServer
    name: TableName
    writer: MirrorWriter
    instance: Instance
    rows: Rows
    key: tuple[str, ...]
    schema: pa.Schema
    position: Position
    batches: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _failure: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._follow_all, name="keep-mirror")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(DEADLINE_S)
        if self._failure is not None:
            raise self._failure

    def _follow_all(self) -> None:
        try:
            while not self._stopping.is_set():
                self.follow()
        except BaseException as error:  # noqa: BLE001 - raised at the end
            self._failure = error

    def follow(self) -> None:
        """Apply what is in the log now, as one batch."""
        end = self.instance.find_batch_end(self.position, 1 << 26, 0.2)
        if end <= self.position:
            return
        (shape,) = self.instance.describe_tables([self.name])
        changed: set[tuple[Any, ...]] = set()
        for block in self.instance.read(self.position, end):
            for batch in decode_changes(block, self.name, arrow_fields_of_table(shape)):
                for row in batch.to_pylist():
                    key = tuple(row[name] for name in self.key)
                    changed.add(key)
                    if row["_change_type"] in {"delete", "update_preimage"}:
                        self.rows.pop(key, None)
                    else:
                        self.rows[key] = {name: row[name] for name in self.schema.names}
        if changed:
            self.writer.write(self.rows, changed, self.schema)
            self.batches += 1
        self.position = end

    def write_all(self) -> None:
        """Write all rows, with whatever damage they have."""
        self.writer.write(self.rows, set(self.rows), self.schema)

    # -- what a verifier asks

    def find_requirement(self) -> LogRequirement | None:
        return None

    def wait_applied(self) -> str:
        """Wait until the thread has applied what is in the log now."""
        end = end_of(self.server)
        assert poll_until(lambda: self.position >= end or self._failure is not None, DEADLINE_S)
        return "" if self._failure is None else str(self._failure)


class Still:
    """A mirror that nobody changes has whatever there is."""

    def find_requirement(self) -> LogRequirement | None:
        return None

    def wait_applied(self) -> str:
        return ""


@contextmanager
def keep_mirror(server: DatabaseServer, name: TableName, writer: MirrorWriter) -> Iterator[KeptMirror]:
    """Read a table into a mirror, and capture it; the mirror follows when it is entered, or told to."""
    with ExitStack() as opened:
        snapshot = TableSnapshot(source_of(server), name)
        chunks = list(snapshot)
        key = snapshot.table.identity
        rows = {
            tuple(row[column] for column in key): row
            for chunk in chunks
            for batch in chunk.batches
            for row in batch.to_pylist()
        }
        watermark = chunks[0].watermark
        assert watermark is not None
        instance = instance_of(server, start=str(watermark.low))
        instance.start()
        opened.callback(instance.stop)
        kept = KeptMirror(server, name, writer, instance, rows, key, snapshot.schema, watermark.low)
        kept.write_all()
        yield kept


def verify_mirror(
    server: DatabaseServer,
    name: TableName,
    target: str,
    progress: Any = None,
    *,
    password: str = "",
    keys: IntegerRange | None = None,
    share: float | None = None,
    small_rows: int = 0,
) -> MirrorResult:
    """Compare a table with a mirror."""
    with ExitStack() as opened:
        mirror = open_mirror(target, password)
        opened.callback(mirror.close)
        source = open_source(source_of(server), name, mirror, SnapshotOptions(connections=1))
        opened.callback(source.close)
        comparison = RowComparison.of(source.table, source.schema, mirror.schema, json_columns=mirror.json_columns)
        bounds = None if share is None else source.find_bounds()
        selection = RowSelection.of_table(source.table, keys, share, bounds, small_rows=small_rows)
        check = RowCheck(comparison, source, mirror, progress or Still())
        return TableVerifier(comparison, source, mirror, check, selection=selection).run()


def create_goods(server: DatabaseServer, schema: str, rows: int, *, extra: str = "") -> TableName:
    """Create a table with columns of every family, and rows in it."""
    execute(
        server,
        f"CREATE TABLE {schema}.goods (id INT PRIMARY KEY, name VARCHAR(80), price DECIMAL(12,3), weight DOUBLE,"
        " size FLOAT, made DATETIME(6), seen TIMESTAMP(3) NULL, day DATE, at TIME(2), raw VARBINARY(20),"
        " big BIGINT UNSIGNED, kind ENUM('a','b') CHARACTER SET latin1, flags SET('x','y','z'), year YEAR,"
        f" bits BIT(12), digits DECIMAL(50,5), note TEXT{extra}) CHARACTER SET utf8mb4",
    )
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.executemany(
            f"INSERT INTO {schema}.goods (id, name, price, weight, size, made, seen, day, at, raw, big, kind, flags,"
            " year, bits, digits, note) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [_good(number) for number in range(rows)],
        )
        cursor.execute("COMMIT")
        cursor.execute(f"ANALYZE TABLE {schema}.goods")
    return TableName(schema, "goods")


def _good(number: int) -> tuple[Any, ...]:
    """Return the values of a row; some are null."""
    name = None if number % 11 == 3 else f"näme :%{number}"
    return (
        number, name, f"{number}.125", number / 3, number / 4, f"2024-02-29 12:00:00.{number:06}",
        f"2024-03-01 10:00:00.{number % 1000:03}", f"2024-01-{1 + number % 28:02}", f"-{number % 800}:00:00.25",
        b"\x00\xff" + bytes([number % 256]), (1 << 64) - 1 - number, "ab"[number % 2], "x,z" if number % 3 else "",
        2000 + number % 100, number % 4096, f"{number}12345678901234567890.00001",
        None if number % 7 == 2 else "n" * number,
    )  # fmt: skip
