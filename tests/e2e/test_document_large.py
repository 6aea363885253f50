"""`penstock sync` with specs of the shop: an update of every row of a joined table, in one transaction, beside random
work. Large sets of documents are built and written by executors, those of one table from the log; at rest each index
equals the oracle."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest

from penstock.config import InstanceSettings, ServerSettings
from penstock.server import Server
from penstock.testing import DatabaseServer
from tests.support.campaign import short_and_long
from tests.support.capture import execute, poll, source_of
from tests.support.shop import ShopSize, ShopWriter, compare, create_shop, expected_documents, read_documents
from tests.support.shop.session import CONFLICTS
from tests.support.shop.specs import spec_texts

PENSTOCK = Path(sys.executable).with_name("penstock")
INDEXES = ("orders", "lines", "products", "positions")
DEADLINE_S = 150.0
SHORT_ORDERS, LONG_ORDERS = 2_500, 100_000  # with two lines each on average: more than the driver builds alone
NewDatabase = Callable[[DatabaseServer], str]


@contextmanager
def syncing(command: list[Any], output: Path, **environment: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run `penstock sync` with its output in a file; it ends with the block, by itself and without an error."""
    with output.open("wb") as file:
        process = subprocess.Popen(command, env=os.environ | environment, stdout=file, stderr=subprocess.STDOUT)
    try:
        yield process
        process.terminate()
        assert process.wait(60) == 0, output.read_text()
    finally:
        process.kill()
        process.wait(60)


def update_every_line(server: DatabaseServer, database: str) -> None:
    """Change every order line in one transaction; the writer beside it may win a deadlock, then it is done again."""

    def is_done() -> bool:
        try:
            execute(
                server, "SET SESSION innodb_lock_wait_timeout = 50", f"UPDATE `{database}`.order_line SET price = 77.5"
            )
        except pymysql.err.OperationalError as error:
            if error.args[0] not in CONFLICTS:
                raise
            return False
        return True

    assert poll(is_done, 120)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("orders", short_and_long(SHORT_ORDERS, LONG_ORDERS))
@pytest.mark.parametrize("source", ["mariadb", pytest.param("mysql80", marks=pytest.mark.campaign)])
def test_an_update_of_every_row_of_a_joined_table_reaches_all_documents(
    request: pytest.FixtureRequest, source: str, orders: int, opensearch: Any, database: NewDatabase, tmp_path: Path
) -> None:
    server: DatabaseServer = request.getfixturevalue(source)
    name, output = database(server), tmp_path / "output"
    create_shop(server, name, ShopSize(orders=orders))
    specs = {index: text for index, text in spec_texts(name, f"-{name}").items() if index in INDEXES}
    for index, text in specs.items():
        (tmp_path / f"{index}.yml").write_text(text, encoding="utf-8")
    flight = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(server))))
    flight.start()
    command = [PENSTOCK, "sync", *(tmp_path / f"{index}.yml" for index in specs), "--port", str(server.port)]
    command += ["--server", flight.address, "--index", opensearch.url, "--checkpoint", tmp_path / "checkpoint"]

    def differences() -> dict[str, str]:
        expected = expected_documents(server, name)
        documents = {index: read_documents(opensearch.url, f"{index}-{name}") for index in specs}
        compared = {index: compare(expected[index], documents[index]) for index in specs}
        return {index: str(wrong) for index, wrong in compared.items() if wrong}

    deadline_s = DEADLINE_S * (4 if orders == LONG_ORDERS else 1)
    try:
        with syncing(command, output, PENSTOCK_PASSWORD=server.password) as process:

            def has_said(text: str) -> bool:
                assert process.poll() is None, output.read_text()
                return text in output.read_text()

            assert poll(lambda: has_said("following changes"), deadline_s), output.read_text()
            writer = ShopWriter(server, name, seed=41, large_rows=1000, pause_s=0.02)
            writer.start()
            update_every_line(server, name)
            writer.finish(at_least_s=3.0)
            is_equal = poll(lambda: has_said("") and not differences(), deadline_s)
            assert is_equal, f"{differences()}\n{output.read_text()}"
    finally:
        flight.stop()
