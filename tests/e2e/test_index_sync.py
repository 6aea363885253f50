"""A random shopkeeper at work; then the indexes equal the database, ids and contents."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.config import InstanceSettings, ServerSettings, SourceSettings
from penstock.document import DOCUMENT_DECODING, DocumentSync, LocalWriter
from penstock.model import Position, Sequence
from penstock.search.embedded import EmbeddedIndex
from penstock.search.http import HttpIndex
from penstock.search.index import SearchIndex
from penstock.server import Server
from penstock.snapshot.source_rows import SourceRows
from penstock.source import connect, current_position
from penstock.spark.index_sync import IndexSync
from penstock.spark.sync_job import LoadedGraphs
from penstock.testing import DatabaseServer
from tests.e2e.shop import Shopkeeper, contents, drop_shop, truth
from tests.support.campaign import short_and_long
from tests.support.capture import poll, source_of
from tests.support.product_shop import SPEC, ShopSize, create_shop

SHORT_S, LONG_S = 4.0, 60.0
SOURCES = ("mariadb", "mariadb11", "mysql80", "mysql9")


@dataclass
class Shop:
    """A database with a captured shop and the two indexes that follow it."""

    database: DatabaseServer
    spark: SparkSession
    folder: Path
    start: Position
    address: str
    indexes: dict[str, SearchIndex]
    syncs: dict[str, DocumentSync]
    queries: list[Any] = field(default_factory=list[Any])

    def follow(self) -> list[Any]:
        """Start, or resume, one stream per index."""
        self.queries = [
            IndexSync([sync], server=self.address, name=name).start(
                self.spark, self.folder / f"checkpoint-{name}", self.start
            )
            for name, sync in self.syncs.items()
        ]
        return self.queries

    def stop(self) -> None:
        for query in self.queries:
            query.stop()

    def differences(self) -> dict[str, Any]:
        expected = truth(self.database)
        differing: dict[str, Any] = {}
        for name, index in self.indexes.items():
            index.refresh()
            actual = contents(index.documents())
            different = {
                key: (expected.get(key), actual.get(key))
                for key in expected.keys() | actual.keys()
                if expected.get(key) != actual.get(key)
            }
            if different:
                differing[name] = dict(list(different.items())[:3]) | {"count": len(different)}
        return differing


def open_sync(source: SourceSettings, index: SearchIndex, started: ExitStack) -> DocumentSync:
    started.callback(index.close)
    rows = SourceRows(source, DOCUMENT_DECODING)
    started.callback(rows.close)
    sync = DocumentSync(LoadedGraphs(source, SPEC).load, rows, index, lambda builder: LocalWriter(builder, rows, index))
    sync.prepare_index()
    return sync


@pytest.fixture(params=SOURCES)
def shop(request: pytest.FixtureRequest, spark: SparkSession, opensearch: Any, tmp_path: Path) -> Iterator[Shop]:
    database: DatabaseServer = request.getfixturevalue(request.param)
    source = source_of(database)
    drop_shop(database)
    with ExitStack() as started:
        started.callback(drop_shop, database)
        with closing(connect(source)) as connection:
            create_shop(connection, ShopSize(stores=40, products=300))
            start = current_position(connection, source)
        server = Server(ServerSettings.with_flight_only(InstanceSettings(source=source, start=str(start))))
        started.callback(server.stop)
        server.start()
        indexes: dict[str, SearchIndex] = {
            "embedded": EmbeddedIndex.open(tmp_path / "index"),
            "opensearch": HttpIndex.open(opensearch.url, f"product-{request.param}-{time.time_ns()}"),
        }
        syncs = {name: open_sync(source, index, started) for name, index in indexes.items()}
        for sync in syncs.values():
            sync.load_all(int(Sequence.from_position(start)))
        made = Shop(database, spark, tmp_path, start, server.address, indexes, syncs)
        started.callback(made.stop)
        yield made


def equal_soon(shop: Shop, queries: list[Any]) -> dict[str, Any]:
    """Wait until both indexes are equal; gives what still differs at the deadline."""

    def is_equal() -> bool:
        for query in queries:
            assert query.exception() is None, query.exception()
        return not shop.differences()

    return {} if poll(is_equal, 120) else shop.differences()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("seconds", short_and_long(SHORT_S, LONG_S))
def test_both_indexes_equal_the_database_after_random_work(shop: Shop, seconds: float) -> None:
    assert shop.differences() == {}
    queries = shop.follow()
    shopkeeper = Shopkeeper(shop.database, seed=11)
    shopkeeper.start()
    assert poll(lambda: shopkeeper.transactions > 100, 60)
    shopkeeper.finish(seconds)
    assert equal_soon(shop, queries) == {}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("seconds", short_and_long(SHORT_S, LONG_S))
def test_they_do_when_the_stream_is_stopped_and_started_in_the_middle(shop: Shop, seconds: float) -> None:
    queries = shop.follow()
    shopkeeper = Shopkeeper(shop.database, seed=12)
    shopkeeper.start()
    assert poll(lambda: all(query.lastProgress is not None for query in queries), 120)
    shop.stop()
    assert poll(lambda: shopkeeper.transactions > 50, 60)
    before = shopkeeper.transactions
    assert poll(lambda: shopkeeper.transactions > before + 50, 60)
    queries = shop.follow()
    shopkeeper.finish(seconds)
    assert equal_soon(shop, queries) == {}
