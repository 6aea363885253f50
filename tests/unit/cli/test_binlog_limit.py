"""A limit of changes where many of them share a position: in a compressed transaction."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.model import Column, TableName, TableSchema, WireType
from tests.support.shop_log import shown, written
from tests.twins import event as ev
from tests.twins.log import LogWriter
from tests.twins.row import INSERT, UPDATE, packed

TABLES = [TableSchema(TableName("s", name), (Column("id", WireType.LONG),), ("id",)) for name in ("b", "a")]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Rows of two tables in turn, repeated many times: compressed, many of them share an offset."""
    inner = LogWriter(is_mariadb=False, is_checksummed=False)
    inner.add(ev.QUERY, ev.query(b"BEGIN"))
    for number, table in enumerate(TABLES):
        inner.map(number, table)
    for number in range(150):
        table = number % 2
        kind = UPDATE if number % 3 else INSERT
        inner.rows(kind, table, TABLES[table], [[i % 4] for i in range(40)], version=2)
    inner.add(ev.XID, ev.xid(1))
    raw = bytes(inner.data)
    body = b"".join(
        bytes([field]) + packed(len(packed(value))) + packed(value) for field, value in ((2, 0), (3, len(raw)))
    )
    log = LogWriter(is_mariadb=False).open()
    log.begin(is_standalone=True)
    log.add(40, body + b"\0" + pa.compress(raw, "zstd", asbytes=True))
    return written(log, tmp_path)


@pytest.mark.parametrize("count", [1, 2, 3, 50, 99, 100, 199, 2500, 9000])
def test_the_first_changes_are_the_same_in_all_formats(log: Path, tmp_path: Path, count: int) -> None:
    expected: dict[str, list[int]] = {}
    for line in shown(log, "--limit", count).splitlines():
        change = json.loads(line)
        images = [change[side]["id"] for side in ("before", "after") if side in change]
        expected.setdefault(change["table"], []).extend(images)
    for kind in ("parquet", "csv"):
        shown(log, "--limit", count, "--output", kind, "--to", tmp_path / kind)
    tables = {path.stem: pq.read_table(path).to_pylist() for path in (tmp_path / "parquet").iterdir()}
    assert {name: [row["id"] for row in rows] for name, rows in tables.items()} == expected
    texts = {path.stem: path.read_text().splitlines()[1:] for path in (tmp_path / "csv").iterdir()}
    assert {name: [int(line.split(",")[0]) for line in lines] for name, lines in texts.items()} == expected


def test_positions_are_shared_here(log: Path, tmp_path: Path) -> None:
    shown(log, "--output", "parquet", "--to", tmp_path / "out")
    sequences = pq.read_table(tmp_path / "out" / "s.a.parquet").column("_seq").to_pylist()
    assert len(set(sequences)) < len(sequences) // 2
