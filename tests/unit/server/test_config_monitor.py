"""The instance config monitor: what is written is what runs."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.backoff import Backoff
from penstock.config import ConfFolder, InstanceSettings
from penstock.config.snapshot import SERVER
from penstock.server.config_monitor import ConfigMonitor
from penstock.server.destination_reconciler import ReconcileStep, next_step
from tests.support.recorded_destinations import RecordedDestinations, poll

QUICK = Backoff(0.002, 0.02)
NEVER = Backoff(1000, 1000)


class Scene:
    """A folder, a monitor that is told when to look, and what runs."""

    def __init__(self, folder: Path, backoff: Backoff = QUICK) -> None:
        self.folder = folder
        self.runs = RecordedDestinations()
        self.monitor = ConfigMonitor(ConfFolder(folder, 0), self.runs, 5, backoff=backoff)

    def write(self, name: str, text: str) -> None:
        (self.folder / f"{name}.yml").write_text(text, encoding="utf-8")

    def scan(self) -> None:
        self.monitor.scan()
        assert poll(lambda: self.monitor.is_reconciled), self.monitor.problems

    @property
    def epochs(self) -> dict[str, int]:
        with self.runs.lock:
            return {name: settings.epoch for name, settings in self.runs.running.items()}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.monitor.stop()
    assert scene.runs.mistakes == []


def test_new_changed_gone(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    scene.write("a", "{epoch: 1, source: {password: s3cret}}")
    scene.write("b", "{epoch: 1}")
    scene.scan()
    assert scene.epochs == {"a": 1, "b": 1}
    scene.write("a", "{epoch: 2, source: {password: s3cret2}}")
    scene.scan()
    scene.scan()
    assert scene.epochs == {"a": 2, "b": 1}
    assert "destination settings changed destination=a changes=source.password: ***; epoch: 1 → 2" in caplog.text
    (scene.folder / "b.yml").unlink()
    scene.scan()
    assert scene.epochs == {"a": 2}
    events = [record.getMessage() for record in caplog.records]
    assert "destination removed from config destination=b" in events
    assert "destination configuration applied destination=b action=stop" in events
    scene.write("b", "{epoch: 3}")
    scene.scan()
    assert scene.epochs == {"a": 2, "b": 3}
    of_b = [call for call in scene.runs.calls if call[1] == "b"]
    assert of_b == [("start", "b"), ("stop", "b"), ("start", "b")]
    assert scene.runs.called("reload", "a") == 1
    assert "s3cret" not in caplog.text
    assert scene.monitor.problems == {}


def test_what_is_written_differently_and_means_the_same_is_no_change(scene: Scene) -> None:
    scene.write("a", "{epoch: 1}")
    scene.scan()
    scene.write("a", "# the first\nepoch: 1\n")
    scene.scan()
    assert scene.runs.calls == [("start", "a")]


def test_a_bad_one_stays_as_it_was_until_it_is_corrected(scene: Scene) -> None:
    scene.write("a", "{epoch: 1}")
    scene.scan()
    scene.write("a", "{epoch: many}")
    scene.write("b", "{epoch: many}")
    for _ in range(2):
        scene.scan()
        assert scene.epochs == {"a": 1}
        assert [*scene.monitor.problems] == ["a", "b"]
        assert "a.yml: epoch: Input should be a valid integer" in scene.monitor.problems["a"]
    scene.write("a", "{epoch: 2}")
    scene.write("b", "{epoch: 2}")
    scene.scan()
    assert (scene.epochs, scene.monitor.problems) == ({"a": 2, "b": 2}, {})


def test_a_start_that_fails_is_tried_again(scene: Scene) -> None:
    scene.runs.failing["start", "a"] = 3
    scene.write("a", "{epoch: 1}")
    scene.write("b", "{epoch: 1}")
    scene.scan()
    assert scene.epochs == {"a": 1, "b": 1}
    assert (scene.runs.called("start", "a"), scene.runs.called("start", "b")) == (4, 1)
    assert scene.monitor.problems == {}


def test_a_start_that_fails_is_shown_and_another_file_is_tried_at_once(tmp_path: Path) -> None:
    scene = Scene(tmp_path, NEVER)
    scene.runs.failing["start", "a"] = 1
    scene.write("a", "{epoch: 1}")
    scene.monitor.scan()
    assert poll(lambda: scene.monitor.problems)
    assert scene.monitor.problems == {"a": "start failed 1 times, is tried again: a cannot start"}
    assert not scene.monitor.is_reconciled
    scene.write("a", "{epoch: 2}")
    scene.scan()
    assert (scene.epochs, scene.monitor.problems) == ({"a": 2}, {})
    scene.monitor.stop()


def test_one_that_is_removed_while_its_start_is_tried(tmp_path: Path) -> None:
    scene = Scene(tmp_path, NEVER)
    scene.runs.failing["start", "a"] = 9
    scene.write("a", "{epoch: 1}")
    scene.monitor.scan()
    assert poll(lambda: scene.monitor.problems)
    (tmp_path / "a.yml").unlink()
    scene.scan()
    assert (scene.epochs, scene.monitor.problems, scene.runs.calls) == ({}, {}, [("start", "a")])
    scene.monitor.stop()


def test_a_slow_start_holds_up_nobody(scene: Scene) -> None:
    for name in "abcdefgh":
        scene.runs.held[name] = threading.Event()
        scene.write(name, "{epoch: 1}")
    scene.write("quick", "{epoch: 1}")
    scene.monitor.scan()
    assert poll(lambda: scene.epochs == {"quick": 1})
    scene.write("quick", "{epoch: 2}")
    scene.monitor.scan()
    assert poll(lambda: scene.epochs == {"quick": 2})
    scene.write("a", "{epoch: 2}")
    (scene.folder / "b.yml").unlink()
    scene.monitor.scan()
    for event in scene.runs.held.values():
        event.set()
    assert poll(lambda: scene.monitor.is_reconciled)
    assert scene.epochs == dict.fromkeys("cdefgh", 1) | {"a": 2, "quick": 2}


def test_a_reload_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    scene = Scene(tmp_path, NEVER)
    scene.write("a", "{epoch: 1}")
    scene.scan()
    scene.runs.failing["reload", "a"] = 1
    scene.write("a", "{epoch: 2}")
    scene.monitor.scan()
    assert poll(lambda: "reload failed" in scene.monitor.problems.get("a", ""))
    assert scene.epochs == {"a": 1}
    scene.write("a", "{epoch: 1}")
    scene.scan()
    assert poll(lambda: not scene.monitor.problems), "what runs is what is written"
    scene.monitor.stop()


def test_after_a_stop_that_fails_nobody_knows_what_runs(tmp_path: Path) -> None:
    scene = Scene(tmp_path, NEVER)
    scene.write("a", "{epoch: 1}")
    scene.scan()
    scene.runs.failing["stop", "a"] = 1
    (tmp_path / "a.yml").unlink()
    scene.monitor.scan()
    assert poll(lambda: "stop failed" in scene.monitor.problems.get("a", ""))
    scene.write("a", "{epoch: 1}")
    scene.scan()
    assert scene.runs.calls == [("start", "a"), ("stop", "a"), ("stop", "a"), ("start", "a")]
    assert scene.epochs == {"a": 1}
    scene.monitor.stop()


def test_links_that_are_swapped(scene: Scene) -> None:
    for number in (1, 2):
        (scene.folder / f"..{number}").mkdir()
        (scene.folder / f"..{number}" / "a.yml").write_text(f"epoch: {number}", encoding="utf-8")
    (scene.folder / "..data").symlink_to("..1")
    (scene.folder / "a.yml").symlink_to("..data/a.yml")
    scene.scan()
    assert scene.epochs == {"a": 1}
    (scene.folder / "..new").symlink_to("..2")
    (scene.folder / "..new").rename(scene.folder / "..data")
    scene.scan()
    assert scene.epochs == {"a": 2}


def test_a_half_written_file_is_waited_for(scene: Scene) -> None:
    scene.write("a", "{epoch: 1}")
    scene.scan()
    scene.write("a", "")
    scene.scan()
    assert (scene.epochs, [*scene.monitor.problems]) == ({"a": 1}, ["a"])
    scene.write("a", "{epoch: 2}")
    scene.scan()
    assert (scene.epochs, scene.monitor.problems) == ({"a": 2}, {})


def test_the_servers_own_file(scene: Scene) -> None:
    scene.write("server", "{data_dir: /data}")
    scene.write("a", "{epoch: 1}")
    scene.scan()
    scene.write("server", "{data_dir: /data, nonsense: 1}")
    scene.write("a", "{epoch: 2}")
    scene.scan()
    assert scene.epochs == {"a": 1}
    assert "nonsense: Extra inputs" in scene.monitor.problems[SERVER]
    scene.write("server", "{data_dir: /data, canal: {port: 7}}")
    scene.scan()
    assert scene.epochs == {"a": 2}
    said = "changed, and counts from the next start: canal.port: 11111 → 7"
    assert scene.monitor.problems == {SERVER: said}


def test_keys_that_count_for_nothing_are_told_once(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    (scene.folder / "a").mkdir()
    text = "canal.instance.master.address=db1\ncanal.instance.global.spring.xml=memory-instance.xml\ncanal.x=s3cret"
    (scene.folder / "a" / "instance.properties").write_text(text, encoding="utf-8")
    scene.scan()
    scene.scan()
    assert caplog.text.count("config keys ignored destination=a keys=canal.x") == 1
    assert "s3cret" not in caplog.text


def test_its_thread_looks_by_itself_and_notices_before_the_scan(tmp_path: Path) -> None:
    runs = RecordedDestinations()
    monitor = ConfigMonitor(ConfFolder(tmp_path, 0.01), runs, 3600, look_s=0.01, backoff=QUICK)
    monitor.start()
    try:
        (tmp_path / "a.yml").write_text("{epoch: 1}", encoding="utf-8")
        assert poll(lambda: runs.called("start", "a"))
        (tmp_path / "a.yml").unlink()
        assert poll(lambda: runs.called("stop", "a"))
    finally:
        monitor.stop()
    ours = ("penstock-config-monitor", "penstock-reconcile-")
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(ours)]


def test_without_scans_it_reads_once(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("{epoch: 1}", encoding="utf-8")
    runs = RecordedDestinations()
    monitor = ConfigMonitor(ConfFolder(tmp_path, 0), runs, 0, look_s=0.001)
    monitor.start()
    assert poll(lambda: runs.called("start", "a"))
    monitor.stop()
    assert runs.running, "what runs stays"


def test_steps() -> None:
    first, two = InstanceSettings(epoch=1), InstanceSettings(epoch=2)
    assert next_step(None, first, False) is ReconcileStep.START
    assert next_step(first, two, False) is ReconcileStep.RELOAD
    assert next_step(first, None, False) is ReconcileStep.STOP
    assert next_step(first, first, False) is None
    assert next_step(None, None, False) is None
    assert next_step(first, first, True) is ReconcileStep.STOP


def test_tries_are_further_and_further_apart() -> None:
    backoff = Backoff(1, 60, spread=0.5, random=lambda: 0.5)
    assert [backoff.delay_s(failures) for failures in (1, 2, 3, 7, 99)] == [1, 2, 4, 60, 60]
    assert Backoff(1, 60, spread=0.5, random=lambda: 0.0).delay_s(1) == 0.5
