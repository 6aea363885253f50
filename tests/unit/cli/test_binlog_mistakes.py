"""What a person can do wrong: one line that says so, a code that is not 0, and never a traceback."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.errors import ConfigurationError
from tests.support.shop_log import binlog, shop_log, shown, written

PENSTOCK = Path(sys.executable).with_name("penstock")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return written(shop_log(), tmp_path)


def shell(command: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The command line with $P for the program and $1, $2 … for the arguments."""
    return subprocess.run(
        ["/bin/bash", "-c", command, "bash", *map(str, arguments)],
        env={**os.environ, "P": f"{PENSTOCK} binlog"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--verify", "--since", "now"], "--verify takes no --since"),
        (["--verify", "--until", "now", "--limit", "3"], "--verify takes no --until, --limit"),
        (["--verify", "--table", "a.b", "--columns", "a", "--without", "b"], "--table, --columns, --without"),
        (["--verify", "--to", "x"], "--verify takes no --to"),
        (["--verify", "--host", "db1"], "--verify takes no --host"),
        (["--verify", "--no-verify"], "--verify takes no --no-verify"),
        (["--verify", "--output", "sql"], "--verify --output sql is not a format: it takes text, json"),
        (["--flashback", "--output", "json"], "--flashback --output json is not a format: it takes sql"),
        (["--output", "table"], "it is called text"),
        (["--output", "orders.csv"], "a file to write is named with --to orders.csv"),
        (["--verify", "--follow"], "--follow goes with --host"),
        (["--stats", "--columns", "id"], "--stats takes no --columns"),
        (["--stats", "--limit", "3"], "--stats takes no --limit"),
        (["--since", ""], "'' is not a position in a log"),
        (["--since", "binlog.000001:99999999999999999999"], "is not a position in a log"),
        (["--since", "10:00", "--until", "9:00"], "--until is not after --since"),
        (["--since", "binlog.000001:9", "--until", "binlog.000001:9"], "--until is not after --since"),
        (["--host", " "], "--host is empty"),
        (["--to", "FOLDER"], "is a folder: only csv, arrow and parquet write into one"),
        (["--to", "LOG"], "is one of the logs to read: it would be overwritten"),
        (["--output", "csv", "--to", "LOG"], "is one of the logs to read"),
    ],
)
def test_options_that_do_not_go_together(log: Path, tmp_path: Path, options: Sequence[str], words: str) -> None:
    before = log.read_bytes()
    paths = {"FOLDER": tmp_path, "LOG": log}
    with pytest.raises(ConfigurationError) as error:
        binlog(log, *(paths.get(option, option) for option in options))
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert log.read_bytes() == before


def test_the_input_is_read_once() -> None:
    with pytest.raises(ConfigurationError, match="name it once"):
        binlog("-", "-")


@pytest.mark.parametrize("mode", ["--verify", "--stats", "--output json", "--output arrow --table shop.note"])
def test_a_reader_that_never_reads(log: Path, mode: str) -> None:
    done = shell(f'set -o pipefail; $P "$1" {mode} | true', log)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("mode", ["--verify", "--output sql", "--output csv --table shop.note", "--flashback"])
def test_a_disk_that_is_full(log: Path, mode: str) -> None:
    done = shell(f'$P "$1" {mode} > /dev/full', log)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "penstock: the standard output: No space left on device"
    assert "Traceback" not in done.stderr


def test_a_file_that_is_no_folder(log: Path) -> None:
    done = shell('$P "$1" --output parquet --table shop.note --to /dev/full', log)
    assert (done.returncode, done.stderr) == (1, "penstock: /dev/full: No space left on device\n")


def test_no_output_at_all(log: Path) -> None:
    done = shell('$P "$1" >&-', log)
    assert done.returncode == 1
    assert done.stderr.startswith("penstock: the standard output is closed")


@pytest.mark.parametrize("mode", ["--output json", "--output csv --table shop.note", "--stats", "--verify"])
def test_a_name_that_is_no_text(log: Path, mode: str) -> None:
    odd = os.fsencode(log.parent) + b"/b\xff.000001"
    os.link(log, odd)
    done = shell(f'cd "$1" && $P b*.000001 {mode}', log.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert "b\ufffd.000001" in done.stdout


def test_verifying_continues_after_a_broken_file(log: Path, tmp_path: Path) -> None:
    empty = tmp_path / "binlog.000002"
    empty.touch()
    result = binlog(empty, log, "--verify")
    first, second = result.stdout.splitlines()
    assert result.exit_code == 1
    assert "this is no binlog: it is empty" in first
    assert "whole, checksums match" in second
    done = shell('cat "$1" | $P - --verify', log)
    assert "whole, checksums match" in done.stdout
    assert done.returncode == 0


def test_an_existing_file_without_a_suffix_is_a_file(log: Path, tmp_path: Path) -> None:
    target = tmp_path / "export"
    target.touch()
    shown(log, "--output", "csv", "--table", "shop.note", "--to", target)
    assert target.read_text().startswith("what,raw,_change_type")
