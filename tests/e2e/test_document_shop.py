"""Eight kinds of documents of one shop, on the embedded index and on a search server, by one Spark stream.

Random transactions over all tables, then DDL that changes rows without logging them, then more transactions: at rest
each index equals the oracle, which shares no code with the builder of documents.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.config import InstanceSettings, ServerSettings, SourceSettings
from penstock.document import DOCUMENT_DECODING, DocumentSpec, DocumentSync, LocalWriter, load_spec
from penstock.model import Sequence
from penstock.search.embedded import EmbeddedIndex
from penstock.search.http import HttpIndex
from penstock.search.index import SearchIndex
from penstock.server import Server
from penstock.snapshot.source_rows import SourceRows
from penstock.source import connect, current_position
from penstock.spark.index_sync import IndexSync
from penstock.spark.sync_job import LoadedGraphs
from penstock.testing import DatabaseServer
from tests.support.capture import execute, poll, source_of
from tests.support.shop import ShopWriter, compare, create_shop, expected_documents, read_documents, spec_texts

SHORT_S, LONG_S = 5.0, 60.0
DEADLINE_S = 120.0
CASES = [
    pytest.param("mariadb", "opensearch", SHORT_S, id="mariadb-opensearch"),
    pytest.param("mysql80", "opensearch", SHORT_S, id="mysql80-opensearch"),
    *(
        pytest.param(source, search, LONG_S, id=f"{source}-{search}-long", marks=pytest.mark.campaign)
        for source, search in (
            ("mariadb", "elasticsearch"),
            ("mariadb11", "opensearch"),
            ("mysql57", "elasticsearch"),
            ("mysql80", "elasticsearch"),
            ("mysql9", "opensearch"),
        )
    ),
]
NewDatabase = Callable[[DatabaseServer], str]


@dataclass
class FollowedShop:
    """A shop whose documents are on two kinds of indexes, sixteen in all, that one stream follows."""

    server: DatabaseServer
    database: str
    search_url: str
    embedded: dict[str, EmbeddedIndex]
    query: Any

    def differences(self) -> dict[str, str]:
        """Return what is wrong with each index, in words."""
        expected = expected_documents(self.server, self.database)
        wrong_indexes: dict[str, str] = {}
        for name, index in self.embedded.items():
            table = index.documents()
            documents = zip(table.column("id").to_pylist(), table.column("document").to_pylist(), strict=True)
            if wrong := compare(expected[name], documents):
                wrong_indexes[f"embedded {name}"] = str(wrong)
            if wrong := compare(expected[name], read_documents(self.search_url, f"{name}-{self.database}")):
                wrong_indexes[f"search server {name}"] = str(wrong)
        return wrong_indexes

    def equal_soon(self) -> dict[str, str]:
        """Wait until all indexes are equal; return what still differs at the deadline."""

        def is_equal() -> bool:
            assert self.query.exception() is None, self.query.exception()
            return not self.differences()

        return {} if poll(is_equal, DEADLINE_S) else self.differences()

    def execute(self, *statements: str) -> None:
        """Run statements in the shop's database."""
        execute(self.server, f"USE `{self.database}`", *statements)


@pytest.fixture
def followed(
    request: pytest.FixtureRequest, spark: SparkSession, database: NewDatabase, tmp_path: Path
) -> Iterator[FollowedShop]:
    server: DatabaseServer = request.getfixturevalue(request.getfixturevalue("source"))
    search_url: str = request.getfixturevalue(request.getfixturevalue("search")).url
    name, source = database(server), source_of(server)
    create_shop(server, name)
    with ExitStack() as opened:
        with closing(connect(source)) as connection:
            start = current_position(connection, source)
        flight = Server(ServerSettings.with_flight_only(InstanceSettings(source=source, start=str(start))))
        opened.callback(flight.stop)
        flight.start()
        rows = SourceRows(source, DOCUMENT_DECODING)
        opened.callback(rows.close)
        embedded: dict[str, EmbeddedIndex] = {}
        syncs: list[DocumentSync] = []
        for index_name, text in spec_texts(name).items():
            file = tmp_path / f"{index_name}.yml"
            file.write_text(text, encoding="utf-8")
            spec = load_spec(file)
            embedded[index_name] = EmbeddedIndex.open(tmp_path / index_name)
            indexes: list[SearchIndex] = [
                embedded[index_name],
                HttpIndex.open(search_url, f"{index_name}-{name}"),
            ]
            for index in indexes:
                opened.callback(index.close)
                sync = open_sync(source, spec, rows, index)
                sync.prepare_index()
                counts = sync.load_all(int(Sequence.from_position(start)))
                assert not counts.rejected
                syncs.append(sync)
        query = IndexSync(syncs, server=flight.address, name=name).start(spark, tmp_path / "checkpoint", start)
        opened.callback(query.stop)
        yield FollowedShop(server, name, search_url, embedded, query)


def open_sync(source: SourceSettings, spec: DocumentSpec, rows: SourceRows, index: SearchIndex) -> DocumentSync:
    """Return what follows one spec into one index; a document that it refuses is an error."""
    return DocumentSync(LoadedGraphs(source, spec).load, rows, index, lambda builder: LocalWriter(builder, rows, index))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("source", "search", "seconds"), CASES)
def test_all_indexes_equal_the_oracle_after_random_work_and_after_ddl(
    followed: FollowedShop, source: str, search: str, seconds: float
) -> None:
    assert followed.differences() == {}
    writer = ShopWriter(followed.server, followed.database, seed=31)
    writer.start()
    assert poll(lambda: writer.transactions > 100, 60)
    writer.finish(seconds)
    assert followed.equal_soon() == {}

    followed.execute("TRUNCATE TABLE tag")
    assert followed.equal_soon() == {}
    followed.execute(
        "CREATE TABLE category_next LIKE category",
        "INSERT INTO category_next (code, parent_code, name) VALUES ('GARDEN', 'toys', 'g'), ('Toys', NULL, 't')",
        "RENAME TABLE category TO category_before, category_next TO category",
    )
    assert followed.equal_soon() == {}
    followed.execute("ALTER TABLE order_line MODIFY price DECIMAL(12, 1) NULL")
    assert followed.equal_soon() == {}

    writer = ShopWriter(followed.server, followed.database, seed=32, columns=0)
    writer.run(seconds=seconds / 2)
    assert followed.equal_soon() == {}
