"""Every column type of every server: a value of a snapshot is that of the stream, in type and text, and of a SELECT."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from penstock.binlog.values.column import DecodeOptions
from penstock.model import TableName, TableSchema
from penstock.schema.live import read_live_schema
from penstock.snapshot.table_snapshot import SnapshotOptions, TableSnapshot
from penstock.testing import DatabaseServer
from tests.integration.types.column import Table
from tests.integration.types.decoding import comparable, decoded
from tests.integration.types.expectation import expected_value, is_expected_type
from tests.integration.types.setting import Setting
from tests.integration.types.workload import Log, Recorder
from tests.support.capture import source_of

_SETTINGS = {
    "mariadb": Setting(),
    "mariadb11": Setting(),
    "mysql57": Setting(metadata=""),
    "mysql80": Setting(),
    "mysql9": Setting(),
}
_CHOICES = [DecodeOptions(), DecodeOptions(dates="text")]


@pytest.mark.parametrize("choice", _CHOICES, ids=["dates", "text"])
@pytest.mark.parametrize("name", _SETTINGS)
def test_a_value_of_a_snapshot_is_that_of_the_stream_and_of_a_select(
    name: str, choice: DecodeOptions, request: pytest.FixtureRequest, recorder_of: Callable[[str], Recorder]
) -> None:
    server: DatabaseServer = request.getfixturevalue(name)
    # 5.7 prints 1 where the others print 1.0, and so does the stream when it is told to.
    choice = replace(choice, json_doubles="1" if name == "mysql57" else "1.0")
    with recorder_of(name).filled(_SETTINGS[name]) as recorded, server.connect(charset="utf8mb4") as connection:
        log = replace(recorded, with_catalogue=True)

        @cache
        def catalogue(table: TableName) -> TableSchema:
            return read_live_schema(connection.cursor(), table)

        streamed = decoded(log.path, log.database, log.images, choice, catalogue)
        differences: list[str] = []
        for table in log.tables:
            assert streamed[table.name].error is None
            snapshot = _snapshot(server, log, table, choice, streamed[table.name].schema)
            differences += _differences(log, table, snapshot, streamed[table.name], choice)
    assert not differences, "\n".join(differences[:40])


def _snapshot(
    server: DatabaseServer, log: Log, table: Table, choice: DecodeOptions, schema: TableSchema | None
) -> pa.Table:
    """Read a table in the order of `id`."""
    options = SnapshotOptions(decode=choice)
    snapshot = TableSnapshot(source_of(server), TableName(log.database, table.name), options, schema=schema)
    batches = [batch for chunk in snapshot for batch in chunk.batches]
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches, snapshot.schema).sort_by("id")


def _differences(log: Log, table: Table, snapshot: pa.Table, streamed: Any, choice: DecodeOptions) -> list[str]:
    lines: list[str] = []
    expected_names = [column.name for column in table.all_columns]
    assert snapshot.column_names == expected_names
    columns = [comparable(snapshot.column(i).combine_chunks()) for i in range(snapshot.num_columns)]
    for i, column in enumerate(table.all_columns):
        kind = snapshot.schema.field(i).type
        if streamed.fields.field(i).type != kind:
            lines.append(
                f"{table.name}.{column.name}: {kind} in the snapshot, {streamed.fields.field(i).type} streamed"
            )
        if choice.dates == "null" and not is_expected_type(log, column, kind) and log.has_labels(column):
            lines.append(f"{table.name}.{column.name}: unexpected type {kind}")
        for row, image in enumerate(log.images[table.name]):
            value, other = columns[i][row], streamed.images[row].values.get(i)
            if i in streamed.images[row].values and value != other:
                lines.append(f"{table.name}.{column.name} row {row + 1}: {value!r} in the snapshot, {other!r} streamed")
            if choice.dates == "null" and log.has_labels(column):
                shown = expected_value(log, column, image.row[i])
                if value != shown:
                    lines.append(
                        f"{table.name}.{column.name} row {row + 1}: {value!r} in the snapshot, {shown!r} shown"
                    )
    return lines
