"""Logs that leave something out, read with what the server's catalogue says: as good as a log that does not."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from penstock.model import TableName, TableSchema
from penstock.schema.live import read_live_schema
from penstock.testing import DatabaseServer
from tests.integration.types.comparison import differences
from tests.integration.types.decoding import decoded
from tests.integration.types.setting import Setting
from tests.integration.types.workload import Recorder

_CASES = [
    ("mariadb", "NO_LOG"),
    ("mariadb", "FULL"),
    ("mariadb11", "NO_LOG"),
    ("mysql57", ""),
    ("mysql80", "FULL"),
    ("mysql9", "MINIMAL"),
]


@pytest.mark.parametrize(("name", "metadata"), _CASES)
def test_what_the_log_leaves_out_is_in_the_catalogue(
    name: str, metadata: str, request: pytest.FixtureRequest, recorder_of: Callable[[str], Recorder]
) -> None:
    server: DatabaseServer = request.getfixturevalue(name)
    log = replace(recorder_of(name).record(Setting(metadata=metadata)), with_catalogue=True)
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:

        @cache
        def catalogue(table: TableName) -> TableSchema:
            return read_live_schema(cursor, table)

        images = decoded(log.path, log.database, log.images, catalogue=catalogue)
    assert not list(differences(log, images))
