"""The config monitor continues whatever a file says, and whatever goes wrong while it is read."""

import logging
import threading
from pathlib import Path

import pytest

from penstock.backoff import Backoff
from penstock.config import ConfFolder, ConfigSnapshot
from penstock.config.snapshot import SERVER
from penstock.server.config_monitor import ConfigMonitor
from penstock.server.readiness import check_readiness
from tests.support.recorded_destinations import RecordedDestinations, poll
from tests.support.yaml_texts import BOMB


class Breaking:
    """A folder that cannot be read in a way that nobody has thought of."""

    def __init__(self, folder: Path) -> None:
        self._folder = ConfFolder(folder, 0)
        self.reading: Exception | None = None
        self.looking: Exception | None = None
        self.reads = 0

    def read(self) -> ConfigSnapshot:
        self.reads += 1
        if self.reading is not None:
            raise self.reading
        return self._folder.read()

    def wait(self, stopping: threading.Event, timeout_s: float) -> None:
        self._folder.wait(stopping, timeout_s)

    def has_changed(self) -> bool:
        if self.looking is not None:
            raise self.looking
        return self._folder.has_changed()


@pytest.mark.parametrize("text", ["start: 2024-13-45", "start: &a [*a]", f"epoch: {'9' * 5000}", BOMB])
@pytest.mark.parametrize("name", ["a", "server"])
def test_a_value_that_cannot_be_read(tmp_path: Path, name: str, text: str) -> None:
    runs = RecordedDestinations()
    monitor = ConfigMonitor(ConfFolder(tmp_path, 0), runs, 5, look_s=0.01, backoff=Backoff(0.002, 0.02))
    (tmp_path / "a.yml").write_text("epoch: 1")
    monitor.start()
    assert poll(lambda: "a" in runs.running)
    good = (tmp_path / f"{name}.yml").read_text() if name == "a" else ""
    (tmp_path / f"{name}.yml").write_text(text)
    shown = SERVER if name == "server" else name
    assert poll(lambda: "is not YAML" in monitor.problems.get(shown, "")), monitor.problems
    assert not check_readiness({}, monitor).is_ready
    (tmp_path / f"{name}.yml").write_text(good + "\n# corrected\n")
    assert poll(lambda: not monitor.problems)
    (tmp_path / "b.yml").write_text("epoch: 2")
    assert poll(lambda: {*runs.running} == {"a", "b"})
    monitor.stop()


def test_an_error_that_nobody_has_thought_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    runs, conf = RecordedDestinations(), Breaking(tmp_path)
    monitor = ConfigMonitor(conf, runs, 0.02, look_s=0.01, backoff=Backoff(0.002, 0.02))
    (tmp_path / "a.yml").write_text("epoch: 1")
    monitor.start()
    assert poll(lambda: "a" in runs.running and not check_readiness({}, monitor).unready_reasons)
    conf.reading = KeyError("s3cret")
    assert poll(lambda: "KeyError" in monitor.problems.get(SERVER, ""))
    assert SERVER in check_readiness({}, monitor).unready_reasons
    reads = conf.reads
    assert poll(lambda: conf.reads > reads + 3)
    assert [*runs.running] == ["a"]
    conf.looking, conf.reading = OSError("no"), None
    assert poll(lambda: not monitor.problems and check_readiness({}, monitor).is_ready)
    (tmp_path / "b.yml").write_text("epoch: 2")
    assert poll(lambda: {*runs.running} == {"a", "b"})
    monitor.stop()
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1, "it is logged once, with where it was"
    assert "in read" in errors[0].getMessage()
    assert "s3cret" not in caplog.text


def test_the_first_scan_too(tmp_path: Path) -> None:
    runs, conf = RecordedDestinations(), Breaking(tmp_path)
    (tmp_path / "a.yml").write_text("epoch: 1")
    conf.reading = RecursionError()
    monitor = ConfigMonitor(conf, runs, 0.02, look_s=0.01, backoff=Backoff(0.002, 0.02))
    monitor.start()
    assert poll(lambda: "RecursionError" in monitor.problems.get(SERVER, ""))
    conf.reading = None
    assert poll(lambda: "a" in runs.running and not monitor.problems)
    monitor.stop()
