"""Document graphs of live tables: types of expressions, unique keys, missing tables and missing indexes."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from penstock.document import DocumentSpec, LoadedGraph, find_missing_indexes, load_graph
from penstock.errors import SchemaError
from penstock.model import TableName
from penstock.search.index import FieldKind
from penstock.source import connect
from tests.support.capture import execute, source_of

SERVERS = ("mariadb", "mysql80")


class Live:
    """A database of its own, and the graphs of specs over it."""

    def __init__(self, server: Any, schema: str, cursor: Any) -> None:
        self.server, self.schema, self.cursor = server, schema, cursor

    def execute(self, *statements: str) -> None:
        execute(self.server, *(statement.replace("db.", f"{self.schema}.") for statement in statements))

    def load(self, known: LoadedGraph | None = None, **root: Any) -> LoadedGraph:
        return load_graph(self.cursor, self.spec(**root), known.known if known else None)

    def spec(self, **root: Any) -> DocumentSpec:
        content = {"table": "db.orders", "fields": ["number"]} | root
        text = DocumentSpec.model_validate({"index": "x", "root": content}).model_dump_json(exclude_defaults=True)
        return DocumentSpec.model_validate_json(text.replace('"db.', f'"{self.schema}.'))


@pytest.fixture(params=SERVERS)
def live(request: pytest.FixtureRequest, database: Callable[[Any], str]) -> Iterator[Live]:
    server = request.getfixturevalue(request.param)
    schema = database(server)
    with closing(connect(source_of(server))) as connection, connection.cursor() as cursor:
        made = Live(server, schema, cursor)
        made.execute(
            """CREATE TABLE db.orders (id INT PRIMARY KEY, number VARCHAR(20), total DECIMAL(10, 2), made DATETIME,
               day DATE, weight DOUBLE, customer_id INT, mail VARCHAR(50))""",
            "CREATE TABLE db.customer (id INT PRIMARY KEY, name VARCHAR(20), mail VARCHAR(50), code VARCHAR(9))",
            "CREATE TABLE db.line (id INT PRIMARY KEY, order_id INT, quantity INT)",
            "CREATE TABLE db.tag (id INT PRIMARY KEY, name VARCHAR(20))",
            "CREATE TABLE db.order_tag (order_id INT, tag_id INT, PRIMARY KEY (order_id, tag_id))",
        )
        yield made


CUSTOMER = {"table": "db.customer", "on": {"customer_id": "id"}, "fields": ["name"]}
LINES = {"table": "db.line", "many": True, "on": {"id": "order_id"}, "fields": ["quantity"]}
TAGS = {
    "table": "db.tag",
    "many": True,
    "through": {"table": "db.order_tag", "on": {"id": "order_id"}, "to": {"tag_id": "id"}},
    "fields": ["name"],
}


def test_expressions_are_searched_by_the_types_that_the_server_gives_them(live: Live) -> None:
    expressions = {
        "integers": "id + 1",
        "decimals": "total * 2",
        "reals": "weight / 2",
        "texts": "CONCAT(number, '%s %')",
        "moments": "made + INTERVAL 1 DAY",
        "days": "day + INTERVAL 1 DAY",
        "counts": "CHAR_LENGTH(number)",
    }
    fields: dict[str, Any] = {name: {"sql": sql} for name, sql in expressions.items()}
    loaded = live.load(fields=fields | {"said": {"sql": "id + 1", "type": "text"}})
    assert loaded.graph.field_kinds == {
        "integers": FieldKind.INTEGER,
        "decimals": FieldKind.FLOAT,
        "reals": FieldKind.FLOAT,
        "texts": FieldKind.KEYWORD,
        "moments": FieldKind.DATE,
        "days": FieldKind.DATE,
        "counts": FieldKind.INTEGER,
        "said": FieldKind.TEXT,
    }


def test_a_unique_key_over_whole_values_finds_one_row(live: Live) -> None:
    by_mail = CUSTOMER | {"on": {"mail": "mail"}}
    for statement in ("ALTER TABLE db.customer ADD KEY (mail)", "ALTER TABLE db.customer ADD UNIQUE KEY p (mail(5))"):
        live.execute(statement)
        with pytest.raises(SchemaError, match="may find several rows"):
            live.load(joins={"customer": by_mail})
    live.execute("ALTER TABLE db.customer ADD UNIQUE KEY m (mail)")
    assert not live.load(joins={"customer": by_mail}).graph.nodes[1].is_many


def test_a_table_may_be_missing_only_if_it_was_known_before(live: Live) -> None:
    loaded = live.load(joins={"customer": CUSTOMER})
    assert loaded.missing == frozenset()
    live.execute("DROP TABLE db.customer")
    with pytest.raises(SchemaError, match="no table"):
        live.load(joins={"customer": CUSTOMER})
    again = live.load(loaded, joins={"customer": CUSTOMER})
    assert again.missing == {TableName(live.schema, "customer")}
    assert again.graph.field_kinds == loaded.graph.field_kinds


def test_indexes_without_which_whole_tables_are_read_are_named(live: Live) -> None:
    loaded = live.load(joins={"customer": CUSTOMER, "lines": LINES, "tags": TAGS})
    missing = find_missing_indexes(live.cursor, loaded.graph)
    assert [statement.replace(live.schema, "db") for statement in missing] == [
        "CREATE INDEX `orders_customer_id` ON `db`.`orders` (`customer_id`)",
        "CREATE INDEX `line_order_id` ON `db`.`line` (`order_id`)",
        "CREATE INDEX `order_tag_tag_id` ON `db`.`order_tag` (`tag_id`)",
    ]
    live.execute(*(statement.replace(f"`{live.schema}`.", "db.") for statement in missing))
    assert find_missing_indexes(live.cursor, loaded.graph) == []
