"""The demo as a person meets it in a terminal: what it prints, and Ctrl-C at any moment."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.capture import poll
from tests.support.demo_process import PENSTOCK, descendants, gone_soon, name_of, press_ctrl_c, running_demo

pytestmark = [pytest.mark.mariadb, pytest.mark.timeout(300)]

KINDS = {
    "new order",
    "set a state",
    "add a line",
    "remove a line",
    "put on a tag",
    "take off a tag",
    "change a product",
    "rename a tag",
    "raise all prices",
    "delete an order",
}


def test_once_times_a_change_of_each_kind_and_leaves_nothing_running(tmp_path: Path) -> None:
    command = [PENSTOCK, "demo", "--once", "--output", "json"]
    result = tmp_path / "changes.json"
    with (
        result.open("w", encoding="utf-8") as output,
        subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr is not None
        started: set[int] = set()
        steps: list[str] = []
        for line in process.stderr:
            steps.append(line)
            started |= descendants(process.pid)
        assert process.wait(60) == 0, "".join(steps)
    changes = json.loads(result.read_text(encoding="utf-8"))
    documents = {change["change"]: change["documents"] for change in changes}
    assert documents.keys() == KINDS
    assert all(change["latency_ms"] > 0 and change["text"] for change in changes)
    assert {kind for kind, count in documents.items() if count > 1} == {
        *("change a product", "rename a tag", "raise all prices")
    }
    assert documents["raise all prices"] > documents["rename a tag"] > documents["change a product"]
    assert started
    assert gone_soon(started) == set()


def test_a_killed_demo_leaves_nothing_running() -> None:
    with running_demo() as (process, _):
        started = descendants(process.pid)
        process.kill()
        process.wait()
        assert gone_soon(started) == set()


@pytest.mark.parametrize("moment", ["Spark is named", "its JVM loads", "its stream starts"])
def test_ctrl_c_while_spark_starts_leaves_nothing_running(moment: str) -> None:
    command = [PENSTOCK, "demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        awaited = "the first batch loads" if moment == "its stream starts" else "Spark"
        assert any(awaited in line for line in process.stdout)
        seen = descendants(process.pid)
        if moment == "its JVM loads":
            assert poll(lambda: "java" in map(name_of, descendants(process.pid)))
        press_ctrl_c(process)
        while process.poll() is None:
            seen |= descendants(process.pid)
            time.sleep(0.05)
        process.stdout.read()
    assert process.returncode in (130, -signal.SIGINT)
    assert gone_soon(seen) == set()
