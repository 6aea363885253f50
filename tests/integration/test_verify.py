"""`penstock index verify` proves that an index equals the database while both change: it finds all that somebody
damaged and nothing else, and repairs it without touching what is newer."""

import random
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.search import SearchIndex
from penstock.search.embedded import EmbeddedIndex
from penstock.search.http import HttpIndex
from penstock.testing import DatabaseServer
from tests.support.campaign import short_and_long
from tests.support.capture import execute
from tests.support.shop import INDEXES, ShopSize, ShopWriter, create_shop
from tests.support.verified_shop import Damage, VerifiedShop, open_shop, plant_damage

FOREIGN_IDS = {
    "orders": ["999999999", "somebody"],
    "products": ["999999999"],
    "customers": ["999999999", "x:y"],
    "categories": ["nobody"],
    "lines": ["999999999:1", "1"],
    "stock": ["999999999"],
    "codes": ["nobody"],
    "positions": ["999999999:9", "a:b:c"],
}
OpenIndex = Callable[[str], SearchIndex]


@pytest.fixture
def name(server: DatabaseServer, database: Callable[[DatabaseServer], str]) -> str:
    """A database with a shop in it."""
    name = database(server)
    create_shop(server, name)
    return name


@pytest.fixture(params=["mariadb", "mysql80"])
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    return request.getfixturevalue(request.param)


def judge_damage(shop: VerifiedShop, index: str, damages: dict[str, Damage]) -> int:
    """Verify a damaged index: all damage is found that no change has repaired meanwhile, and nothing else. Return how
    many were found."""
    result = shop.verify(index)
    reported = {difference.id: difference.kind.value for difference in result.differences}
    assert {name: kind for name, kind in reported.items() if name not in damages} == {}
    assert {name: damages[name].kind for name in reported} == reported
    assert result.unsettled == 0, result.unsettled_reason
    unreported = {name for name in damages if name not in reported}
    stored = shop.streams[index].index.read_documents([(name, None) for name in unreported])
    versions = dict(zip(stored.column("id").to_pylist(), stored.column("version").to_pylist(), strict=True))
    kept = {name for name in unreported if name in versions and versions[name] <= damages[name].version}
    assert kept == set(), "damage that no change has touched must be reported"
    return len(reported)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("rounds", short_and_long(1, 125))
def test_nothing_is_reported_while_changes_flow(server: DatabaseServer, name: str, tmp_path: Path, rounds: int) -> None:
    writer = ShopWriter(server, name, seed=rounds, columns=0, pause_s=0.002)
    with open_shop(server, name, tmp_path, lambda index: EmbeddedIndex.open(tmp_path / index), set(INDEXES)) as shop:
        writer.start()
        checked = 0
        for _ in range(rounds):
            for index in INDEXES:
                result = shop.verify(index)
                assert result.differences == []
                assert result.unsettled == 0, result.unsettled_reason
                checked += result.checked
        writer.finish()
        assert checked, "no change was on its way while documents were compared"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("count", "names"),
    [
        pytest.param(12, ("orders", "categories"), id="short"),
        pytest.param(1000, INDEXES, id="long", marks=pytest.mark.campaign),
    ],
)
def test_all_damage_is_found_and_repaired_while_changes_flow(
    server: DatabaseServer, name: str, tmp_path: Path, count: int, names: tuple[str, ...]
) -> None:
    writer = ShopWriter(server, name, seed=count, columns=0, pause_s=0.01)
    with open_shop(server, name, tmp_path, lambda index: EmbeddedIndex.open(tmp_path / index), set(names)) as shop:
        writer.start()
        for index in names:
            search = shop.streams[index].index
            damages = plant_damage(search, count, random.Random(count), FOREIGN_IDS[index])
            assert judge_damage(shop, index, damages) >= len(FOREIGN_IDS[index])
            repaired = shop.verify(index, repair=True)
            assert repaired.unrepaired == 0
            assert shop.verify(index).is_equal, index
        writer.finish()


@pytest.mark.parametrize("product", ["opensearch", "elasticsearch"])
@pytest.mark.timeout(300)
def test_damage_in_a_search_server_is_found_and_repaired(
    mariadb: DatabaseServer,
    product: str,
    request: pytest.FixtureRequest,
    database: Callable[[DatabaseServer], str],
    tmp_path: Path,
) -> None:
    search = request.getfixturevalue(product)
    name = database(mariadb)
    create_shop(mariadb, name)
    prefix = f"t{secrets.token_hex(4)}-"
    with open_shop(
        mariadb, name, tmp_path, lambda index: HttpIndex.open(search.url, f"{prefix}{index}"), {"orders"}
    ) as shop:
        writer = ShopWriter(mariadb, name, seed=5, columns=0, pause_s=0.02)
        writer.start()
        damages = plant_damage(shop.streams["orders"].index, 24, random.Random(3), FOREIGN_IDS["orders"])
        assert judge_damage(shop, "orders", damages) >= len(FOREIGN_IDS["orders"])
        assert shop.verify("orders", repair=True).unrepaired == 0
        assert shop.verify("orders").is_equal
        writer.finish()


@pytest.mark.parametrize("share", [0.2, 0.5])  # of the index, ids are read first, or all documents
def test_a_sample_is_compared_completely_and_in_both_directions(
    mariadb: DatabaseServer, database: Callable[[DatabaseServer], str], tmp_path: Path, share: float
) -> None:
    name = database(mariadb)
    create_shop(mariadb, name, ShopSize(orders=200))
    rows = "SELECT CONCAT('c:', seq), seq FROM seq_1_to_300"
    execute(mariadb, f"USE {name}", f"INSERT INTO category (code, name) {rows}")
    indexes = {"orders", "codes"}  # with integers for keys, and with texts
    with open_shop(mariadb, name, tmp_path, lambda index: EmbeddedIndex.open(tmp_path / index), indexes) as shop:
        for index in indexes:
            foreign = [*FOREIGN_IDS[index], *(f"{7_000_000 + 97 * number}" for number in range(40))]
            damages = plant_damage(shop.streams[index].index, 10_000, random.Random(1), foreign)
            result = shop.verify(index, share=share)
            reported = {difference.id: difference.kind.value for difference in result.differences}
            assert {name: damages[name].kind for name in reported} == reported
            assert set(reported.values()) == {"missing", "stale", "extra"}
            assert 0.4 * share < len(reported) / len(damages) < 1.8 * share
            assert (result.share, result.unsettled) == (share, 0)
            assert result.documents < 2 * share * (len(damages) - len(foreign))
            again = shop.verify(index, share=share, is_small=True)
            assert {difference.id for difference in again.differences} == reported.keys()
