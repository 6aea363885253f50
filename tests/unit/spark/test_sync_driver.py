"""Which processes may share a checkpoint, and what a pipeline is called."""

from pathlib import Path

import pytest

from penstock.client import ServerAddress
from penstock.config import SourceSettings
from penstock.errors import ConfigurationError
from penstock.spark.index_target import IndexTarget
from penstock.spark.sync_driver import ElectedDriver, SoleDriver, lock_checkpoint, make_candidate
from penstock.spark.sync_output import DriverStatus
from penstock.spark.sync_progress import SyncReport
from penstock.spark.sync_settings import SyncSettings


class Silence:
    """An output of which nothing is asked."""

    def tell(self, text: str) -> None: ...

    def show_load(self, report: object) -> None: ...

    def report(self, report: SyncReport) -> None: ...

    def enter(self, status: DriverStatus) -> None: ...


@pytest.fixture
def settings(tmp_path: Path) -> SyncSettings:
    target = IndexTarget(str(tmp_path / "index"))
    return SyncSettings((), SourceSettings(), ServerAddress("127.0.0.1:1"), "default", target, tmp_path / "orders")


def test_a_driver_without_zookeeper_wants_its_checkpoint_alone(settings: SyncSettings) -> None:
    told = r"orders is in use by another `penstock sync`, pid=\d+ .* a checkpoint of its own, or start all with"
    for is_shared in (True, False):
        with (
            lock_checkpoint(settings.checkpoint, is_shared=is_shared),
            pytest.raises(ConfigurationError, match=told),
        ):
            SoleDriver(settings, Silence()).run()


def test_elected_drivers_share_it(settings: SyncSettings) -> None:
    candidate = make_candidate("127.0.0.1:1", None, settings.checkpoint)
    with lock_checkpoint(settings.checkpoint, is_shared=True), lock_checkpoint(settings.checkpoint, is_shared=True):
        pass
    with lock_checkpoint(settings.checkpoint, is_shared=False), pytest.raises(ConfigurationError, match="in use"):
        ElectedDriver(settings, candidate, Silence()).run()


def test_a_pipeline_has_the_name_of_its_checkpoint_unless_it_is_named() -> None:
    assert make_candidate("zk1:2181", None, Path("/var/lib/penstock/orders")).pipeline == "orders"
    assert make_candidate("zk1:2181", "shop orders", Path("/var/lib/penstock/orders")).pipeline == "shop orders"
    for name in ("", ".", "..", "a/b", "a\x00b", "a\nb"):
        with pytest.raises(ConfigurationError, match="choose another --name"):
            make_candidate("zk1:2181", name, Path("/var/lib/penstock/orders"))
