"""Destinations that are configured and do not run yet: what who asks for them is told, and for how long it is held."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.backoff import Backoff
from penstock.canal.structures import InstanceAdminRequest
from penstock.config import ConfFolder, FlightSettings, GroupSettings, InstanceSettings, ServerSettings
from penstock.coordinate.election_state import ElectionState
from penstock.errors import ConfigurationError, NotRunningError, PenstockError, StartingError
from penstock.instance import Instance
from penstock.server.canal.clients import CanalClients
from penstock.server.canal_admin.calls import CanalAdminCalls
from penstock.server.config_monitor import ConfigMonitor
from penstock.server.destinations import Destinations
from penstock.server.expected import ExpectedDestinations
from penstock.server.flight import FlightPort
from penstock.server.log_ring import LogRing
from penstock.server.readiness import check_readiness
from tests.support.admin_support import asked, served, settings_with, shop_folder, status_of
from tests.support.elected import elected
from tests.support.folder_instance import settings_of
from tests.support.recorded_destinations import RecordedDestinations, poll

LONG_S = 60.0


class Scene:
    """Destinations, and what is configured."""

    def __init__(self) -> None:
        self.expected = ExpectedDestinations({"shop": ""})
        self.destinations = Destinations(expected=lambda: self.expected)


@pytest.fixture
def scene() -> Iterator[Scene]:
    new_scene = Scene()
    yield new_scene
    new_scene.destinations.stop_all()


@pytest.fixture
def settings(tmp_path: Path) -> InstanceSettings:
    return settings_of(shop_folder(tmp_path / "logs"), destination="shop", start="earliest")


# -- what is told


def test_what_is_starting_is_transient_and_what_is_not_configured_is_no_destination(scene: Scene) -> None:
    with pytest.raises(StartingError, match=r"destination 'shop' is starting, try again$") as told:
        scene.destinations.running_instance("shop")
    assert told.value.transient
    with pytest.raises(ConfigurationError, match="no destination 'other' on this server; it has: shop"):
        scene.destinations.running_instance("other")


def test_why_a_start_failed_is_told(scene: Scene) -> None:
    scene.expected = ExpectedDestinations(
        {"shop": "start failed 2 times: db1 is gone"}, {"crm": "source.hots is unknown"}
    )
    with pytest.raises(StartingError, match="is starting, try again: start failed 2 times: db1 is gone"):
        scene.destinations.running_instance("shop")
    with pytest.raises(ConfigurationError, match=r"destination 'crm' does not run, .* source\.hots is unknown"):
        scene.destinations.running_instance("crm")


def test_any_destination_may_be_in_a_configuration_that_was_not_read(scene: Scene) -> None:
    scene.expected = ExpectedDestinations(unread="")
    with pytest.raises(StartingError, match="this server is starting, try again: its configuration has not been read"):
        scene.destinations.running_instance("other")
    scene.expected = ExpectedDestinations(unread="the manager does not answer")
    with pytest.raises(StartingError, match="try again: the manager does not answer"):
        scene.destinations.running_instance("other")


def test_what_starts_while_it_is_asked_for_is_found(settings: InstanceSettings) -> None:
    """It was not there at the first look, and is not starting any more at the second."""

    def expected() -> ExpectedDestinations:
        if not destinations.all:
            destinations.start(settings)
        return ExpectedDestinations()

    destinations = Destinations(expected=expected)
    try:
        assert destinations.running_instance("shop").settings.destination == "shop"
    finally:
        destinations.stop_all()


def test_a_server_that_stops_does_not_say_that_it_starts(scene: Scene) -> None:
    scene.destinations.close()
    for call in (scene.destinations.running_instance, scene.destinations.halt):
        with pytest.raises(NotRunningError, match="is being stopped") as told:
            call("shop")
        assert not isinstance(told.value, StartingError)


def test_a_group_is_none_of_the_destinations_that_start() -> None:
    group = GroupSettings.model_validate({"destination": "all", "members": {"a": {}, "b": {}}})
    with pytest.raises(ConfigurationError, match="is a group"):
        Destinations([group], expected=lambda: ExpectedDestinations(unread="")).running_instance("all")


def test_an_elected_destination_starts_where_it_was_elected() -> None:
    with pytest.raises(StartingError, match="is starting, try again"):
        elected(ElectionState.RUNNING, "10.0.0.1:11111", held=True).running_instance()
    standby = elected(ElectionState.STANDBY, "10.0.0.2:11111")
    with pytest.raises(NotRunningError, match=r"does not run on this server; 10\.0\.0\.2:11111 has it") as told:
        standby.running_instance()
    assert not isinstance(told.value, StartingError)
    assert standby.is_served
    assert not elected(ElectionState.STANDBY, None).is_served


# -- what the monitor knows


def test_the_monitor_says_what_is_configured_and_does_not_run(tmp_path: Path) -> None:
    runs = RecordedDestinations()
    monitor = ConfigMonitor(ConfFolder(tmp_path, 0), runs, 5, backoff=Backoff(1000, 1000))
    try:
        assert monitor.expected == ExpectedDestinations(unread="")
        monitor.scan()
        assert monitor.expected.is_empty
        for name, text in {"a": "{}", "b": "{hots: db1}", "c": "{}"}.items():
            (tmp_path / f"{name}.yml").write_text(text, encoding="utf-8")
        runs.failing["start", "c"] = 1
        runs.held["a"] = threading.Event()
        monitor.scan()
        assert poll(lambda: "c cannot start" in monitor.expected.starting["c"])
        assert monitor.expected.starting["a"] == ""
        assert "hots" in monitor.expected.wrong["b"]
        runs.held["a"].set()
        assert poll(lambda: "a" not in monitor.expected.starting)
        (tmp_path / "b.yml").unlink()
        (tmp_path / "c.yml").unlink()
        monitor.scan()
        assert poll(lambda: monitor.expected.is_empty)
    finally:
        monitor.stop()


def test_a_server_is_not_ready_while_destinations_start() -> None:
    assert check_readiness({}, None, starting=["shop"]).unready_reasons == {"shop": "it is being started"}


# -- the ports


def test_canals_clients_are_held_until_a_destination_has_started(scene: Scene, settings: InstanceSettings) -> None:
    looks = list[str]()

    def instance_of(name: str) -> Instance:
        looks.append(name)
        return scene.destinations.running_instance(name)

    waiting = threading.Thread(target=CanalClients(instance_of, LONG_S).await_start, args=("shop", lambda: False))
    waiting.start()
    assert poll(lambda: len(looks) > 3)
    assert waiting.is_alive()
    scene.destinations.start(settings)
    waiting.join(30)
    assert not waiting.is_alive()


@pytest.mark.parametrize("ending", ["gone", "stopped", "dropped", "too long"])
def test_canals_clients_are_not_held_for_nothing(scene: Scene, ending: str) -> None:
    clients = CanalClients(scene.destinations.running_instance, 0.1 if ending == "too long" else LONG_S)
    is_gone = threading.Event()
    waiting = threading.Thread(target=clients.await_start, args=("shop", is_gone.is_set))
    waiting.start()
    match ending:
        case "gone":
            is_gone.set()
        case "stopped":
            scene.destinations.close()
        case "dropped":
            scene.expected = ExpectedDestinations()
    waiting.join(30)
    assert not waiting.is_alive()


def test_a_flight_client_waits_for_a_start(scene: Scene, settings: InstanceSettings) -> None:
    port = FlightPort(FlightSettings(port=0), scene.destinations)
    try:
        with (
            penstock.connect(port.address, destination="shop", retry_timeout_s=0.2) as hasty,
            pytest.raises(StartingError, match="'shop' is starting, try again"),
        ):
            hasty.positions()
        with penstock.connect(port.address, destination="shop", retry_timeout_s=LONG_S) as patient:
            threading.Timer(0.3, scene.destinations.start, [settings]).start()
            assert patient.positions()["latest"]
    finally:
        scene.destinations.close()
        port.stop()


def test_canals_console_is_told_that_a_destination_does_not_run_yet(scene: Scene) -> None:
    calls = CanalAdminCalls(scene.destinations, LogRing(), ServerSettings(flight=FlightSettings(port=0)))

    def asked_for(action: str, destination: str = "shop") -> str:
        return calls.run_instance_action(InstanceAdminRequest(destination, action))

    assert asked_for("check") == "0"
    for action in ("start", "stop", "restart", "release"):
        with pytest.raises(StartingError, match="is starting, try again"):
            asked_for(action)
    with pytest.raises(PenstockError, match="there is no destination 'other'; there is: shop"):
        asked_for("check", "other")


def test_status_and_metrics_have_what_starts(tmp_path: Path) -> None:
    """The source of one is not there: the other one runs."""
    conf, logs = tmp_path / "conf", shop_folder(tmp_path / "logs")
    conf.mkdir()
    (conf / "server.yml").write_text("{flight: {port: 0}, canal: {port: null}, admin: {port: 0}}", encoding="utf-8")
    for name, folder in {"shop": logs, "crm": tmp_path / "none"}.items():
        (conf / f"{name}.yml").write_text(
            f"source: {{path: '{folder}', poll_s: 0.05}}\nstart: earliest", encoding="utf-8"
        )
    folder = ConfFolder(conf, 0)
    with served(folder.read().server, folder, 0) as server:

        def instances_by_name() -> dict[str, Any]:
            return {instance["destination"]: instance for instance in status_of(server)["instances"]}

        assert poll(lambda: server.is_serving and "start failed" in instances_by_name()["crm"]["reason"])
        assert instances_by_name()["crm"]["state"] == "starting"
        assert instances_by_name()["crm"]["role"] == "starting"
        assert "start failed" in instances_by_name()["crm"]["unready_reason"]
        assert instances_by_name()["shop"]["role"] == "running"
        _, text = asked(server, "/metrics")
        assert 'penstock_instance_state{destination="crm",state="starting"} 1' in text
        assert asked(server, "/instances/crm/clients/1001", "DELETE")[0] == 503


def test_a_server_of_settings_says_what_it_has_not_started(tmp_path: Path) -> None:
    settings = settings_with(shop_folder(tmp_path / "logs"))
    with served(settings) as server:
        assert server.is_serving
        assert not server.starting
    assert not server.is_serving
