"""`penstock verify` proves that a mirror equals its table while both change: it finds all that somebody damaged, and
nothing else."""

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.client import FlightClient
from penstock.config import InstanceSettings, ServerSettings
from penstock.errors import ConfigurationError, SchemaError
from penstock.model import Position, TableName
from penstock.model.integer_range import IntegerRange
from penstock.server import Server
from penstock.spark.mirror_progress import QueryProgress
from penstock.testing import DatabaseServer
from tests.support.capture import end_of, execute, source_of
from tests.support.kept_mirror import (
    DeltaWriter,
    KeptMirror,
    MirrorWriter,
    ParquetWriter,
    TableWriter,
    create_goods,
    keep_mirror,
    verify_mirror,
)

PENSTOCK = Path(sys.executable).with_name("penstock")
NewDatabase = Callable[[Any], str]
KINDS = [("mariadb", "parquet"), ("mariadb", "delta"), ("mariadb", "table"), ("mysql80", "parquet")]
OTHER: dict[type, Callable[[Any], Any]] = {
    str: lambda value: value + "x",
    int: lambda value: value - 1,
    float: lambda value: value + 0.5,
    bytes: lambda value: value + b"!",
    Decimal: lambda value: value + 1,
    datetime: lambda value: value + timedelta(microseconds=1000),
    date: lambda value: value + timedelta(days=1),
    timedelta: lambda value: value + timedelta(hours=1),
}


@contextmanager
def kept_goods(
    request: pytest.FixtureRequest, database: NewDatabase, folder: Path, setup: tuple[str, str], rows: int
) -> Iterator[tuple[KeptMirror, str]]:
    """Keep a mirror of a table with all kinds of columns; yield it and the password of its server."""
    server: DatabaseServer = request.getfixturevalue(setup[0])
    name = create_goods(server, database(server), rows)
    password, writer = "", ParquetWriter(str(folder / "mirror"))
    if setup[1] == "delta":
        writer: MirrorWriter = DeltaWriter(str(folder / "mirror"))
    elif setup[1] == "table":
        other: DatabaseServer = request.getfixturevalue("mysql80")
        copy = create_goods(other, database(other), 0)
        writer, password = TableWriter(other, str(copy), ("id",)), other.password
    with keep_mirror(server, name, writer) as kept:
        yield kept, password


@pytest.mark.parametrize("setup", KINDS, ids="-".join)
def test_every_damage_is_found_and_nothing_else(
    request: pytest.FixtureRequest, database: NewDatabase, tmp_path: Path, setup: tuple[str, str]
) -> None:
    with kept_goods(request, database, tmp_path, setup, 300) as (kept, password):
        result = verify_mirror(kept.server, kept.name, kept.writer.target, password=password)
        assert (result.rows, result.mirrored, result.checked) == (300, 300, 0)
        assert result.is_equal
        wanted: dict[str, tuple[str, str]] = {}
        for number, column in enumerate(kept.schema.names[1:]):
            row = kept.rows[(18 * number + 1,)]
            if setup[1] != "table" or column not in {"kind", "flags"}:
                assert row[column] is not None, column
                row[column] = OTHER[type(row[column])](row[column])
            else:
                row[column] = None
            wanted[str(18 * number + 1)] = ("stale", column)
        kept.rows[(5,)]["name"] = None
        wanted["5"] = ("stale", "name")
        kept.rows[(3,)]["name"] = ""  # the table has NULL there
        wanted["3"] = ("stale", "name")
        del kept.rows[(7,)], kept.rows[(299,)]
        wanted |= {"7": ("missing", ""), "299": ("missing", "")}
        for number in (-5, 1000):
            kept.rows[(number,)] = {**kept.rows[(1,)], "id": number}
            wanted[str(number)] = ("extra", "")
        kept.writer.write(kept.rows, {*kept.rows, (7,), (299,)}, kept.schema)
        result = verify_mirror(kept.server, kept.name, kept.writer.target, password=password)
        reported = {difference.key["id"]: difference for difference in result.differences}
        assert {name: difference.kind.value for name, difference in reported.items()} == {
            name: kind for name, (kind, _) in wanted.items()
        }
        for name, (_, column) in wanted.items():
            assert reported[name].detail.startswith(column), reported[name]
        assert result.unsettled == 0


