"""Tables with every kind of key are cut into chunks that hold each row once, and none of which is large."""

import itertools
import random
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from penstock.model import TableName
from penstock.snapshot.chunks import Chunk, ChunkSize
from penstock.snapshot.table_snapshot import SnapshotOptions, TableSnapshot
from penstock.testing import DatabaseServer
from tests.support.capture import execute, source_of

_SERVERS = ["mariadb", "mariadb11", "mysql57", "mysql80", "mysql9"]
_ROWS = 3000
_CHUNK = 200
_WORDS = ("a", "A", "ä", "ß", "ss", "z", "Z", "_", "é", "1", "-", "'", "\\", "ö")
_SIZE = ChunkSize(_CHUNK)


def _unique(random_: random.Random, make: Callable[[random.Random], Any]) -> list[Any]:
    values: set[Any] = set()
    while len(values) < _ROWS:
        values.add(make(random_))
    return list(values)


def _word(random_: random.Random, number: int) -> str:
    return "".join(random_.choices(_WORDS, k=6)) + str(number)


# Declaration of the key columns, and a function that makes the keys as SQL.
KEYS: dict[str, tuple[str, Callable[[random.Random], list[str]]]] = {
    "even": ("id INT", lambda _: [str(i) for i in range(1, _ROWS + 1)]),
    "clusters": (
        "id BIGINT",
        lambda r: [str(c + i) for c in (-(2**62), -5, 10**6, 2**62) for i in r.sample(range(10**4), _ROWS // 4)],
    ),
    "unsigned": ("id BIGINT UNSIGNED", lambda r: [str(i) for i in _unique(r, lambda r: r.randrange(2**64))]),
    "text": ("id VARCHAR(60) CHARACTER SET latin1", lambda r: [f"'{_sql(_word(r, i))}'" for i in range(_ROWS)]),
    "unicode": (
        "id VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
        lambda r: [f"'{_sql(_word(r, i))}'" for i in range(_ROWS)],
    ),
    "binary": ("id VARBINARY(8)", lambda r: [f"x'{v:016X}'" for v in _unique(r, lambda r: r.randrange(2**64))]),
    "date": ("id DATE", lambda r: [f"DATE_ADD('1000-01-01', INTERVAL {i} DAY)" for i in r.sample(range(10**6), _ROWS)]),
    "datetime": (
        "id DATETIME(6)",
        lambda r: [f"DATE_ADD('2001-01-01', INTERVAL {i} MICROSECOND)" for i in r.sample(range(10**9), _ROWS)],
    ),
    "decimal": (
        "id DECIMAL(30,10)",
        lambda r: [f"{i}.{i % 10**10:010}" for i in r.sample(range(-(10**9), 10**9), _ROWS)],
    ),
    "tenants": ("id INT, part VARCHAR(20)", lambda r: [f"{i % 3},'{_sql(_word(r, i))}'" for i in range(_ROWS)]),
    "three": (
        "id TINYINT, day DATE, number INT UNSIGNED",
        lambda r: [f"{r.randrange(-3, 3)},'2024-0{r.randrange(1, 9)}-01',{i}" for i in range(_ROWS)],
    ),
    "label_behind": ("id SMALLINT, kind ENUM('x','b','a')", lambda _: [f"{i // 3},{i % 3 + 1}" for i in range(_ROWS)]),
}


def _sql(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "''")


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("name", _SERVERS)
def test_chunks_hold_each_row_once(
    name: str, kind: str, request: pytest.FixtureRequest, database: Callable[[DatabaseServer], str]
) -> None:
    server: DatabaseServer = request.getfixturevalue(name)
    schema = database(server)
    declared, make = KEYS[kind]
    names = ", ".join(part.split()[0] for part in declared.split(", "))
    execute(server, f"CREATE TABLE {schema}.t ({declared}, v INT, PRIMARY KEY ({names})) ENGINE=InnoDB")
    keys = make(random.Random(kind))
    values = ", ".join(f"({key}, {number})" for number, key in enumerate(keys))
    execute(server, f"INSERT INTO {schema}.t VALUES {values}", f"ANALYZE TABLE {schema}.t")
    snapshot = TableSnapshot(source_of(server), TableName(schema, "t"), SnapshotOptions(chunk=_SIZE))
    chunks = list(snapshot.plan())
    assert chunks[0].after is None
    assert chunks[-1].until is None
    assert all(before.until == after.after for before, after in itertools.pairwise(chunks))
    read = list(snapshot.read(chunks))
    numbers = [v for rows in read for batch in rows.batches for v in batch.column("v").to_pylist()]
    assert sorted(numbers) == list(range(len(keys)))
    sizes = [rows.rows for rows in read]
    assert max(sizes) <= 4 * _CHUNK, sizes
    assert len(sizes) <= 4 * len(keys) / _CHUNK, sizes


@pytest.mark.parametrize("name", _SERVERS)
def test_a_chunk_of_a_tenant_with_many_rows_reads_no_other_rows(
    name: str, request: pytest.FixtureRequest, database: Callable[[DatabaseServer], str]
) -> None:
    server: DatabaseServer = request.getfixturevalue(name)
    schema = database(server)
    rows = ", ".join(f"(7, 'x', {number})" for number in range(_ROWS))
    execute(
        server,
        f"CREATE TABLE {schema}.t (tenant INT, kind VARCHAR(9), id INT, PRIMARY KEY (tenant, kind, id))",
        f"INSERT INTO {schema}.t VALUES {rows}",
        f"ANALYZE TABLE {schema}.t",
    )
    snapshot = TableSnapshot(source_of(server), TableName(schema, "t"), SnapshotOptions(chunk=_SIZE))
    chunks = list(snapshot.plan())
    assert len(chunks) >= _ROWS // _CHUNK
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for chunk in chunks:
            cursor.execute("FLUSH STATUS")
            cursor.execute(f"SELECT id FROM {snapshot.table.source} WHERE {chunk.condition(snapshot.table)}")
            count = len(cursor.fetchall())
            cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
            assert sum(int(reads) for _, reads in cursor.fetchall()) <= count + 10


def test_rows_that_come_later_have_their_chunk(mariadb: DatabaseServer, database: Callable[[Any], str]) -> None:
    """Limits stay, whatever is inserted between, before and behind them."""
    schema = database(mariadb)
    execute(
        mariadb,
        f"USE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)",
        f"INSERT INTO {schema}.t SELECT seq * 10 FROM seq_1_to_1000",
        f"ANALYZE TABLE {schema}.t",
    )
    snapshot = TableSnapshot(source_of(mariadb), TableName(schema, "t"), SnapshotOptions(chunk=ChunkSize(100)))
    chunks = list(snapshot.plan())
    execute(
        mariadb,
        f"USE {schema}",
        f"INSERT INTO {schema}.t SELECT seq * 10 + 5 FROM seq_0_to_2000",
        f"INSERT INTO {schema}.t VALUES (-7)",
    )
    ids = [v for rows in snapshot.read(chunks) for batch in rows.batches for v in batch.column("id").to_pylist()]
    with closing(mariadb.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM {schema}.t")
        assert sorted(ids) == sorted(value for (value,) in cursor.fetchall())


@pytest.mark.parametrize(
    ("declared", "index"),
    [
        ("a INT, b INT NOT NULL, UNIQUE KEY by_b (b)", "by_b"),
        ("a INT, b INT, UNIQUE KEY by_b (b)", ""),
        ("a INT, b TEXT, PRIMARY KEY (b(10))", ""),
        ("a INT, b DOUBLE PRIMARY KEY", ""),
        ("a INT, b INT", ""),
    ],
)
def test_a_table_without_a_usable_key_is_one_chunk_and_says_so(
    mariadb: DatabaseServer, database: Callable[[Any], str], declared: str, index: str
) -> None:
    schema = database(mariadb)
    rows = ", ".join(f"(1, {number})" for number in range(50))
    execute(mariadb, f"CREATE TABLE {schema}.t ({declared})", f"INSERT INTO {schema}.t (a, b) VALUES {rows}")
    snapshot = TableSnapshot(source_of(mariadb), TableName(schema, "t"), SnapshotOptions(chunk=ChunkSize(10)))
    assert snapshot.table.index == index
    assert bool(snapshot.table.warnings) == (not index)
    if not index:
        assert list(snapshot.plan()) == [Chunk(None, None, snapshot.table.estimated_rows)]
    assert sum(rows.rows for rows in snapshot) == 50


@pytest.mark.parametrize(
    ("flavour", "unused"), [("mariadb", "IGNORED"), ("mysql80", "INVISIBLE"), ("mysql9", "INVISIBLE")]
)
def test_a_key_that_the_server_does_not_use_is_not_used(
    flavour: str, unused: str, request: pytest.FixtureRequest, database: Callable[[Any], str]
) -> None:
    server: DatabaseServer = request.getfixturevalue(flavour)
    name = TableName(database(server), "t")
    execute(
        server,
        f"CREATE TABLE {name} (a INT NOT NULL, b INT NOT NULL, UNIQUE KEY by_b (b), UNIQUE KEY by_a (a) {unused})",
        f"INSERT INTO {name} VALUES (1, 2), (3, 4)",
    )
    snapshot = TableSnapshot(source_of(server), name)
    assert snapshot.table.index == "by_b"
    assert sum(rows.rows for rows in snapshot) == 2
