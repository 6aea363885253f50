"""A snapshot that is taken under heavy writes, and the changes after it, make the table: nothing is missing, nothing is
there twice.

Changes before the low position of a row's chunk are in the chunk already, and are left out. From its high position on
they are applied strictly: an insert must find no row of its key, an update and a delete must find one, with the old
values. Between the two positions, which differ on a busy MySQL only, a change may be in the chunk or not.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import pytest

from penstock.binlog.rows.changes import decode_changes
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.model import Position, TableName
from penstock.snapshot.chunks import ChunkSize
from penstock.snapshot.reader import ChunkRows
from penstock.snapshot.table_snapshot import SnapshotOptions, TableSnapshot
from penstock.testing import DatabaseServer, poll_until
from tests.support.capture import end_of, instance_of, source_of
from tests.support.random_writers import create_table, select_rows, written

_SERVERS = ["mariadb", "mariadb11", "mysql57", "mysql80", "mysql9"]
_SEEDS = [*range(1), *(pytest.param(seed, marks=pytest.mark.campaign) for seed in range(1, 11))]
NewDatabase = Callable[[Any], str]


@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize("flavour", _SERVERS)
def test_chunks_and_the_changes_after_them_make_the_table(
    flavour: str, seed: int, request: pytest.FixtureRequest, database: NewDatabase
) -> None:
    server: DatabaseServer = request.getfixturevalue(flavour)
    name = TableName(database(server), "t")
    create_table(server, name, "integer")
    start = end_of(server)
    with written(server, name, "integer", seed=seed) as writers:
        assert poll_until(lambda: all(writer.commits > 5 for writer in writers), 60)
        snapshot = TableSnapshot(source_of(server), name, SnapshotOptions(connections=2, chunk=ChunkSize(60)))
        chunks = list(snapshot)
        before = sum(writer.commits for writer in writers)
        assert poll_until(lambda: sum(writer.commits for writer in writers) > before + 20, 60)
    assert len(chunks) > 3  # ten, or fewer where the server estimates a range to have fewer rows
    end = end_of(server)
    assert _apply(chunks, _changes(server, name, start, end)) == dict(select_rows(server, name))


def _apply(chunks: list[ChunkRows], changes: list[dict[str, Any]]) -> dict[int, str]:
    """Return the table that the chunks and the changes after them make."""
    table = {
        key: text
        for rows in chunks
        for batch in rows.batches
        for key, text in zip(batch.column("id").to_pylist(), batch.column("name").to_pylist(), strict=True)
    }
    limits = [int(rows.chunk.until[0]) for rows in chunks if rows.chunk.until is not None]
    for change in changes:
        mark = chunks[bisect_left(limits, change["id"])].watermark
        assert mark is not None
        position = Position(change["_file"], change["_offset"])
        if position < mark.low:
            continue
        is_strict = position >= mark.high
        key, text, kind = change["id"], change["name"], change["_change_type"]
        if kind in {"delete", "update_preimage"}:
            if is_strict:
                assert table.get(key) == text, f"{kind} at {position} finds {table.get(key)!r} instead of {change}"
            table.pop(key, None)
        else:
            if is_strict:
                assert key not in table, f"{kind} at {position} finds {table.get(key)!r}: {change}"
            table[key] = text
    return table


def _changes(server: DatabaseServer, name: TableName, start: Position, end: Position) -> list[dict[str, Any]]:
    """Return the changes between two positions, those of XA transactions where they are committed."""
    instance = instance_of(server, start=f"{start.file}:{start.offset}")
    instance.start()
    try:
        assert poll_until(lambda: instance.store.latest >= end, 60)
        (schema,) = instance.describe_tables([name])
        fields = arrow_fields_of_table(schema)
        blocks = instance.read(instance.store.first, instance.store.latest)
        return [row for block in blocks for batch in decode_changes(block, name, fields) for row in batch.to_pylist()]
    finally:
        instance.stop()