class GoodsWriter(threading.Thread):
    """Changes random rows of the table until it is stopped."""

    def __init__(self, server: DatabaseServer, name: TableName, first: int) -> None:
        super().__init__(name="write-goods")
        self._server, self._name, self._first = server, name, first
        self._stopping, self.failure = threading.Event(), ""

    def run(self) -> None:
        pick = random.Random(self._first)
        with self._server.connect(charset="utf8mb4", autocommit=True) as connection, connection.cursor() as cursor:
            while not self._stopping.wait(0.003):
                number = self._first + pick.randrange(200)
                statement = pick.choice(
                    [
                        f"INSERT IGNORE INTO {self._name} (id, name) VALUES ({number}, 'new')",
                        f"DELETE FROM {self._name} WHERE id = {number}",
                        f"UPDATE {self._name} SET name = '{pick.randrange(3)}' WHERE id = {number}",
                        f"UPDATE {self._name} SET price = price + 1 WHERE id BETWEEN {number} AND {number + 10}",
                    ]
                )
                cursor.execute(statement)

    def finish(self) -> None:
        self._stopping.set()
        self.join(60)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("setup", "rounds"),
    [
        *(pytest.param(setup, 1, id=setup[1]) for setup in KINDS if setup[1] != "delta" and setup[0] == "mariadb"),
        *(pytest.param(setup, 250, id="-".join((*setup, "long")), marks=pytest.mark.campaign) for setup in KINDS),
    ],
)
def test_only_damage_is_reported_while_changes_flow(
    request: pytest.FixtureRequest, database: NewDatabase, tmp_path: Path, setup: tuple[str, str], rounds: int
) -> None:
    with kept_goods(request, database, tmp_path, setup, 300) as (kept, password):
        kept.rows[(1,)]["name"] = "damaged"
        del kept.rows[(2,)]
        kept.rows[(-9,)] = {**kept.rows[(1,)], "id": -9}
        kept.writer.write(kept.rows, {*kept.rows, (2,)}, kept.schema)
        writer, checked = GoodsWriter(kept.server, kept.name, 100), 0
        writer.start()
        with kept:
            for _ in range(rounds):
                result = verify_mirror(kept.server, kept.name, kept.writer.target, kept, password=password)
                reported = {(difference.kind.value, difference.key["id"]) for difference in result.differences}
                assert reported == {("stale", "1"), ("missing", "2"), ("extra", "-9")}, result.differences
                assert result.unsettled == 0, result.unsettled_reason
                checked += result.checked
            writer.finish()
        assert kept.batches, "no change has reached the mirror meanwhile"
        assert checked > 3 * rounds, "no change was on its way while rows were compared"


def test_rows_that_a_mirror_has_twice_are_extra(mariadb: DatabaseServer, database: NewDatabase, tmp_path: Path) -> None:
    name = create_goods(mariadb, database(mariadb), 50)
    with keep_mirror(mariadb, name, ParquetWriter(str(tmp_path / "mirror"))) as kept:
        file = next((tmp_path / "mirror").glob("*.parquet"))
        pq.write_table(pq.read_table(file).slice(0, 2), tmp_path / "mirror" / "again.parquet")
        result = verify_mirror(mariadb, name, kept.writer.target)
    assert {(item.kind.value, item.key["id"], item.detail) for item in result.differences} == {
        ("extra", number, "the mirror has it 2 times") for number in ("0", "1")
    }


