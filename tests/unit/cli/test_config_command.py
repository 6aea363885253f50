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
        return {option["type"] for option in sections[section]["properties"][name]["anyOf"]}

    assert kinds("StoreSettings", "memory") == {"string", "integer"}
    assert kinds("FilterSettings", "allow") == {"array", "string"}


@pytest.mark.parametrize("text", ["start: 2024-13-45", "start: &a [*a]", f"start: {'9' * 5000}"])
def test_a_value_that_cannot_be_read_is_one_line(conf: Path, text: str) -> None:
    (conf / "shop.yml").write_text(text)
    lines = config("check", conf, code=1).splitlines()
    assert len(lines) == 5
    assert lines[-1].startswith(f"shop      {conf / 'shop.yml'} is not YAML: ")
    (conf / "server.yml").write_text(text)
    with pytest.raises(ConfigurationError, match=r"server\.yml is not YAML: .*"):
        config("check", conf)


def test_a_folder_is_checked(conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    with (conf / "crm" / "instance.properties").open("a") as file:
        file.write("canal.mq.partition=1\n")
    history = "Penstock always keeps its own schema history, in files below data_dir; canal's tsdb is not read"
    assert config("check", conf).splitlines() == [
        "(server)  ok",
        "crm       ok, canal's clients see TIMESTAMP in Asia/Tokyo, the time zone of this machine",
        f"          ignored ({history}): canal.instance.tsdb.enable",
        "          ignored (Penstock writes to no message queue): canal.mq.topic, canal.mq.partition",
        "shop      ok, canal's clients see TIMESTAMP in UTC",
    ]
    (conf / "shop.yml").write_text("source: {hots: s3cret}\n")
    (conf / "zoo.yml").write_text("")
    text = config("check", conf, code=1)
    assert "shop      " + str(conf / "shop.yml") + ": source.hots: Extra inputs" in text
    assert "zoo.yml is empty" in text
    report = json.loads(config("check", conf, "--output", "json", code=1))
    assert "hots" in report["instances"]["shop"]["error"]
    assert [report["instances"][name]["time_zone"] for name in ("crm", "shop")] == ["Asia/Tokyo", None]
    assert "schema history" in report["instances"]["crm"]["ignored"]["canal.instance.tsdb.enable"]
    assert "s3cret" not in text + json.dumps(report)


def test_a_port_that_is_open_to_everybody_is_a_warning(conf: Path) -> None:
    (conf / "server.yml").unlink()
    properties = conf / "canal.properties"
    properties.write_text("canal.port = 11111\n")
    lines = config("check", conf).splitlines()
    assert lines[0] == "(server)  ok"
    assert lines[1].startswith("          WARNING: CANAL'S PORT 11111 ON EVERY ADDRESS OF THIS MACHINE IS OPEN TO")
    (warning,) = json.loads(config("check", conf, "--output", "json"))["server"]["warnings"]
    assert warning in lines[1]
    for text in ("canal.ip = 127.0.0.1", f"canal.user = a\ncanal.passwd = {'0' * 40}", "canal.withoutNetty = true"):
        properties.write_text(text)
        assert "WARNING" not in config("check", conf), text
    properties.write_text("canal.ip = 10.0.0.1")
    assert "CANAL'S PORT 11111 ON 10.0.0.1 IS OPEN" in config("check", conf)


def test_a_misspelled_key_is_named_with_what_was_meant(conf: Path) -> None:
    (conf / "server.yml").unlink()
    (conf / "canal.properties").write_text("canal.ip = 127.0.0.1\ncanal.destination = crm\ncanal.mine = 1\n")
    properties = conf / "crm" / "instance.properties"
    properties.write_text(
        "canal.instance.master.address=db\ncanal.instance.filter.regexp=a\ncanal.instance.crm.filter.blackregex=b\n"
        "canal.instance.dbusername=c\npenstock.canal.timezone=UTC\n"
    )
    lines = [line.strip() for line in config("check", conf).splitlines()]
    for wrong, meant in {
        "canal.destination": "canal.destinations",
        "canal.instance.filter.regexp": "canal.instance.filter.regex",
        "canal.instance.crm.filter.blackregex": "canal.instance.crm.filter.black.regex",
        "canal.instance.dbusername": "canal.instance.dbUsername",
        "penstock.canal.timezone": "penstock.canal.time_zone",
    }.items():
        assert f"WARNING: {wrong} is not a property of canal: did you mean {meant}?" in lines
    assert "ignored (not a property of canal): canal.mine" in lines
    report = json.loads(config("check", conf, "--output", "json"))
    assert report["server"]["did_you_mean"] == {"canal.destination": "canal.destinations"}
    properties.write_text("canal.instance.master.adress=db\n")
    wanted = "canal.instance.master.adress is not a property of canal: did you mean canal.instance.master.address?"
    assert wanted in config("check", conf, code=1), "where the mistake makes an error of it, too"


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
    settings = yaml.safe_load(text)
    assert (settings["admin"]["token"], settings["flight"]["port"]) == ("***", 11115)
    assert [instance["destination"] for instance in settings["instances"]] == ["crm", "shop"]
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
