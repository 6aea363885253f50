"""TABLE_MAP bodies: what was written is what is parsed, per server; broken ones are refused in words."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.table_map import parse_table_map, table_name
from penstock.binlog.values.column import wire_size_of
from penstock.errors import BinlogError, SchemaError
from penstock.model import Column, TableName, TableSchema, WireType
from tests.twins.row import table_map
from tests.twins.strategy import broken, examples, tables

MARIADB, MYSQL, EARLY_MYSQL = "10.11.6-MariaDB-log", "8.4.0", "8.0.12"


def parsed(table: TableSchema, *, is_mariadb: bool = True, with_default_charset: bool = False) -> TableSchema:
    body = table_map(7, table, is_mariadb=is_mariadb, with_default_charset=with_default_charset)
    return parse_table_map(body, MARIADB if is_mariadb else MYSQL)


def as_known(table: TableSchema) -> TableSchema:
    """YEAR is unsigned to the servers."""
    columns = (replace(c, unsigned=True) if c.type is WireType.YEAR else c for c in table.columns)
    return replace(table, columns=tuple(columns))


@examples(80)
@given(tables(st.integers(1, 20)), st.booleans(), st.booleans())
def test_schema_comes_out_as_it_went_in(table: TableSchema, is_mariadb: bool, with_default: bool) -> None:
    assert parsed(table, is_mariadb=is_mariadb, with_default_charset=with_default) == as_known(table)


@examples(20)
@given(tables(st.just(7)), st.sampled_from((250, 251, 256, 300)))
def test_wide_tables(narrow: TableSchema, count: int) -> None:
    columns = (replace(narrow.columns[i % 7], name=f"c{i}") for i in range(count))
    table = replace(narrow, columns=tuple(columns))
    assert parsed(table) == as_known(table)


@pytest.mark.parametrize("is_mariadb", [True, False])
@pytest.mark.parametrize("with_default", [True, False])
def test_a_geometry_does_not_shift_the_charsets(is_mariadb: bool, with_default: bool) -> None:
    columns = (
        Column("a", WireType.VARCHAR, size=80, charset="utf8mb4"),
        Column("g", WireType.GEOMETRY, size=4),
        Column("b", WireType.BLOB, size=2, charset="latin1"),
        Column("c", WireType.BLOB, size=4, charset="utf8mb4"),
    )
    schema = parsed(TableSchema(TableName("d", "t"), columns), is_mariadb=is_mariadb, with_default_charset=with_default)
    assert schema.columns == columns


def test_early_mysql_8_gives_year_no_sign() -> None:
    columns = (Column("y", WireType.YEAR), Column("b", WireType.LONG, unsigned=True), Column("c", WireType.LONG))
    body = bytearray(table_map(7, TableSchema(TableName("d", "t"), columns), is_mariadb=False))
    assert [c.unsigned for c in parse_table_map(bytes(body), MYSQL).columns] == [True, True, False]
    signs = body.index(b"\x01\x01\xc0") + 2
    body[signs] = 0x80
    assert [c.unsigned for c in parse_table_map(bytes(body), EARLY_MYSQL).columns] == [False, True, False]


def test_a_log_without_names_counts_its_columns() -> None:
    columns = (Column("abc", WireType.LONG), Column("def", WireType.LONG))
    body = table_map(7, TableSchema(TableName("d", "t"), columns))
    table = parse_table_map(body[: body.index(b"\x04\x08\x03abc")], MARIADB)
    assert [column.name for column in table.columns] == ["@1", "@2"]
    known = replace(table, columns=columns, key=("abc",))
    assert table.merged_with(known) == known


@pytest.mark.parametrize(
    "now",
    [
        (Column("abc", WireType.LONG),),
        (Column("abc", WireType.LONG), Column("def", WireType.LONGLONG)),
        (Column("abc", WireType.LONG), Column("def", WireType.VARCHAR, size=9)),
    ],
    ids=str,
)
def test_another_shape_does_not_complete_a_table(now: tuple[Column, ...]) -> None:
    logged = (Column("@1", WireType.LONG), Column("@2", WireType.VARCHAR, size=8))
    with pytest.raises(SchemaError, match=r"d\.t"):
        TableSchema(TableName("d", "t"), logged).merged_with(TableSchema(TableName("d", "t"), now))


@pytest.mark.parametrize(
    "column",
    [
        Column("a", WireType.BLOB, size=0, charset="binary"),
        Column("a", WireType.BLOB, size=8, charset="binary"),
        Column("a", WireType.NEWDECIMAL, precision=0, scale=0),
        Column("a", WireType.NEWDECIMAL, precision=3, scale=9),
        Column("a", WireType.NEWDECIMAL, precision=66, scale=0),
        Column("a", WireType.DATETIME2, size=7),
        Column("a", WireType.ENUM, size=3, labels=("x",), charset="utf8mb4"),
        Column("a", WireType.SET, size=9, labels=("x",), charset="utf8mb4"),
    ],
    ids=str,
)
def test_sizes_that_no_column_has_are_refused(column: Column) -> None:
    expected = r"^TABLE_MAP of d\.t: column a is a \w+ with the metadata [0-9a-f ]+; bytes there: "
    with pytest.raises(BinlogError, match=expected):
        parsed(TableSchema(TableName("d", "t"), (column,)))


@examples(150)
@given(tables(st.integers(1, 6)), st.booleans(), st.data())
def test_broken_bodies_are_refused_or_give_possible_columns(
    table: TableSchema, with_default: bool, data: st.DataObject
) -> None:
    body = data.draw(broken(table_map(7, table, with_default_charset=with_default)))
    try:
        schema = parse_table_map(body, data.draw(st.sampled_from((MARIADB, MYSQL, EARLY_MYSQL, "", "8.0.x"))))
    except (BinlogError, SchemaError):
        return
    assert table_name(body) == schema.name
    for column in schema.columns:
        wire = wire_size_of(column)
        assert wire.width >= 0
        assert 0 <= wire.length_bytes <= 4


@examples(200)
@given(st.binary(max_size=60))
def test_garbage_is_refused(body: bytes) -> None:
    for parse in (table_name, lambda raw: parse_table_map(raw, MARIADB)):
        try:
            parse(body)
        except (BinlogError, SchemaError):
            continue


@pytest.mark.parametrize("field", [8, 9])
def test_a_key_on_a_column_that_is_not_there_is_refused(field: int) -> None:
    table = TableSchema(TableName("d", "t"), (Column("abc", WireType.LONG),))
    with pytest.raises(BinlogError, match=r"^TABLE_MAP of d\.t: it has a key on column 5 of 1; bytes there: "):
        parse_table_map(table_map(7, table) + bytes([field, 2, 5, 0]), MARIADB)


@pytest.mark.parametrize(("label", "is_kept"), [(b"a", True), ("é".encode(), True), (b"\xe9", False), (b"\0a", False)])
def test_labels_whose_charset_is_not_in_the_log_are_not_guessed(label: bytes, is_kept: bool) -> None:
    column = Column("e", WireType.ENUM, size=1, charset="utf8mb4", labels=("a", "xxxxxx"))
    body = table_map(7, TableSchema(TableName("d", "t"), (column,)), is_mariadb=False)
    body = body[: body.index(bytes([11, 1]))]  # the charset of labels is the last but the visibility
    body = body.replace(b"\x06\x0a\x02\x01a\x06xxxxxx", bytes([6, 4 + len(label), 2, 1, 97, len(label)]) + label)
    (parsed_column,) = parse_table_map(body, MYSQL).columns
    assert parsed_column.labels == (("a", label.decode()) if is_kept else ())


def nameless(*columns: Column) -> TableSchema:
    named = [replace(column, name=f"@{i}") for i, column in enumerate(columns, 1)]
    return TableSchema(TableName("d", "t"), tuple(named))


def test_a_sign_that_the_log_states_is_not_overridden() -> None:
    logged, now = nameless(Column("a", WireType.LONG)), Column("a", WireType.LONG, unsigned=True)
    known = TableSchema(logged.name, (now,))
    assert not logged.merged_with(known).columns[0].unsigned
    assert replace(logged, has_signs=False).merged_with(known).columns[0].unsigned


def test_a_log_says_whether_it_knows_signs() -> None:
    body = table_map(7, TableSchema(TableName("d", "t"), (Column("abc", WireType.LONG),)))
    assert parse_table_map(body, MARIADB).has_signs
    assert not parse_table_map(body[: body.index(b"\x01\x01\x00\x04\x04\x03abc")], MARIADB).has_signs


@pytest.mark.parametrize(
    ("label", "charset", "is_kept"), [("a?", "utf8mb4", False), ("a?", "latin1", True), ("a", "utf8mb4", True)]
)
def test_labels_that_a_catalogue_cannot_say_are_left_out(label: str, charset: str, is_kept: bool) -> None:
    now = Column("e", WireType.ENUM, size=1, charset=charset, labels=(label,))
    logged = nameless(Column("e", WireType.ENUM, size=1))
    (column,) = logged.merged_with(TableSchema(logged.name, (now,))).columns
    assert column.labels == ((label,) if is_kept else ())
    whole = replace(logged, columns=(replace(logged.columns[0], labels=("x",)),))
    assert whole.merged_with(TableSchema(logged.name, (now,))).columns[0].labels == ("x",)


def arrays(*metadata: bytes) -> bytes:
    """A table map of an INT and typed arrays, without optional fields."""
    names = b"\x01d\0\x01t\0"
    types = bytes([1 + len(metadata), WireType.LONG]) + bytes([20]) * len(metadata)
    return bytes(8) + names + types + bytes([len(b"".join(metadata))]) + b"".join(metadata) + b"\0"


def test_the_hidden_column_of_a_multi_valued_index_is_json() -> None:
    """Its elements: BIGINT, CHAR(20), DECIMAL(10, 2), DATE, TIME(3)."""
    schema = parse_table_map(arrays(b"\x08", b"\x0f\x50\0\0", b"\xf6\x0a\x02", b"\x0e", b"\x13\x03"), MYSQL).columns
    assert [column.name for column in schema] == [f"@{i}" for i in range(1, 7)]
    assert {(column.type, column.size, column.is_visible) for column in schema[1:]} == {(WireType.JSON, 4, False)}


@pytest.mark.parametrize(
    ("metadata", "error", "says"),
    [
        (b"\x14", BinlogError, r"^TABLE_MAP of d\.t: column @2 is an array of arrays; bytes there: 14"),
        (b"\x0f\x50", BinlogError, r"^TABLE_MAP of d\.t: it ends early"),
        (b"\xf6\x63\x02", BinlogError, r"^TABLE_MAP of d\.t: column @2 is a NEWDECIMAL with the metadata 63 02"),
        (b"\x80", SchemaError, r"^column d\.t\.@2 is of type 128, which is not known"),
    ],
)
def test_arrays_that_cannot_be_are_refused_by_name(metadata: bytes, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        parse_table_map(arrays(metadata), MYSQL)


def test_a_type_that_is_not_known_is_refused_by_the_columns_name() -> None:
    body = bytearray(table_map(7, TableSchema(TableName("d", "t"), (Column("abc", WireType.LONG),))))
    body[body.index(b"\x01t\0") + 4] = 99
    with pytest.raises(SchemaError, match=r"^column d\.t\.abc is of type 99, which is not known"):
        parse_table_map(bytes(body), MARIADB)


def test_two_columns_of_one_name_are_refused() -> None:
    """No server has such a table: the map is broken, and rows would be read by the wrong column."""
    columns = (Column("a", WireType.LONG), Column("b", WireType.LONG), Column("a", WireType.DATE))
    with pytest.raises(BinlogError, match=r"^TABLE_MAP of d\.t: two of its columns are named a; bytes there: "):
        parsed(TableSchema(TableName("d", "t"), columns))
