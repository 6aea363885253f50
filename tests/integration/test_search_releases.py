"""The other releases of OpenSearch and Elasticsearch keep the contract of every index."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.search import IndexLayout
from penstock.search.http import HttpIndex
from tests.support.routing_contract import RoutingContract
from tests.support.search_contract import FIELDS, SearchIndexContract
from tests.support.search_server import Server

RELEASES = ("opensearch1", "opensearch3", "elasticsearch7", "elasticsearch9")
pytestmark = pytest.mark.campaign


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest, module_server: Callable[..., Any]) -> Any:
    return module_server(request.param)


@pytest.fixture
def server(release: Any) -> Iterator[Server]:
    server = Server(release.url)
    yield server
    server.transport.request("DELETE", f"/{server.name}?ignore_unavailable=true")
    server.transport.close()


@pytest.fixture
def index(server: Server) -> Iterator[HttpIndex]:
    with server.open() as index:
        index.prepare(FIELDS)
        yield index


class TestHttpIndex(SearchIndexContract):
    """The contract, on each release."""


class TestRouting(RoutingContract):
    """Routings and lists of ids, on each release, with several shards."""

    @pytest.fixture
    def index(self, server: Server) -> Iterator[HttpIndex]:
        with server.open() as index:
            index.prepare(FIELDS, IndexLayout(settings={"number_of_shards": 5}))
            yield index
