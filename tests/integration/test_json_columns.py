"""JSON columns of real servers: the bytes in their log, rendered, against the text they print of the same rows."""

import json
import random
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest

from penstock.binlog.values.json_text import render_json
from penstock.testing import DatabaseServer
from tests.support.json_support import new_file, printed, random_double, random_value
from tests.twins.json_rows import JSON, LONG, images

NewDatabase = Callable[[DatabaseServer], str]


def render(server: DatabaseServer, values: Sequence[bytes | None]) -> list[bytes | None]:
    lengths = np.array([-1 if value is None else len(value) for value in values], np.int64)
    offsets = np.cumsum(np.maximum(lengths, 0)) - np.maximum(lengths, 0)
    data = np.frombuffer(b"".join(value or b"" for value in values), np.uint8)
    bounds, text = render_json(data, offsets, lengths, point_zero=not server.version.startswith("5.7"))
    texts = [text[a:b].tobytes() for a, b in pairwise(bounds)]
    return [None if value is None else document for value, document in zip(values, texts, strict=True)]


_CONTROLS = "".join(f"\\u{c:04x}" for c in range(32))
_JSON_TEXTS = [
    "null", "true", "false", "[]", "{}", '""', "0", "-0", "-0.0", "0.0", "1.0", "1e2", "[[],{},[[]],{\"\":{}}]",
    '{"b":1,"a":2,"aa":3,"":4,"\\u00e9":5,"Z":6,"zz":7,"\\ud83d\\ude00":8}',
    f'"{_CONTROLS}\\"\\\\\\/\x7f\\u0080\\u2028\\uffff\\ud83d\\ude00 é字"', f'{{"{_CONTROLS}\\"\\\\":[1]}}',
    "[127,128,255,256,32767,32768,65535,65536,2147483647,2147483648,4294967295,4294967296]",
    "[-1,-128,-129,-32768,-32769,-2147483648,-2147483649,-9223372036854775808]",
    "[9223372036854775807,9223372036854775808,18446744073709551615,18446744073709551616,-9223372036854775809]",
    "[1e14,1e15,1e16,1e17,123456789012345678,1234567890123456.7,1e-5,1e-14,1e-15,1e-16,1.2345678901234567e-15]",
    "[1e308,1.7976931348623157e308,5e-324,2.2250738585072014e-308,1e-320,0.1,1e21,9007199254740993.0,1e22,1e23]",
    "[" * 99 + "]" * 99, "[" * 100 + "]" * 100, "[" * 99 + '"x"' + "]" * 99, '{"a":' * 99 + "[]" + "}" * 99,
]  # fmt: skip

_EXPRESSIONS = [
    "JSON_ARRAY(1.10, -0.50, 0.0000000000, -0.0, 00.1, 100., 12345678901234567890123456789012345.123456789)",
    "JSON_ARRAY(CAST(-0.001 AS DECIMAL(65,30)), CAST(1 AS DECIMAL(65,0)), CAST('-99.9' AS DECIMAL(3,1)), 1e0)",
    f"CAST({'9' * 65} AS JSON)", f"CAST(-{'9' * 35}.{'9' * 30} AS JSON)",
    "CAST(0.000000000000000000000000000001 AS JSON)",
    "JSON_ARRAY(CAST('2015-01-15' AS DATE), CAST('0000-00-00' AS DATE), CAST('9999-12-31' AS DATE))",
    "JSON_ARRAY(CAST('2015-01-15 23:24:25.12' AS DATETIME(6)), TIMESTAMP('2015-01-15'))",
    "CAST(TIMESTAMP('1000-01-01') AS JSON)",
    "JSON_ARRAY(CAST('-838:59:59' AS TIME), CAST('00:00:00.5' AS TIME(6)), CAST('-00:00:00.000001' AS TIME(6)))",
    "JSON_ARRAY(CAST('838:59:59' AS TIME), CAST('100:00:00' AS TIME), FROM_UNIXTIME(1), CAST('9:8:7' AS TIME))",
    "CAST(CAST('2015-01-15 23:24:25.12' AS DATETIME(3)) AS JSON)", "CAST(x'00ff10' AS JSON)", "CAST(b'101' AS JSON)",
    "JSON_ARRAY(x'', x'00', x'0001', x'000102', b'1', CAST('abc' AS BINARY(5)), POINT(1.5, -2), 1 = 1, NULL)",
    "JSON_OBJECT('a', REPEAT(x'00ff10', 19), 'b', REPEAT(x'00ff10', 38), 'd', REPEAT(x'ff', 999))",
    "JSON_ARRAY(b1, b64, tb, bl, mb, lb, vb, bi, y, e, s, f, d, dt, ts, ti, da, de, c, bu, ty, u)",
    "JSON_ARRAY(g, CAST(g AS BINARY))",
    "JSON_OBJECT('k', REPEAT('x', 126), 'l', REPEAT('x', 127), 'm', REPEAT('x', 128), 'n', REPEAT('é', 8192))",
    "JSON_ARRAY(REPEAT('x', 65520), 70000, -70000)",
    "JSON_ARRAY(REPEAT('x', 65535), 70000, -70000, 4000000000, 1, 1e0)",
    "JSON_ARRAY(JSON_ARRAY(REPEAT('x', 70000)), JSON_ARRAY(1, 70000, 'x'), JSON_OBJECT('a', 70000))",
    "CAST(CONCAT('[', REPEAT('70000,', 20000), '1]') AS JSON)", "CAST(CONCAT('[', REPEAT('7,', 30000), '1]') AS JSON)",
    "CAST(CONCAT('{\"a\":[', REPEAT('\"y\",', 12000), '1],\"b\":{\"c\":-5,\"d\":1.5}}') AS JSON)",
    "JSON_ARRAY(REPEAT('ab', 600000), CAST(REPEAT('ab', 20000) AS BINARY))",
]  # fmt: skip

