"""`penstock sync` through what happens to it: a server that comes late or restarts, values that an index refuses, a
foreign key that is added while it runs, and an update of many rows."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.config import InstanceSettings, ServerSettings
from penstock.search import OPERATIONS
from penstock.search.embedded import EmbeddedIndex
from penstock.server import Server
from penstock.testing import free_port
from tests.support.capture import execute, poll, source_of
from tests.support.sync_process import PENSTOCK, SyncProcess

SPEC = """
index: product
root:
  table: d.product
  fields: [name, stock, {code: {column: code, type: integer}}]
  joins:
    parts: {table: d.part, many: true, on: {id: product_id}, order: id, fields: [label]}
"""
TABLES = (
    "CREATE DATABASE d DEFAULT CHARACTER SET utf8mb4",
    "CREATE TABLE d.maker (id INT PRIMARY KEY)",
    """CREATE TABLE d.product (id INT PRIMARY KEY, name VARCHAR(40), stock BIGINT UNSIGNED, maker_id INT, note INT,
       code VARCHAR(10))""",
    "CREATE TABLE d.part (id INT PRIMARY KEY, product_id INT, label VARCHAR(20), KEY (product_id))",
    "INSERT INTO d.maker VALUES (1), (2)",
    "INSERT INTO d.product VALUES (1, 'kettle', 3, 1, 0, '7'), (2, 'lamp', 4, 2, 0, NULL)",
    "INSERT INTO d.part VALUES (1, 1, 'lid')",
)


@contextmanager
def serving(database: Any, port: int) -> Iterator[Server]:
    server = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(database)), port=port))
    server.start()
    try:
        yield server
    finally:
        server.stop()


def documents(folder: Path) -> dict[str, Any]:
    with EmbeddedIndex.open(folder, read_only=True) as index:
        table = index.documents()
    texts = map(json.loads, table.column("document").to_pylist())
    return dict(zip(table.column("id").to_pylist(), texts, strict=True))


def damage(folder: Path, name: str) -> None:
    """Delete a document behind the back of sync."""
    with EmbeddedIndex.open(folder) as index:
        version = index.read_documents([(name, None)]).column("version")[0].as_py()
        columns = {"id": [name], "version": [version], "document": [None], "routing": [None]}
        assert index.write(pa.Table.from_pydict(columns, OPERATIONS)).deleted == 1


def repair_damage(verify: Callable[..., tuple[int, str]], database: Any, index: Path) -> None:
    """Damage an index that nobody follows, and let `penstock index verify` find and repair it."""
    damage(index, "150")
    code, text = verify("--range", "1..149", "--sample", "50%")
    assert (code, "a sample of 50 % was compared" in text) == (0, True), text
    code, text = verify("--range", "150..", "--explain")
    assert (code, "missing 150" in text) == (3, True), text
    assert "why missing 150: the last change of its rows is update of d.part" in text, text
    code, text = verify("--repair")
    assert (code, "1 documents repaired" in text) == (0, True), text
    assert verify()[0] == 0
    execute(database, "UPDATE d.part SET label = 'new' WHERE id = 150")  # nobody applies it
    code, text = verify("--wait", "1")
    assert (code, "does it run?" in text) == (4, True), text


@pytest.mark.mariadb
@pytest.mark.timeout(400)
def test_sync_waits_retries_and_follows(private_server: Callable[..., Any], tmp_path: Path) -> None:
    database = private_server("mariadb")
    execute(database, *TABLES)
    (tmp_path / "product.yml").write_text(SPEC)
    index, checkpoint, port = tmp_path / "index", tmp_path / "checkpoint", free_port()
    environment = {**os.environ, "PENSTOCK_PASSWORD": database.password}
    command = [PENSTOCK, "sync", tmp_path / "product.yml", "--port", str(database.port)]
    command += ["--server", f"127.0.0.1:{port}", "--index", index, "--checkpoint", checkpoint]
    sync = SyncProcess(command, environment)

    def names() -> dict[str, Any]:
        return {key: document["name"] for key, document in documents(index).items()}

    def letters() -> str:
        listed = subprocess.run(
            [PENSTOCK, "dlq", "list", checkpoint, "--output", "json"], capture_output=True, text=True, check=True
        )
        return listed.stdout

    def verify(*options: str) -> tuple[int, str]:
        verified = [PENSTOCK, "index", "verify", *command[2:], *options]
        done = subprocess.run(verified, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    try:
        assert poll(lambda: sync.has_said("waiting for the Penstock server"), 60), sync.lines
        with serving(database, port):
            assert poll(lambda: sync.has_said("following changes"), 90), sync.lines
            execute(
                database,
                "INSERT INTO d.product VALUES (3, 'poison', 1, 2, 0, 'no number')",
                f"INSERT INTO d.product VALUES (4, 'desk', {2**64 - 1}, 2, 0, '8')",
            )
            assert poll(lambda: names() == {"1": "kettle", "2": "lamp", "4": "desk"}, 90), sync.lines
            assert poll(lambda: '"id": "3"' in letters(), 30), letters()
            code, text = verify()
            assert (code, "missing 3" in text, "dead letter 1" in text) == (3, True, True), text
            execute(database, "UPDATE d.product SET code = '9' WHERE id = 3")
            assert poll(lambda: names().get("3") == "poison", 30), sync.lines
            assert poll(lambda: '"id": "3"' not in letters(), 30), letters()

            execute(
                database,
                "UPDATE d.product SET note = 1",
                "ALTER TABLE d.product ADD FOREIGN KEY (maker_id) REFERENCES d.maker (id) ON DELETE CASCADE",
            )
            assert poll(lambda: sync.has_said("foreign keys") or "penstock_references" in str(documents(index)), 60)
        execute(database, "DELETE FROM d.maker WHERE id = 2")  # while nobody captures
        with serving(database, port):
            assert poll(lambda: names() == {"1": "kettle"}, 120), (names(), sync.lines)
            execute(
                database,
                "INSERT INTO d.product SELECT 100 + seq, 'many', seq, 1, 0, '1' FROM d.seq_1_to_6000",
                "INSERT INTO d.part SELECT 100 + seq, 100 + seq, 'part' FROM d.seq_1_to_6000",
                "UPDATE d.part SET label = 'all'",
            )
            assert poll(lambda: len(documents(index)) == 6001, 120), sync.lines
            code, text = verify()  # while the last change is on its way
            assert (code, "\nequal: 6,001" in f"\n{text}") == (0, True), text
            assert all(row["parts"][0]["label"] == "all" for row in documents(index).values())
            sync.stop()
            repair_damage(verify, database, index)
    finally:
        output = sync.stop()
    assert sync.process.returncode == 0, output
