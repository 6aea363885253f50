"""`penstock filter explain`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli import app
from penstock.errors import ConfigurationError, PenstockError


def explain(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["filter", "explain", *map(str, arguments)])
    if isinstance(result.exception, PenstockError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "penstock.yml"
    path.write_text(
        "instances:\n"
        "- {destination: shop, filter: {allow: 'shop\\..*', deny: ['.*_gho', '.*_old'], kinds: [insert, ddl]}}\n"
        "- {destination: all}\n"
    )
    return path


def test_which_rule_decides(config: Path) -> None:
    text = explain("shop.a", "shop._a_OLD", "crm.x", "--config", config, "--destination", "shop")
    assert text.splitlines() == [
        "shop.a passes: rule 1 of the allow list: shop\\..*",
        "  columns: all",
        "  kinds: insert, ddl",
        "shop._a_OLD is dropped: rule 2 of the deny list: .*_old",
        "crm.x is dropped: no rule of the allow list matches",
    ]
    text = explain("crm.x", "mysql.slave_worker_info", "--config", config, "--destination", "all")
    assert "crm.x passes: no rule is against it, and the allow list is empty" in text
    assert "mysql.slave_worker_info is dropped: rule 1 of the deny list: mysql\\.slave_.*" in text


def test_rules_of_the_command_line_as_json() -> None:
    decisions = json.loads(
        explain(
            "shop.a", "--allow", "x.y,shop\\..*", "--drop", "shop.a:secret/day", "--kind", "ddl", "--output", "json"
        )
    )
    assert decisions == [
        {
            "table": "shop.a",
            "passes": True,
            "reason": "rule 2 of the allow list: shop\\..*; but kinds has none of insert, update and delete",
            "list": "allow",
            "rule": "shop\\..*",
            "number": 2,
            "columns": "all but secret, day (rule 1 of the columns: shop\\.a)",
            "kinds": ["ddl"],
        }
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["shop"], "not a table name: 'shop'"),
        (["a.b", "--config", "none.yml"], "cannot read none.yml"),
        (["a.b", "--config", "{config}"], "has several instances"),
        (["a.b", "--config", "{config}", "--destination", "x"], "has no instance 'x'; it has: all, shop"),
        (["a.b", "--config", "{config}", "--allow", "a"], "--config has a filter already"),
        (["a.b", "--destination", "x"], "--destination goes with --config"),
    ],
)
def test_mistakes(config: Path, arguments: list[str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        explain(*(argument.replace("{config}", str(config)) for argument in arguments))


def test_a_bad_rule_is_one_line_with_its_position() -> None:
    program = Path(sys.executable).with_name("penstock")
    command = [program, "filter", "explain", "a.b", "--deny", "x.y,shop.("]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("penstock: deny: Value error, rule 2 of the deny list, 'shop.(', is no regular")
    assert len(done.stderr.splitlines()) == 1
