"""A list of servers: the one that runs the destination is found, and found again when it moves."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import penstock
from penstock.client import FlightClient, ServerConnection
from penstock.errors import ConfigurationError, NotRunningError, ServerUnavailableError
from penstock.model import TableName
from penstock.server import Server
from penstock.testing import free_port
from tests.support.admin_support import served, settings_with, shop_folder

ROWS = 6
CALLS: dict[str, Callable[[ServerConnection], object]] = {
    "changes": lambda there: there.changes("shop.product", start="earliest").close(),
    "subscription": lambda there: there.subscribe(1001).close(),
    "positions": lambda there: there.positions(),
    "tables": lambda there: there.tables(),
}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Server]]:
    """Two with the same destination, of which the first does not serve it; and one that has another destination."""
    folder = shop_folder(tmp_path / "logs", ROWS)
    with ExitStack() as stack:
        all_servers = [stack.enter_context(served(settings_with(folder))) for _ in range(2)]
        all_servers += [stack.enter_context(served(settings_with(folder, {"destination": "other"})))]
        all_servers[0].destinations.halt("shop")
        yield all_servers


def move(old: Server, new: Server) -> None:
    old.destinations.halt("shop")
    new.destinations.resume("shop")


def events_of(client: FlightClient) -> int:
    (ticket,) = client.plan_parts(
        [TableName.parse("shop.product")], client.source_start(), client.store_bounds()["latest"]
    )
    return sum(len(block) for block in client.read_part(ticket))


@pytest.mark.parametrize("name", CALLS)
def test_the_first_that_runs_it_answers_at_once(servers: list[Server], name: str) -> None:
    """No retry is needed for servers that are down, do not have the destination, or do not have it yet."""
    addresses = [f"127.0.0.1:{free_port()}", *(servers[number].address for number in (2, 0, 1))]
    with penstock.connect(",".join(addresses), destination="shop", retry_timeout_s=0) as there:
        CALLS[name](there)


def test_a_part_of_the_log_is_read_where_it_runs(servers: list[Server]) -> None:
    addresses = [f"127.0.0.1:{free_port()}", servers[0].address, servers[1].address]
    client = FlightClient(",".join(addresses), "shop")
    assert events_of(client) == ROWS
    move(servers[1], servers[0])
    assert events_of(client) == ROWS
    client.close()


def test_who_asks_a_server_that_does_not_run_it_for_tables_is_told_so(servers: list[Server]) -> None:
    """No tables would be the answer of a server that runs it and has none."""
    standby = penstock.connect(servers[0].address, destination="shop", retry_timeout_s=0)
    with standby, pytest.raises(NotRunningError, match="stopped manually"):
        standby.tables()


def test_threads_share_a_link_while_it_moves(servers: list[Server]) -> None:
    where = ",".join(server.address for server in servers)
    ended, problems = threading.Event(), list[Exception]()
    with penstock.connect(where, destination="shop") as there:

        def ask() -> None:
            try:
                while not ended.is_set():
                    there.status()
            except Exception as error:  # noqa: BLE001 - for who looks at the end
                problems.append(error)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for turn in range(6):
            move(servers[1 - turn % 2], servers[turn % 2])
            there.positions()
        ended.set()
        for thread in threads:
            thread.join(30)
    assert problems == []


def test_nobody_runs_it(servers: list[Server]) -> None:
    """Each server is named once, with its reason, however often it was asked."""
    servers[1].destinations.halt("shop")
    dead = f"127.0.0.1:{free_port()}"
    addresses = [dead, *(server.address for server in servers)]
    with (
        penstock.connect(",".join(addresses), destination="shop", retry_timeout_s=1) as there,
        pytest.raises(ServerUnavailableError, match="no server runs 'shop'") as told,
    ):
        there.status()
    text = str(told.value)
    assert [text.count(address) for address in addresses] == [1, 1, 1, 1]
    assert text.count("was stopped manually") == 2
    assert f"no Penstock server answers at {dead};" in text
    assert f"{servers[2].address}: there is no destination 'shop' on this server; it has: other" in text
    assert "\n" not in text


def test_a_destination_that_no_server_has_is_not_waited_for(servers: list[Server]) -> None:
    where = ",".join(server.address for server in servers)
    with (
        penstock.connect(where, destination="nope") as there,
        pytest.raises(ConfigurationError, match="there is no destination 'nope'") as told,
    ):
        there.status()
    assert all(server.address in str(told.value) for server in servers)
