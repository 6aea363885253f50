"""`penstock sync` and an update of every row of a joined table, in one transaction. Of the shop, beside random work:
large sets of documents are built and written by executors, those of one table from the log; at rest each index equals
the oracle. And of six million rows: the memory of all processes of sync does not depend on their number."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest

from penstock.config import InstanceSettings, ServerSettings
from penstock.search.http import HttpIndex
from penstock.server import Server
from penstock.testing import DatabaseServer
from tests.support.campaign import short_and_long
from tests.support.capture import end_of, execute, poll, source_of
from tests.support.process_memory import TreeMemory
from tests.support.shop import ShopSize, ShopWriter, compare, create_shop, expected_documents, read_documents
from tests.support.shop.session import CONFLICTS
from tests.support.shop.specs import spec_texts

PENSTOCK = Path(sys.executable).with_name("penstock")
INDEXES = ("orders", "lines", "products", "positions")
DEADLINE_S = 150.0
SHORT_ORDERS, LONG_ORDERS = 2_500, 100_000  # with two lines each on average: more than the driver builds alone
PARCELS, ITEMS_PER_PARCEL = 200_000, 30
SHOWN = 10  # one item of so many is in the document of its parcel; the others are changed as well
HUGE_DEADLINE_S = 1500.0
MOST_MIB = 2500  # of all processes of sync: the heap of the JVM is bounded, and so are the batches
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
        with (
            syncing(command, output, PENSTOCK_PASSWORD=server.password) as process,
            TreeMemory(process.pid) as memory,
        ):

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
        assert 0 < memory.peak_mib < MOST_MIB
    finally:
        flight.stop()


HUGE_SPEC = """
index: {database}
root:
  table: {database}.parcel
  fields: [name]
  joins:
    items:
      table: {database}.item
      many: true
      on: {{id: parcel_id}}
      filter: id % {shown} = 0
      order: id
      fields: [price, label]
"""


def create_parcels(server: DatabaseServer, database: str) -> None:
    """Create parcels with their items."""
    execute(
        server,
        f"CREATE TABLE `{database}`.parcel (id INT PRIMARY KEY, name VARCHAR(40))",
        f"""CREATE TABLE `{database}`.item (id INT PRIMARY KEY, parcel_id INT NOT NULL, price INT, label VARCHAR(20),
            KEY (parcel_id))""",
        f"INSERT INTO `{database}`.parcel SELECT seq, CONCAT('parcel ', seq) FROM mysql.seq_1_to_{PARCELS}",
        f"""INSERT INTO `{database}`.item
            SELECT seq, 1 + (seq - 1) DIV {ITEMS_PER_PARCEL}, 0, CONCAT('item ', seq % 100)
            FROM mysql.seq_1_to_{PARCELS * ITEMS_PER_PARCEL}""",
    )


def expected_parcel(number: int) -> dict[str, Any]:
    """Return the document of a parcel after the update."""
    first = (number - 1) * ITEMS_PER_PARCEL + 1
    shown = (key for key in range(first, first + ITEMS_PER_PARCEL) if key % SHOWN == 0)
    return {"name": f"parcel {number}", "items": [{"price": 3 * key, "label": f"item {key % 100}"} for key in shown]}


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_an_update_of_six_million_rows_takes_no_more_memory_than_a_small_one(
    mariadb: DatabaseServer, opensearch: Any, database: NewDatabase, tmp_path: Path
) -> None:
    name, output, rows = database(mariadb), tmp_path / "output", PARCELS * ITEMS_PER_PARCEL
    create_parcels(mariadb, name)
    (tmp_path / "parcel.yml").write_text(HUGE_SPEC.format(database=name, shown=SHOWN), encoding="utf-8")
    flight = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(mariadb))))
    flight.start()
    command = [PENSTOCK, "-v", "sync", tmp_path / "parcel.yml", "--port", str(mariadb.port)]
    command += ["--server", flight.address, "--index", opensearch.url, "--checkpoint", tmp_path / "checkpoint"]

    def count_equal() -> int:
        """Return how many documents are as the update has left their rows."""
        with HttpIndex.open(opensearch.url, name) as index:
            return sum(
                json.loads(text) == expected_parcel(int(key))
                for page in index.scan_documents()
                for key, text in zip(*(page.column(part).to_pylist() for part in ("id", "document")), strict=True)
            )

    def changes_of_batches() -> list[int]:
        """Return how many changes each batch had that is done."""
        return [int(count) for count in re.findall(r"documents indexed batch=\d+ changes=(\d+)", output.read_text())]

    try:
        with (
            syncing(command, output, PENSTOCK_PASSWORD=mariadb.password) as process,
            TreeMemory(process.pid) as memory,
        ):

            def has_said(text: str) -> bool:
                assert process.poll() is None, output.read_text()
                return text in output.read_text()

            assert poll(lambda: has_said("following changes"), HUGE_DEADLINE_S), output.read_text()
            loaded_mib = memory.peak_mib
            start = end_of(mariadb)
            execute(mariadb, f"UPDATE `{name}`.item SET price = 3 * id")
            logged = end_of(mariadb)
            assert poll(lambda: has_said("") and sum(changes_of_batches()) >= rows, HUGE_DEADLINE_S), output.read_text()
            assert count_equal() == PARCELS
        changes = changes_of_batches()
        print(
            f"{sum(changes)} changes of {start} to {logged} in {len(changes)} batches, the largest of {max(changes)};"
            f" peak {memory.peak_mib} MiB, {loaded_mib} MiB of them before the update"
        )
        assert sum(changes) == rows
        assert max(changes) < sum(changes) / 10
        assert 0 < memory.peak_mib < MOST_MIB
    finally:
        flight.stop()
