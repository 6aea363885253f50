"""Tables and events at the edge of what the servers allow."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from penstock.testing import DatabaseServer
from tests.integration.types.catalogue import unusual
from tests.integration.types.column import Table
from tests.integration.types.comparison import differences, tool_differences
from tests.integration.types.decoding import decoded
from tests.integration.types.setting import FACTS, Setting
from tests.integration.types.tool import tool_images
from tests.integration.types.workload import Log, Recorder
from tests.support.capture import execute

NewDatabase = Callable[[DatabaseServer], str]

servers = pytest.mark.parametrize("name", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in FACTS])
# Columns; labels, and how much longer they are made. MariaDB and MySQL 5.7 have 64 KB for all that a table is.
_LIMITS = {
    "mariadb": (2000, 2000, 0),
    "mariadb11": (2000, 2000, 0),
    "mysql57": (2000, 2000, 0),
    "mysql80": (4000, 2000, 40),
    "mysql9": (4000, 2000, 40),
}


@servers
def test_tables_at_the_limits(
    name: str,
    request: pytest.FixtureRequest,
    database: NewDatabase,
    binlog_tool_of: Callable[[str], list[str]],
) -> None:
    columns, labels, padding = _LIMITS[name]
    tables = [
        unusual.with_many_columns(columns),
        unusual.with_many_labels(labels, padding),
        unusual.with_unusual_names(),
        unusual.with_many_nulls(),
    ]
    log = _recorded(request.getfixturevalue(name), name, database, tables)
    images = decoded(log.path, log.database, log.images)
    assert not list(differences(log, images))
    printed = tool_images(binlog_tool_of(name), log.path, log.database)
    assert not list(tool_differences(log, images, printed))


@pytest.mark.parametrize("name", ["mysql57", "mysql80"])
def test_row_events_of_version_1_by_mysql(name: str, request: pytest.FixtureRequest, database: NewDatabase) -> None:
    """Later servers do not write them, and their tool does not read them."""
    server: DatabaseServer = request.getfixturevalue(name)
    with _version_1(server):
        log = _recorded(server, name, database, [unusual.with_unusual_names(), unusual.with_many_nulls()])
    assert not list(differences(log, decoded(log.path, log.database, log.images)))


def _recorded(server: DatabaseServer, name: str, database: NewDatabase, tables: list[Table]) -> Log:
    recorder = Recorder(server, name, database(server), tables)
    log = recorder.record(Setting(metadata=FACTS[name].metadata[0]))
    recorder.close()
    return log


@contextmanager
def _version_1(server: DatabaseServer) -> Iterator[None]:
    execute(server, "SET GLOBAL log_bin_use_v1_row_events = ON")
    try:
        yield
    finally:
        execute(server, "SET GLOBAL log_bin_use_v1_row_events = OFF")
