"""Random work on the shop, followed batch by batch without Spark: after each batch eight indexes equal the oracle, and
those of one table were built from the log."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from penstock.config import InstanceSettings, ServerSettings
from penstock.document import DOCUMENT_DECODING, DocumentSpec, DocumentSync, LocalWriter, load_spec
from penstock.model import Sequence
from penstock.search.embedded import EmbeddedIndex
from penstock.server import Server
from penstock.snapshot.source_rows import SourceRows
from penstock.source import connect, current_position
from penstock.spark.sync_job import LoadedGraphs
from penstock.testing import DatabaseServer
from tests.support.campaign import short_and_long
from tests.support.capture import source_of
from tests.support.document_stream import DocumentStream
from tests.support.shop import FROM_LOG, INDEXES, ShopWriter, compare, create_shop, expected_documents, spec_texts

SOURCES = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")
Streams = dict[str, DocumentStream]


@pytest.fixture(params=SOURCES)
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


@pytest.fixture
def name(server: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    """A database with a shop in it."""
    name = database(server)
    create_shop(server, name)
    return name


@pytest.fixture
def streams(server: DatabaseServer, name: str, tmp_path: Path) -> Iterator[Streams]:
    """The eight indexes of a shop, loaded, each of which follows when told to."""
    source = source_of(server)
    with ExitStack() as opened:
        with closing(connect(source)) as connection:
            start = current_position(connection, source)
        flight = Server(ServerSettings.with_flight_only(InstanceSettings(source=source, start=str(start))))
        opened.callback(flight.stop)
        flight.start()
        rows = SourceRows(source, DOCUMENT_DECODING)
        opened.callback(rows.close)
        streams: Streams = {}
        for index_name, text in spec_texts(name).items():
            index = opened.enter_context(EmbeddedIndex.open(tmp_path / index_name))
            file = tmp_path / f"{index_name}.yml"
            file.write_text(text, encoding="utf-8")
            sync = open_sync(source, load_spec(file), rows, index)
            sync.prepare_index()
            sync.load_all(int(Sequence.from_position(start)))
            streams[index_name] = DocumentStream(sync, index, flight.address, start)
        yield streams


def open_sync(source: Any, spec: DocumentSpec, rows: SourceRows, index: EmbeddedIndex) -> DocumentSync:
    return DocumentSync(LoadedGraphs(source, spec).load, rows, index, lambda builder: LocalWriter(builder, rows, index))


def differences(server: DatabaseServer, database: str, streams: Streams) -> dict[str, str]:
    """Return what is wrong with each index, in words."""
    expected = expected_documents(server, database)
    wrong_indexes: dict[str, str] = {}
    for index, stream in streams.items():
        stream.index.refresh()
        table = stream.index.documents()
        documents = zip(table.column("id").to_pylist(), table.column("document").to_pylist(), strict=True)
        if wrong := compare(expected[index], documents):
            wrong_indexes[index] = str(wrong)
    return wrong_indexes


@pytest.mark.timeout(600)
@pytest.mark.parametrize("transactions", short_and_long(100, 3000))
def test_after_every_batch_all_indexes_equal_the_oracle(
    server: DatabaseServer, name: str, streams: Streams, transactions: int
) -> None:
    assert set(streams) == set(INDEXES)
    assert differences(server, name, streams) == {}
    writer = ShopWriter(server, name, seed=21)
    from_log = Counter[str]()
    while writer.transactions < transactions:
        writer.run(transactions=15)
        for index, stream in streams.items():
            counts = stream.follow()
            from_log[index] += counts.from_log
            assert counts.from_log <= counts.documents.total
        assert differences(server, name, streams) == {}, f"after {writer.transactions} transactions"
    assert {index for index, count in from_log.items() if count} == set(FROM_LOG)
