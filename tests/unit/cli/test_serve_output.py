"""`penstock serve --output json`: what happens, as JSON lines that a program can follow."""

import json
import subprocess
import sys
from pathlib import Path

import yaml

from tests.support.shop_log import shop_log, written


def test_a_program_can_follow_the_start_of_a_server(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    written(shop_log(), folder)
    config = tmp_path / "server.yml"
    instance = {"destination": "shop", "source": {"path": str(folder)}, "start": "earliest"}
    settings = {"flight": {"port": 0}, "admin": {"port": 0}, "instances": [instance]}
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    code = "from penstock.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", str(config), "--output", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        events = {}
        for line in process.stdout:
            event = json.loads(line)
            events[event["event"]] = event
            if event["event"] == "serving":
                break
        process.terminate()
        assert process.stdout.read() == ""
    assert events["descriptors"]["limit"] > 0
    assert (events["capturing"]["destination"], events["capturing"]["source"]) == ("shop", str(folder))
    assert events["capturing"]["position"]["file"] == "binlog.000001"
    assert {*events["serving"]["ports"]} >= {"flight", "admin"}
