"""`penstock sync` that dies at a bad moment: what was deleted meanwhile is deleted in the index too."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.config import InstanceSettings, ServerSettings
from penstock.search.embedded import EmbeddedIndex
from penstock.server import Server
from tests.support.capture import execute, poll, source_of

PENSTOCK = Path(sys.executable).with_name("penstock")
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
@pytest.mark.timeout(300)
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
    command = [PENSTOCK, "sync", "t.yml", "--port", str(server.port), "--server", flight.address]
    command += ["--index", str(index), "--checkpoint", str(checkpoint)]
    environment = {**os.environ, "PENSTOCK_PASSWORD": server.password}

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    with start() as first:
        assert first.stdout is not None
        assert any("loaded 2 documents" in line for line in first.stdout)
        first.kill()
    assert sizes(index) == {"1": {"width": 10, "double": 20}, "2": {"width": 20, "double": 40}}
    # What happens while it is stopped is followed, also that a table is dropped.
    execute(server, "DELETE FROM d.t WHERE id = 2", "INSERT INTO d.t VALUES (3, 'three')", "DROP TABLE d.size")
    with start() as second:
        try:
            assert poll(lambda: sizes(index) == {"1": None, "3": None} or second.poll() is not None, 150)
            assert sizes(index) == {"1": None, "3": None}
            execute(server, "CREATE TABLE d.size (id INT PRIMARY KEY, width INT)", "INSERT INTO d.size VALUES (3, 7)")
            assert poll(lambda: sizes(index) == {"1": None, "3": {"width": 7, "double": 14}}, 60), sizes(index)
            assert poll(lambda: any((checkpoint / "commits").glob("[0-9]*")), 60)
        finally:
            second.terminate()
            output = second.communicate(timeout=60)[0]
            print(output)  # for a failure
    assert second.returncode == 0, output
    assert "warning: index 't': there is no table d.size any more" in output

    for gone, message in ((checkpoint, "no checkpoint says"), (index, "is not the one that")):
        kept = gone.with_name("kept")
        gone.rename(kept)
        begin = checkpoint.with_name("checkpoint.begin.json")
        if gone is checkpoint:
            begin.rename(tmp_path / "begin.kept")
        with start() as refused:
            output = refused.communicate(timeout=60)[0]
        assert refused.returncode == 1
        assert message in output
        if gone is checkpoint:
            gone.rmdir()
            (tmp_path / "begin.kept").rename(begin)
            kept.rename(gone)
    flight.stop()
