"""The quick parser gives a command the keywords that typer gives it, or leaves the arguments to typer."""

import inspect
from functools import wraps
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from penstock.cli.binlog import binlog
from penstock.cli.quick_arguments import parse_quickly

WORDS = [
    "binlog.000007", "-", "--", "--format", "json", "--format=sql", "--limit", "3", "--limit=0", "--limit", "x",
    "--table", "shop[.].*", "--table=", "--since", "-10m", "--from", "now", "--follow", "--follow=1", "--stats",
    "--no-verify", "--port", "99999", "--port=3307", "--host", "db1", "--password", "p", "--help", "-v", "--unknown",
    "--columns", "id,name", "--output", "out.csv", "--without=a", "--statements", "é", "",
]  # fmt: skip


def by_typer(arguments: list[str]) -> dict[str, Any] | None:
    """The keywords that typer calls the function with; None when it does not call it."""
    seen: list[dict[str, Any]] = []

    @wraps(binlog)
    def note(**keywords: Any) -> None:
        seen.append(keywords)

    note.__signature__ = inspect.signature(binlog)  # type: ignore[attr-defined]
    app = typer.Typer()
    app.command()(note)
    CliRunner().invoke(app, arguments)
    return seen[0] if seen else None


@pytest.mark.parametrize(
    "arguments",
    [
        ["binlog.000007"],
        ["a", "b", "--format", "json", "--limit=3"],
        ["--since", "-10m", "a"],
        ["--from=now", "-", "--table", "x", "--table=y", "--stats"],
        ["--port", "3307", "--host", "db1", "--follow", "--", "--odd-name"],
    ],
)
def test_plain_arguments_are_parsed_as_by_typer(arguments: list[str]) -> None:
    quick = parse_quickly(binlog, arguments)
    assert quick is not None
    assert quick == by_typer(arguments)


@given(st.lists(st.sampled_from(WORDS), max_size=6))
@settings(max_examples=150, deadline=None)
def test_any_arguments_are_parsed_as_by_typer_or_left_to_it(arguments: list[str]) -> None:
    quick = parse_quickly(binlog, arguments)
    if quick is not None:
        assert quick == by_typer(arguments), arguments


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--unknown"],
        ["--limit", "x"],
        ["--limit", "0"],
        ["--format"],
        ["--port=70000"],
        ["-v"],
        ["--stats=1"],
    ],
)
def test_mistakes_and_help_are_left_to_typer(arguments: list[str]) -> None:
    assert parse_quickly(binlog, arguments) is None


def test_a_password_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_PASSWORD", "secret")
    arguments = ["--host", "db1"]
    quick = parse_quickly(binlog, arguments)
    assert quick is not None
    assert quick["password"] == "secret"
    assert quick == by_typer(arguments)
