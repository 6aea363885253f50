"""Shapes of tables: NULL in each column, generated and invisible columns, other keys than one whole column, no key."""

from tests.integration.types.column import Column, Kind, Table

_PLAIN = (
    ("TINYINT", Kind.INTEGER, "7", 8),
    ("VARCHAR(20)", Kind.TEXT, "'text'", 0),
    ("DECIMAL(10,2)", Kind.DECIMAL, "-12.34", 10),
    ("BLOB", Kind.BYTES, "x'00ff'", 0),
    ("DATETIME(3)", Kind.DATETIME, "'2024-02-29 12:34:56.789'", 3),
    ("BIT(9)", Kind.BIT, "257", 9),
    ("ENUM('a','b')", Kind.ENUM, "'b'", 0),
    ("DOUBLE", Kind.DOUBLE, "0.25", 0),
    ("CHAR(3)", Kind.TEXT, "'c'", 0),
    ("TIME", Kind.TIME, "'-01:00:00'", 0),
    ("BIGINT", Kind.INTEGER, "-1", 64),
)


def nulls() -> Table:
    """Row i has a NULL in column i alone, row n + i a value there alone."""
    count = 3 * len(_PLAIN)
    columns: list[Column] = []
    for i in range(count):
        ddl, kind, value, size = _PLAIN[i % len(_PLAIN)]
        values = ["NULL" if row == i else value for row in range(count)]
        values += [value if row == i else "NULL" for row in range(count)]
        scale = 2 if kind is Kind.DECIMAL else 0
        charset = "utf8mb4" if kind in {Kind.TEXT, Kind.ENUM} else "binary"
        columns.append(Column(f"c{i}", kind, ddl, tuple(values), size, scale, charset=charset))
    return Table("nulls", columns)


def generated(*, has_invisible: bool) -> Table:
    columns = [
        Column("a", Kind.INTEGER, "INT", ("1", "-2", "3"), 32),
        Column("virtual_sum", Kind.INTEGER, "INT GENERATED ALWAYS AS (a + 1) VIRTUAL", size=32, generated=True),
        Column("b", Kind.TEXT, "VARCHAR(20)", ("'x'", "'y'", "'z'"), charset="utf8mb4"),
        Column(
            "stored_text",
            Kind.TEXT,
            "VARCHAR(40) GENERATED ALWAYS AS (CONCAT(b, '-', a)) STORED",
            generated=True,
            charset="utf8mb4",
        ),
        Column(
            "virtual_text",
            Kind.TEXT,
            "VARCHAR(40) GENERATED ALWAYS AS (CONCAT(a, '+', b)) VIRTUAL",
            generated=True,
            charset="utf8mb4",
        ),
        Column("c", Kind.BYTES, "BLOB", ("x'01'", "x'02'", "''")),
    ]
    if has_invisible:
        columns.insert(2, Column("hidden", Kind.INTEGER, "INT INVISIBLE", ("5", "6"), 32))
        columns.append(Column("hidden_last", Kind.TEXT, "VARCHAR(9) INVISIBLE", ("'h'",), charset="utf8mb4"))
    return Table("generated", columns, keys="PRIMARY KEY (id), KEY (virtual_sum)")


def _keyed(name: str, keys: str) -> Table:
    columns = [
        Column("a", Kind.INTEGER, "INT NOT NULL", ("1", "2", "3"), 32),
        Column("t", Kind.TEXT, "TEXT NOT NULL", ("'one'", "'two'", "'three'"), charset="utf8mb4"),
        Column("b", Kind.BYTES, "BLOB", ("x'01'", "x'02'", "x'03'")),
        Column("v", Kind.TEXT, "VARCHAR(10)", ("'x'", "'y'", "'z'"), charset="utf8mb4"),
    ]
    return Table(name, columns, keys=keys)


def keyed() -> list[Table]:
    """What an image carries of a row depends on the key."""
    return [
        _keyed("key_of_two", "PRIMARY KEY (a, id)"),
        _keyed("key_with_prefix", "PRIMARY KEY (t(10), id)"),
        _keyed("key_unique", "UNIQUE KEY (id)"),
        _keyed("key_none", ""),
    ]


def indexed_expressions() -> Table:
    """The server adds hidden columns for these indexes; they are not part of the table in the log."""
    columns = [
        Column("a", Kind.INTEGER, "INT", ("1", "2"), 32),
        Column("j", Kind.JSON, "JSON", ("'[1, 2]'", "'[3]'")),
        Column("z", Kind.TEXT, "VARCHAR(10)", ("'x'", "'y'"), charset="utf8mb4"),
    ]
    keys = "PRIMARY KEY (id), KEY ((a + 1)), KEY ((CAST(j AS UNSIGNED ARRAY)))"
    return Table("indexed_expressions", columns, keys=keys)
