"""Table maps whose metadata is removed and written again from the catalogue: as the server wrote them."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from penstock.binlog.events.block import table_name
from penstock.binlog.events.file import LogFile
from penstock.binlog.events.map_field import LABELLED, MapField
from penstock.binlog.events.table_map import fields_of, parse_table_map
from penstock.errors import SchemaError
from penstock.model import Column, TableSchema
from penstock.schema.complete import complete_table_map, find_difference
from penstock.schema.live_catalogue import read_catalogue
from penstock.schema.shape import TableDefinition
from penstock.testing import DatabaseServer
from tests.integration.types.setting import Setting
from tests.integration.types.workload import Recorder
from tests.twins.table_map_fields import without_fields

_KEYS = """
CREATE TABLE {db}.k1 (a INT UNSIGNED, b INT NOT NULL, c INT NOT NULL, UNIQUE (a), UNIQUE (b, c));
CREATE TABLE {db}.k2 (a VARCHAR(100) CHARACTER SET latin1, b TEXT, d YEAR, PRIMARY KEY (a(7), b(9)));
CREATE TABLE {db}.k3 (a VARCHAR(100) NOT NULL, UNIQUE (a(7)));
CREATE TABLE {db}.k4 (`ä b` ENUM('ü', 'x?') CHARACTER SET latin1, `s` SET('1', '2'), g POINT, x BIGINT UNSIGNED);
CREATE TABLE {db}.k5 (a INT NOT NULL, b INT, KEY (b));
"""


def bodies_of(log: LogFile, database: str) -> Mapping[bytes, str]:
    return {
        body: block.server_version
        for block in log
        for body in block.tables.values()
        if table_name(body).schema == database
    }


def catalogue_of(server: DatabaseServer, database: str) -> Callable[[TableSchema], TableDefinition]:
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        catalogue = read_catalogue(cursor, [database])

    def find(table: TableSchema) -> TableDefinition:
        definition = catalogue.find(table.name)
        assert definition is not None
        return definition

    return find


def _as_server(ours: Column, server: Column) -> Column:
    """Early 8.0 has labels without their charset, and none where they are no plain text. No catalogue shows all."""
    if server.type in LABELLED and not server.charset:
        ours = replace(ours, charset="", labels=ours.labels if server.labels else ())
    is_shown = all(ord(char) < 1 << 16 for label in server.labels for char in label)
    return ours if is_shown else replace(ours, labels=server.labels)


@pytest.mark.parametrize("name", ["mariadb", "mariadb11", "mysql80", "mysql9"])
def test_completed_is_what_a_server_with_full_metadata_sends(
    name: str, request: pytest.FixtureRequest, recorder_of: Callable[[str], Recorder]
) -> None:
    server: DatabaseServer = request.getfixturevalue(name)
    log = recorder_of(name).record(Setting(metadata="FULL"))
    find = catalogue_of(server, log.database)
    bodies = bodies_of(LogFile(log.path), log.database)
    assert len(bodies) >= len(log.images)
    for body, version in bodies.items():
        logged = parse_table_map(body, version)
        assert find_difference(logged, find(logged).schema) == ""
        fields = sorted(fields_of(body))
        for kept in ((), (MapField.SIGNEDNESS,), (MapField.SIGNEDNESS, *_charsets(fields)), tuple(fields)):
            stripped = without_fields(body, {*fields} - {*kept})
            completed = parse_table_map(complete_table_map(stripped, find(logged), version), version)
            columns = [_as_server(*pair) for pair in zip(completed.columns, logged.columns, strict=True)]
            for ours, theirs in zip(columns, logged.columns, strict=True):
                assert ours == theirs, f"{logged.name} with {kept}"
            assert replace(completed, columns=logged.columns) == logged


def _charsets(fields: list[int]) -> list[int]:
    return [field for field in fields if field in (MapField.DEFAULT_CHARSET, MapField.COLUMN_CHARSET)]


@pytest.mark.parametrize("name", ["mariadb", "mariadb11", "mysql9"])
def test_keys_and_names(name: str, request: pytest.FixtureRequest, database: Callable[[DatabaseServer], str]) -> None:
    server: DatabaseServer = request.getfixturevalue(name)
    made = database(server)
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@global.binlog_row_metadata")
        before = (cursor.fetchone() or ("",))[0]
        cursor.execute("SET GLOBAL binlog_row_metadata = 'FULL'")
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOG STATUS" if name == "mysql9" else "SHOW MASTER STATUS")
        file = (cursor.fetchone() or ("",))[0]
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        for statement in filter(str.strip, _KEYS.format(db=made).split(";")):
            cursor.execute(statement)
        cursor.execute("SET sql_mode = ''")
        for table in ("k1", "k2", "k3", "k4", "k5"):
            cursor.execute(f"INSERT INTO {made}.{table} () VALUES ()")
        cursor.execute(f"SET GLOBAL binlog_row_metadata = '{before}'")
    find = catalogue_of(server, made)
    bodies = bodies_of(LogFile(server.data / file), made)
    assert len(bodies) == 5
    for body, version in bodies.items():
        logged = parse_table_map(body, version)
        stripped = without_fields(body, set(range(14)))
        assert parse_table_map(complete_table_map(stripped, find(logged), version), version) == logged


@pytest.mark.parametrize("name", ["mysql57", "mysql9"])
def test_another_version_of_the_table_is_told(
    name: str, request: pytest.FixtureRequest, recorder_of: Callable[[str], Recorder]
) -> None:
    server: DatabaseServer = request.getfixturevalue(name)
    log = recorder_of(name).record(Setting(metadata="" if name == "mysql57" else "MINIMAL"))
    find = catalogue_of(server, log.database)
    for body, version in bodies_of(LogFile(log.path), log.database).items():
        logged = parse_table_map(body, version)
        table = find(logged)
        complete = parse_table_map(complete_table_map(body, table, version), version)
        assert [column.name for column in complete.columns] == [field.name for field in table.fields]
        first, *rest = table.fields
        for wrong in ((*rest,), (replace(first, is_nullable=not first.is_nullable), *rest)):
            with pytest.raises(SchemaError, match=f"table {logged.name} is not what the schema history says"):
                complete_table_map(body, replace(table, fields=wrong), version)
