"""`penstock sync --replica`: changes come from the log of the primary, documents from its replica."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.search.embedded import EmbeddedIndex
from tests.support.capture import execute, poll
from tests.support.replication import has, pair, start_applying, stop_applying
from tests.support.serve_process import serve_process
from tests.support.sync_process import PENSTOCK, SyncProcess

SPEC = """
index: t
root:
  table: replicated.t
  fields: [a]
  joins: {u: {table: replicated.u, on: {a: id}, fields: [name]}}
"""


@pytest.mark.mariadb
@pytest.mark.campaign
def test_documents_come_from_the_replica(private_server: Callable[..., Any], tmp_path: Path) -> None:
    primary, replica = pair(private_server, "mariadb")
    execute(
        primary,
        "CREATE TABLE replicated.t (id INT PRIMARY KEY, a INT)",
        "CREATE TABLE replicated.u (id INT PRIMARY KEY, name VARCHAR(20))",
        "INSERT INTO replicated.u VALUES (1, 'one'), (2, 'two')",
        "INSERT INTO replicated.t VALUES (1, 1)",
        "CREATE USER 'penstock'@'%' IDENTIFIED BY 'secret-of-a-test'",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO 'penstock'@'%'",
        "CREATE DATABASE last",
    )
    assert poll(lambda: has(replica, "SHOW DATABASES LIKE 'last'"))
    execute(replica, "SET SESSION sql_log_bin = 0", "UPDATE replicated.u SET name = 'replica' WHERE id = 2")
    (tmp_path / "t.yml").write_text(SPEC)
    with serve_process(tmp_path, primary) as serve:
        serve.start()
        command = [PENSTOCK, "sync", tmp_path / "t.yml", "--port", str(primary.port), "--user", "penstock"]
        command += ["--server", f"127.0.0.1:{serve.flight}", "--index", tmp_path / "index"]
        command += ["--checkpoint", tmp_path / "checkpoint", "--replica", f"127.0.0.1:{replica.port}"]
        sync = SyncProcess(command, {**os.environ, "PENSTOCK_PASSWORD": "secret-of-a-test"})
        try:
            assert poll(lambda: sync.has_said("following changes") or sync.has_ended, 90), sync.lines
            assert not sync.has_ended, sync.lines
            stop_applying(replica, "mariadb")
            execute(primary, "UPDATE replicated.t SET a = 2")
            restart = threading.Timer(2, start_applying, (replica, "mariadb"))
            restart.start()

            def text() -> str:
                with EmbeddedIndex.open(tmp_path / "index", read_only=True) as index:
                    return str(index.documents().column("document").to_pylist())

            assert poll(lambda: '"a":2,"u":{"name":"replica"}' in text(), 60), (text(), sync.lines)
            restart.join()
        finally:
            sync.stop()
