"""When a server is ready: settings, elections, and instances that get on."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.backoff import Backoff
from penstock.capture.state import StateTracker
from penstock.config import ConfFolder, InstanceSettings
from penstock.coordinate.election_state import ElectionState
from penstock.instance import InstanceState
from penstock.instance.progress import STUCK_S, unready_reason
from penstock.server.config_monitor import ConfigMonitor
from penstock.server.destination import ElectedDestination
from penstock.server.readiness import check_readiness
from tests.support.elected import elected
from tests.support.recorded_destinations import RecordedDestinations, poll


@pytest.mark.parametrize(
    ("destination", "is_ready", "text"),
    [
        (elected(ElectionState.STANDBY, "10.0.0.2:11111"), True, "standby: 10.0.0.2:11111 runs it"),
        (elected(ElectionState.STANDBY, "10.0.0.2:11111", problem="no way"), True, "standby: 10.0.0.2:11111 runs it"),
        (elected(ElectionState.PAUSED, "10.0.0.1:11111"), True, "paused: active=false is in its running node"),
        (elected(ElectionState.LOST, None), False, "there is no session with ZooKeeper"),
        (elected(ElectionState.STANDBY, None), False, "no server runs it yet"),
        (elected(ElectionState.STANDBY, None, problem="it cannot log in"), False, "it cannot log in"),
        (elected(ElectionState.RUNNING, "10.0.0.1:11111", held=True), False, "it is being started"),
    ],
)
def test_an_elected_destination(destination: ElectedDestination, is_ready: bool, text: str) -> None:
    readiness = check_readiness({"shop": destination}, None)
    assert readiness.is_ready is is_ready
    assert (readiness.notes if is_ready else readiness.unready_reasons) == {"shop": text}


def test_a_server_as_a_whole_may_not_be_ready() -> None:
    assert check_readiness({}, None, "it is being started").unready_reasons == {"(server)": "it is being started"}


def test_settings_that_are_wrong_and_starts_that_fail(tmp_path: Path) -> None:
    runs = RecordedDestinations()
    monitor = ConfigMonitor(ConfFolder(tmp_path, 0), runs, 5, backoff=Backoff(1000, 1000))

    def unready_reasons() -> dict[str, str]:
        return dict(check_readiness({}, monitor).unready_reasons)

    try:
        assert unready_reasons().keys() == {"(server)"}
        (tmp_path / "a.yml").write_text("{}")
        (tmp_path / "b.yml").write_text("{hots: db1}")
        runs.failing["start", "a"] = 1
        monitor.scan()
        assert poll(lambda: "is tried again" in unready_reasons().get("a", ""))
        assert "hots" in unready_reasons()["b"]
        (tmp_path / "a.yml").write_text("{epoch: 2}")
        (tmp_path / "b.yml").write_text("{}")
        monitor.scan()
        assert poll(lambda: unready_reasons() == {}), unready_reasons()
        (tmp_path / "server.yml").write_text("{scan_s: 7}")
        monitor.scan()
        assert "counts from the next start" in monitor.problems["(server)"]
        assert unready_reasons() == {}, "a change that waits for the next start hinders nobody"
        (tmp_path / "server.yml").write_text("{sacn_s: 7}")
        monitor.scan()
        assert unready_reasons().keys() == {"(server)"}
    finally:
        monitor.stop()


# -- one instance


class Scene:
    def __init__(self) -> None:
        self.now, self.silent_s = 1000.0, 0.0
        self.states = StateTracker("shop", clock=lambda: self.now, now=lambda: self.now)
        self.settings = InstanceSettings()

    @property
    def counters(self) -> Any:
        return SimpleNamespace(silent_s=self.silent_s)

    def enter(self, state: InstanceState, reason: str = "") -> None:
        self.states.enter(state, reason)

    @property
    def unready_reason(self) -> str:
        return unready_reason(self, self.now)  # type: ignore[arg-type]


def test_an_instance_that_does_not_get_on() -> None:
    scene = Scene()
    assert scene.unready_reason == "it has stopped"
    scene.enter(InstanceState.STARTING)
    assert scene.unready_reason == "starting"
    scene.enter(InstanceState.FOLLOWING)
    assert scene.unready_reason == ""
    scene.enter(InstanceState.RECONNECTING, "db1 is gone")
    assert scene.unready_reason == "reconnecting: db1 is gone"
    scene.enter(InstanceState.FAILED, "no log")
    assert scene.unready_reason == "failed: no log"
    scene.enter(InstanceState.PAUSED, "manually")
    assert scene.unready_reason == ""


def test_one_that_waits_for_a_client_is_stuck_after_a_while() -> None:
    scene = Scene()
    scene.enter(InstanceState.BLOCKED, "the store is full until 1001 acks")
    scene.now += STUCK_S - 1
    assert scene.unready_reason == ""
    scene.now += 2
    assert scene.unready_reason == "stuck for 61 s: the store is full until 1001 acks"
    scene.enter(InstanceState.FOLLOWING)
    assert scene.unready_reason == ""


def test_one_that_hears_nothing_is_stuck() -> None:
    scene = Scene()
    scene.enter(InstanceState.FOLLOWING)
    scene.now, scene.silent_s = scene.now + 1000, 20
    assert scene.unready_reason == ""
    scene.silent_s = 500
    assert scene.unready_reason == "stuck: capture has done nothing for 500 s"
    scene.enter(InstanceState.BLOCKED)
    scene.enter(InstanceState.FOLLOWING)
    assert scene.unready_reason == "", "what it waited for a client counts for nothing"
