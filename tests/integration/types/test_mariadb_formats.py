"""What only MariaDB writes, and only when asked: temporal types of before 10.1, and zlib's own wrapping of columns."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.testing import DatabaseServer, MariaDB
from tests.capture import execute
from tests.integration.types.catalogue import moment, special
from tests.integration.types.comparison import differences, tool_differences
from tests.integration.types.decoding import decoded
from tests.integration.types.setting import Setting
from tests.integration.types.tool import tool_images
from tests.integration.types.workload import Recorder


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
    """Their values would be read at wrong places, so an error must come before any of them."""
    tables = moment.old_moments_with_fractions()
    with _global(mariadb, "mysql56_temporal_format", "OFF", "ON"):
        recorder = Recorder(mariadb, "mariadb", database(mariadb), tables)
        log = recorder.record(Setting())
        recorder.close()
    found = decoded(log.path, log.database, log.images)
    assert not [name for name, images in found.items() if images.error is None or images.images]


def test_columns_that_zlib_wraps_itself(
    mariadb: MariaDB, database: Callable[[DatabaseServer], str], binlog_tool_of: Callable[[str], list[str]]
) -> None:
    with _global(mariadb, "column_compression_zlib_wrap", "ON", "OFF"):
        recorder = Recorder(mariadb, "mariadb", database(mariadb), [special.compressed()])
        _assert_agreement(recorder, binlog_tool_of("mariadb"))


def _assert_agreement(recorder: Recorder, tool: list[str]) -> None:
    log = recorder.record(Setting())
    recorder.close()
    found = decoded(log.path, log.database, log.images)
    assert not list(differences(log, found))
    assert not list(tool_differences(log, found, tool_images(tool, log.path, log.database)))


@contextmanager
def _global(server: DatabaseServer, variable: str, value: str, after: str) -> Iterator[None]:
    execute(server, f"SET GLOBAL {variable} = {value}")
    try:
        yield
    finally:
        execute(server, f"SET GLOBAL {variable} = {after}")
