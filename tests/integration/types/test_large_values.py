"""Values of 16 MB, the most that a MEDIUMBLOB holds and what a packet can carry."""

from collections.abc import Callable, Iterator
from hashlib import sha256

import pytest

from penstock.testing import DatabaseServer
from tests.integration.types.decoding import decoded
from tests.integration.types.setting import FACTS
from tests.support.capture import execute

_SIZE = (1 << 24) - 1
# So large a value needs more than a tenth of InnoDB's log; MyISAM has none.
_TABLE = "(id INT PRIMARY KEY, m MEDIUMBLOB, l LONGBLOB, t LONGTEXT) ENGINE=MyISAM DEFAULT CHARSET=utf8mb4"
_ROWS = (
    f"(1, REPEAT(x'00ff', {_SIZE // 2}), REPEAT('0123456789abcdef', {(_SIZE + 1) // 16}), NULL)",
    f"(2, '', CONCAT(REPEAT('a', {_SIZE + 1}), 'b'), REPEAT('漢😀z', {_SIZE // 8}))",
    "(3, NULL, '', '')",
)


@pytest.fixture(params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in FACTS])
def server(request: pytest.FixtureRequest) -> Iterator[DatabaseServer]:
    server: DatabaseServer = request.getfixturevalue(request.param)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.max_allowed_packet")
        (before,) = cursor.fetchone() or (0,)
        cursor.execute(f"SET GLOBAL max_allowed_packet = {1 << 26}")
        yield server
        cursor.execute(f"SET GLOBAL max_allowed_packet = {before}")


def test_values_of_16_megabytes(server: DatabaseServer, database: Callable[[DatabaseServer], str]) -> None:
    name = database(server)
    with server.connect(database=name, charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE large {_TABLE}")
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        file = cursor.fetchall()[-1][0]
        cursor.execute(f"INSERT INTO large VALUES {', '.join(_ROWS)}")
        cursor.execute("SELECT id, SHA2(m, 256), SHA2(l, 256), SHA2(t, 256) FROM large ORDER BY id")
        expected = cursor.fetchall()
    execute(server, "FLUSH BINARY LOGS")
    images = decoded(server.data / file, name, ["large"])["large"]
    assert images.error is None
    assert len(images.images) == len(_ROWS)
    for image, (key, *digests) in zip(images.images, expected, strict=True):
        assert image.values[0] == key
        assert [_digest(image.values[i]) for i in (1, 2, 3)] == digests


def _digest(value: str | bytes | None) -> str | None:
    if value is None:
        return None
    return sha256(value.encode() if isinstance(value, str) else value).hexdigest()
