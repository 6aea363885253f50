"""What only MariaDB writes, and only when asked: temporal types of before 10.1, and zlib's own wrapping of columns."""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from penstock.inspect.read import read_binlog
from penstock.model import TableName
from penstock.schema.live import read_live_schema
from penstock.schema.live_catalogue import read_catalogue
from penstock.testing import DatabaseServer, MariaDB
from tests.integration.types.catalogue import moment, special
from tests.integration.types.comparison import differences, tool_differences
from tests.integration.types.decoding import decoded
from tests.integration.types.setting import Setting
from tests.integration.types.tool import tool_images
from tests.integration.types.workload import Recorder
from tests.support.capture import execute
from tests.support.json_support import new_file


def test_temporal_types_of_before_mariadb_10_1(
    mariadb: MariaDB, database: Callable[[DatabaseServer], str], binlog_tool_of: Callable[[str], list[str]]
) -> None:
    """Without fractions: with them, the log does not say how many bytes a value has."""
    with _global(mariadb, "mysql56_temporal_format", "OFF", "ON"):
        recorder = Recorder(mariadb, "mariadb", database(mariadb), [moment.old_moments()])
        _assert_agreement(recorder, binlog_tool_of("mariadb"))


def test_temporal_types_of_before_mariadb_10_1_with_fractions_are_refused(
    mariadb: MariaDB, database: Callable[[DatabaseServer], str]
) -> None:
    """Their values would be read at wrong positions, so an error must come before any of them."""
    tables = moment.old_moments_with_fractions()
    with _global(mariadb, "mysql56_temporal_format", "OFF", "ON"):
        recorder = Recorder(mariadb, "mariadb", database(mariadb), tables)
        log = recorder.record(Setting())
        recorder.close()
    images_by_table = decoded(log.path, log.database, log.images)
    assert not [name for name, images in images_by_table.items() if images.error is None or images.images]


def test_columns_that_zlib_wraps_itself(
    mariadb: MariaDB, database: Callable[[DatabaseServer], str], binlog_tool_of: Callable[[str], list[str]]
) -> None:
    with _global(mariadb, "column_compression_zlib_wrap", "ON", "OFF"):
        recorder = Recorder(mariadb, "mariadb", database(mariadb), [special.compressed()])
        _assert_agreement(recorder, binlog_tool_of("mariadb"))


def test_vectors(mariadb11: MariaDB, database: Callable[[DatabaseServer], str]) -> None:
    """In the log they are VARBINARY; who knows the declared type sees numbers."""
    name = TableName(database(mariadb11), "vectors")
    file = new_file(mariadb11)
    long = [i / 8 for i in range(400)]
    execute(
        mariadb11,
        f"CREATE TABLE {name} (id INT PRIMARY KEY, v VECTOR(3), l VECTOR(400) NOT NULL, t TEXT CHARACTER SET utf16)",
        f"INSERT INTO {name} VALUES (1, VEC_FromText('[1, -0.5, 1024.25]'), VEC_FromText('{long}'), '漢'),"
        f" (2, NULL, VEC_FromText('{long[::-1]}'), 'b')",
        f"UPDATE {name} SET v = VEC_FromText('[0, 0, 7]') WHERE id = 2",
    )
    with mariadb11.connect() as connection, connection.cursor() as cursor:
        known = read_live_schema(cursor, name)
        catalogue = read_catalogue(cursor)
    assert known.columns == tuple(replace(column, dimension=0) for column in catalogue.schema_of(name).columns)
    expected = [
        {"id": 1, "v": [1, -0.5, 1024.25], "l": long, "t": "漢"},
        {"id": 2, "v": None, "l": long[::-1], "t": "b"},
        {"id": 2, "v": None, "l": long[::-1], "t": "b"},
        {"id": 2, "v": [0, 0, 7], "l": long[::-1], "t": "b"},
    ]
    columns = ["id", "v", "l", "t"]
    assert read_binlog(file, str(name), known=known, columns=columns).select(columns).to_pylist() == expected
    raw = read_binlog(file, str(name)).column("v").to_pylist()
    assert raw == [row["v"] and struct.pack("<3f", *row["v"]) for row in expected]


def _assert_agreement(recorder: Recorder, tool: list[str]) -> None:
    log = recorder.record(Setting())
    recorder.close()
    images = decoded(log.path, log.database, log.images)
    assert not list(differences(log, images))
    assert not list(tool_differences(log, images, tool_images(tool, log.path, log.database)))


@contextmanager
def _global(server: DatabaseServer, variable: str, value: str, after: str) -> Iterator[None]:
    execute(server, f"SET GLOBAL {variable} = {value}")
    try:
        yield
    finally:
        execute(server, f"SET GLOBAL {variable} = {after}")
