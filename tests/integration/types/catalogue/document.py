"""JSON: every scalar, every width of an offset, texts of every length, and the values only SQL can put in."""

import json

from tests.integration.types.column import Column, Kind, Table

_SCALARS = (
    "null", "true", "false", "0", "1", "-1", "32767", "-32768", "32768", "-32769", "65535", "65536", "2147483647",
    "-2147483648", "2147483648", "-2147483649", "4294967296", "9223372036854775807", "-9223372036854775808",
    "9223372036854775808", "18446744073709551615", "18446744073709551616", "1.5", "-0.0", "0.1", "1e10", "1e15", "1e16",
    "1e-5", "1e100", "1.7976931348623157e308", "2.2250738585072014e-308", "123456789012345680", "3.0", "1e21", "1e22",
    '""', '"a"', "[]", "{}",
)  # fmt: skip
_NESTED = (
    '[1, -2, 3.5, "x", null, true, false, [], {}]',
    '{"b": 1, "a": 2, "aa": 3, "": 4, "ä": 5, "😀": 6, "B": [1, {"c": [2, {"d": []}]}]}',
    r'{"quote": "\\"", "slash": "\\\\ /", "control": "\\u0000\\u0001\\u001f\\b\\f\\n\\r\\t\\u007f"}',
    r'{"text": "ünï 漢字 😀 \\u00e9 \\ud83d\\ude00 \\u2028"}',
    '[{"id": 1}, {"id": 2}, [[[[[[[[[[1]]]]]]]]]]]',
)

_MANY_KEYS = json.dumps({f"key{i}": i * 7 for i in range(2000)})


def documents() -> Table:
    texts = [f"'{text}'" for text in (*_SCALARS, *_NESTED)]
    texts += [
        *(f"JSON_QUOTE(REPEAT('é', {size}))" for size in (63, 64, 127, 128, 8191, 8192, 40000)),
        f"'[{', '.join(map(str, range(70_000, 73_000)))}]'",
        f"'[{', '.join(map(str, range(30_000)))}]'",  # past 64 KB: the large format
        "JSON_OBJECT(REPEAT('k', 300), REPEAT('v', 70000), 'after', 1)",
        f"'{_MANY_KEYS}'",
        f"'{'[' * 90}{']' * 90}'",
    ]
    typed = (
        "CAST(CAST('2024-02-29' AS DATE) AS JSON)",
        "CAST(CAST('2024-02-29 12:34:56.123456' AS DATETIME(6)) AS JSON)",
        "CAST(CAST('2024-02-29 12:34:56' AS DATETIME) AS JSON)",
        "CAST(CAST('-838:59:59' AS TIME) AS JSON)",
        "CAST(CAST('12:34:56.000001' AS TIME(6)) AS JSON)",
        "CAST(CAST('123.4500' AS DECIMAL(20,4)) AS JSON)",
        f"CAST(CAST('-{'9' * 35}.{'9' * 30}' AS DECIMAL(65,30)) AS JSON)",
        "CAST(CAST('0.000' AS DECIMAL(10,3)) AS JSON)",
        "CAST(x'00ff0102' AS JSON)",
        "JSON_ARRAY(b'101', x'cafe', CURDATE() - CURDATE(), 1.10, 1.0e0)",
        "CAST(ST_GeomFromText('POINT(1 2)') AS JSON)",
        "JSON_OBJECT('d', CAST('2024-01-01' AS DATE), 'n', 12.30, 'b', TRUE, 't', CAST('01:02:03' AS TIME))",
        "CAST(CAST(18446744073709551615 AS UNSIGNED) AS JSON)",
    )
    columns = [
        Column("text", Kind.JSON, "JSON", tuple(texts)),
        Column("typed", Kind.JSON, "JSON", typed),
        Column("between", Kind.TEXT, "TEXT CHARACTER SET utf16", ("'漢'",), charset="utf16"),
        Column("required", Kind.JSON, "JSON NOT NULL", ("'{\"a\": [1, 2]}'", "'7'")),
        Column("after", Kind.TEXT, "VARCHAR(9) CHARACTER SET latin1", ("'é'",), charset="latin1"),
    ]
    return Table("documents", columns)


def text_documents() -> Table:
    """To MariaDB it is a LONGTEXT that must parse; the text stays as it was written."""
    texts = ('\'{"b":  1 , "a":[ ]}\'', "'[]'", "'\"ünï 😀\"'", "'1e10'", "CONCAT('\"', REPEAT('x', 70000), '\"')")
    return Table("documents", [Column("text", Kind.TEXT, "JSON", texts, charset="utf8mb4")])


def patched() -> Table:
    """Updates that a server may log as differences; a document that was changed in place keeps holes."""
    wide = json.dumps({"a": "a" * 40, "fill": "f" * 70_000, "b": [1, 2, 3]})
    documents = (
        """'{"a": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "b": [1, 2, 3], "c": {"d": "xxxxxxxxxx", "e": null}, "ä k": 1}'""",
        """'[1, [2, 3], {"a": "yyyyyyyyyyyyyyyyyyyyyyyyyyyy"}, "zzzzzzzzzz"]'""",
        f"'{wide}'",
        """'"one text"'""",
    )
    columns = [
        Column("j", Kind.JSON, "JSON", documents),
        Column("n", Kind.INTEGER, "INT", ("1", "2"), 32),
        Column("k", Kind.JSON, "JSON", documents[1:]),
    ]
    changes = (
        "JSON_SET(j, '$.a', 'bb')",
        "JSON_REPLACE(j, '$.b[1]', 7, '$.c.d', 'short')",
        "JSON_REMOVE(j, '$.c.e')",
        "JSON_SET(j, '$.new', 1.5, '$.\"ä k\"', 'é😀')",
        "JSON_SET(j, '$[0]', CAST('2024-01-01' AS DATE), '$[1][5]', 12.30)",
        "JSON_REMOVE(j, '$[0]')",
        "JSON_REMOVE(j, '$.b[0]', '$.b[0]')",
        "JSON_SET(j, '$.c', CAST('{\"k\": [1, {\"z\": null}]}' AS JSON))",
        "JSON_SET(j, '$.nothing.there', 1)",
        "JSON_SET(j, '$', 1)",
        "JSON_OBJECT('whole', REPEAT('w', 300))",
        "JSON_REPLACE(j, '$.whole', REPEAT('v', 280))",
    )
    both = (
        "k = JSON_SET(k, '$.a', 'b', '$[2].a', 'b'), n = n + 1, j = JSON_REPLACE(j, '$.whole', 1),",
        "k = NULL, j = JSON_SET(j, '$.more', TRUE),",
    )
    return Table("patched", columns, assignments=[*(f"j = {change}," for change in changes), *both])
