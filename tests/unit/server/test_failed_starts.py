"""Destinations of a server that cannot start: they are retried, and keep no other from being served."""

from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.config import ServerSettings
from penstock.errors import ConfigurationError, SourceConnectionError, StartingError
from penstock.server import Server
from tests.support.admin_support import readiness_of, served, settings_with, shop_folder, status_of
from tests.support.recorded_destinations import poll


def two_destinations(tmp_path: Path, **late: Any) -> ServerSettings:
    """`shop` can be read; `late` is a folder without files, unless more is said of it."""
    (tmp_path / "late").mkdir()
    late_settings = {
        "destination": "late",
        "source": {"path": str(tmp_path / "late"), "poll_s": 0.05},
        "start": "earliest",
    }
    settings = settings_with(shop_folder(tmp_path / "logs"))
    return settings.model_validate(
        {**settings.model_dump(), "instances": [late_settings | late, settings.instances[0]]}
    )


def test_a_source_that_cannot_be_reached_does_not_keep_the_others_from_being_served(tmp_path: Path) -> None:
    with served(two_destinations(tmp_path)) as server:
        assert server.is_serving
        assert not server.has_failed
        assert server.failure is None
        with penstock.connect(server.address, destination="shop") as there:
            assert there.status()["state"] == "following"
        told = pytest.raises(StartingError, match=r"'late' is starting, try again: start failed .*no log files")
        with penstock.connect(server.address, destination="late", retry_timeout_s=0) as there, told:
            there.positions()
        code, ready = readiness_of(server)
        assert code == 503
        assert ready["reasons"].keys() == {"late"}
        instances = {instance["destination"]: instance for instance in status_of(server)["instances"]}
        assert "no log files" in instances["late"]["reason"]
        assert instances["shop"]["role"] == "running"
        shop_folder(tmp_path / "late")
        with penstock.connect(server.address, destination="late", retry_timeout_s=60) as there:
            assert there.status()["state"] == "following"
        assert poll(lambda: readiness_of(server)[0] == 200)


def test_a_single_source_that_cannot_be_reached_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "late").mkdir()
    with served(settings_with(tmp_path / "late")) as server:
        assert not server.is_serving
        assert not server.has_failed
        shop_folder(tmp_path / "late")
        assert poll(lambda: server.is_serving, 60)


def test_one_that_is_needed_ends_the_start(tmp_path: Path) -> None:
    (tmp_path / "late").mkdir()
    server = Server(settings_with(tmp_path / "late"), needs_all=True)
    try:
        with pytest.raises(SourceConnectionError, match="no log files"):
            server.start()
    finally:
        server.stop()


def test_wrong_settings_of_one_do_not_end_the_others(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with served(two_destinations(tmp_path, data_dir=str(tmp_path / "file"))) as server:
        assert server.is_serving
        assert not server.has_failed
        assert isinstance(server.failure, ConfigurationError)
        assert "cannot be written" in readiness_of(server)[1]["reasons"]["late"]


def test_a_server_ends_when_all_its_destinations_have_wrong_settings(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    server = Server(settings_with(shop_folder(tmp_path / "logs"), {"data_dir": str(tmp_path / "file")}))
    try:
        with pytest.raises(ConfigurationError, match="cannot be written"):
            server.start()
        assert server.has_failed
    finally:
        server.stop()
    assert isinstance(server.failure, ConfigurationError)
