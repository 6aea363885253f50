"""Rows that documents depend on through parents of parents: to any depth, in circles, and by few reads."""

from collections.abc import Iterator, Mapping, Sequence

import pytest

from penstock.document.parent_rows import ParentRowReader
from penstock.document.references import with_references
from penstock.model import TableName, TableSchema
from penstock.schema.foreign_keys import CascadingKey
from tests.support.document_shop import ORDERS, TABLES, MemoryRows, graph_of, integer, table

DEPTH = 12
LEVELS = {
    schema.name: schema
    for schema in (
        table(f"level{number}", integer("id"), integer("one_id"), integer("other_id")) for number in range(DEPTH)
    )
}
Key = tuple[str, str, str]  # table, column, parent


class Rows:
    """Orders and levels in memory, with foreign keys that cascade."""

    def __init__(self, keys: Sequence[Key], tables: Mapping[TableName, TableSchema]) -> None:
        by_table: dict[TableName, list[CascadingKey]] = {}
        for name, column, parent in keys:
            own, above = TableName("shop", name), TableName("shop", parent)
            key = CascadingKey(own, (column,), above, ("id",), follows_deletes=True, follows_updates=False)
            by_table.setdefault(own, []).append(key)
        self.rows = MemoryRows(tables)
        self.graph = with_references(graph_of(), by_table, tables)

    def insert_order(self, key: int, parent: int) -> None:
        self.rows.insert("orders", (key, parent), columns="(id, customer_id)")

    def find_names(self, *keys: int) -> dict[int, list[str]]:
        """Return what orders depend on behind their own parents, without the database's name."""
        self.rows.statements.clear()
        with self.rows.open_view():
            names = ParentRowReader(self.graph, self.rows).find_names(self.graph.root, [(key,) for key in keys])
        return {key[0]: sorted(name.removeprefix("shop.") for name in own) for key, own in names.items()}  # type: ignore[misc]


@pytest.fixture
def opened() -> Iterator[list[Rows]]:
    made: list[Rows] = []
    yield made
    for rows in made:
        rows.rows.close()


def create(opened: list[Rows], *keys: Key) -> Rows:
    rows = Rows([("orders", "customer_id", "level0"), *keys], TABLES | LEVELS)
    opened.append(rows)
    return rows


def chain(column: str) -> list[Key]:
    return [(f"level{number}", column, f"level{number + 1}") for number in range(DEPTH - 1)]


def test_a_chain_is_followed_to_its_last_table(opened: list[Rows]) -> None:
    rows = create(opened, *chain("one_id"))
    for number in range(DEPTH):
        rows.rows.insert(f"level{number}", (10 + number, 11 + number, None), (50 + number, 51 + number, None))
    rows.insert_order(1, 10)
    rows.insert_order(2, 50)
    assert rows.find_names(1, 2) == {
        1: sorted(f"level{number}:{10 + number}" for number in range(1, DEPTH)),
        2: sorted(f"level{number}:{50 + number}" for number in range(1, DEPTH)),
    }
    assert len(rows.rows.statements) == DEPTH - 1, "the last table has no foreign key to read"


def test_rows_that_lead_in_a_circle_are_read_once(opened: list[Rows]) -> None:
    rows = create(opened, ("level0", "one_id", "level0"))
    rows.rows.insert("level0", (1, 2, None), (2, 3, None), (3, 1, None), (4, None, None))
    rows.insert_order(7, 1)
    rows.insert_order(8, 4)
    assert rows.find_names(7, 8) == {7: ["level0:1", "level0:2", "level0:3"], 8: []}


def test_tables_that_lead_to_each_other_end(opened: list[Rows]) -> None:
    rows = create(opened, ("level0", "one_id", "level1"), ("level1", "one_id", "level0"))
    rows.rows.insert("level0", (1, 5, None), (2, 6, None))
    rows.rows.insert("level1", (5, 2, None), (6, None, None))
    rows.insert_order(7, 1)
    assert rows.find_names(7) == {7: ["level0:2", "level1:5", "level1:6"]}


def test_rows_that_are_reached_by_many_paths_are_read_once(opened: list[Rows]) -> None:
    rows = create(opened, *chain("one_id"), *chain("other_id"))
    for number in range(DEPTH):
        rows.rows.insert(f"level{number}", (1, 1, 2), (2, 2, 1))
    rows.insert_order(7, 1)
    assert rows.find_names(7)[7].count(f"level{DEPTH - 1}:2") == 2, "named by either row of the level below"
    assert len(rows.rows.statements) <= 4 * DEPTH, "there are 2,048 paths"


def test_a_key_with_null_refers_to_no_row(opened: list[Rows]) -> None:
    rows = create(opened, *chain("one_id"))
    rows.rows.insert("level0", (1, None, None), (2, 5, None))
    rows.insert_order(7, 1)
    rows.insert_order(8, 2)
    assert rows.find_names(7, 8) == {7: [], 8: ["level1:5"]}, "also where the row itself is missing"
    assert ORDERS in rows.graph.tables