def test_keys_of_several_columns_and_of_any_text(
    mariadb: DatabaseServer, database: NewDatabase, tmp_path: Path
) -> None:
    schema = database(mariadb)
    name = TableName(schema, "t")
    execute(
        mariadb,
        f"CREATE TABLE {name} (tenant VARCHAR(20) CHARACTER SET latin1, at DATETIME(3),"
        " n DECIMAL(6,2), v INT, PRIMARY KEY (tenant, at, n))",
        f"INSERT INTO {name} VALUES ('a:b', '2024-01-01', 1.5, 1), ('a', '2024-01-01 00:00:00.5', -1, 2),"
        f" ('%3A', '2024-01-01', 0, 3), ('ä', '2024-01-01', 1, 4), ('', '2024-01-01', 1, 5)",
    )
    with keep_mirror(mariadb, name, ParquetWriter(str(tmp_path / "mirror"))) as kept:
        assert verify_mirror(mariadb, name, kept.writer.target).is_equal
        rows = list(kept.rows.values())
        for row in rows:
            if row["tenant"] == "a:b":
                row["tenant"] = "A:b"  # the same key to the server, and another one to everybody else
            elif row["tenant"] != "a":
                row["v"] = 9
        kept.write_all()
        result = verify_mirror(mariadb, name, kept.writer.target)
    assert sorted((item.kind.value, item.key["tenant"]) for item in result.differences) == [
        ("extra", "A:b"), ("missing", "a:b"), ("stale", ""), ("stale", "%3A"), ("stale", "ä"),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["parquet", "table"])
def test_a_range_and_a_sample_compare_a_part_of_both_sides(
    mariadb: DatabaseServer, database: NewDatabase, tmp_path: Path, kind: str
) -> None:
    name = create_goods(mariadb, database(mariadb), 200)
    writer: MirrorWriter = ParquetWriter(str(tmp_path / "mirror"))
    if kind == "table":
        writer = TableWriter(mariadb, str(create_goods(mariadb, database(mariadb), 0)), ("id",))
    with keep_mirror(mariadb, name, writer) as kept:
        password, damaged = mariadb.password, list(kept.rows.values())
        for row in damaged:
            row["name"] = "damaged"
        kept.write_all()
        keys = IntegerRange(100, 149)
        result = verify_mirror(mariadb, name, writer.target, password=password, keys=keys)
        assert (result.rows, result.mirrored, result.counts["stale"]) == (50, 50, 50)
        chosen: list[set[str | None]] = []
        for small_rows in (1_000_000, 0):  # all is read, or the ranges of the sample alone
            options = {"password": password, "share": 0.25, "small_rows": small_rows}
            result = verify_mirror(mariadb, name, writer.target, **options)
            assert (result.rows, result.mirrored, result.share) == (*(result.counts["stale"],) * 2, 0.25)
            assert 20 <= result.rows <= 80
            chosen.append({item.key["id"] for item in result.differences})
        assert chosen[0] == chosen[1]


def test_what_cannot_be_compared_is_told(mariadb: DatabaseServer, database: NewDatabase, tmp_path: Path) -> None:
    schema = database(mariadb)
    execute(
        mariadb,
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v INT, d DATE)",
        f"CREATE TABLE {schema}.k (v INT)",
        f"INSERT INTO {schema}.t VALUES (1, 1, '2024-01-01')",
    )
    folder = tmp_path / "mirror"
    folder.mkdir()

    def verify(columns: dict[str, Any], table: str = "t") -> None:
        pq.write_table(pa.table({name: pa.array([value]) for name, value in columns.items()}), folder / "a.parquet")
        verify_mirror(mariadb, TableName(schema, table), str(folder))

    with pytest.raises(ConfigurationError, match="no Parquet files"):
        verify_mirror(mariadb, TableName(schema, "t"), str(folder))
    with pytest.raises(SchemaError, match=r"no column v, d, which .*\.t has.*--columns"):
        verify({"id": 1})
    with pytest.raises(SchemaError, match=r"column other, which .*\.t does not have"):
        verify({"id": 1, "v": 1, "d": date(2024, 1, 1), "other": 1, "_seq": 5})
    with pytest.raises(SchemaError, match="column v is int32 in the database and string in the mirror"):
        verify({"id": 1, "v": "1", "d": date(2024, 1, 1)})
    with pytest.raises(SchemaError, match="no key"):
        verify({"v": 1}, "k")
    with pytest.raises(ConfigurationError, match="PENSTOCK_MIRROR_PASSWORD"):
        verify_mirror(mariadb, TableName(schema, "t"), "mysql://root:secret@localhost/a.b")
    verify({"id": 1, "v": 1, "d": date(2024, 1, 1), "_seq": 5})


