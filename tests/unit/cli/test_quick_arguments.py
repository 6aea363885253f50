"""The quick parser gives a command the keywords that typer gives it, or leaves the arguments to typer."""

import inspect
import subprocess
import sys
from functools import wraps
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.models import ArgumentInfo
from typer.testing import CliRunner

from penstock.cli.binlog import binlog
from penstock.cli.quick_arguments import CommandParameter, parse_quickly
from penstock.cli.quick_binlog import PARAMETERS
from tests.support.shop_log import shop_log, written

WORDS = [
    "binlog.000007", "-", "--", "--output", "json", "--output=sql", "--limit", "3", "--limit=0", "--limit", "x",
    "--table", "shop[.].*", "--table=", "--since", "-10m", "--from", "now", "--follow", "--follow=1", "--stats",
    "--no-verify", "--port", "99999", "--port=3307", "--host", "db1", "--password", "p", "--help", "-v", "--unknown",
    "--columns", "id,name", "--to", "out.csv", "--without=a", "--statements", "é", "",
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
        ["a", "b", "--output", "json", "--limit=3"],
        ["--since", "-10m", "a"],
        ["--from=now", "-", "--table", "x", "--table=y", "--stats"],
        ["--port", "3307", "--host", "db1", "--follow", "--", "--odd-name"],
    ],
)
def test_plain_arguments_are_parsed_as_by_typer(arguments: list[str]) -> None:
    quick = parse_quickly(PARAMETERS, arguments)
    assert quick is not None
    assert quick == by_typer(arguments)


@given(st.lists(st.sampled_from(WORDS), max_size=6))
@settings(max_examples=150, deadline=None)
def test_any_arguments_are_parsed_as_by_typer_or_left_to_it(arguments: list[str]) -> None:
    quick = parse_quickly(PARAMETERS, arguments)
    if quick is not None:
        assert quick == by_typer(arguments), arguments


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--unknown"],
        ["--limit", "x"],
        ["--limit", "0"],
        ["--output"],
        ["--port=70000"],
        ["-v"],
        ["--stats=1"],
    ],
)
def test_mistakes_and_help_are_left_to_typer(arguments: list[str]) -> None:
    assert parse_quickly(PARAMETERS, arguments) is None


def test_a_password_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_PASSWORD", "secret")
    arguments = ["--host", "db1"]
    quick = parse_quickly(PARAMETERS, arguments)
    assert quick is not None
    assert quick["password"] == "secret"
    assert quick == by_typer(arguments)


def test_the_parameters_are_those_that_typer_knows() -> None:
    """All that is written twice: names, spellings, types, defaults, limits and variables of the environment."""
    signature, parameters = inspect.signature(binlog), list[CommandParameter]()
    for name, hint in get_type_hints(binlog, include_extras=True).items():
        if name == "return":
            continue
        annotation, info = get_args(hint)
        (kind,) = [kind for kind in get_args(annotation) or (annotation,) if kind is not NoneType]
        is_list = get_origin(kind) is list
        first = [info.default] if isinstance(info.default, str) else []
        words = [] if isinstance(info, ArgumentInfo) else [*first, *(info.param_decls or ())] or [f"--{name}"]
        parameters.append(
            CommandParameter(
                name,
                tuple(words),
                get_args(kind)[0] if is_list else kind,
                is_list,
                signature.parameters[name].default,
                info.min,
                info.max,
                info.envvar or "",
            )
        )
    assert tuple(parameters) == PARAMETERS


def test_files_are_read_without_typer(tmp_path: Path) -> None:
    code = "import sys; sys.argv[0] = 'penstock'; from penstock.cli import main; main()"
    log = written(shop_log(), tmp_path)
    for options in (["--output", "json"], ["--output", "sql"], ["--stats"]):
        result = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", code, "binlog", str(log), *options],
            capture_output=True,
            text=True,
            check=True,
        )
        loaded = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
        assert "numpy" in loaded
        assert not loaded & {"typer", "pydantic", "pandas", "pymysql", "penstock.schema.ddl"}, options
        assert "numpy.ma" not in loaded or options == ["--stats"]
