"""`python -m tests.campaign.make_seeds [servers…]`: write the short logs of real servers in `seeds/` again.

All column types of each server, few rows, many kinds of events: the smaller a log, the more of its bytes matter.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.testing import DatabaseServer
from tests.campaign.logs import SEEDS
from tests.services import SERVICES
from tests.services.service import ServerService

_NULLS = "NULL"
_COMMON: dict[str, tuple[str, list[str]]] = {
    "num": (
        (
            "a TINYINT, b TINYINT UNSIGNED, c SMALLINT, d MEDIUMINT UNSIGNED, e INT, f BIGINT UNSIGNED,"
            " g FLOAT, h DOUBLE, i DECIMAL(10,2), j DECIMAL(65,30), k BIT(1), l BIT(40), m YEAR"
        ),
        [
            "-1, 255, -300, 16777215, 7, 18446744073709551615, 1.5, -2.25, -99.01, 1e20, b'1', 77, 2024",
            "1, 0, 300, 1, -7, 1, -1.5, 1e300, 12345678.90, -0.5, b'0', 1099511627775, 1901",
        ],
    ),
    "moment": (
        "a DATE, b TIME, c TIME(3), d DATETIME, e DATETIME(6), f TIMESTAMP NULL, g TIMESTAMP(2) NULL",
        [
            (
                "'2024-02-29', '-12:34:56', '838:59:58.999', '1000-01-01', '9999-12-31 23:59:59.999999', '1970-01-02',"
                " '2038-01-01 00:00:00.25'"
            ),
            "'0000-00-00', '00:00:00', '-00:00:00.001', '0000-00-00', '2024-00-01', '2024-05-05', '0000-00-00'",
        ],
    ),
    "words": (
        (
            "a CHAR(5), b VARCHAR(20) CHARACTER SET latin1, c VARCHAR(300), d TEXT, e TINYBLOB, f MEDIUMBLOB,"
            " g LONGTEXT CHARACTER SET gbk, h BINARY(4), i VARBINARY(9), j CHAR(100), k VARCHAR(9) CHARACTER SET utf16,"
            " l ENUM('red','blue','gr\u00fcn'), m SET('x','y','z'), n TINYTEXT CHARACTER SET sjis"
        ),
        [
            (
                "'ab', 'caf\u00e9', 'Z\u00fcrich', '\U0001f600 text', X'00FF', 'blob', '\u4e2d\u6587', 'b', X'0102',"
                " 'long char', 'u\u00e9', 'red', 'x,z', '\u30c6\u30b9\u30c8'"
            ),
            "'', '', '', '', '', '', '', '', '', '', '', 3, 0, ''",
        ],
    ),
    "shape": (
        "a POINT, b GEOMETRY",
        ["ST_GeomFromText('POINT(1 2)'), ST_GeomFromText('POLYGON((0 0,0 1,1 1,0 0))')"],
    ),
    "wide": (
        ", ".join(f"c{i} {'TINYINT' if i % 3 else 'VARCHAR(3)'}" for i in range(70)),
        [", ".join(str(i) if i % 4 else _NULLS for i in range(70))],
    ),
}
_DOCUMENT = """
'{"a": [1, -2, 70000, 5000000000, 18446744073709551615, 1.5, true, null, "text \u00fc"], "b": {"c": {}, "d": []}}',
CAST('"only text"' AS JSON)
"""
_TYPED = """
JSON_OBJECT('d', CAST('2024-02-29' AS DATE), 't', CAST('-12:00:00.5' AS TIME(1)), 'm', CAST('2024-01-01 12:00:00.000001'
AS DATETIME(6)), 'n', CAST(-12.345 AS DECIMAL(10,3)), 'b', CAST(X'00FF' AS CHAR CHARACTER SET binary)), JSON_ARRAY()
"""
_JSON = ("a JSON, b JSON", [_DOCUMENT, _TYPED])
_MARIADB = {
    "special": (
        "a UUID, b INET6, c INET4, d VARCHAR(99) COMPRESSED, e BLOB COMPRESSED, f JSON",
        [
            (
                "'123e4567-e89b-12d3-a456-426655440000', '2001:db8::1', '10.0.0.1', REPEAT('compressed ', 9),"
                " REPEAT('blob ', 30), '{\"a\": 1}'"
            ),
        ],
    ),
    "former": ("a TIME, b DATETIME, c TIMESTAMP NULL", ["'-12:34:56', '2024-02-29 12:00:00', '2024-02-29 12:00:00'"]),
}
_STATEMENTS = [
    "SET SESSION binlog_format = 'STATEMENT'",
    "CREATE TABLE counted (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(9)) ENGINE=InnoDB",
    "SET @word = 'w\u00f6rd'",
    "INSERT INTO counted (a, b) VALUES (RAND() * 10, @word)",
    "SET SESSION binlog_format = 'ROW'",
]


def main(names: Sequence[str]) -> int:
    SEEDS.mkdir(exist_ok=True)
    for name in names or ("mariadb", "mysql57", "mysql80", "mysql9"):
        service = SERVICES[name]
        assert isinstance(service, ServerService)
        with tempfile.TemporaryDirectory(prefix="penstock-seeds-") as folder:
            server = service.server(Path(folder), options={"character_set_server": "utf8mb4"})
            assert isinstance(server, DatabaseServer)
            server.start()
            try:
                for log, statements in _logs(name).items():
                    target = SEEDS / f"{log}.binlog"
                    shutil.copyfile(server.data / _record(server, log, statements), target)
                    print(f"{target.name:<24} {target.stat().st_size:>7} bytes, {server.version}", flush=True)
            finally:
                server.kill()
    return 0


def _record(server: DatabaseServer, log: str, statements: Sequence[str]) -> str:
    """Run the statements in a database of their own; gives the log file that holds them alone."""
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        file = str(cursor.fetchall()[-1][0])
        database = log.replace("-", "_")
        for statement in [f"CREATE DATABASE {database}", f"USE {database}", *statements]:
            cursor.execute(statement)
        cursor.execute("FLUSH BINARY LOGS")
    return file


def _logs(server: str) -> dict[str, list[str]]:
    """Name of each log of this server, and what it holds."""
    tables = dict(_COMMON)
    if server == "mariadb":
        tables |= _MARIADB
    else:
        tables["document"] = _JSON
    if server == "mysql9":
        tables["vectors"] = ("a VECTOR(3)", ["TO_VECTOR('[1,2,-3.5]')"])
    plain = [statement for name, (columns, rows) in tables.items() for statement in _changes(name, columns, rows)]
    logs = {server: [*plain, *_minimal(), *_STATEMENTS, *_xa(server)]}
    some = [statement for name in ("num", "words") for statement in _changes(name, *tables[name])]
    if server == "mariadb":
        compress = ["SET GLOBAL log_bin_compress = ON", "SET GLOBAL log_bin_compress_min_len = 10"]
        logs["mariadb-compressed"] = [*compress, *some, "SET GLOBAL log_bin_compress = OFF"]
    if server in ("mysql80", "mysql9"):
        partial = ["SET SESSION binlog_row_value_options = 'PARTIAL_JSON'"]
        logs[f"{server}-partial"] = [*partial, *_changes("document", *_JSON), *_partial()]
    if server == "mysql9":
        both = [*some, *_changes("document", *_JSON), *_partial(), "SET SESSION GTID_NEXT = 'AUTOMATIC:tag_a'"]
        both += ["DELETE FROM document", "SET SESSION GTID_NEXT = 'AUTOMATIC'"]
        logs["mysql9-compressed"] = ["SET SESSION binlog_transaction_compression = ON", *both]
        logs["mysql9-compressed"] += ["SET SESSION binlog_row_value_options = 'PARTIAL_JSON'", *_partial()]
    return logs


def _changes(table: str, columns: str, rows: Sequence[str]) -> Iterator[str]:
    """Insert, update and delete; one row is all NULL."""
    if table == "former":
        yield "SET GLOBAL mysql56_temporal_format = OFF"
    first = columns.split(maxsplit=1)[0]
    yield f"CREATE TABLE {table} (id INT PRIMARY KEY, {columns}) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
    if table == "former":
        yield "SET GLOBAL mysql56_temporal_format = ON"
    lines = [f"INSERT INTO {table} SELECT {number}, {row}" for number, row in enumerate(rows)]
    yield "BEGIN"
    yield from lines
    yield f"INSERT INTO {table} (id) VALUES (99)"
    yield "COMMIT"
    yield f"UPDATE {table} SET id = id + 1000, {first} = NULL WHERE id = 0"
    yield f"DELETE FROM {table} WHERE id >= 99"


def _partial() -> list[str]:
    return [
        (
            "INSERT INTO document VALUES"
            " (5, JSON_OBJECT('name', 'a text long enough to leave room', 'n', 1, 'l', JSON_ARRAY(1, 2, 3)), '[]')"
        ),
        "UPDATE document SET a = JSON_SET(a, '$.n', 2, '$.name', 'short') WHERE id = 5",
        "UPDATE document SET a = JSON_REMOVE(a, '$.l[1]'), b = JSON_SET(b, '$.x', 1) WHERE id = 5",
    ]


def _minimal() -> list[str]:
    return [
        "SET SESSION binlog_row_image = 'MINIMAL'",
        "INSERT INTO num (id, e) VALUES (50, 5)",
        "UPDATE num SET g = 2.5, i = 1 WHERE id = 50",
        "DELETE FROM num WHERE id = 50",
        "SET SESSION binlog_row_image = 'NOBLOB'",
        "UPDATE words SET a = 'xyz'",
        "SET SESSION binlog_row_image = 'FULL'",
    ]


def _xa(server: str) -> list[str]:
    """A prepared transaction, its statement shown, and a savepoint."""
    shown = [] if server == "mariadb" else ["SET SESSION binlog_rows_query_log_events = ON"]
    return [
        *shown,
        "XA START 'one'", "INSERT INTO shape (id) VALUES (7)", "XA END 'one'", "XA PREPARE 'one'", "XA COMMIT 'one'",
        "BEGIN", "INSERT INTO shape (id) VALUES (8)", "SAVEPOINT s", "DELETE FROM shape WHERE id = 7", "COMMIT",
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
