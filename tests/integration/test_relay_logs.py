"""A replica's relay log is read where its bytes lie: the positions in its headers are those of another log."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.testing import DatabaseServer
from tests.support.capture import execute, poll
from tests.support.replication import has, pair

PENSTOCK = Path(sys.executable).with_name("penstock")


def show(files: list[Path], *options: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [PENSTOCK, "binlog", *files, "--table", "shop[.]t", "--output", "json", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [line for line in map(json.loads, done.stdout.splitlines()) if line["type"] == "insert"]


@pytest.mark.parametrize("kind", ["mariadb", "mariadb11", "mysql80"])
def test_positions_of_a_relay_log_rise_and_are_taken(private_server: Callable[..., DatabaseServer], kind: str) -> None:
    primary, replica = pair(private_server, kind, {"relay_log": "relay-bin", "relay_log_purge": "OFF"}, by_gtids=False)
    execute(primary, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, name VARCHAR(40))")
    for number in range(12):
        execute(primary, f"INSERT INTO shop.t VALUES ({number}, 'number {number}')")
        if number % 3 == 2:
            # The next file of the source's log, of the relay log, of both, of neither.
            execute(primary, *["FLUSH BINARY LOGS"][: number % 2])
            execute(replica, *["FLUSH RELAY LOGS"][: number // 3 % 2])
    assert poll(lambda: has(replica, "SELECT 1 FROM shop.t WHERE id = 11"))
    folder = replica.data
    files = sorted(path for path in folder.glob("relay-bin.[0-9]*"))
    assert len(files) > 2
    shown = show(files)
    assert [line["after"]["id"] for line in shown] == list(range(12))
    seqs = [line["seq"] for line in shown]
    assert seqs == sorted(set(seqs))
    assert {line["file"] for line in shown} <= {path.name for path in files}
    for at in (1, 5, 11):
        position = f"{shown[at]['file']}:{shown[at]['pos']}"
        assert show(files, "--since", position) == shown[at:]
        assert show(files, "--until", position) == shown[:at]
    verified = subprocess.run([PENSTOCK, "binlog", *files, "--verify"], capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stdout + verified.stderr
