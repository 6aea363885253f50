"""Whatever is edited in whatever order: when all has settled, what runs is what is written."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from penstock.backoff import Backoff
from penstock.config import ConfFolder
from penstock.server.config_monitor import ConfigMonitor
from tests.support.recorded_destinations import RecordedDestinations, poll

names = st.sampled_from(["a", "b", "c"])
epochs = st.integers(0, 3)


class Edits(RuleBasedStateMachine):
    """`wanted` is what should run: a bad file changes nothing of it, an empty one neither."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.runs = RecordedDestinations()
        self.monitor = ConfigMonitor(ConfFolder(self.folder, 0), self.runs, 5, backoff=Backoff(0.0005, 0.002))
        self.written: dict[str, int | None] = {}
        self.wanted: dict[str, int] = {}

    @rule(name=names, epoch=epochs, as_folder=st.booleans())
    def write(self, name: str, epoch: int, as_folder: bool) -> None:
        self.remove(name)
        path = self.folder / name / "instance.yml" if as_folder else self.folder / f"{name}.yml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"epoch: {epoch}", encoding="utf-8")
        self.written[name] = epoch

    @rule(name=names, epoch=epochs)
    def write_canals(self, name: str, epoch: int) -> None:
        self.remove(name)
        path = self.folder / name / "instance.properties"
        path.parent.mkdir(exist_ok=True)
        text = f"canal.instance.master.address=db{epoch}\ncanal.instance.global.spring.xml=memory-instance.xml\n"
        path.write_text(text, encoding="utf-8")
        self.written[name] = epoch + 100

    @rule(name=names, epoch=epochs)
    def link(self, name: str, epoch: int) -> None:
        self.remove(name)
        target = self.folder / f".{name}{epoch}"
        target.write_text(f"epoch: {epoch}", encoding="utf-8")
        (self.folder / f"{name}.yml").symlink_to(target)
        self.written[name] = epoch

    @rule(name=names)
    def spoil(self, name: str) -> None:
        self.remove(name)
        (self.folder / f"{name}.yml").write_text("epoch: [", encoding="utf-8")
        self.written[name] = None

    @rule(name=names)
    def empty(self, name: str) -> None:
        self.remove(name)
        (self.folder / f"{name}.yml").write_text("", encoding="utf-8")
        self.written[name] = None

    @rule(name=names)
    def remove(self, name: str) -> None:
        (self.folder / f"{name}.yml").unlink(missing_ok=True)
        shutil.rmtree(self.folder / name, ignore_errors=True)
        self.written.pop(name, None)

    @rule(name=names, what=st.sampled_from(["start", "reload", "stop"]), times=st.integers(1, 3))
    def fail(self, name: str, what: str, times: int) -> None:
        with self.runs.lock:
            self.runs.failing[what, name] = times

    @rule()
    def scan(self) -> None:
        self.monitor.scan()
        kept = {name: epoch for name, epoch in self.wanted.items() if name in self.written}
        self.wanted = kept | {name: epoch for name, epoch in self.written.items() if epoch is not None}

    @rule()
    def settle(self) -> None:
        self.scan()
        assert poll(lambda: self.monitor.is_reconciled), self.monitor.problems
        running = {
            name: runner.epoch if runner.source.address.startswith("127") else int(runner.source.address[2]) + 100
            for name, runner in self.runs.running.items()
        }
        assert running == self.wanted
        bad = {name for name, epoch in self.written.items() if epoch is None}
        assert self.monitor.problems.keys() == bad
        assert self.runs.mistakes == []

    def teardown(self) -> None:
        try:
            self.settle()
        finally:
            self.monitor.stop()
            shutil.rmtree(self.folder)


TestEdits = Edits.TestCase
TestEdits.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