def test_the_command_says_by_its_exit_code_whether_they_are_equal(
    mariadb: DatabaseServer, database: NewDatabase, tmp_path: Path
) -> None:
    name = create_goods(mariadb, database(mariadb), 1000)

    def run(*arguments: str, code: int) -> str:
        options = ["--host", mariadb.host, "--port", str(mariadb.port), "--user", mariadb.user]
        done = subprocess.run(
            [str(PENSTOCK), *arguments, *options],
            env={**os.environ, "PENSTOCK_PASSWORD": mariadb.password},
            capture_output=True,
            timeout=120,
            check=False,
            text=True,
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout

    folder = str(tmp_path / "goods")
    run("snapshot", str(name), "--output", "parquet", "--to", folder, "--chunk-rows", "400", code=0)
    text = run("verify", str(name), "--mirror", folder, "--settle", "0", code=0)
    assert text.startswith(f"equal: 1,000 rows of {name}, 1,000 of the mirror")
    execute(mariadb, f"DELETE FROM {name} WHERE id = 8", f"UPDATE {name} SET name = 'other' WHERE id = 9")
    lines = run("verify", str(name), "--mirror", folder, "--settle", "0", "--output", "json", code=3).splitlines()
    *differences, result = map(json.loads, lines)
    assert [(item["kind"], item["key"]) for item in sorted(differences, key=lambda item: item["kind"])] == [
        ("extra", {"id": "8"}), ("stale", {"id": "9"}),
    ]  # fmt: skip
    assert (result["event"], result["equal"], result["rows"], result["mirrored"]) == ("result", False, 999, 1000)
    run("verify", str(name), "--mirror", folder, "--settle", "0", "--columns", "price", "--range", "9..", code=0)


def test_the_checkpoint_of_a_query_says_what_is_on_its_way(
    mariadb: DatabaseServer, database: NewDatabase, tmp_path: Path
) -> None:
    name = create_goods(mariadb, database(mariadb), 10)
    start = end_of(mariadb)
    folder, checkpoint = tmp_path / "mirror", tmp_path / "checkpoint"
    for part in ("offsets", "commits"):
        (checkpoint / part).mkdir(parents=True)

    def commit(number: int, position: Position, **state: Any) -> None:
        offset = json.dumps(position.to_json() | state)
        (checkpoint / "offsets" / str(number)).write_text(f"v1\n{{}}\n{offset}")
        (checkpoint / "commits" / str(number)).write_text("v1\n{}")

    server = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(mariadb), start=str(start))))
    server.start()
    client = FlightClient(server.address)
    try:
        with keep_mirror(mariadb, name, ParquetWriter(str(folder))) as kept:
            execute(mariadb, f"UPDATE {name} SET name = 'later' WHERE id = 1")
            hasty = QueryProgress(client, checkpoint, name, timeout_s=0.3)
            progress = QueryProgress(client, checkpoint, name)
            commit(0, start)
            behind = verify_mirror(mariadb, name, str(folder), hasty)
            assert (behind.differences, behind.unsettled) == ([], 1)
            assert f"the query of {checkpoint} has applied changes up to {start}" in behind.unsettled_reason
            commit(1, end_of(mariadb), snapshot={str(name): {"complete": False}})
            assert verify_mirror(mariadb, name, str(folder), hasty).unsettled == 1
            commit(2, end_of(mariadb))
            assert verify_mirror(mariadb, name, str(folder), progress).counts["stale"] == 1
            kept.follow()
            assert verify_mirror(mariadb, name, str(folder), progress).is_equal
            execute(mariadb, f"CREATE TABLE {name}2 (id INT PRIMARY KEY)", f"INSERT INTO {name}2 VALUES (1)")
            kept.rows[(1,)]["name"] = "damaged"
            kept.write_all()
            assert verify_mirror(mariadb, name, str(folder), progress).counts["stale"] == 1, "no change waits for it"
    finally:
        client.close()
        server.stop()
    with pytest.raises(ConfigurationError, match="not the checkpoint"):
        QueryProgress(client, tmp_path, name)
