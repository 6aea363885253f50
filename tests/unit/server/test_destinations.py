"""Destinations of a server on a folder of log files: start, reload, stop; what a reload keeps."""

from pathlib import Path
from typing import Any

import pytest

from penstock.config import FilterSettings, InstanceSettings
from penstock.errors import ConfigurationError, PenstockError
from penstock.server.destinations import Destinations
from penstock.store import BatchSize, Start
from penstock.testing import poll_until
from tests.support.folder_instance import ids_in, settings_of
from tests.support.shop_log import PRODUCT, written
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

CLIENT = 1001


@pytest.fixture
def settings(tmp_path: Path) -> InstanceSettings:
    log = LogWriter().open()
    for number in range(6):
        log.begin()
        log.map(7, PRODUCT)
        log.rows(INSERT, 7, PRODUCT, [[number, "x", None]])
        log.commit()
    (tmp_path / "logs").mkdir()
    written(log, tmp_path / "logs")
    return settings_of(tmp_path / "logs", destination="shop", start="earliest")


@pytest.fixture
def destinations() -> Any:
    registry = Destinations()
    yield registry
    registry.stop_all()


def got(destinations: Destinations, count: int) -> list[int]:
    """Rows of the next batch, which is acked."""
    clients = destinations.running_instance("shop").clients
    # The wait is for anything at all: a get by itself waits until there is as much as it asks for.
    assert clients.wait(CLIENT, BatchSize(1), 10)
    batch = clients.get(CLIENT, BatchSize(count))
    assert batch is not None
    clients.ack(CLIENT, batch[0])
    return [number for block in batch[1].blocks for number in ids_in(block)]


def test_what_is_not_there_is_named(destinations: Destinations, settings: InstanceSettings) -> None:
    with pytest.raises(ConfigurationError, match="it has: none"):
        destinations.running_instance("shop")
    destinations.start(settings)
    with pytest.raises(ConfigurationError, match="it has: shop"):
        destinations.running_instance("other")
    destinations.stop("shop")
    destinations.stop("shop")
    assert not destinations.instances


def test_a_filter_is_reloaded_without_a_restart(destinations: Destinations, settings: InstanceSettings) -> None:
    destinations.start(settings)
    before = destinations.running_instance("shop")
    destinations.reload(settings.model_copy(update={"filter": FilterSettings(allow=("shop\\.other",))}))
    assert destinations.running_instance("shop") is before


@pytest.mark.parametrize("is_kept", [True, False], ids=["file", "memory"])
def test_a_reload_loses_no_position(
    destinations: Destinations, settings: InstanceSettings, tmp_path: Path, is_kept: bool
) -> None:
    if is_kept:
        settings = settings.model_copy(update={"data_dir": tmp_path / "data"})
    destinations.start(settings)
    destinations.running_instance("shop").clients.subscribe(CLIENT, "", Start.stored())
    first = got(destinations, 6)
    destinations.reload(settings.model_copy(update={"retention_warning_h": 3}))
    assert destinations.running_instance("shop").settings.retention_warning_h == 3
    rest = list[int]()
    while len(first) + len(rest) < 6:
        rest += got(destinations, 100)
    assert first + rest == list(range(6))


def test_settings_that_cannot_start_leave_the_old_ones_running(
    destinations: Destinations, settings: InstanceSettings, tmp_path: Path
) -> None:
    destinations.start(settings)
    destinations.running_instance("shop").clients.subscribe(CLIENT, "", Start.stored())
    first = got(destinations, 6)
    running = destinations.running_instance("shop")
    bad = settings_of(tmp_path / "nothing", destination="shop")
    with pytest.raises(PenstockError):
        destinations.reload(bad)
    assert destinations.running_instance("shop") is running
    assert destinations.all["shop"].settings == settings
    assert poll_until(lambda: destinations.running_instance("shop").failure is None, 5)
    rest = list[int]()
    while len(first) + len(rest) < 6:
        rest += got(destinations, 100)
    assert first + rest == list(range(6))


def test_two_servers_do_not_share_a_folder(
    destinations: Destinations, settings: InstanceSettings, tmp_path: Path
) -> None:
    settings = settings.model_copy(update={"data_dir": tmp_path / "data"})
    destinations.start(settings)
    other = Destinations()
    with pytest.raises(ConfigurationError, match="in use by another server"):
        other.start(settings)
    destinations.stop("shop")
    other.start(settings)
    other.stop_all()
