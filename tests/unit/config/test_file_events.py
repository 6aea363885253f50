"""The system tells of changes in a folder; who waits is not kept for longer than it takes."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.config import ConfFolder
from penstock.config.file_events import FileEvents


def _swap(folder: Path) -> None:
    """As Kubernetes changes a mounted ConfigMap."""
    (folder / "new").mkdir()
    (folder / "new" / "a.yml").write_text("{epoch: 2}", encoding="utf-8")
    (folder / "..next").symlink_to("new")
    (folder / "..next").rename(folder / "..data")


CHANGES: dict[str, Callable[[Path], object]] = {
    "written": lambda folder: (folder / "a.yml").write_text("{epoch: 2}", encoding="utf-8"),
    "created": lambda folder: (folder / "b.yml").touch(),
    "deleted": lambda folder: (folder / "a.yml").unlink(),
    "replaced": lambda folder: (folder / "other").rename(folder / "a.yml"),
    "swapped": _swap,
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_ends_the_waiting(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.yml").write_text("{epoch: 1}", encoding="utf-8")
    (tmp_path / "other").write_text("{epoch: 3}", encoding="utf-8")
    events = FileEvents()
    assert events.can_tell
    events.watch([tmp_path, tmp_path / "nowhere"])
    assert not events.wait(0.01)
    CHANGES[kind](tmp_path)
    assert events.wait(30)
    assert not events.wait(0.01), "it is told once"


def test_a_folder_of_settings_is_waited_for_no_longer_than_that(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("{epoch: 1}", encoding="utf-8")
    folder, stopping = ConfFolder(tmp_path, 0), threading.Event()
    folder.read()
    begun = time.monotonic()
    threading.Timer(0.3, lambda: (tmp_path / "a.yml").write_text("{epoch: 2}", encoding="utf-8")).start()
    folder.wait(stopping, 60)
    assert time.monotonic() - begun < 30
    assert folder.has_changed()
    threading.Timer(0.3, stopping.set).start()
    folder.read()
    folder.wait(stopping, 60)
    assert time.monotonic() - begun < 30
