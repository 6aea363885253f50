"""The embedded index keeps the contract of every index."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.search.embedded import EmbeddedIndex
from tests.support.routing_contract import RoutingContract
from tests.support.search_contract import FIELDS, SearchIndexContract


class TestEmbeddedIndex(SearchIndexContract, RoutingContract):
    @pytest.fixture
    def index(self, tmp_path: Path) -> Iterator[EmbeddedIndex]:
        with EmbeddedIndex.open(tmp_path / "index") as index:
            index.prepare(FIELDS)
            yield index
