"""What an instance keeps below its data_dir: only its owner can read it, whatever the umask, and whoever made it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.config import InstanceSettings
from penstock.disk import make_private_folder, make_tree_private
from penstock.instance import Instance
from penstock.store import Start
from tests.support.admin_support import shop_folder


@pytest.fixture(autouse=True)
def open_to_all() -> Iterator[None]:
    """The system would let everybody read what is made."""
    before = os.umask(0)
    yield
    os.umask(before)


def readable_by_others(folder: Path) -> list[str]:
    paths = [folder, *folder.rglob("*")]
    return [str(path.relative_to(folder)) for path in paths if stat.S_IMODE(path.lstat().st_mode) & 0o077]


def run_once(logs: Path, data_dir: Path) -> None:
    """With a client, so that there are cursors, a history and blocks in files."""
    source, store = {"path": str(logs), "poll_s": 0.05}, {"kind": "file"}
    settings = InstanceSettings.model_validate(
        {"destination": "shop", "source": source, "start": "earliest", "data_dir": data_dir, "store": store}
        | {"positions": ["file", "cursors"]}
    )
    instance = Instance(settings)
    instance.start()
    try:
        instance.clients.subscribe(1001, "", Start.stored())
    finally:
        instance.stop()


def test_nobody_else_reads_what_is_kept(tmp_path: Path) -> None:
    logs, data_dir = shop_folder(tmp_path / "logs"), tmp_path / "data"
    run_once(logs, data_dir)
    assert {"meta.dat", "schema", "store"} <= {path.name for path in (data_dir / "shop").iterdir()}
    assert readable_by_others(data_dir) == []


def test_what_was_kept_before_is_closed_when_it_is_opened(tmp_path: Path) -> None:
    logs, data_dir = shop_folder(tmp_path / "logs"), tmp_path / "data"
    run_once(logs, data_dir)
    for path in (data_dir / "shop").rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (data_dir / "shop").chmod(0o755)
    run_once(logs, data_dir)
    assert readable_by_others(data_dir) == []


def test_a_conf_folder_of_canal_stays_what_its_owner_made_it(tmp_path: Path) -> None:
    """There data and configuration lie in one folder."""
    folder = tmp_path / "shop"
    (folder / "store").mkdir(parents=True)
    for name in ("instance.properties", "meta.dat", "store/0.blocks"):
        (folder / name).touch()
    (folder / "link").symlink_to(folder / "instance.properties")
    make_tree_private(folder)
    assert sorted(readable_by_others(folder)) == [".", "instance.properties", "link"]


def test_folders_above_are_made_for_the_owner_too(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "a" / "b")
    assert readable_by_others(tmp_path / "a") == []
