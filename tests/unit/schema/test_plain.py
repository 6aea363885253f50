"""A catalogue as plain data and back."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import SchemaError
from penstock.model import TableName
from penstock.schema.catalogue import Catalogue
from penstock.schema.database import Database
from penstock.schema.ddl.data_type import DataType
from penstock.schema.ddl.key import KeyKind
from penstock.schema.dialect import ServerProfile, SqlSession
from penstock.schema.plain import catalogue_from_plain, catalogue_to_plain, table_from_plain, table_to_plain
from penstock.schema.shape import ColumnDefinition, IndexDefinition, IndexPart, TableDefinition, fold
from penstock.schema.shared_map import SharedMap
from tests.support.ddl_cases import altering, charsets, creating, keys, types

NAMES = st.text(min_size=1, max_size=5)
COLLATIONS = st.sampled_from(["", "utf8mb4_bin", "latin1_swedish_ci", "binary"])
SIZES = st.integers(0, 2**32)
TYPES = st.builds(
    DataType, st.sampled_from(["int", "text", "enum", "decimal"]), SIZES, SIZES, st.booleans(), st.booleans(),
    st.booleans(), st.lists(st.binary(max_size=4), max_size=4).map(tuple),
)  # fmt: skip
FLAGS = [st.booleans()] * 6
FIELDS = st.builds(ColumnDefinition, NAMES, TYPES, COLLATIONS, *FLAGS)
PARTS = st.builds(IndexPart, st.text(max_size=3), SIZES)
INDEXES = st.builds(
    IndexDefinition,
    NAMES,
    st.sampled_from(KeyKind),
    st.lists(PARTS, max_size=3).map(tuple),
    st.booleans(),
    st.booleans(),
)
TABLES = st.builds(
    TableDefinition,
    st.builds(TableName, NAMES, NAMES),
    st.lists(FIELDS, max_size=4).map(tuple),
    st.lists(INDEXES, max_size=3).map(tuple),
    COLLATIONS,
    st.sampled_from(["innodb", "myisam", ""]),
    st.sampled_from(["", "compact"]),
    st.lists(st.tuples(NAMES, NAMES, NAMES), max_size=2).map(tuple),
    st.booleans(),
    st.booleans(),
)
SERVERS = st.builds(
    ServerProfile,
    st.booleans(),
    st.integers(50000, 120000),
    st.integers(0, 2),
    st.booleans(),
    st.lists(st.tuples(NAMES, NAMES), max_size=2).map(tuple),
)
RELEASES = {
    "mariadb": ServerProfile(is_mariadb=True, version=101106),
    "mysql57": ServerProfile(version=50722),
    "mysql80": ServerProfile(version=80012),
    "mysql9": ServerProfile(version=90700),
}


def stored(catalogue: Catalogue) -> Catalogue:
    return catalogue_from_plain(json.loads(json.dumps(catalogue_to_plain(catalogue))))


@given(TABLES)
def test_tables_come_back(table: TableDefinition) -> None:
    assert table_from_plain(json.loads(json.dumps(table_to_plain(table))), table.name.schema) == table


@given(SERVERS, st.lists(TABLES, max_size=4), st.sets(st.tuples(st.integers(0, 9), st.builds(TableName, NAMES, NAMES))))
def test_catalogues_come_back(
    server: ServerProfile, tables: list[TableDefinition], temporary: set[tuple[int, TableName]]
) -> None:
    def key(name: str) -> str:
        return fold(name) if server.lower_case_table_names else name

    databases: dict[str, Database] = {}
    for table in tables:
        database = databases.get(
            key(table.name.schema), Database(table.name.schema, "utf8mb4_bin", views=frozenset("v"))
        )
        renamed = table.with_name(TableName(database.name, table.name.table))
        held = database.tables.with_item(key(table.name.table), renamed)
        unknown = SharedMap[str]().with_item("u", "ALTER TABLE u …")
        databases[key(database.name)] = Database(database.name, database.collation, held, database.views, unknown)
    catalogue = Catalogue(server, SharedMap[Database].from_items(databases.items()), frozenset(temporary))
    assert stored(catalogue) == catalogue


@pytest.mark.parametrize("release", RELEASES)
def test_what_servers_have_run_comes_back(release: str) -> None:
    """Every statement that the integration tests run on a real server."""
    catalogue = Catalogue(RELEASES[release]).apply("CREATE DATABASE x").catalogue
    for module in (types, charsets, creating, altering, keys):
        for topic in module.TOPICS:
            for statement in topic.statements(release):
                with suppress(SchemaError):  # what a SELECT gives, names that another topic has used
                    catalogue = catalogue.apply(statement.replace("{db}", "x"), "x", SqlSession(thread=1)).catalogue
    assert len(catalogue.table_names()) > 80
    assert stored(catalogue) == catalogue


def test_another_format() -> None:
    with pytest.raises(SchemaError, match="format 2 was written by another release"):
        catalogue_from_plain({"format": 2})
