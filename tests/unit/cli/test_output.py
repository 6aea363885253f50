"""`--output` says in which form results are printed, in every command, and json is one of them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from penstock.cli import app
from penstock.cli.binlog import FORMATS
from penstock.cli.output import Output, format_size, table_lines
from penstock.cli.snapshot_files import FORMATS as SNAPSHOT_FORMATS
from tests.support.shop_log import binlog, shop_log, written

ALWAYS_JSON = {"config schema"}


def commands(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Commands by their names, those of groups as well."""
    if not hasattr(command, "commands"):
        yield name, command
        return
    for child_name, child in command.commands.items():
        yield from commands(child, f"{name} {child_name}".strip())


ALL = dict(commands(get_command(app)))


@pytest.mark.parametrize("name", sorted(set(ALL) - ALWAYS_JSON))
def test_every_command_prints_json_if_asked(name: str) -> None:
    """`penstock binlog` checks its formats itself: it must start without typer."""
    options = {word: option for option in ALL[name].params for word in option.opts}
    assert "--output" in options
    assert "--json" not in options
    if name == "binlog":
        assert FORMATS[:2] == ("text", "json")
        assert options["--format"] is options["--output"]
        return
    if name == "snapshot read":  # it prints rows, which are data: there is no text for people
        assert options["--output"].default == "json"
        assert "json" in SNAPSHOT_FORMATS
        return
    assert "--format" not in options
    assert options["--output"].default == "text"
    result = CliRunner().invoke(app, [*name.split(), "--output", "result.json"])
    assert result.exit_code == 2
    words = result.stderr.replace("\n", " ").replace("│", " ")
    assert "'result.json' is not one of 'text', 'json'" in " ".join(words.split())


def test_there_are_the_commands_that_are_looked_at() -> None:
    assert {*ALL} >= {"binlog", "serve", "sync", "position set", *ALWAYS_JSON}


def test_verified_files_are_json_lines(tmp_path: Path) -> None:
    log = written(shop_log(), tmp_path)
    sound = json.loads(binlog(log, "--verify", "--output", "json").stdout)
    assert (sound["file"], sound["is_sound"], sound["problem"], sound["incidents"]) == (str(log), True, None, [])
    assert sound["bytes"] == log.stat().st_size
    cut = tmp_path / "cut"
    cut.write_bytes(log.read_bytes()[:-3])
    broken = json.loads(binlog(cut, "--verify", "--output", "json").stdout)
    assert not broken["is_sound"]
    assert broken["problem"]


def test_settings_are_the_same_as_yaml_and_as_json(tmp_path: Path) -> None:
    config = tmp_path / "penstock.yml"
    config.write_text("instances:\n- destination: shop\n  source: {host: db1, user: u, password: geheim}\n")
    result = CliRunner().invoke(app, ["config", "show", str(config), "--output", "json"])
    (instance,) = json.loads(result.stdout)["instances"]
    assert (instance["destination"], instance["source"]["password"]) == ("shop", "***")


class Verdict(Enum):
    OK = "ok"


@dataclass(frozen=True)
class Found:
    verdict: Verdict
    path: Path


def test_json_and_text_are_printed_apart(capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("text", "json"):
        output = Output(form)
        output.print_result([Found(Verdict.OK, Path("a"))], lambda: ["first", "second"])
        output.print_note("a note")
        output.print_event("serving", "serving all", ports={"flight": "1"})
        printed = capsys.readouterr()
        if form == "text":
            assert printed.out == "first\nsecond\na note\nserving all\n"
            assert not printed.err
        else:
            *result, event = printed.out.splitlines()
            assert json.loads("\n".join(result)) == [{"verdict": "ok", "path": "a"}]
            assert json.loads(event) == {"event": "serving", "ports": {"flight": "1"}}
            assert printed.err == "a note\n"


def test_tables_and_sizes_are_for_people() -> None:
    assert table_lines([["client", "of"], ["1", "shop"]]) == ["client  of", "1       shop"]
    assert [format_size(size) for size in (0, 999, 1500, 2.5e6, 3e9)] == ["0 B", "999 B", "1.5 kB", "2.5 MB", "3.0 GB"]