_TYPED = """CREATE TABLE typed (b1 BIT(1), b64 BIT(64), tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB,
vb VARBINARY(10), bi BINARY(3), g GEOMETRY, y YEAR, e ENUM('x','y'), s SET('p','q'), f FLOAT, d DOUBLE, dt DATETIME(3),
ts TIMESTAMP(2), ti TIME(1), da DATE, de DECIMAL(20,5), c CHAR(3), bu BIGINT UNSIGNED, ty TINYINT, u INT UNSIGNED)"""
_TYPED_ROW = """INSERT INTO typed VALUES (1, b'1111111100000000', 'a', 'b', 'c', 'd', 'e', 'f', POINT(1, 2), 2020, 'y',
'p,q', 1.1, 1.1, '2020-01-02 03:04:05.678', '2020-01-02 03:04:05.678', '-12:13:14.1', '2020-02-03', 12345.67, 'abc',
18446744073709551615, -128, 4294967295)"""


@pytest.mark.parametrize("release", ["mysql57", "mysql80", "mysql9"])
def test_documents(release: str, request: pytest.FixtureRequest, database: NewDatabase) -> None:
    server: DatabaseServer = request.getfixturevalue(release)
    chance = random.Random(5)
    file = new_file(server)
    with server.connect(charset="utf8mb4", database=database(server)) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        cursor.execute(_TYPED)
        cursor.execute(_TYPED_ROW)
        cursor.execute("CREATE TABLE docs (id INT AUTO_INCREMENT PRIMARY KEY, doc JSON)")
        texts = [*_JSON_TEXTS, None]
        texts += [json.dumps(random_value(chance), ensure_ascii=chance.random() < 0.5) for _ in range(400)]
        texts += [json.dumps([random_double(chance) for _ in range(400)]) for _ in range(20)]
        texts.append(json.dumps({f"key {i}": random_value(chance) for i in range(3000)}))
        for text in texts:
            cursor.execute("INSERT INTO docs (doc) VALUES (%s)", (text,))
        expressions = _EXPRESSIONS + ["JSON_ARRAY(_utf8mb4 x'61eda08062edbfbf')"] * (release == "mysql57")
        for expression in expressions:
            cursor.execute(f"INSERT INTO docs (doc) SELECT {expression} FROM typed")
        cursor.execute("CREATE TABLE must (id INT PRIMARY KEY, doc JSON NOT NULL)")
        cursor.execute("INSERT IGNORE INTO must VALUES (1, NULL), (2, '{}')")
        cursor.execute("INSERT IGNORE INTO must (id) VALUES (3)")
        for table in ("docs", "must"):
            documents = list(images(file, table, (LONG, JSON)))
            cursor.execute(f"SELECT id, HEX(CAST(doc AS CHAR CHARACTER SET utf8mb4)) FROM {table} ORDER BY id")
            rows = cursor.fetchall()
            assert [image.number(0) for image in documents] == [number for number, _ in rows]
            shown = render(server, [None if image.fields[1].size < 0 else image.raw(1) for image in documents])
            for text, (_, expected) in zip(shown, rows, strict=True):
                assert text == printed(server, None if expected is None else bytes.fromhex(expected))
    assert len(shown) == 3
    assert shown == [b"null", b"{}", b"null"]
