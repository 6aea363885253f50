"""`penstock sync` that dies at a bad moment: what was deleted meanwhile is deleted in the index too."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.config import InstanceSettings, ServerSettings
from penstock.search.embedded import EmbeddedIndex
from penstock.server import Server
from tests.support.capture import execute, poll, source_of
from tests.support.sync_process import PENSTOCK, SyncProcess

# Only a failure takes as long: on an idle machine each step is over in seconds, the start of Spark included.
DEADLINE_S = 300
SPEC = """
index: t
root:
  table: d.t
  id: id
  fields: [name]
  joins:
    size: {table: d.size, on: {id: id}, fields: [width, {double: {sql: width * 2}}]}
"""


def sizes(folder: Path) -> dict[str, Any]:
    """Return what each document has of the joined table."""
    with EmbeddedIndex.open(folder, read_only=True) as index:
        documents = index.documents()
    ids, texts = (documents.column(name).to_pylist() for name in ("id", "document"))
    return {key: json.loads(text)["size"] for key, text in zip(ids, texts, strict=True)}


@pytest.mark.mariadb
@pytest.mark.timeout(6 * DEADLINE_S)
def test_a_load_that_was_killed_begins_at_the_same_position_again(
    private_server: Callable[..., Any], tmp_path: Path
) -> None:
    server = private_server("mariadb")
    execute(
        server,
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, name VARCHAR(20)) DEFAULT CHARSET utf8mb4",
        "INSERT INTO d.t VALUES (1, 'one'), (2, 'two')",
        "CREATE TABLE d.size (id INT PRIMARY KEY, width INT)",
        "INSERT INTO d.size VALUES (1, 10), (2, 20)",
    )
    flight = Server(ServerSettings.with_flight_only(InstanceSettings(source=source_of(server))))
    flight.start()
    (tmp_path / "t.yml").write_text(SPEC)
    index, checkpoint = tmp_path / "index", tmp_path / "checkpoint"
    command = [PENSTOCK, "sync", tmp_path / "t.yml", "--port", str(server.port), "--server", flight.address]
    command += ["--index", str(index), "--checkpoint", str(checkpoint)]
    environment = {**os.environ, "PENSTOCK_PASSWORD": server.password}

    first = SyncProcess(command, environment)
    try:
        assert poll(lambda: first.has_said("loaded 2 documents") or first.has_ended, DEADLINE_S), first.lines
    finally:
        first.kill()
    assert first.has_said("loaded 2 documents"), first.lines
    assert sizes(index) == {"1": {"width": 10, "double": 20}, "2": {"width": 20, "double": 40}}
    # What happens while it is stopped is followed, also that a table is dropped.
    execute(server, "DELETE FROM d.t WHERE id = 2", "INSERT INTO d.t VALUES (3, 'three')", "DROP TABLE d.size")
    second = SyncProcess(command, environment)

    def is_seen(expected: dict[str, Any]) -> bool:
        """Wait until documents have this of the joined table, or sync has ended; return whether they have it."""
        poll(lambda: sizes(index) == expected or second.has_ended, DEADLINE_S)
        return sizes(index) == expected

    try:
        assert is_seen({"1": None, "3": None}), (sizes(index), second.lines)
        execute(server, "CREATE TABLE d.size (id INT PRIMARY KEY, width INT)", "INSERT INTO d.size VALUES (3, 7)")
        assert is_seen({"1": None, "3": {"width": 7, "double": 14}}), (sizes(index), second.lines)
        assert poll(lambda: any((checkpoint / "commits").glob("[0-9]*")), DEADLINE_S), second.lines
    finally:
        output = second.stop()
    assert second.process.returncode == 0, output
    assert "warning: index 't': there is no table d.size any more" in output

    for gone, message in ((checkpoint, "no checkpoint says"), (index, "is not the one that")):
        kept = gone.rename(gone.with_name("kept"))
        begin = checkpoint.with_name("checkpoint.begin.json")
        if gone is checkpoint:
            begin.rename(tmp_path / "begin.kept")
        refused = SyncProcess(command, environment)
        try:
            assert poll(lambda refused=refused: refused.has_ended, DEADLINE_S), refused.lines
        finally:
            refused.kill()
        assert refused.process.returncode == 1, refused.lines
        assert refused.has_said(message), refused.lines
        if gone is checkpoint:
            gone.rmdir()
            (tmp_path / "begin.kept").rename(begin)
            kept.rename(gone)
    flight.stop()
