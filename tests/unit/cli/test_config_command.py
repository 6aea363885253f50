"""`penstock config`."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from penstock.cli import app
from penstock.errors import ConfigurationError


def config(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["config", *map(str, arguments)])
    if isinstance(result.exception, ConfigurationError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    (tmp_path / "server.yml").write_text("data_dir: /data\nadmin: {token: s3cret}\n")
    (tmp_path / "shop.yml").write_text("source: {host: db1, password: s3cret}\n")
    (tmp_path / "crm").mkdir()
    text = "canal.instance.master.address=db2\ncanal.instance.tsdb.enable=true\ncanal.mq.topic=a\n"
    (tmp_path / "crm" / "instance.properties").write_text(text)
    return tmp_path


def test_the_schema() -> None:
    server, instance = json.loads(config("schema")), json.loads(config("schema", "instance"))
    assert {"flight", "canal", "admin", "canal_admin", "running", "manager"} <= server["properties"].keys()
    assert {"source", "filter", "store", "canal"} <= instance["properties"].keys()
    sections = instance["$defs"]

    def kinds(section: str, name: str) -> set[str]:
        return {one["type"] for one in sections[section]["properties"][name]["anyOf"]}

    assert kinds("StoreSettings", "memory") == {"string", "integer"}
    assert kinds("FilterSettings", "allow") == {"array", "string"}


@pytest.mark.parametrize("text", ["start: 2024-13-45", "start: &a [*a]", f"start: {'9' * 5000}"])
def test_a_value_that_cannot_be_read_is_one_line(conf: Path, text: str) -> None:
    (conf / "shop.yml").write_text(text)
    lines = config("check", conf, code=1).splitlines()
    assert len(lines) == 3
    assert lines[-1].startswith(f"shop      {conf / 'shop.yml'} is not YAML: ")
    (conf / "server.yml").write_text(text)
    with pytest.raises(ConfigurationError, match=r"server\.yml is not YAML: .*"):
        config("check", conf)


def test_a_folder_is_checked(conf: Path) -> None:
    assert config("check", conf).splitlines() == [
        "(server)  ok",
        "crm       ok, ignored: canal.instance.tsdb.enable, canal.mq.topic",
        "shop      ok",
    ]
    (conf / "shop.yml").write_text("source: {hots: s3cret}\n")
    (conf / "zoo.yml").write_text("")
    text = config("check", conf, code=1)
    assert "shop      " + str(conf / "shop.yml") + ": source.hots: Extra inputs" in text
    assert "zoo.yml is empty" in text
    found = json.loads(config("check", conf, "--output", "json", code=1))
    assert "hots" in found["instances"]["shop"]["error"]
    assert "history of tables" in found["instances"]["crm"]["ignored"]["canal.instance.tsdb.enable"]
    assert "s3cret" not in text + json.dumps(found)


def test_a_file_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "penstock.yml"
    path.write_text("instances: [{destination: a}, {destination: b, sorce: 1}]")
    assert "b         " + str(path) + ": sorce: Extra inputs" in config("check", path, code=1)
    path.write_text("flight: {host: 10.0.0.1}")
    with pytest.raises(ConfigurationError, match="no loopback address"):
        config("check", path)
    with pytest.raises(ConfigurationError, match="cannot read"):
        config("check", tmp_path / "nothing")


def test_what_counts_is_shown_without_secrets(conf: Path) -> None:
    text = config("show", conf)
    assert "s3cret" not in text
    found = yaml.safe_load(text)
    assert (found["admin"]["token"], found["flight"]["port"]) == ("***", 11115)
    assert [one["destination"] for one in found["instances"]] == ["crm", "shop"]
    assert yaml.safe_load(config("show", conf, "--destination", "shop"))["data_dir"] == "/data"
    with pytest.raises(ConfigurationError, match="no instance 'x'"):
        config("show", conf, "--destination", "x")


def test_other_commands_take_a_folder_too(conf: Path) -> None:
    done = CliRunner().invoke(app, ["filter", "explain", "a.b", "--config", str(conf), "--destination", "shop"])
    assert "a.b passes" in done.output
    (conf / "bad.yml").write_text("source: [")
    done = CliRunner().invoke(app, ["filter", "explain", "a.b", "--config", str(conf), "--destination", "shop"])
    assert "a.b passes" in done.output, "another one's mistake does not matter"
    done = CliRunner().invoke(app, ["filter", "explain", "a.b", "--config", str(conf), "--destination", "bad"])
    assert "is not YAML" in str(done.exception)
    done = CliRunner().invoke(app, ["filter", "explain", "a.b", "--config", str(conf), "--destination", "x"])
    assert "no instance 'x'; it has: bad, crm, shop" in str(done.exception)
