"""What people ask of snapshots is remembered where the instance's cursors are."""

from pathlib import Path

import pytest

from penstock.config import InstanceSettings
from penstock.errors import MetaError
from penstock.instance.snapshot_control import SnapshotControl
from penstock.instance.snapshot_requests import FileRequests, RequestStore, SnapshotRequests, open_request_store
from penstock.model import TableName


def _no_tree() -> None:
    raise AssertionError("there is no ZooKeeper")


def _open(folder: Path | None) -> RequestStore:
    settings = InstanceSettings.model_validate({"source": {"host": "db1"}, "destination": "shop", "data_dir": folder})
    return open_request_store(settings, _no_tree)  # type: ignore[arg-type]


def test_a_server_that_is_started_again_knows_the_requests(tmp_path: Path) -> None:
    first = SnapshotControl("shop", _open(tmp_path))
    assert not first.is_paused
    first.set_paused(is_paused=True)
    numbers = [first.request_resnapshot(TableName("shop", name)) for name in ("a", "b", "a")]
    assert numbers == sorted(set(numbers)), "each request has a greater number"
    again = SnapshotControl("shop", _open(tmp_path))
    assert again.is_paused
    assert again.report()["again"] == {"shop.a": numbers[2], "shop.b": numbers[1]}
    again.set_paused(is_paused=False)
    assert not first.is_paused, "also what another server was asked"
    assert first.report()["again"] == {"shop.a": numbers[2], "shop.b": numbers[1]}


def test_without_a_folder_they_are_remembered_until_the_server_ends() -> None:
    store = _open(None)
    SnapshotControl("shop", store).set_paused(is_paused=True)
    assert SnapshotControl("shop", store).is_paused
    assert _open(None).load() == SnapshotRequests()


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"paused": true}', '{"paused": true, "again": 3}'])
def test_a_file_that_says_something_else_is_an_error_with_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "snapshots.json").write_text(text)
    with pytest.raises(MetaError, match=r"snapshots\.json does not say what was asked of snapshots"):
        FileRequests("shop", tmp_path).load()
