"""Which time zone this machine has, as Java would find it."""

import time
from pathlib import Path
from zoneinfo import TZPATH

import pytest

from penstock.config import InstanceSettings
from penstock.config.canal_rendering import CanalRendering
from penstock.config.time_zone import find_machine_zone, resolve_zone_name
from penstock.errors import ConfigurationError

ZONES = next(Path(base) for base in TZPATH if (Path(base) / "Asia/Tokyo").exists())


def zone(folder: Path, **environment: str) -> str:
    return find_machine_zone(environment, folder / "localtime", folder / "timezone")


def test_the_environment_counts_first(tmp_path: Path) -> None:
    (tmp_path / "localtime").symlink_to("/usr/share/zoneinfo/Asia/Tokyo")
    assert zone(tmp_path, TZ="Asia/Shanghai") == zone(tmp_path, TZ=":Asia/Shanghai") == "Asia/Shanghai"
    assert zone(tmp_path, TZ="") == "Asia/Tokyo", "an empty one says nothing"


def test_the_system_has_a_link_a_file_or_a_name(tmp_path: Path) -> None:
    (tmp_path / "localtime").symlink_to("../usr/share/zoneinfo/America/New_York")
    assert zone(tmp_path) == "America/New_York"
    (tmp_path / "localtime").unlink()
    (tmp_path / "timezone").write_text("Europe/Berlin\n")
    assert zone(tmp_path) == "Europe/Berlin"
    rules = (ZONES / "Asia/Tokyo").read_bytes()
    (tmp_path / "localtime").write_bytes(rules)
    zone_name = zone(tmp_path)
    assert (ZONES / zone_name).read_bytes() == rules, "the file counts for more than a name that is older"
    (tmp_path / "timezone").write_text("Asia/Tokyo\n")
    assert zone(tmp_path) == "Asia/Tokyo", "of several names for these rules, the one that is written"


def test_a_zone_without_a_name_is_an_offset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "XYZ-8")
    time.tzset()
    try:
        assert zone(tmp_path, TZ="XYZ-8") == "Etc/GMT-8", "eight hours ahead of UTC"
        monkeypatch.setenv("TZ", "XYZ+3")
        time.tzset()
        assert zone(tmp_path, TZ="XYZ+3") == "Etc/GMT+3"
        monkeypatch.setenv("TZ", "XYZ-5:30")
        time.tzset()
        with pytest.raises(ConfigurationError, match=r"has no name \(TZ=XYZ-5:30\): name one with canal.time_zone"):
            zone(tmp_path, TZ="XYZ-5:30")
        monkeypatch.setenv("TZ", "XYZ0")
        time.tzset()
        assert zone(tmp_path) == "UTC", "nothing says anything"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_setting_is_a_name_or_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert (resolve_zone_name("local"), resolve_zone_name("Europe/Berlin")) == ("Asia/Tokyo", "Europe/Berlin")
    assert InstanceSettings().canal.time_zone == "UTC"
    with pytest.raises(ValueError, match="there is no time zone 'Asia/Shanghia'"):
        CanalRendering(time_zone="Asia/Shanghia")
