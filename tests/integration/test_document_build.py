"""Random tables and specs on a real server: documents, and lookups of them, equal plain SELECTs and loops."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest

from penstock.document import DOCUMENT_DECODING, DocumentBuilder, DocumentGraph, DocumentSpec, load_graph
from penstock.document.build import read_keys
from penstock.document.queries import find_lookups
from penstock.snapshot.source_rows import SourceRows
from penstock.source import connect
from tests.support.campaign import short_and_long
from tests.support.capture import source_of
from tests.support.random_documents import KINDS, Oracle, RandomSpec, RandomTable

SHORT, LONG = 15, 500
SERVERS = ("mariadb", "mysql80")


class Round:
    """Random tables with rows, a random spec over them, and both ways to its documents."""

    def __init__(self, server: Any, schema: str, seed: int) -> None:
        self.pick = random.Random(seed)
        kinds = tuple(self.pick.sample(list(KINDS), 3))
        self.tables = [
            RandomTable(
                f"t{number}", kinds, tuple(f"k_{kind}" for kind in self.pick.sample(kinds, self.pick.choice((1, 1, 2))))
            )
            for number in range(3)
        ]
        self.tables.append(RandomTable("t3", kinds, (f"k_{next(kind for kind in kinds if kind != 'label')}",)))
        for table in self.tables:
            self._fill(server, schema, table)
        self.spec = RandomSpec(self.pick, schema, self.tables).create()
        self.oracle = Oracle(self.spec, self.tables)
        self.graph = self._load_graph(server)

    def _fill(self, server: Any, schema: str, table: RandomTable) -> None:
        session = {"charset": "utf8mb4", "init_command": "SET time_zone = '+00:00', sql_mode = ''"}
        with server.connect(**session) as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {schema}.{table.name}")
            cursor.execute(table.create(schema))
            for _ in range(self.pick.choice((0, 3, 8, 12))):
                row = table.random_row(self.pick)
                names, parameters = ", ".join(row), ", ".join(["%s"] * len(row))
                sql = f"INSERT IGNORE INTO {schema}.{table.name} ({names}) VALUES ({parameters})"
                cursor.execute(sql, list(row.values()))
            table.read(cursor, schema)

    def _load_graph(self, server: Any) -> DocumentGraph:
        with closing(connect(source_of(server))) as connection, connection.cursor() as cursor:
            return load_graph(cursor, DocumentSpec.model_validate(self.spec)).graph


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


@pytest.fixture
def rows(server: Any) -> Iterator[SourceRows]:
    with closing(SourceRows(source_of(server), DOCUMENT_DECODING)) as opened:
        yield opened


def parse(documents: Any) -> list[Any]:
    return [json.loads(text, parse_float=Decimal) for text in documents.to_pylist()]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("rounds", short_and_long(SHORT, LONG))
def test_documents_equal_a_join_by_hand(
    server: Any, database: Callable[[Any], str], rows: SourceRows, rounds: int
) -> None:
    schema = database(server)
    for seed in range(rounds):
        made = Round(server, schema, seed)
        builder, expected = DocumentBuilder(made.graph, rows), made.oracle.documents()
        size = made.pick.choice((1, 2, 100))
        paged = [document for page in builder.build_pages(size) for document in parse(page.documents)]
        assert paged == expected, (seed, size, made.spec)
        keys = [tuple(row[column.name] for column in made.graph.root.key) for row in made.oracle.root_rows()]
        made.pick.shuffle(keys)
        with rows.open_view():
            built = builder.build_documents(keys)
        by_key = dict(zip(built.keys, parse(built.documents), strict=True))
        assert by_key == {
            tuple(row[column.name] for column in made.graph.root.key): document
            for row, document in zip(made.oracle.root_rows(), expected, strict=True)
        }, (seed, made.spec)
        assert len(set(built.ids)) == len(built.ids), (seed, built.ids)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("rounds", short_and_long(SHORT, LONG))
def test_lookups_find_the_roots_that_rows_belong_to(
    server: Any, database: Callable[[Any], str], rows: SourceRows, rounds: int
) -> None:
    schema = database(server)
    for seed in range(1000, 1000 + rounds):
        made = Round(server, schema, seed)
        by_name = {table.name: table for table in made.tables}
        key = [column.name for column in made.graph.root.key]
        for lookup in find_lookups(made.graph):
            reached = made.oracle.reached(lookup.node.path)
            is_link = lookup.node.link is not None and " AS l0 " not in lookup.start
            with rows.open_view():
                for row in by_name[lookup.table.table].rows:
                    values = tuple(row[column.name] for column in lookup.columns)
                    if None in values:
                        continue
                    roots = rows.read(lookup.select_roots([values]))
                    expected = {
                        tuple(root[name] for name in key)
                        for root, joined, links in reached
                        if row["rank"] in (links if is_link else joined)
                    }
                    assert set(read_keys(roots, len(key))) == expected, (seed, lookup.node.name, values, made.spec)
                    if lookup.names_roots:
                        assert expected <= {values}, (seed, lookup.node.name, values)
